//! The loop: what was typed and what is new change the state, and at most once per frame the state is drawn.

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

use crate::app::{Act, App, Farewell, Setup};
use crate::feed::Arrivals;
use crate::highlight::load_ahead;
use crate::keyboard::Keyboard;
use crate::news::{Effect, News};
use crate::terminal::{Bell, Mouse, Screen};

/// Between two frames. More of them nobody sees.
const FRAME: Duration = Duration::from_millis(16);

/// What the terminal is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Who has the mouse.
    pub mouse: Mouse,
    /// How the person is called.
    pub bell: Bell,
}

/// Runs the screen until the person leaves, until `ending` is cancelled, or until nobody takes effects any more. The
/// terminal is as it was before when this returns.
///
/// Effects are waited for to be taken, so whoever takes them must not wait for the screen; giving it news never waits.
///
/// # Errors
/// When the terminal cannot be used, or is gone.
pub async fn run(
    setup: Setup,
    options: Options,
    arrivals: Arrivals,
    effects: mpsc::Sender<Effect>,
    ending: CancellationToken,
) -> io::Result<Farewell> {
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
        arrivals,
        effects,
        ending,
        signals,
        opened,
        drawn: None,
        is_changed: true,
    };
    runner.run().await?;
    Ok(runner.app.farewell())
}

struct Runner {
    app: App,
    screen: Screen,
    keyboard: Keyboard,
    arrivals: Arrivals,
    effects: mpsc::Sender<Effect>,
    ending: CancellationToken,
    signals: Signals,
    opened: Instant,
    /// When the last frame was drawn.
    drawn: Option<Instant>,
    /// Something happened since then.
    is_changed: bool,
}

struct Signals {
    suspend: Signal,
    resume: Signal,
}

/// Whether the screen stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goes {
    On,
    Away,
}

impl Runner {
    async fn run(&mut self) -> io::Result<()> {
        loop {
            if self.carry_out().await? == Goes::Away {
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
                news = self.arrivals.next() => {
                    let now = self.opened.elapsed();
                    news.into_iter().for_each(|news| self.app.take(news, now));
                    self.is_changed = true;
                }
                () = at(due) => {}
                _ = self.signals.suspend.recv() => self.suspend().await?,
                // Whoever had the terminal meanwhile may have left it in any state.
                _ = self.signals.resume.recv() => self.reclaim()?,
            }
        }
    }

    /// When the next frame is due, if one is.
    fn due(&self) -> Option<Instant> {
        let Some(drawn) = self.drawn else { return Some(self.opened) };
        let changed = self.is_changed.then_some(drawn + FRAME);
        let turned = self.app.turns().map(|turn| drawn + turn);
        [changed, turned].into_iter().flatten().min()
    }

    fn draw(&mut self) -> io::Result<()> {
        self.screen.draw(&mut self.app, self.opened.elapsed())?;
        self.drawn = Some(Instant::now());
        self.is_changed = false;
        Ok(())
    }

    /// Does what the state asks for.
    async fn carry_out(&mut self) -> io::Result<Goes> {
        for act in self.app.take_acts() {
            match act {
                Act::Effect(effect @ Effect::Edit(_)) => {
                    if self.edit(effect).await? == Goes::Away {
                        return Ok(Goes::Away);
                    }
                }
                Act::Effect(effect) => {
                    if self.pass_on(effect).await == Goes::Away {
                        return Ok(Goes::Away);
                    }
                }
                Act::Ring(text) => self.screen.ring(&text)?,
                Act::Copy(text) => self.screen.copy(&text)?,
                Act::Redraw => self.screen.forget()?,
                Act::Suspend => self.suspend().await?,
                Act::Leave => return Ok(Goes::Away),
            }
            self.is_changed = true;
        }
        Ok(Goes::On)
    }

    async fn pass_on(&self, effect: Effect) -> Goes {
        tokio::select! {
            () = self.ending.cancelled() => Goes::Away,
            passed = self.effects.send(effect) => if passed.is_ok() { Goes::On } else { Goes::Away },
        }
    }

    /// Lends the terminal to the editor, until the news come that it has ended.
    async fn edit(&mut self, effect: Effect) -> io::Result<Goes> {
        self.screen.lend();
        self.keyboard.pause();
        let modes = tcgetattr(io::stdin()).ok();
        let goes = self.wait_for_editor(effect).await?;
        // An editor that was killed leaves the modes that it needed.
        set_modes(modes.as_ref());
        if goes == Goes::On {
            self.reclaim()?;
        }
        Ok(goes)
    }

    async fn wait_for_editor(&mut self, effect: Effect) -> io::Result<Goes> {
        if self.pass_on(effect).await == Goes::Away {
            return Ok(Goes::Away);
        }
        loop {
            let news = tokio::select! {
                () = self.ending.cancelled() => return Ok(Goes::Away),
                news = self.arrivals.next() => news,
                // The editor stops with all of its group, and we are in it: the shell waits for us, too.
                _ = self.signals.suspend.recv() => {
                    if can_be_continued() {
                        kill_current_process_group(Raw::STOP)?;
                    }
                    continue;
                }
            };
            let has_ended = news.iter().any(|news| matches!(news, News::Edited(_)));
            let now = self.opened.elapsed();
            news.into_iter().for_each(|news| self.app.take(news, now));
            if has_ended {
                return Ok(Goes::On);
            }
        }
    }

    /// Stops the program as Ctrl+Z does elsewhere; this goes on when it is continued.
    async fn suspend(&mut self) -> io::Result<()> {
        if !can_be_continued() {
            self.app.refuse("Not stopped: there is no shell that could continue ikigai");
            self.is_changed = true;
            return Ok(());
        }
        self.screen.lend();
        self.keyboard.pause();
        // SIGSTOP, since SIGTSTP is caught here; the whole group, since a shell waits for all of it.
        kill_current_process_group(Raw::STOP)?;
        // With several threads this one may run on for a moment, so the terminal is not taken before we are told to.
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

/// Whether there is a shell that could continue us: it gives each job a group of its own. The group that a session begins
/// with has nobody around it (`ssh -t host ikigai`, `xterm -e ikigai`, a container), nor has one whose parent is gone.
///
/// What lives outside of a container has the number 0 inside, which rustix takes for impossible.
fn can_be_continued() -> bool {
    let parent = getppid();
    let own = getsid(None).ok();
    let parents = getsid(Some(parent)).ok();
    parent != Pid::from_raw(0) && own.is_some() && own == parents && own != Some(getpgrp())
}

/// A terminal that is gone needs nothing any more.
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
