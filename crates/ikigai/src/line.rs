//! `ikigai` on a terminal, line by line: the prompt, the answer as it streams, calls and results as lines.
//!
//! The terminal itself edits the line and turns Ctrl-C into a signal. The agents run beside it: what was typed goes to the
//! session, and their events are printed.

mod answer;
mod commands;
mod screen;
mod typed;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ikigai_agents::Model;
use ikigai_conversation::SessionId;
use ikigai_host::{AgentChoice, AgentSlot, Environment, OpenSession, ServiceEnd, SessionOptions};
use ikigai_protocol::{
    ApprovalAnswer, Command, CommandError, Event, Reply, Request, is_slash_command,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::print;
use crate::question::HOW_TO_ANSWER;
use crate::session::{claim, how_to_continue};
use crate::signals::{self, Caught, Signals};

use answer::parse_answer;
use commands::Next;
use screen::Screen;
use typed::{Typed, read_lines};

const TOO_LONG: &str = "\
A terminal cuts lines at 4,095 bytes, so this was not sent. End shorter lines with a \\, or use
'ikigai run -c -' with the text on standard input";

const GARBLED: &str =
    "Arrow keys cannot edit the line here yet, so this was not sent. Please type it again";

/// Talks until the user leaves, to another agent when the first no longer runs here.
pub(crate) async fn talk(environment: &Arc<Environment>, model: Model) -> anyhow::Result<Exit> {
    let mut slot = claim(environment, SessionOptions::INTERACTIVE).await?;
    let mut choice = AgentChoice::new(environment, model);
    let mut keyboard = Keyboard { lines: read_lines()?, signals: Signals::listen()? };
    loop {
        let own = slot.clone();
        match talk_to(slot, choice, &mut keyboard).await? {
            End::Left(exit) => return Ok(exit),
            End::OtherSession(other, last) => {
                (slot, choice) = (own.join(other).await?, last);
                continue;
            }
            End::AgentLost(last) => choice = last,
        }
        match keyboard.wait_for_enter().await {
            Next::Stay => slot = own.claim_another().await?,
            Next::Leave => return Ok(Exit::Done),
        }
    }
}

/// How a conversation with an agent ended.
enum End {
    /// The user left.
    Left(Exit),
    /// Another process has taken the agent, or it was killed. That was said.
    AgentLost(AgentChoice),
    /// Another terminal has started a session, and nothing was said in this one.
    OtherSession(SessionId, AgentChoice),
}

/// What the user types, whichever agent it is for.
struct Keyboard {
    lines: mpsc::Receiver<Typed>,
    signals: Signals,
}

const OFFER: &str = "Enter starts a new agent of the session, Ctrl-D leaves";

impl Keyboard {
    /// Offers a new agent. What is typed before Enter was meant for another, and is not sent to it.
    async fn wait_for_enter(&mut self) -> Next {
        loop {
            print::note(OFFER);
            tokio::select! {
                typed = self.lines.recv() => match typed {
                    Some(Typed::Line(line)) if line.trim().is_empty() => return Next::Stay,
                    Some(Typed::Line(line)) if line.trim() == "/exit" => return Next::Leave,
                    Some(Typed::Line(_) | Typed::TooLong | Typed::Garbled) => {}
                    None => return Next::Leave,
                },
                _ = self.signals.next() => return Next::Leave,
            }
        }
    }
}

/// Talks to one agent.
async fn talk_to(
    slot: AgentSlot,
    choice: AgentChoice,
    keyboard: &mut Keyboard,
) -> anyhow::Result<End> {
    let agent = slot.agent().clone();
    let goodbye = how_to_continue(slot.session(), &agent.top());
    let screen = Screen::new(slot.environment(), choice.mode, agent.clone());
    let screen = Arc::new(Mutex::new(screen));
    let for_events = Arc::clone(&screen);
    let events = Arc::new(move |event: Event| lock(&for_events).show(&event));
    let label = choice.model.label.clone();
    let (session, service) = slot.open(choice, events).await?;
    lock(&screen).greet(&label, session.sandbox());
    let open = Request { agent, command: Command::Open { target: None } };
    if let Ok(Reply::Opened { log, .. }) = session.execute(open).await {
        lock(&screen).recall(&log);
    }
    let session = Arc::new(session);
    let stop = CancellationToken::new();
    let user =
        User { session: Arc::clone(&session), screen: Arc::clone(&screen), is_leaving: false };
    let mut serving = std::pin::pin!(service.run(stop.clone()));
    let exit = tokio::select! {
        end = &mut serving => {
            lock(&screen).leave_line();
            return Ok(match end? {
                ServiceEnd::Finished => End::Left(Exit::Done),
                ServiceEnd::AgentLost(_) => End::AgentLost(session.choice()),
                ServiceEnd::OtherSession(other) => End::OtherSession(other, session.choice()),
            });
        }
        exit = user.listen(keyboard) => exit,
    };
    // What runs when the user leaves is interrupted, and that is shown. A second Ctrl-C ends the program at once.
    stop.cancel();
    signals::cancel(stop)?;
    serving.await?;
    lock(&screen).say_goodbye(&goodbye);
    Ok(End::Left(exit))
}

/// The user's side of the conversation.
struct User {
    session: Arc<OpenSession>,
    screen: Arc<Mutex<Screen>>,
    /// Ctrl-C was pressed once with nothing to interrupt.
    is_leaving: bool,
}

impl User {
    /// Listens until the user leaves.
    async fn listen(mut self, keyboard: &mut Keyboard) -> Exit {
        let Keyboard { lines, signals } = keyboard;
        lock(&self.screen).prompt();
        loop {
            tokio::select! {
                line = lines.recv() => match line {
                    Some(Typed::Line(line)) => {
                        self.is_leaving = false;
                        lock(&self.screen).entered();
                        if self.take(&line).await == Next::Leave {
                            return Exit::Done;
                        }
                    }
                    Some(Typed::TooLong) => {
                        lock(&self.screen).entered();
                        lock(&self.screen).refuse(TOO_LONG);
                        lock(&self.screen).prompt();
                    }
                    Some(Typed::Garbled) => {
                        lock(&self.screen).entered();
                        lock(&self.screen).refuse(GARBLED);
                        lock(&self.screen).prompt();
                    }
                    None => return Exit::Done,
                },
                caught = signals.next() => match caught {
                    Caught::Interrupt if lock(&self.screen).is_busy() => {
                        self.order(Command::Interrupt).await;
                    }
                    Caught::Interrupt if !self.is_leaving => {
                        self.is_leaving = true;
                        lock(&self.screen).say("Press Ctrl-C again to leave");
                        lock(&self.screen).prompt();
                    }
                    Caught::Interrupt => return Exit::Done,
                    Caught::Ending => return Exit::Interrupted,
                },
            }
        }
    }

    /// Does what a typed line says.
    async fn take(&mut self, line: &str) -> Next {
        let text = line.trim();
        if is_slash_command(text) {
            return self.take_command(text).await;
        }
        if lock(&self.screen).asks() {
            self.answer(text).await;
            return Next::Stay;
        }
        let is_busy = lock(&self.screen).is_busy();
        if text.is_empty() {
            if lock(&self.screen).can_continue() {
                self.order(Command::Continue).await;
            } else if !is_busy {
                lock(&self.screen).prompt();
            }
            return Next::Stay;
        }
        lock(&self.screen).said(is_busy);
        self.order(Command::Say { text: text.to_owned() }).await;
        Next::Stay
    }

    /// Answers the question that is shown. What is no answer is not taken for one.
    async fn answer(&self, text: &str) {
        let Some((decision, reason)) = parse_answer(text) else {
            lock(&self.screen).say(HOW_TO_ANSWER);
            lock(&self.screen).prompt();
            return;
        };
        let Some((agent, call)) = lock(&self.screen).answered() else { return };
        let answer = ApprovalAnswer { call, decision, reason };
        self.start(Request { agent, command: Command::Answer(answer) }).await;
    }

    /// Passes a command on to the agent in view.
    async fn order(&self, command: Command) {
        let agent = lock(&self.screen).view().clone();
        self.start(Request { agent, command }).await;
    }

    /// Passes a command on to its agent. A refusal is shown whenever it comes: an interrupt must not wait behind it.
    async fn start(&self, request: Request) {
        let answer = self.session.start(request).await;
        let screen = Arc::clone(&self.screen);
        tokio::spawn(async move {
            match answer.await {
                // Events tell of these.
                Ok(_) | Err(CommandError::Closed | CommandError::QueueFull(_)) => {}
                Err(error) => lock(&screen).refuse(&error.to_string()),
            }
        });
    }
}

fn lock(screen: &Mutex<Screen>) -> MutexGuard<'_, Screen> {
    screen.lock().unwrap_or_else(PoisonError::into_inner)
}
