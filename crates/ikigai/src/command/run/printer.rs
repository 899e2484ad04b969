//! Showing events in order, the last end last.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ikigai_conversation::{AgentId, SessionId};
use ikigai_host::AgentSlot;
use ikigai_protocol::{Event, EventKind, EventSink, StopReason, TurnEnd};
use ikigai_store::StoreError;
use tokio_util::sync::CancellationToken;

use crate::print::Reader;

/// How events are shown.
pub(super) trait Output: Send {
    /// The session is durable: a process that is killed from here on leaves it behind.
    fn session(&mut self, session: SessionId, model: &str) -> anyhow::Result<Reader>;
    /// Anything but the end of a turn.
    fn event(&mut self, event: &Event) -> anyhow::Result<Reader>;
    /// The end of a turn.
    fn done(&mut self, agent: &AgentId, done: &TurnEnd) -> anyhow::Result<Reader>;
}

/// Shows events in order, but the end of a turn of the prompt's agent only when another of its turns follows: the
/// last one is the last that is shown. Agents tell it what happens, and we tell it the end.
#[derive(Clone)]
pub(super) struct SharedPrinter(Arc<Mutex<Printer>>);

struct Printer {
    output: Box<dyn Output>,
    /// Cancelled when nobody reads what we print.
    interrupt: CancellationToken,
    /// The agent of the prompt.
    agent: AgentId,
    /// The session and the model, until they are shown. A new session is made with its first message.
    opening: Option<(SessionId, String)>,
    held: Option<TurnEnd>,
    /// The person was told that the database is waited for. That is said once, however many agents wait.
    store_waits: bool,
    failure: Option<anyhow::Error>,
}

impl SharedPrinter {
    /// A printer for the events of an agent and of those beside it. The session is shown as soon as it is
    /// durable.
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
            opening: Some((slot.session(), model.to_owned())),
            held: None,
            store_waits: false,
            failure: None,
        };
        if slot.is_session_started() {
            printer.show_session();
        }
        SharedPrinter(Arc::new(Mutex::new(printer)))
    }

    pub(super) fn sink(&self) -> EventSink {
        let printer = self.clone();
        Arc::new(move |event| printer.lock().take(event))
    }

    /// Shows the end, which is an error when the agent could not be served.
    pub(super) fn finish(&self, error: Option<StoreError>) -> anyhow::Result<StopReason> {
        self.lock().finish(error)
    }

    fn lock(&self) -> MutexGuard<'_, Printer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Printer {
    fn take(&mut self, event: Event) {
        let is_own = event.agent == self.agent;
        if is_own && belongs_to_turn(&event.kind) {
            self.release();
        }
        match event.kind {
            EventKind::TurnEnded(done) if is_own => self.held = Some(done),
            EventKind::TurnEnded(done) => {
                let shown = self.output.done(&event.agent, &done);
                self.note(shown);
            }
            // What it was is said at the end.
            EventKind::AgentLost(_) if is_own => {}
            EventKind::AgentLost(_) => self.show(&event),
            EventKind::Message(_) => {
                self.store_waits = false;
                self.show_session();
                self.show(&event);
            }
            EventKind::DatabaseUnavailable(_) if std::mem::replace(&mut self.store_waits, true) => {
            }
            EventKind::TurnStarted(_) | EventKind::TextDelta(_) => self.show(&event),
            EventKind::Retry { .. } | EventKind::DatabaseUnavailable(_) => self.show(&event),
            EventKind::MailHeld | EventKind::ApprovalRequested(_) | EventKind::InputRejected(_) => {
                self.show(&event);
            }
        }
    }

    /// Shows the session, once.
    fn show_session(&mut self) {
        if let Some((session, model)) = self.opening.take() {
            let shown = self.output.session(session, &model);
            self.note(shown);
        }
    }

    fn show(&mut self, event: &Event) {
        let shown = self.output.event(event);
        self.note(shown);
    }

    fn release(&mut self) {
        if let Some(done) = self.held.take() {
            let shown = self.output.done(&self.agent, &done);
            self.note(shown);
        }
    }

    fn note(&mut self, shown: anyhow::Result<Reader>) {
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
            // An answer that came before it is one all the same.
            self.release();
            // An interrupt that could not be written down is one, too.
            let stop = match error.is_transient() && self.interrupt.is_cancelled() {
                true => StopReason::Interrupted,
                false => StopReason::Error,
            };
            let error = Some(error.to_string());
            self.held = Some(TurnEnd { stop, text: String::new(), error, can_continue: false });
        }
        let stop = self.held.as_ref().map_or(StopReason::Error, |done| done.stop);
        self.release();
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(stop),
        }
    }
}

/// Whether it says that a turn goes on, or that another one has begun behind the last.
fn belongs_to_turn(kind: &EventKind) -> bool {
    match kind {
        EventKind::TurnStarted(_) | EventKind::Message(_) | EventKind::TextDelta(_) => true,
        EventKind::Retry { .. } | EventKind::ApprovalRequested(_) | EventKind::TurnEnded(_) => true,
        // These may come behind the end of the last turn.
        EventKind::DatabaseUnavailable(_) | EventKind::MailHeld => false,
        EventKind::InputRejected(_) | EventKind::AgentLost(_) => false,
    }
}
