//! Writing to the log: the commit first, then the copy in memory, then the news.

use std::future::Future;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ikigai_conversation::{AgentId, Message, NewMessage};
use ikigai_protocol::{CommandError, Event, EventKind, QueuedUntil, Reply};
use ikigai_store::{
    AppendOutcome, Budget, Ending, FileAccess, Input, Lease, Next, Outcome, Refusal, Requests,
    Sleep, StartedWait, Step, StoreError, Wait,
};

use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::agent::Agent;
use crate::attention::Typed;
use crate::seat::Seat;

/// How often a database that cannot be reached is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// How long it is tried after an interrupt: what had arrived is to be kept, but nobody waits for it.
const LAST_WORDS: Duration = Duration::from_secs(2);

impl Agent {
    /// Appends what a person said. In a new session it is what makes it.
    pub(crate) async fn say(&mut self, text: String) -> Result<Requests, StoreError> {
        let messages = self.opening(text);
        let (budget, model) = (self.limits().budget, self.next_model());
        let input = Input { messages, budget, model };
        let (lease, recorded) = self
            .insist(|agent| {
                let Seat { store, process, place, roots, session, agent: id, .. } = &agent.seat;
                let (store, session, input) = (store.clone(), *session, input.clone());
                let (process, place, id) = (process.clone(), place.clone(), id.clone());
                let (roots, lease) = (roots.to_vec(), agent.seat.lease());
                Ok(async move {
                    let Some(lease) = lease else {
                        return store.start_session(place, session, process, roots, input).await;
                    };
                    let recorded = store.append_user_input(lease.clone(), id, input).await?;
                    Ok((lease, recorded))
                })
            })
            .await?;
        self.seat.hold(lease)?;
        Ok(self.keep(recorded))
    }

    /// Writes down what the person says while the agent works, until nobody can say anything any more.
    pub(crate) fn queue_writer(
        &self,
        mut texts: mpsc::Receiver<Typed>,
    ) -> Result<impl Future<Output = Result<(), StoreError>> + use<>, StoreError> {
        let (lease, id) = self.right()?;
        let (store, queued) = (self.seat.store.clone(), self.queued.clone());
        let equipment = self.equipment();
        Ok(async move {
            while let Some((text, reply)) = texts.recv().await {
                let write = || store.queue_input(lease.clone(), id.clone(), text.clone());
                let mut written = write().await;
                while written.as_ref().is_err_and(StoreError::is_transient) {
                    sleep(TRY_AGAIN).await;
                    written = write().await;
                }
                match written {
                    Ok(()) => {
                        queued.store(true, Ordering::Relaxed);
                        reply.send(Ok(Reply::Queued(QueuedUntil::NextStep)));
                    }
                    Err(StoreError::Limit(_)) => {
                        let kind = EventKind::InputRejected(text);
                        (equipment.events)(Event { agent: id.clone(), kind });
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
            .insist(|agent| {
                let (lease, id) = agent.right()?;
                let store = agent.seat.store.clone();
                let messages = messages.clone();
                Ok(async move { store.append(lease, id, messages, next).await })
            })
            .await?;
        Ok(self.keep(recorded))
    }

    /// Appends the result of a call together with what it did to a file, in one commit.
    pub(crate) async fn record_result(
        &mut self,
        result: NewMessage,
        touched: Option<FileAccess>,
        next: Next,
    ) -> Result<Requests, StoreError> {
        let recorded = self
            .insist(|agent| {
                let (lease, id) = agent.right()?;
                let store = agent.seat.store.clone();
                let (result, touched) = (result.clone(), touched.clone());
                Ok(async move { store.append_result(lease, id, result, touched, next).await })
            })
            .await?;
        Ok(self.keep(recorded))
    }

    /// Performs a call's step and appends its result, in one commit.
    pub(crate) async fn record_step(
        &mut self,
        step: Step,
        render: impl Fn(&Outcome) -> NewMessage + Clone + Send + 'static,
        next: Next,
    ) -> Result<Requests, StoreError> {
        let recorded = self
            .insist(|agent| {
                let (lease, id) = agent.right()?;
                let (store, step, render) =
                    (agent.seat.store.clone(), step.clone(), render.clone());
                Ok(async move { store.close_call(lease, id, step, render, next).await })
            })
            .await?;
        Ok(self.keep(recorded))
    }

    /// Begins a wait for other agents; a refusal is for the model.
    pub(crate) async fn start_wait(
        &mut self,
        wait: Wait,
    ) -> Result<Result<StartedWait, Refusal>, StoreError> {
        self.insist(|agent| {
            let (lease, id) = agent.right()?;
            let (store, wait) = (agent.seat.store.clone(), wait.clone());
            Ok(async move { store.start_wait(lease, id, wait).await })
        })
        .await
    }

    /// Moves into the log what the person said meanwhile. Says whether there was something.
    pub(crate) async fn record_queued(&mut self) -> Result<Option<Requests>, StoreError> {
        if !self.queued.swap(false, Ordering::Relaxed) || self.seat.lease().is_none() {
            return Ok(None);
        }
        let (budget, model) = (self.limits().budget, self.next_model());
        let queued = self
            .insist(|agent| {
                let (lease, id) = agent.right()?;
                let (store, model) = (agent.seat.store.clone(), model.clone());
                Ok(async move { store.append_queued(lease, id, budget, model).await })
            })
            .await?;
        Ok(queued.map(|recorded| self.keep(recorded)))
    }

    /// Appends the last messages of a turn and goes idle, unless there is mail.
    pub(crate) async fn record_end(
        &mut self,
        messages: Vec<NewMessage>,
        ending: Ending,
    ) -> Result<Sleep, StoreError> {
        let ended = self
            .insist(|agent| {
                let (lease, id) = agent.right()?;
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

    /// Tells the agent of new mail, if there is some that would wake it. Says whether it was told.
    pub(crate) async fn record_news(&mut self) -> Result<bool, StoreError> {
        let told = self
            .insist(|agent| {
                let (lease, id) = agent.right()?;
                let store = agent.seat.store.clone();
                Ok(async move { store.announce(lease, id, ikigai_mail::notification).await })
            })
            .await?;
        let is_told = told.is_some();
        told.into_iter().for_each(|message| self.log_message(message));
        Ok(is_told)
    }

    /// The same between two requests of a turn.
    pub(crate) async fn record_news_in_turn(&mut self) -> Result<(), StoreError> {
        let told = self
            .insist(|agent| {
                let (lease, id) = agent.right()?;
                let store = agent.seat.store.clone();
                Ok(async move {
                    store.announce_in_turn(lease, id, ikigai_mail::notification).await
                })
            })
            .await?;
        told.into_iter().for_each(|message| self.log_message(message));
        Ok(())
    }

    /// Makes the agent idle, unless there is mail that would wake it. Only for one whose turn has ended.
    pub(crate) async fn rest(&mut self) -> Result<Sleep, StoreError> {
        self.insist(|agent| {
            let (lease, id) = agent.right()?;
            let store = agent.seat.store.clone();
            Ok(async move { store.rest(lease, id).await })
        })
        .await
    }

    /// Goes on with a turn that had stopped.
    pub(crate) async fn resume(&mut self, refill: Option<Budget>) -> Result<Requests, StoreError> {
        self.insist(|agent| {
            let (lease, id) = agent.right()?;
            let store = agent.seat.store.clone();
            Ok(async move { store.resume(lease, id, refill).await })
        })
        .await
    }

    /// The right to write to the agent's log.
    pub(crate) fn right(&self) -> Result<(Lease, AgentId), StoreError> {
        let lease = self.seat.lease().ok_or(StoreError::Closed)?;
        Ok((lease, self.seat.agent.clone()))
    }

    /// The model that the next request goes to.
    fn next_model(&self) -> String {
        self.equipment().models.of(self.id()).label
    }

    fn keep(&mut self, recorded: AppendOutcome) -> Requests {
        recorded.messages.into_iter().for_each(|message| self.log_message(message));
        recorded.requests
    }

    pub(crate) fn log_message(&mut self, message: Message) {
        self.log.push(message.clone());
        self.emit(EventKind::Message(message));
    }

    /// Commits or reads, and waits for a database that cannot be reached for now: what a tool has done must get
    /// into the log. The person is told once, and may end the wait by an interrupt.
    pub(crate) async fn insist<T, F, W>(&mut self, work: F) -> Result<T, StoreError>
    where
        F: Fn(&Agent) -> Result<W, StoreError>,
        W: Future<Output = Result<T, StoreError>>,
    {
        let interrupt = self.interrupt.clone();
        let given_up = async {
            interrupt.cancelled().await;
            sleep(LAST_WORDS).await;
        };
        let mut given_up = std::pin::pin!(given_up);
        let mut is_told = false;
        let store = self.seat.store.clone();
        loop {
            let mut attempt = std::pin::pin!(work(self)?);
            let done = loop {
                tokio::select! {
                    biased;
                    done = &mut attempt => break done,
                    error = store.in_doubt(), if !is_told => {
                        is_told = true;
                        self.emit(EventKind::DatabaseUnavailable(error.to_string()));
                    }
                    () = &mut given_up => return Err(StoreError::Unreachable),
                }
            };
            match done {
                Err(error) if error.is_transient() => {
                    if !std::mem::replace(&mut is_told, true) {
                        self.emit(EventKind::DatabaseUnavailable(error.to_string()));
                    }
                    tokio::select! {
                        () = sleep(TRY_AGAIN) => {}
                        () = &mut given_up => return Err(error),
                    }
                }
                done => return done,
            }
        }
    }
}
