//! Writing to the log: first the commit, then the copy in memory, then the event.

use std::future::Future;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ikigai_conversation::{AgentId, Message, NewMessage};
use ikigai_protocol::{CommandError, Event, EventKind, Nothing, QueuedUntil, Reply, typed_text};
use ikigai_store::{
    AppendOutcome, Budget, Ending, Input, Lease, LogEntry, Next, Obligations, Outcome, Refusal,
    Requests, Sleep, Spent, StartedWait, Step, StoreError, Wait,
};

use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::agent::Agent;
use crate::notification::notification;
use crate::seat::Seat;
use crate::turn_orders::QueueChange;

/// How long to wait before an unreachable database is tried again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// How long to keep trying after an interrupt: long enough to save what had arrived, short enough
/// for the user not to wait.
const INTERRUPT_GRACE: Duration = Duration::from_secs(2);

impl Agent {
    /// Appends a user message. The first one creates the session.
    pub(crate) async fn say(&mut self, text: String) -> Result<Requests, StoreError> {
        let messages = self.user_messages(text);
        let (budget, model) = (self.limits().budget, self.next_model());
        let input = Input { messages, budget, model };
        let (lease, recorded) = self
            .with_retry(|agent| {
                let Seat { store, opening, session, agent: id, .. } = &agent.seat;
                let (store, session, input) = (store.clone(), *session, input.clone());
                let (opening, id, lease) = (opening.clone(), id.clone(), agent.seat.lease());
                Ok(async move {
                    let Some(lease) = lease else {
                        return store.start_session(session, &opening, input).await;
                    };
                    let recorded = store.append_user_input(lease.clone(), id, input).await?;
                    Ok((lease, recorded))
                })
            })
            .await?;
        self.seat.hold(lease)?;
        Ok(self.log_outcome(recorded))
    }

    /// Queues the messages that the user sends during a turn, until their sender is dropped.
    pub(crate) fn queue_writer(
        &self,
        mut changes: mpsc::Receiver<QueueChange>,
    ) -> Result<impl Future<Output = Result<(), StoreError>> + use<>, StoreError> {
        let (lease, id) = self.lease_and_id()?;
        let (store, queued) = (self.seat.store.clone(), self.queued.clone());
        let setup = self.setup();
        Ok(async move {
            while let Some(change) = changes.recv().await {
                let (text, reply) = match change {
                    QueueChange::Add(text, reply) => (text, reply),
                    QueueChange::TakeLast(reply) => {
                        let last = store.unqueue_input(lease.clone(), id.clone()).await;
                        reply.send(match last {
                            Ok(Some(text)) => Ok(Reply::Unqueued(typed_text(&text).to_owned())),
                            Ok(None) => Err(CommandError::NothingToDo(Nothing::Queue)),
                            Err(error) => Err(CommandError::Database(error.to_string())),
                        });
                        continue;
                    }
                };
                let write = || store.queue_input(lease.clone(), id.clone(), text.clone());
                let mut written = write().await;
                while written.as_ref().is_err_and(StoreError::is_transient) {
                    sleep(RETRY_DELAY).await;
                    written = write().await;
                }
                match written {
                    Ok(()) => {
                        queued.store(true, Ordering::Relaxed);
                        reply.send(Ok(Reply::Queued(QueuedUntil::NextStep)));
                    }
                    Err(StoreError::Limit(_)) => {
                        let kind = EventKind::InputRejected(text);
                        (setup.events)(Event { agent: id.clone(), kind });
                        reply.refuse(CommandError::QueueFull(id.clone()));
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        })
    }

    /// Appends messages in one commit.
    pub(crate) async fn record(
        &mut self,
        messages: Vec<NewMessage>,
        next: Next,
    ) -> Result<Requests, StoreError> {
        let recorded = self
            .with_retry(|agent| {
                let (lease, id) = agent.lease_and_id()?;
                let store = agent.seat.store.clone();
                let messages = messages.clone();
                Ok(async move { store.append(lease, id, messages, next).await })
            })
            .await?;
        Ok(self.log_outcome(recorded))
    }

    /// Appends messages and records the file accesses of their calls, in one commit.
    pub(crate) async fn record_entries(
        &mut self,
        entries: Vec<LogEntry>,
        next: Next,
    ) -> Result<Requests, StoreError> {
        let recorded = self
            .with_retry(|agent| {
                let (lease, id) = agent.lease_and_id()?;
                let (store, entries) = (agent.seat.store.clone(), entries.clone());
                Ok(async move { store.append_entries(lease, id, entries, next).await })
            })
            .await?;
        Ok(self.log_outcome(recorded))
    }

    /// Appends the messages that `render` makes of what the agent must not forget.
    pub(crate) async fn append_summary(
        &mut self,
        render: impl Fn(&Obligations) -> Vec<NewMessage> + Clone + Send + 'static,
        next: Next,
    ) -> Result<Requests, StoreError> {
        let recorded = self
            .with_retry(|agent| {
                let (lease, id) = agent.lease_and_id()?;
                let (store, render) = (agent.seat.store.clone(), render.clone());
                Ok(async move { store.append_summary(lease, id, render, next).await })
            })
            .await?;
        Ok(self.log_outcome(recorded))
    }

    /// Performs a call's step and appends its result, in one commit.
    pub(crate) async fn record_step(
        &mut self,
        step: Step,
        render: impl Fn(&Outcome) -> NewMessage + Clone + Send + 'static,
        next: Next,
    ) -> Result<Requests, StoreError> {
        let recorded = self
            .with_retry(|agent| {
                let (lease, id) = agent.lease_and_id()?;
                let (store, step, render) =
                    (agent.seat.store.clone(), step.clone(), render.clone());
                Ok(async move { store.close_call(lease, id, step, render, next).await })
            })
            .await?;
        Ok(self.log_outcome(recorded))
    }

    /// Starts a wait for other agents. A refusal is meant for the model.
    pub(crate) async fn start_wait(
        &mut self,
        wait: Wait,
    ) -> Result<Result<StartedWait, Refusal>, StoreError> {
        self.with_retry(|agent| {
            let (lease, id) = agent.lease_and_id()?;
            let (store, wait) = (agent.seat.store.clone(), wait.clone());
            Ok(async move { store.start_wait(lease, id, wait).await })
        })
        .await
    }

    /// Moves queued user messages into the log. Returns `None` if there were none.
    pub(crate) async fn record_queued(&mut self) -> Result<Option<Requests>, StoreError> {
        if !self.queued.swap(false, Ordering::Relaxed) || self.seat.lease().is_none() {
            return Ok(None);
        }
        let (budget, model) = (self.limits().budget, self.next_model());
        let queued = self
            .with_retry(|agent| {
                let (lease, id) = agent.lease_and_id()?;
                let (store, model) = (agent.seat.store.clone(), model.clone());
                Ok(async move { store.append_queued(lease, id, budget, model).await })
            })
            .await?;
        Ok(queued.map(|recorded| self.log_outcome(recorded)))
    }

    /// Appends the last messages of a turn and goes idle, unless there is mail.
    pub(crate) async fn record_end(
        &mut self,
        messages: Vec<NewMessage>,
        ending: Ending,
    ) -> Result<Sleep, StoreError> {
        let ended = self
            .with_retry(|agent| {
                let (lease, id) = agent.lease_and_id()?;
                let (store, messages) = (agent.seat.store.clone(), messages.clone());
                let ending = ending.clone();
                Ok(async move { store.end_turn(lease, id, messages, ending).await })
            })
            .await?;
        ended.messages.into_iter().for_each(|message| self.log_message(message));
        if ended.is_held {
            self.emit(EventKind::MailHeld);
        }
        Ok(ended.sleep)
    }

    /// What was spent for the user's message that the agent works for, and in the session.
    pub(crate) async fn spent(&mut self) -> Result<Spent, StoreError> {
        self.with_retry(|agent| {
            let (store, session) = (agent.seat.store.clone(), agent.seat.session());
            let id = agent.id().clone();
            Ok(async move { store.spent(session, id).await })
        })
        .await
    }

    /// Notes that the latest request is over without a report, and that `lost` attempts of it may
    /// have been billed.
    pub(crate) async fn settle_request(&mut self, lost: u32) -> Result<(), StoreError> {
        self.with_retry(|agent| {
            let (lease, id) = agent.lease_and_id()?;
            let store = agent.seat.store.clone();
            Ok(async move { store.settle_request(lease, id, lost).await })
        })
        .await
    }

    /// Notifies the agent of new mail that would wake it. Returns whether there was any.
    pub(crate) async fn announce_mail(&mut self) -> Result<bool, StoreError> {
        let announced = self
            .with_retry(|agent| {
                let (lease, id) = agent.lease_and_id()?;
                let (store, system) = (agent.seat.store.clone(), agent.missing_prompt());
                Ok(async move { store.announce(lease, id, system, notification).await })
            })
            .await?;
        let is_announced = !announced.is_empty();
        announced.into_iter().for_each(|message| self.log_message(message));
        Ok(is_announced)
    }

    /// Notifies the agent of new mail between two requests of a turn.
    pub(crate) async fn announce_mail_in_turn(&mut self) -> Result<(), StoreError> {
        let notification = self
            .with_retry(|agent| {
                let (lease, id) = agent.lease_and_id()?;
                let store = agent.seat.store.clone();
                Ok(async move { store.announce_in_turn(lease, id, notification).await })
            })
            .await?;
        notification.into_iter().for_each(|message| self.log_message(message));
        Ok(())
    }

    /// Makes the agent idle, unless there is mail that would wake it. Only call it after a turn.
    pub(crate) async fn go_idle(&mut self) -> Result<Sleep, StoreError> {
        self.with_retry(|agent| {
            let (lease, id) = agent.lease_and_id()?;
            let store = agent.seat.store.clone();
            Ok(async move { store.rest(lease, id).await })
        })
        .await
    }

    /// Resumes a turn that had stopped.
    pub(crate) async fn resume(&mut self, refill: Option<Budget>) -> Result<Requests, StoreError> {
        self.with_retry(|agent| {
            let (lease, id) = agent.lease_and_id()?;
            let store = agent.seat.store.clone();
            Ok(async move { store.resume(lease, id, refill).await })
        })
        .await
    }

    /// The lease that allows writing to the agent's log, and the agent's ID.
    pub(crate) fn lease_and_id(&self) -> Result<(Lease, AgentId), StoreError> {
        let lease = self.seat.lease().ok_or(StoreError::Closed)?;
        Ok((lease, self.seat.agent.clone()))
    }

    /// The label of the model for the next request.
    fn next_model(&self) -> String {
        self.setup().models.of(self.id()).label
    }

    pub(crate) fn log_outcome(&mut self, recorded: AppendOutcome) -> Requests {
        recorded.messages.into_iter().for_each(|message| self.log_message(message));
        if recorded.is_held {
            self.emit(EventKind::MailHeld);
        }
        recorded.requests
    }

    pub(crate) fn log_message(&mut self, message: Message) {
        self.log.push(message.clone());
        self.emit(EventKind::Message(message));
    }

    /// Runs a database operation, and retries it while the database is unreachable: the effects of
    /// a tool must be logged. The user is notified once and can stop the retries by an interrupt.
    pub(crate) async fn with_retry<T, F, W>(&mut self, work: F) -> Result<T, StoreError>
    where
        F: Fn(&Agent) -> Result<W, StoreError>,
        W: Future<Output = Result<T, StoreError>>,
    {
        let interrupt = self.interrupt.clone();
        let given_up = async {
            interrupt.cancelled().await;
            sleep(INTERRUPT_GRACE).await;
        };
        let mut given_up = std::pin::pin!(given_up);
        let mut is_reported = false;
        let store = self.seat.store.clone();
        loop {
            let mut attempt = std::pin::pin!(work(self)?);
            let done = loop {
                tokio::select! {
                    biased;
                    done = &mut attempt => break done,
                    error = store.in_doubt(), if !is_reported => {
                        is_reported = true;
                        self.emit(EventKind::DatabaseUnavailable(error.to_string()));
                    }
                    () = &mut given_up => return Err(StoreError::Unreachable),
                }
            };
            match done {
                Err(error) if error.is_transient() => {
                    if !std::mem::replace(&mut is_reported, true) {
                        self.emit(EventKind::DatabaseUnavailable(error.to_string()));
                    }
                    tokio::select! {
                        () = sleep(RETRY_DELAY) => {}
                        () = &mut given_up => return Err(error),
                    }
                }
                done => return done,
            }
        }
    }
}
