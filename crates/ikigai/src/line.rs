//! `ikigai` on a terminal, line by line: the prompt, the streaming answer, calls and results as
//! lines.
//!
//! The terminal edits the line and turns Ctrl-C into a signal. Agents run concurrently: input goes
//! to the session, and its events are printed.

mod answer;
mod commands;
mod input;
mod screen;

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
use crate::signals::{self, Signals, StopSignal};

use answer::parse_answer;
use commands::Next;
use input::{Input, read_lines};
use screen::Screen;

const TOO_LONG: &str = "\
A terminal cuts lines at 4,095 bytes, so this was not sent. End shorter lines with a \\, or use
'ikigai run -c -' with the text on standard input";

const GARBLED: &str =
    "Arrow keys cannot edit the line here yet, so this was not sent. Please type it again";

/// Runs the conversation until the user leaves. Moves to another agent if this process loses the
/// first.
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
    /// Another process took over the agent, or it was killed. This has been reported.
    AgentLost(AgentChoice),
    /// Another terminal started a session before this one had a message.
    OtherSession(SessionId, AgentChoice),
}

/// The user's input and signals, shared by all conversations.
struct Keyboard {
    lines: mpsc::Receiver<Input>,
    signals: Signals,
}

const OFFER: &str = "Enter starts a new agent of the session, Ctrl-D leaves";

impl Keyboard {
    /// Offers a new agent. Text typed before Enter was meant for the old agent, so it is not sent.
    async fn wait_for_enter(&mut self) -> Next {
        loop {
            print::note(OFFER);
            tokio::select! {
                typed = self.lines.recv() => match typed {
                    Some(Input::Line(line)) if line.trim().is_empty() => return Next::Stay,
                    Some(Input::Line(line)) if line.trim() == "/exit" => return Next::Leave,
                    Some(Input::Line(_) | Input::TooLong | Input::Garbled) => {}
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
    let exit_hint = how_to_continue(slot.session(), &agent.top());
    let screen = Screen::new(slot.environment(), choice.mode, agent.clone());
    let screen = Arc::new(Mutex::new(screen));
    let for_events = Arc::clone(&screen);
    let events = Arc::new(move |event: Event| lock(&for_events).show(&event));
    let label = choice.model.label.clone();
    let (session, service) = slot.open(choice, events).await?;
    lock(&screen).print_header(&label, session.sandbox());
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
            lock(&screen).finish_line();
            return Ok(match end? {
                ServiceEnd::Finished => End::Left(Exit::Done),
                ServiceEnd::AgentLost(_) => End::AgentLost(session.choice()),
                ServiceEnd::OtherSession(other) => End::OtherSession(other, session.choice()),
            });
        }
        exit = user.listen(keyboard) => exit,
    };
    // Running turns are interrupted, and the interrupts are shown. A second Ctrl-C exits
    // immediately.
    stop.cancel();
    signals::cancel(stop)?;
    serving.await?;
    lock(&screen).print_exit_hint(&exit_hint);
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
                    Some(Input::Line(line)) => {
                        self.is_leaving = false;
                        lock(&self.screen).line_entered();
                        if self.handle_line(&line).await == Next::Leave {
                            return Exit::Done;
                        }
                    }
                    Some(Input::TooLong) => {
                        lock(&self.screen).line_entered();
                        lock(&self.screen).show_error(TOO_LONG);
                        lock(&self.screen).prompt();
                    }
                    Some(Input::Garbled) => {
                        lock(&self.screen).line_entered();
                        lock(&self.screen).show_error(GARBLED);
                        lock(&self.screen).prompt();
                    }
                    None => return Exit::Done,
                },
                signal = signals.next() => match signal {
                    StopSignal::Interrupt if lock(&self.screen).is_busy() => {
                        self.order(Command::Interrupt).await;
                    }
                    StopSignal::Interrupt if !self.is_leaving => {
                        self.is_leaving = true;
                        lock(&self.screen).say("Press Ctrl-C again to leave");
                        lock(&self.screen).prompt();
                    }
                    StopSignal::Interrupt => return Exit::Done,
                    StopSignal::Terminate => return Exit::Interrupted,
                },
            }
        }
    }

    /// Handles a line of input.
    async fn handle_line(&mut self, line: &str) -> Next {
        let text = line.trim();
        if is_slash_command(text) {
            return self.handle_command(text).await;
        }
        if lock(&self.screen).has_question() {
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
        lock(&self.screen).message_sent(is_busy);
        self.order(Command::Say { text: text.to_owned() }).await;
        Next::Stay
    }

    /// Answers the approval request that is shown. Anything else gets help on how to answer.
    async fn answer(&self, text: &str) {
        let Some((decision, reason)) = parse_answer(text) else {
            lock(&self.screen).say(HOW_TO_ANSWER);
            lock(&self.screen).prompt();
            return;
        };
        let Some((agent, call)) = lock(&self.screen).take_question() else { return };
        let answer = ApprovalAnswer { call, decision, reason };
        self.start(Request { agent, command: Command::Answer(answer) }).await;
    }

    /// Sends a command to the agent in view.
    async fn order(&self, command: Command) {
        let agent = lock(&self.screen).view().clone();
        self.start(Request { agent, command }).await;
    }

    /// Sends a command to its agent. A refusal is shown when it arrives: an interrupt must not wait
    /// for it.
    async fn start(&self, request: Request) {
        let answer = self.session.start(request).await;
        let screen = Arc::clone(&self.screen);
        tokio::spawn(async move {
            match answer.await {
                // Events show these.
                Ok(_) | Err(CommandError::Closed | CommandError::QueueFull(_)) => {}
                Err(error) => lock(&screen).show_error(&error.to_string()),
            }
        });
    }
}

fn lock(screen: &Mutex<Screen>) -> MutexGuard<'_, Screen> {
    screen.lock().unwrap_or_else(PoisonError::into_inner)
}
