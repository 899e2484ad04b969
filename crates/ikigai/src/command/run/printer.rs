//! Printing events in order, with the final result last.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ikigai_conversation::{AgentId, CommandId, SessionId};
use ikigai_host::AgentSlot;
use ikigai_protocol::{Event, EventKind, EventSink, StopReason, TurnEnd};
use ikigai_store::StoreError;
use tokio_util::sync::CancellationToken;

use crate::print::Reader;

/// How events are shown.
pub(super) trait Output: Send {
    /// The session is in the database, and survives if this process is killed.
    fn session(&mut self, session: SessionId, model: &str) -> anyhow::Result<Reader>;
    /// Any event but the end of a turn.
    fn event(&mut self, event: &Event) -> anyhow::Result<Reader>;
    /// The end of a turn.
    fn done(&mut self, agent: &AgentId, done: &TurnEnd) -> anyhow::Result<Reader>;
}

/// Prints events in order. The end of a turn of the prompt's agent is held back until another of
/// its turns starts or the program ends, so that the final result is printed last.
#[derive(Clone)]
pub(super) struct SharedPrinter(Arc<Mutex<Printer>>);

struct Printer {
    output: Box<dyn Output>,
    /// Cancelled when the reader of standard output is gone.
    interrupt: CancellationToken,
    /// The agent of the prompt.
    agent: AgentId,
    /// The session and the model, until they are printed. A new session is created with its first
    /// message.
    session_header: Option<(SessionId, String)>,
    held_end: Option<TurnEnd>,
    /// Whether the note that the database is unavailable was printed; once is enough for all
    /// agents.
    is_outage_noted: bool,
    failure: Option<anyhow::Error>,
}

impl SharedPrinter {
    /// A printer for the events of an agent and the others of its session. The session is printed
    /// as soon as it is in the database.
    pub(super) fn new(
        output: Box<dyn Output>,
        slot: &AgentSlot,
        model: &str,
        interrupt: CancellationToken,
    ) -> SharedPrinter {
        let mut printer = Printer {
            output,
            interrupt,
            agent: slot.agent().clone(),
            session_header: Some((slot.session(), model.to_owned())),
            held_end: None,
            is_outage_noted: false,
            failure: None,
        };
        if slot.is_session_started() {
            printer.show_session();
        }
        SharedPrinter(Arc::new(Mutex::new(printer)))
    }

    pub(super) fn sink(&self) -> EventSink {
        let printer = self.clone();
        Arc::new(move |event| printer.lock().handle(event))
    }

    /// Prints the final result, which is an error if the service failed.
    pub(super) fn finish(&self, error: Option<StoreError>) -> anyhow::Result<StopReason> {
        self.lock().finish(error)
    }

    fn lock(&self) -> MutexGuard<'_, Printer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Printer {
    fn handle(&mut self, event: Event) {
        let is_own = event.agent == self.agent;
        if is_own && belongs_to_turn(&event.kind) {
            self.print_held_end();
        }
        match event.kind {
            EventKind::TurnEnded(done) if is_own => self.held_end = Some(done),
            EventKind::TurnEnded(done) => {
                let shown = self.output.done(&event.agent, &done);
                self.check(shown);
            }
            // The reason is printed at the end.
            EventKind::AgentLost(_) if is_own => {}
            EventKind::AgentLost(_) => self.show(&event),
            EventKind::Message(_) => {
                self.is_outage_noted = false;
                self.show_session();
                self.show(&event);
            }
            EventKind::DatabaseUnavailable(_)
                if std::mem::replace(&mut self.is_outage_noted, true) => {}
            EventKind::TurnStarted(_) | EventKind::TextDelta(_) => self.show(&event),
            EventKind::ThinkingDelta(_) | EventKind::EffortRefused(_) => self.show(&event),
            EventKind::ToolOutput { .. } => self.show(&event),
            EventKind::CommandStarted { .. }
            | EventKind::CommandOutput { .. }
            | EventKind::CommandEnded { .. }
            | EventKind::CommandLost { .. } => self.show(&event),
            EventKind::Retry { .. } | EventKind::DatabaseUnavailable(_) => self.show(&event),
            EventKind::MailHeld | EventKind::ApprovalRequested(_) | EventKind::InputRejected(_) => {
                self.show(&event);
            }
            EventKind::Warning(_) => self.show(&event),
            EventKind::ContextUsed { .. } | EventKind::ReadsStarted(_) => {}
            EventKind::CallProgress { .. } => {}
            EventKind::Compaction(_) => self.show(&event),
        }
    }

    /// Prints the session, once.
    fn show_session(&mut self) {
        if let Some((session, model)) = self.session_header.take() {
            let shown = self.output.session(session, &model);
            self.check(shown);
        }
    }

    fn show(&mut self, event: &Event) {
        let shown = self.output.event(event);
        self.check(shown);
    }

    fn print_held_end(&mut self) {
        if let Some(done) = self.held_end.take() {
            let shown = self.output.done(&self.agent, &done);
            self.check(shown);
        }
    }

    fn check(&mut self, shown: anyhow::Result<Reader>) {
        match shown {
            Ok(Reader::Listening) => {}
            Ok(Reader::Gone) => self.interrupt.cancel(),
            Err(error) => {
                self.interrupt.cancel();
                self.failure.get_or_insert(error);
            }
        }
    }

    fn finish(&mut self, error: Option<StoreError>) -> anyhow::Result<StopReason> {
        if let Some(error) = error {
            // An earlier answer is still valid.
            self.print_held_end();
            // An interrupt that could not be stored is still an interrupt.
            let stop = match error.is_transient() && self.interrupt.is_cancelled() {
                true => StopReason::Interrupted,
                false => StopReason::Error,
            };
            let error = Some(error.to_string());
            self.held_end = Some(TurnEnd { stop, text: String::new(), error, can_continue: false });
        }
        let stop = self.held_end.as_ref().map_or(StopReason::Error, |done| done.stop);
        self.print_held_end();
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(stop),
        }
    }
}

/// Says that a background command is ended with the program.
pub(super) fn lost_command(command: CommandId, line: &str) -> String {
    format!("Command #{command} was ended with ikigai: {line}")
}

/// Whether the event shows that a turn continues or that another one has started.
fn belongs_to_turn(kind: &EventKind) -> bool {
    match kind {
        EventKind::TurnStarted(_) | EventKind::Message(_) | EventKind::TextDelta(_) => true,
        EventKind::ToolOutput { .. } => true,
        EventKind::Retry { .. } | EventKind::ApprovalRequested(_) | EventKind::TurnEnded(_) => true,
        EventKind::ThinkingDelta(_) | EventKind::EffortRefused(_) => true,
        EventKind::Compaction(_) | EventKind::Warning(_) => true,
        // It does not change what is printed.
        EventKind::ContextUsed { .. } | EventKind::ReadsStarted(_) => false,
        EventKind::CallProgress { .. } => true,
        // These may come after the end of the last turn.
        EventKind::DatabaseUnavailable(_) | EventKind::MailHeld => false,
        EventKind::InputRejected(_) | EventKind::AgentLost(_) => false,
        EventKind::CommandStarted { .. } | EventKind::CommandOutput { .. } => false,
        EventKind::CommandEnded { .. } | EventKind::CommandLost { .. } => false,
    }
}
