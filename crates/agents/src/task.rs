//! An agent at work: it owns its state, takes orders and emits events, until it is idle.

use std::collections::VecDeque;

use ikigai_protocol::{CommandError, EventKind, Nothing, StartReason};
use ikigai_store::{Ending, Requests, Sleep, StoreError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::agent::{Agent, Unfinished};
use crate::attention::Attention;
use crate::order::{AgentCommand, BetweenTurns, Pending, PendingReply};
use crate::turn::Turn;

/// Why a turn starts.
enum Start {
    Said(String),
    /// Earlier input may still be queued.
    Queued,
    /// A turn was cut off.
    CutOff,
    /// The user continues it.
    Continued,
    Mail,
}

impl Start {
    fn reason(&self) -> StartReason {
        match self {
            Start::Said(_) | Start::Queued => StartReason::UserMessage,
            Start::CutOff => StartReason::CutOff,
            Start::Continued => StartReason::Continued,
            Start::Mail => StartReason::Mail,
        }
    }
}

/// An agent that carries out its orders.
pub(crate) struct Task<'a> {
    pub(crate) agent: &'a mut Agent,
    pub(crate) orders: &'a mut mpsc::Receiver<Pending>,
    /// Cancelling it interrupts the turn, and every further one.
    pub(crate) shutdown: CancellationToken,
    /// Orders that wait for the end of the turn. Their answers have said so.
    pub(crate) deferred: VecDeque<BetweenTurns>,
}

impl Task<'_> {
    /// Works until the agent is idle and no order is waiting.
    ///
    /// # Errors
    /// When the database refuses, when the agent was killed or another process has taken it over.
    pub(crate) async fn run(mut self) -> Result<(), StoreError> {
        let unfinished = self.agent.load().await?;
        // What the user has already said goes in before the model is asked again.
        let first = self.orders.try_recv().unwrap_or_else(|_| Pending::look());
        match (unfinished, &first.command) {
            (Unfinished::Turn, AgentCommand::Look) => self.work(Start::CutOff, None).await?,
            (Unfinished::Turn | Unfinished::Nothing, _) => self.obey(first).await?,
        }
        while let Ok(pending) = self.orders.try_recv() {
            self.obey(pending).await?;
        }
        Ok(())
    }

    /// Carries out an order while the agent is idle.
    async fn obey(&mut self, pending: Pending) -> Result<(), StoreError> {
        let Pending { command, reply } = pending;
        match command {
            AgentCommand::Say(text) => self.work(Start::Said(text), Some(reply)).await,
            AgentCommand::Continue if self.agent.log().needs_turn() => {
                self.work(Start::Continued, Some(reply)).await
            }
            AgentCommand::Look => {
                self.work(Start::Queued, None).await?;
                self.work(Start::Mail, None).await
            }
            AgentCommand::BetweenTurns(command) => {
                reply.send(self.agent.between_turns(command).await?);
                Ok(())
            }
            AgentCommand::Continue => refuse(reply, Nothing::Continue),
            AgentCommand::Interrupt => refuse(reply, Nothing::Interrupt),
            AgentCommand::Answer(_) => refuse(reply, Nothing::Approval),
            // The team's.
            AgentCommand::HoldMail | AgentCommand::ReleaseMail => {
                reply.done();
                Ok(())
            }
        }
    }

    /// Works until the agent is idle. The order that started it is answered as soon as its message is committed.
    async fn work(&mut self, start: Start, reply: Option<PendingReply>) -> Result<(), StoreError> {
        self.agent.interrupt = self.shutdown.child_token();
        let mut reason = start.reason();
        let Some(mut requests) = self.begin(start).await? else { return Ok(()) };
        if let Some(reply) = reply {
            reply.done();
        }
        loop {
            self.agent.emit(EventKind::TurnStarted(reason));
            let turn = self.attend(requests).await?;
            let (agent, stop) = (self.agent.id().to_string(), turn.done.stop.name());
            info!(agent, stop, "turn ended");
            self.agent.emit(EventKind::TurnEnded(turn.done));
            self.agent.interrupt = self.shutdown.child_token();
            while let Some(command) = self.deferred.pop_front() {
                // Its answer said that it waits; that a mark is missing by now is shown by the log.
                let _ = self.agent.between_turns(command).await?;
            }
            let Some(further) = self.further_work(turn.sleep).await? else { return Ok(()) };
            (reason, requests) = further;
        }
    }

    /// Why a further turn is due right behind one, if it is.
    async fn further_work(
        &mut self,
        mut sleep: Sleep,
    ) -> Result<Option<(StartReason, Requests)>, StoreError> {
        loop {
            if let Some(requests) = self.agent.record_queued().await? {
                return Ok(Some((StartReason::UserMessage, requests)));
            }
            if sleep == Sleep::Asleep {
                return Ok(None);
            }
            if self.agent.record_news().await? {
                return Ok(Some((StartReason::Mail, Requests::Granted)));
            }
            // The mail was read or withdrawn in the meantime, and other mail may have come.
            sleep = self.agent.record_end(Vec::new(), Ending::Answered).await?;
        }
    }

    /// Commits why a turn starts; `None` when there is no reason any more.
    async fn begin(&mut self, start: Start) -> Result<Option<Requests>, StoreError> {
        let budget = self.agent.limits().budget;
        match start {
            Start::Said(text) => {
                self.agent.record_queued().await?;
                self.agent.say(text).await.map(Some)
            }
            Start::Queued => self.agent.record_queued().await,
            Start::CutOff => match self.agent.record_queued().await? {
                Some(requests) => Ok(Some(requests)),
                None => self.agent.resume(None).await.map(Some),
            },
            Start::Continued => self.agent.resume(Some(budget)).await.map(Some),
            Start::Mail => Ok(self.announce_or_rest().await?.then_some(Requests::Granted)),
        }
    }

    /// Announces the agent's mail. One that was kept awake by mail that is gone now becomes idle instead, or it would be
    /// woken forever.
    async fn announce_or_rest(&mut self) -> Result<bool, StoreError> {
        loop {
            if self.agent.record_news().await? {
                return Ok(true);
            }
            if self.agent.log().needs_turn() || self.agent.rest().await? == Sleep::Asleep {
                return Ok(false);
            }
        }
    }

    /// Runs a turn, and takes orders meanwhile.
    async fn attend(&mut self, requests: Requests) -> Result<Turn, StoreError> {
        let shutdown = self.shutdown.clone();
        let (attention, texts) = Attention::of(self.agent);
        let mut writing = std::pin::pin!(self.agent.queue_writer(texts)?);
        let mut lost = std::pin::pin!(self.agent.seat.lost());
        let mut turn = std::pin::pin!(self.agent.run_turn(requests));
        let mut is_open = true;
        let done = loop {
            tokio::select! {
                done = &mut turn => break done?,
                order = self.orders.recv(), if is_open => match order {
                    Some(pending) => attention.take(pending, &mut self.deferred),
                    None => is_open = false,
                },
                error = &mut lost => return Err(error),
                // It ends by itself only when `typed` is gone.
                Err(error) = &mut writing => return Err(error),
            }
        };
        drop(attention);
        // What is still to be written down is; only the end of the program does not wait for it.
        shutdown.run_until_cancelled(writing).await.unwrap_or(Ok(())).map(|()| done)
    }
}

fn refuse(reply: PendingReply, nothing: Nothing) -> Result<(), StoreError> {
    reply.refuse(CommandError::NothingToDo(nothing));
    Ok(())
}
