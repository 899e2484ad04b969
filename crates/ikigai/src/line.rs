//! `ikigai` on a terminal, line by line: the prompt, the answer as it streams, calls and results as lines.
//!
//! The terminal stays in its own hands: it edits the line, and turns Ctrl-C into a signal. The agent is a
//! task beside us; we tell it what was typed and print what it tells.

mod answer;
mod commands;
mod screen;
mod typed;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ikigai_agents::{AgentCommand, Model, Person as Whom, Seat, serve};
use ikigai_conversation::SessionId;
use ikigai_protocol::{ApprovalAnswer, Event};
use ikigai_store::StoreError;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::environment::Environment;
use crate::exit::Exit;
use crate::hand::{Choice, Hand, way_back};
use crate::opening::{
    Otherwise, equip, join, session_to_join, take_seat, take_seat_beside, toolbox,
};
use crate::print;
use crate::question::HOW_TO_ANSWER;
use crate::settings;
use crate::signals::{self, Caught, Signals};
use crate::temporary::TemporaryFolder;

use answer::parse_answer;
use commands::Asked;
use screen::Screen;
use typed::{Typed, read_lines};

/// How many orders may wait for the agents; they are taken at once, also while they work.
const COMMANDS: usize = 16;

const TOO_LONG: &str = "\
Error: a terminal cuts lines at 4,095 bytes, so this was not sent: end shorter lines with a \\, or use
'ikigai run -c -' with the text on standard input";

const GARBLED: &str =
    "Error: arrow keys cannot edit the line here yet, so this was not sent: please type it again";

/// Talks until the person leaves, with another agent when the first is not run here any more.
pub(crate) async fn talk(environment: &Environment, model: Model) -> anyhow::Result<Exit> {
    let mut seat = take_seat(environment, Otherwise::Join).await?;
    let mut choice = Choice { mode: settings::mode(&environment.settings), model };
    let mut keyboard = Keyboard { lines: read_lines()?, signals: Signals::listen()? };
    loop {
        let own = seat.clone();
        match talk_at(environment, choice, seat, &mut keyboard).await? {
            Parted::Left(exit) => return Ok(exit),
            Parted::Overtaken(other, last) => {
                (seat, choice) = (join(environment, &own, other).await?, last);
                continue;
            }
            Parted::AgentIsGone(last) => choice = last,
        }
        match keyboard.wait_for_enter().await {
            Asked::ToStay => {
                seat = take_seat_beside(environment, own.store(), own.session()).await?;
            }
            Asked::ToLeave => return Ok(Exit::Done),
        }
    }
}

/// How a conversation with an agent ended.
enum Parted {
    /// By the person.
    Left(Exit),
    /// Another process has taken the agent over, or somebody has killed it. That was said.
    AgentIsGone(Choice),
    /// Before anything was said here, another terminal has begun a session that can be joined.
    Overtaken(SessionId, Choice),
}

/// What comes from the person, whoever they talk to.
struct Keyboard {
    lines: mpsc::Receiver<Typed>,
    signals: Signals,
}

const OFFER: &str = "Enter begins as a new agent of the session, Ctrl-D leaves";

impl Keyboard {
    /// Offers a new agent. What is typed before Enter was meant for another, and is not sent to it.
    async fn wait_for_enter(&mut self) -> Asked {
        loop {
            print::note(OFFER);
            tokio::select! {
                typed = self.lines.recv() => match typed {
                    Some(Typed::Line(line)) if line.trim().is_empty() => return Asked::ToStay,
                    Some(Typed::Line(line)) if line.trim() == "/exit" => return Asked::ToLeave,
                    Some(Typed::Line(_) | Typed::TooLong | Typed::Garbled) => {}
                    None => return Asked::ToLeave,
                },
                _ = self.signals.next() => return Asked::ToLeave,
            }
        }
    }
}

/// Talks to one agent.
async fn talk_at(
    environment: &Environment,
    choice: Choice,
    seat: Seat,
    keyboard: &mut Keyboard,
) -> anyhow::Result<Parted> {
    let (store, session, agent) = (seat.store(), seat.session(), seat.agent().clone());
    let temporary = TemporaryFolder::of_session(environment, session)?;
    let toolbox = toolbox(environment, &seat, &temporary, Whom::Present)?;
    let permissions = Arc::clone(&toolbox.permissions);
    permissions.set_mode(choice.mode);
    let sandbox = toolbox.commands.sandbox_kind().await;
    let screen =
        Arc::new(Mutex::new(Screen::new(environment, Arc::clone(&permissions), agent.clone())));
    lock(&screen).greet(&choice.model.label, &agent, &sandbox);
    let said_before = store.own_log(session, agent.clone(), None).await;
    lock(&screen).recall(&said_before.unwrap_or_default());
    let (for_events, for_the_end) = (Arc::clone(&screen), Arc::clone(&screen));
    let events = Arc::new(move |event: Event| lock(&for_events).show(&event));
    let equipment = equip(environment, choice.model, toolbox, events);
    let (tell, orders) = mpsc::channel(COMMANDS);
    let shutdown = CancellationToken::new();
    let hand = Hand {
        environment,
        store,
        session,
        seat: seat.clone(),
        permissions,
        models: Arc::clone(&equipment.models),
        tell,
        interrupt_key: "Ctrl-C",
    };
    let (models, permissions) = (Arc::clone(&hand.models), Arc::clone(&hand.permissions));
    let last = || Choice { mode: permissions.mode(), model: models.of(&agent) };
    let person = Person { hand, screen, leaving: false };
    let own = seat.clone();
    let mut serving = std::pin::pin!(serve(seat, equipment, orders, shutdown.clone()));
    let exit = tokio::select! {
        served = &mut serving => return match served {
            Ok(()) => Ok(Parted::Left(Exit::Done)),
            Err(StoreError::LeaseLost { .. } | StoreError::AgentDead(_)) => {
                lock(&for_the_end).leave_line();
                Ok(Parted::AgentIsGone(last()))
            }
            Err(error) => Err(error.into()),
        },
        exit = person.listen(keyboard) => exit?,
        other = session_to_join(environment, &own) => {
            shutdown.cancel();
            serving.await?;
            lock(&for_the_end).leave_line();
            return Ok(Parted::Overtaken(other, last()));
        }
    };
    // What goes on when the person leaves is interrupted, and so it is told. Whoever cannot wait presses Ctrl-C.
    shutdown.cancel();
    signals::cancel(shutdown)?;
    serving.await?;
    lock(&for_the_end).take_leave(&way_back(session, &agent.top()));
    Ok(Parted::Left(exit))
}

/// The person's side of the conversation.
struct Person<'a> {
    hand: Hand<'a>,
    screen: Arc<Mutex<Screen>>,
    /// Ctrl-C was pressed once with nothing to interrupt.
    leaving: bool,
}

impl Person<'_> {
    /// Listens until the person leaves.
    async fn listen(mut self, keyboard: &mut Keyboard) -> anyhow::Result<Exit> {
        let Keyboard { lines, signals } = keyboard;
        lock(&self.screen).prompt();
        loop {
            tokio::select! {
                line = lines.recv() => match line {
                    Some(Typed::Line(line)) => {
                        self.leaving = false;
                        lock(&self.screen).entered();
                        if self.take(line).await? == Asked::ToLeave {
                            return Ok(Exit::Done);
                        }
                    }
                    Some(Typed::TooLong) => {
                        lock(&self.screen).entered();
                        lock(&self.screen).say(TOO_LONG);
                        lock(&self.screen).prompt();
                    }
                    Some(Typed::Garbled) => {
                        lock(&self.screen).entered();
                        lock(&self.screen).say(GARBLED);
                        lock(&self.screen).prompt();
                    }
                    None => return Ok(Exit::Done),
                },
                caught = signals.next() => match caught {
                    Caught::Interrupt if lock(&self.screen).is_busy() => {
                        self.tell(AgentCommand::Interrupt).await;
                    }
                    Caught::Interrupt if !self.leaving => {
                        self.leaving = true;
                        lock(&self.screen).say("Ctrl-C once more leaves, and so does /exit");
                        lock(&self.screen).prompt();
                    }
                    Caught::Interrupt => return Ok(Exit::Done),
                    Caught::Ending => return Ok(Exit::Interrupted),
                },
            }
        }
    }

    /// Does what a typed line asks for.
    async fn take(&mut self, line: String) -> anyhow::Result<Asked> {
        let text = line.trim();
        // A path is none.
        let is_path = |rest: &str| rest.split_whitespace().next().is_some_and(|w| w.contains('/'));
        if let Some(command) = text.strip_prefix('/').filter(|rest| !is_path(rest)) {
            let asked = self.obey(command).await?;
            let mut screen = lock(&self.screen);
            if asked == Asked::ToStay && (!screen.is_busy() || screen.asks()) {
                screen.prompt();
            }
            return Ok(asked);
        }
        if lock(&self.screen).asks() {
            self.answer(text).await;
            return Ok(Asked::ToStay);
        }
        let is_busy = lock(&self.screen).is_busy();
        if text.is_empty() {
            if lock(&self.screen).can_continue() {
                self.tell(AgentCommand::Continue).await;
            } else if !is_busy {
                lock(&self.screen).prompt();
            }
            return Ok(Asked::ToStay);
        }
        lock(&self.screen).said(is_busy);
        self.tell(AgentCommand::Say(text.to_owned())).await;
        Ok(Asked::ToStay)
    }

    /// Answers the question that stands open. What is no answer is not taken for one.
    async fn answer(&self, text: &str) {
        let Some((decision, reason)) = parse_answer(text) else {
            lock(&self.screen).say(HOW_TO_ANSWER);
            lock(&self.screen).prompt();
            return;
        };
        let Some((agent, call)) = lock(&self.screen).answered() else { return };
        let command = AgentCommand::Answer(ApprovalAnswer { call, decision, reason });
        drop(self.hand.order(&agent, command).await);
    }

    /// Tells the agent in view something.
    async fn tell(&self, command: AgentCommand) {
        let agent = lock(&self.screen).view().clone();
        drop(self.hand.order(&agent, command).await);
    }
}

fn lock(screen: &Mutex<Screen>) -> MutexGuard<'_, Screen> {
    screen.lock().unwrap_or_else(PoisonError::into_inner)
}
