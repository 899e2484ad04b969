//! Showing events in order, the last end last.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ikigai_agents::{Done, Event, Happening, Seat, Sink, Stop};
use ikigai_conversation::{AgentId, SessionId};
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
    fn done(&mut self, agent: &AgentId, done: &Done) -> anyhow::Result<Reader>;
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
    held: Option<Done>,
    /// The person was told that the database is waited for. That is said once, however many agents wait.
    store_waits: bool,
    failure: Option<anyhow::Error>,
}

impl SharedPrinter {
    /// A printer for the events of the agent at `seat`, and of those beside it. The session is shown as soon as it is
    /// durable.
    pub(super) fn new(
        output: Box<dyn Output>,
        seat: &Seat,
        model: &str,
        interrupt: CancellationToken,
    ) -> SharedPrinter {
        let mut printer = Printer {
            output,
            interrupt,
            agent: seat.agent().clone(),
            opening: Some((seat.session(), model.to_owned())),
            held: None,
            store_waits: false,
            failure: None,
        };
        if seat.is_made() {
            printer.show_session();
        }
        SharedPrinter(Arc::new(Mutex::new(printer)))
    }

    pub(super) fn sink(&self) -> Sink {
        let printer = self.clone();
        Arc::new(move |event| printer.lock().take(event))
    }

    /// Shows the end, which is an error when the agent could not be served.
    pub(super) fn finish(&self, error: Option<StoreError>) -> anyhow::Result<Stop> {
        self.lock().finish(error)
    }

    fn lock(&self) -> MutexGuard<'_, Printer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Printer {
    fn take(&mut self, event: Event) {
        let is_own = event.agent == self.agent;
        if is_own && belongs_to_turn(&event.happening) {
            self.release();
        }
        match event.happening {
            Happening::Done(done) if is_own => self.held = Some(done),
            Happening::Done(done) => {
                let shown = self.output.done(&event.agent, &done);
                self.note(shown);
            }
            // What it was is said at the end.
            Happening::Lost(_) if is_own => {}
            Happening::Lost(_) => self.show(&event),
            Happening::Logged(_) => {
                self.store_waits = false;
                self.show_session();
                self.show(&event);
            }
            Happening::StoreWaits(_) if std::mem::replace(&mut self.store_waits, true) => {}
            Happening::Started(_) | Happening::Text(_) => self.show(&event),
            Happening::Retry { .. } | Happening::StoreWaits(_) => self.show(&event),
            Happening::MailHeld | Happening::Asks(_) | Happening::Full(_) => self.show(&event),
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

    fn finish(&mut self, error: Option<StoreError>) -> anyhow::Result<Stop> {
        if let Some(error) = error {
            // An answer that came before it is one all the same.
            self.release();
            // An interrupt that could not be written down is one, too.
            let stop = match error.is_transient() && self.interrupt.is_cancelled() {
                true => Stop::Interrupted,
                false => Stop::Error,
            };
            let error = Some(error.to_string());
            self.held = Some(Done { stop, text: String::new(), error, may_go_on: false });
        }
        let stop = self.held.as_ref().map_or(Stop::Error, |done| done.stop);
        self.release();
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(stop),
        }
    }
}

/// Whether it says that a turn goes on, or that another one has begun behind the last.
fn belongs_to_turn(happening: &Happening) -> bool {
    match happening {
        Happening::Started(_) | Happening::Logged(_) | Happening::Text(_) => true,
        Happening::Retry { .. } | Happening::Asks(_) | Happening::Done(_) => true,
        // These may come behind the end of the last turn.
        Happening::StoreWaits(_) | Happening::MailHeld => false,
        Happening::Full(_) | Happening::Lost(_) => false,
    }
}
