//! The event loop: input and updates change the state, which is drawn at most once per frame.

use std::io;
use std::time::Duration;

use nix::unistd::{Pid, getpgrp, getppid, getsid};
use ratatui_core::layout::Size;
use rustix::process::{Signal as Raw, kill_current_process_group};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::app::{Action, App, ExitSummary, Setup};
use crate::feed::Updates;
use crate::highlight::load_ahead;
use crate::keyboard::Keyboard;
use crate::style::Colours;
use crate::terminal::{Bell, Mouse, Screen};
use crate::update::{Effect, Update};

/// The time between two frames. A higher rate would not be visible.
const FRAME: Duration = Duration::from_millis(16);

/// Options of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Who gets mouse events.
    pub mouse: Mouse,
    /// How to draw the user's attention.
    pub bell: Bell,
}

/// Runs the screen until the user leaves, `ending` is cancelled, or the receiver of effects is
/// dropped. The terminal is restored when this returns.
///
/// Sending an effect waits for the receiver, so the receiver must not wait for the screen. Feeding
/// it updates never waits.
///
/// # Errors
/// If the terminal cannot be used or is gone.
pub async fn run(
    setup: Setup,
    options: Options,
    updates: Updates,
    effects: mpsc::Sender<Effect>,
    ending: CancellationToken,
) -> io::Result<ExitSummary> {
    let (width, height) = crossterm::terminal::size()?;
    let app = App::new(setup, Size::new(width, height));
    let signals = Signals {
        suspend: signal(SignalKind::from_raw(Raw::TSTP.as_raw()))?,
        resume: signal(SignalKind::from_raw(Raw::CONT.as_raw()))?,
    };
    let screen = Screen::open(options.mouse, options.bell)?;
    load_ahead();
    let opened = Instant::now();
    let keyboard = Keyboard::new();
    let mut runner = Runner {
        app,
        screen,
        keyboard,
        updates,
        effects,
        ending,
        signals,
        opened,
        drawn: None,
        is_changed: true,
    };
    runner.ask_background()?;
    runner.run().await?;
    Ok(runner.app.exit_summary())
}

struct Runner {
    app: App,
    screen: Screen,
    keyboard: Keyboard,
    updates: Updates,
    effects: mpsc::Sender<Effect>,
    ending: CancellationToken,
    signals: Signals,
    opened: Instant,
    /// When the last frame was drawn.
    drawn: Option<Instant>,
    /// Whether the state has changed since then.
    is_changed: bool,
}

struct Signals {
    suspend: Signal,
    resume: Signal,
}

/// Whether the screen stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Continue,
    Quit,
}

impl Runner {
    async fn run(&mut self) -> io::Result<()> {
        loop {
            if self.perform().await? == Flow::Quit {
                return Ok(());
            }
            let due = self.due();
            if due.is_some_and(|due| due <= Instant::now()) {
                self.draw()?;
                continue;
            }
            tokio::select! {
                () = self.ending.cancelled() => return Ok(()),
                typed = self.keyboard.next() => {
                    let now = self.opened.elapsed();
                    typed?.into_iter().for_each(|typed| self.app.press(typed, now));
                    self.is_changed = true;
                }
                updates = self.updates.next() => {
                    let now = self.opened.elapsed();
                    updates.into_iter().for_each(|update| self.app.update(update, now));
                    self.is_changed = true;
                }
                () = at(due) => {}
                _ = self.signals.suspend.recv() => self.suspend().await?,
                // Another program may have left the terminal in any state.
                _ = self.signals.resume.recv() => self.reclaim()?,
            }
        }
    }

    /// When the next frame is due, if one is.
    fn due(&self) -> Option<Instant> {
        let Some(drawn) = self.drawn else { return Some(self.opened) };
        let changed = self.is_changed.then_some(drawn + FRAME);
        let animated = self.app.animation().map(|interval| drawn + interval);
        [changed, animated].into_iter().flatten().min()
    }

    fn draw(&mut self) -> io::Result<()> {
        self.screen.set_title(self.app.window_title())?;
        self.screen.draw(&mut self.app, self.opened.elapsed())?;
        self.drawn = Some(Instant::now());
        self.is_changed = false;
        Ok(())
    }

    /// Performs the pending actions.
    async fn perform(&mut self) -> io::Result<Flow> {
        for action in self.app.take_actions() {
            match action {
                Action::Effect(effect @ Effect::OpenEditor(_)) => {
                    if self.edit(effect).await? == Flow::Quit {
                        return Ok(Flow::Quit);
                    }
                }
                Action::Effect(effect) => {
                    if self.emit(effect).await == Flow::Quit {
                        return Ok(Flow::Quit);
                    }
                }
                Action::Ring(text) => self.screen.ring(&text)?,
                Action::Copy(text) => self.screen.copy(&text)?,
                Action::ShowPlain(text) => {
                    if self.show_plain(&text).await? == Flow::Quit {
                        return Ok(Flow::Quit);
                    }
                }
                Action::Redraw => self.screen.forget()?,
                Action::AskBackground => self.ask_background()?,
                Action::Suspend => self.suspend().await?,
                Action::Leave => return Ok(Flow::Quit),
            }
            self.is_changed = true;
        }
        Ok(Flow::Continue)
    }

    /// Asks whether the background is dark or light, if the colours depend on it.
    fn ask_background(&mut self) -> io::Result<()> {
        match self.app.colours {
            Colours::Many(_) => self.screen.ask_background(),
            Colours::Sixteen | Colours::None => Ok(()),
        }
    }

    async fn emit(&self, effect: Effect) -> Flow {
        tokio::select! {
            () = self.ending.cancelled() => Flow::Quit,
            sent = self.effects.send(effect) => if sent.is_ok() { Flow::Continue } else { Flow::Quit },
        }
    }

    /// Shows a text on the normal screen, where the terminal can select and search, until a key is
    /// pressed.
    async fn show_plain(&mut self, text: &str) -> io::Result<Flow> {
        self.screen.lend();
        let shown = self.wait_below(text).await;
        Screen::end_plain();
        let flow = shown?;
        if flow == Flow::Continue {
            self.reclaim()?;
        }
        Ok(flow)
    }

    async fn wait_below(&mut self, text: &str) -> io::Result<Flow> {
        Screen::print_plain(text)?;
        tokio::select! {
            () = self.ending.cancelled() => Ok(Flow::Quit),
            typed = self.keyboard.next() => typed.map(|_| Flow::Continue),
        }
    }

    /// Lends the terminal to the editor until it exits.
    async fn edit(&mut self, effect: Effect) -> io::Result<Flow> {
        self.screen.lend();
        self.keyboard.pause();
        let modes = tcgetattr(io::stdin()).ok();
        let flow = self.wait_for_editor(effect).await?;
        // A killed editor leaves its own modes behind.
        set_modes(modes.as_ref());
        if flow == Flow::Continue {
            self.reclaim()?;
        }
        Ok(flow)
    }

    async fn wait_for_editor(&mut self, effect: Effect) -> io::Result<Flow> {
        if self.emit(effect).await == Flow::Quit {
            return Ok(Flow::Quit);
        }
        loop {
            let updates = tokio::select! {
                () = self.ending.cancelled() => return Ok(Flow::Quit),
                updates = self.updates.next() => updates,
                // The editor stops its whole process group, which includes us: the shell waits for
                // all of it.
                _ = self.signals.suspend.recv() => {
                    if can_be_continued() {
                        kill_current_process_group(Raw::STOP)?;
                    }
                    continue;
                }
            };
            let has_ended = updates.iter().any(|update| matches!(update, Update::Edited(_)));
            let now = self.opened.elapsed();
            updates.into_iter().for_each(|update| self.app.update(update, now));
            if has_ended {
                return Ok(Flow::Continue);
            }
        }
    }

    /// Suspends the program as Ctrl+Z does elsewhere. Returns when it is continued.
    async fn suspend(&mut self) -> io::Result<()> {
        if !can_be_continued() {
            self.app.refuse("Not stopped: there is no shell that could continue ikigai");
            self.is_changed = true;
            return Ok(());
        }
        self.screen.lend();
        self.keyboard.pause();
        // SIGSTOP, because we catch SIGTSTP; the whole group, because the shell waits for all of
        // it.
        kill_current_process_group(Raw::STOP)?;
        // With several threads this one may keep running for a moment, so wait for SIGCONT first.
        self.signals.resume.recv().await;
        self.reclaim()
    }

    fn reclaim(&mut self) -> io::Result<()> {
        self.screen.reclaim()?;
        self.keyboard.resume();
        self.is_changed = true;
        Ok(())
    }
}

/// Whether there is a shell that could continue us. A shell gives each job its own process group.
/// There is no shell around the first group of a session (`ssh -t host ikigai`, `xterm -e ikigai`,
/// a container) or around a group whose parent is gone.
///
/// A parent outside the container has the PID 0 inside, which rustix does not allow for.
fn can_be_continued() -> bool {
    let parent = getppid();
    let own = getsid(None).ok();
    let parents = getsid(Some(parent)).ok();
    parent != Pid::from_raw(0) && own.is_some() && own == parents && own != Some(getpgrp())
}

/// Ignores errors: the terminal may be gone.
fn set_modes(modes: Option<&Termios>) {
    if let Some(modes) = modes {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, modes);
    }
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
