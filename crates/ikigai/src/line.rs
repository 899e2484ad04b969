//! `ikigai` on a terminal, line by line. Connects [`LineMode`] with a session.
//!
//! The terminal edits the line and turns Ctrl-C into a signal. Agents run concurrently: input goes
//! to the session, and its events are printed.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ikigai_agents::Model;
use ikigai_host::{AgentChoice, AgentSlot, Environment, OpenSession, ServiceEnd, SessionOptions};
use ikigai_lines::{Entered, Input, LineMode, LineStyles, Setup, read_lines};
use ikigai_protocol::{Command, CommandError, Event, Reply, Request};
use ikigai_tools::{Mode, NoSandbox, SandboxKind};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::print;
use crate::session::{claim, how_to_continue};
use crate::signals::{self, Signals, StopSignal};

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
            End::NewSession(last) => {
                (slot, choice) = (own.claim_session(None).await?, last);
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
    /// The user continues with a new session.
    NewSession(AgentChoice),
    /// Another process took over the agent, or it was killed. This has been reported.
    AgentLost(AgentChoice),
}

/// Why listening to the user ended.
enum Heard {
    Exit(Exit),
    NewSession,
}

/// What to do after a line of input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Stay,
    Leave,
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
    let mode = choice.mode;
    let lines = Arc::new(Mutex::new(LineMode::new(setup(&slot, mode))));
    let for_events = Arc::clone(&lines);
    let events = Arc::new(move |event: Event| lock(&for_events).show(&event));
    let label = choice.model.label.clone();
    let (session, service) = slot.open(choice, events).await?;
    lock(&lines).print_header(PROGRAM, &label, &sandbox(mode, session.sandbox()));
    let open = Request { agent, command: Command::Open { target: None } };
    if let Ok(Reply::Opened { log, .. }) = session.execute(open).await {
        lock(&lines).recall(&log);
    }
    let session = Arc::new(session);
    let stop = CancellationToken::new();
    let user = User { session: Arc::clone(&session), lines: Arc::clone(&lines) };
    let watched = session.slot().clone();
    let watching = watched.watch(|state| lock(&lines).set_questions_elsewhere(&state.questions));
    let mut serving = std::pin::pin!(service.run(stop.clone()));
    let heard = tokio::select! {
        end = &mut serving => {
            lock(&lines).finish_line();
            return Ok(match end? {
                ServiceEnd::Finished => End::Left(Exit::Done),
                ServiceEnd::AgentLost(_) => End::AgentLost(session.choice()),
            });
        }
        heard = user.listen(keyboard) => heard,
        never = watching => match never {},
    };
    // Running turns are interrupted, and the interrupts are shown. A second Ctrl-C exits
    // immediately.
    stop.cancel();
    let exit = match heard {
        Heard::NewSession => {
            serving.await?;
            return Ok(End::NewSession(session.choice()));
        }
        Heard::Exit(exit) => exit,
    };
    signals::cancel(stop)?;
    serving.await?;
    lock(&lines).print_exit_hint(&exit_hint);
    Ok(End::Left(exit))
}

const PROGRAM: &str = concat!("ikigai ", env!("CARGO_PKG_VERSION"));

fn setup(slot: &AgentSlot, mode: Mode) -> Setup {
    let environment = slot.environment();
    let is_dumb = environment.variable("TERM").is_none_or(|term| term == "dumb");
    let styles = match is_dumb || environment.variable("NO_COLOR").is_some() {
        true => LineStyles::None,
        false => LineStyles::Ansi,
    };
    let (agent, directory) = (slot.agent().clone(), environment.directory.clone());
    Setup { agent, mode, directory, styles, output: Box::new(io::stdout()) }
}

/// What the header says about the sandbox.
fn sandbox(mode: Mode, sandbox: &Result<SandboxKind, NoSandbox>) -> String {
    match (mode, sandbox) {
        (Mode::Work, Ok(kind)) => format!(", sandbox {kind}"),
        (Mode::Work, Err(_)) => ", no sandbox: every command needs approval".to_owned(),
        (Mode::Read | Mode::Full, _) => String::new(),
    }
}

/// The user's side of the conversation.
struct User {
    session: Arc<OpenSession>,
    lines: Arc<Mutex<LineMode>>,
}

impl User {
    /// Listens until the user leaves.
    async fn listen(self, keyboard: &mut Keyboard) -> Heard {
        let Keyboard { lines, signals } = keyboard;
        lock(&self.lines).prompt();
        loop {
            let entered = tokio::select! {
                line = lines.recv() => match line {
                    Some(input) => lock(&self.lines).enter(input),
                    None => Entered::Leave,
                },
                signal = signals.next() => match signal {
                    StopSignal::Interrupt => lock(&self.lines).interrupt(),
                    StopSignal::Terminate => return Heard::Exit(Exit::Interrupted),
                },
            };
            match entered {
                Entered::Nothing => {}
                Entered::Leave => return Heard::Exit(Exit::Done),
                Entered::NewSession => return Heard::NewSession,
                Entered::Send(request) => self.send(request).await,
                Entered::Execute(request) => self.execute(request).await,
            }
        }
    }

    /// Sends a command to its agent. A refusal is shown when it arrives: an interrupt must not wait
    /// for it.
    async fn send(&self, request: Request) {
        let answer = self.session.start(request).await;
        let lines = Arc::clone(&self.lines);
        tokio::spawn(async move {
            match answer.await {
                // Events show these.
                Ok(_) | Err(CommandError::Closed | CommandError::QueueFull(_)) => {}
                Err(error) => lock(&lines).show_error(&error.to_string()),
            }
        });
    }

    /// Carries out a command and shows the reply.
    async fn execute(&self, request: Request) {
        // Commands that wait for an agent must not block the keyboard.
        let is_for_agent = matches!(
            request.command,
            Command::Clear
                | Command::Mark { .. }
                | Command::Rewind { .. }
                | Command::RewindTo { .. }
                | Command::Shell { .. }
        );
        let answer = self.session.start(request).await;
        let lines = Arc::clone(&self.lines);
        let show = async move {
            match answer.await {
                Ok(reply) => lock(&lines).reply(&reply),
                Err(error) => lock(&lines).respond_error(&error.to_string()),
            }
        };
        match is_for_agent {
            true => drop(tokio::spawn(show)),
            false => show.await,
        }
    }
}

fn lock(lines: &Mutex<LineMode>) -> MutexGuard<'_, LineMode> {
    lines.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    /// The model and the user read the same text; the tools cannot depend on the protocol.
    #[test]
    fn the_tools_and_the_protocol_name_the_same_location_for_rules() {
        assert_eq!(ikigai_protocol::RULE_LOCATION, ikigai_tools::WHERE_RULES_STAND);
    }
}
