//! The task of a working agent: it owns the agent's state, takes orders and emits events, until the
//! agent is idle.

use std::collections::VecDeque;

use ikigai_protocol::{CommandError, EventKind, Nothing, StartReason};
use ikigai_store::{Ending, Requests, Sleep, StoreError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::agent::{Agent, Unfinished};
use crate::order::{AgentCommand, CompactRequest, Deferred, Pending, PendingReply};
use crate::turn::Turn;
use crate::turn_orders::TurnOrders;

/// Why a turn starts.
enum Start {
    Said(String),
    /// Earlier user messages may still be queued.
    Queued,
    /// The previous turn was cut off.
    CutOff,
    /// The user continues a turn that had stopped.
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

/// What the agent does between two moments of rest.
enum Work {
    /// A turn, if its request is granted.
    Turn(Requests),
    /// Making room in the context.
    Compaction(CompactRequest),
}

/// An agent with its orders.
pub(crate) struct Task<'a> {
    pub(crate) agent: &'a mut Agent,
    pub(crate) orders: &'a mut mpsc::Receiver<Pending>,
    /// Cancelling it interrupts the current turn and all later ones.
    pub(crate) shutdown: CancellationToken,
    /// Commands that wait for the end of the turn. They have been answered.
    pub(crate) deferred: VecDeque<Deferred>,
}

impl Task<'_> {
    /// Works until the agent is idle and no order is waiting.
    ///
    /// # Errors
    /// When the database refuses, the agent was killed, or another process has taken it over.
    pub(crate) async fn run(mut self) -> Result<(), StoreError> {
        let unfinished = self.agent.load().await?;
        // A message that the user already sent is logged before the next request.
        let first = self.orders.try_recv().unwrap_or_else(|_| Pending::look());
        match (unfinished, &first.command) {
            (Unfinished::Turn, AgentCommand::Look) => self.work(Start::CutOff, None).await?,
            (Unfinished::Turn | Unfinished::Nothing, _) => self.carry_out(first).await?,
        }
        while let Ok(pending) = self.orders.try_recv() {
            self.carry_out(pending).await?;
        }
        Ok(())
    }

    /// Carries out an order while the agent is idle.
    async fn carry_out(&mut self, pending: Pending) -> Result<(), StoreError> {
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
            AgentCommand::Compact(_) if self.agent.log.is_empty() => {
                refuse(reply, Nothing::Conversation)
            }
            AgentCommand::Compact(request) => {
                self.agent.interrupt = self.shutdown.child_token();
                reply.done();
                self.run_turns(StartReason::Compaction, Work::Compaction(request)).await
            }
            AgentCommand::Unqueue => refuse(reply, Nothing::Queue),
            AgentCommand::Continue => refuse(reply, Nothing::Continue),
            AgentCommand::Interrupt => refuse(reply, Nothing::Interrupt),
            AgentCommand::Background => refuse(reply, Nothing::Command),
            // Handled by the team.
            AgentCommand::HoldMail | AgentCommand::ReleaseMail => {
                reply.done();
                Ok(())
            }
        }
    }

    /// Works until the agent is idle. The order that started the turn is answered as soon as its
    /// message is committed.
    async fn work(&mut self, start: Start, reply: Option<PendingReply>) -> Result<(), StoreError> {
        self.agent.interrupt = self.shutdown.child_token();
        let reason = start.reason();
        let Some(requests) = self.begin(start).await? else { return Ok(()) };
        if let Some(reply) = reply {
            reply.done();
        }
        self.run_turns(reason, Work::Turn(requests)).await
    }

    /// Runs turns, and what was deferred meanwhile, until there is no reason for another turn.
    async fn run_turns(&mut self, reason: StartReason, work: Work) -> Result<(), StoreError> {
        let mut next = Some((reason, work));
        while let Some((reason, work)) = next {
            let mut sleep = self.run_turn(reason, work).await?;
            while let Some(deferred) = self.deferred.pop_front() {
                match deferred {
                    // It was answered when it was queued. The log shows what it did.
                    Deferred::Command(command) => {
                        let _ = self.agent.between_turns(command).await?;
                    }
                    Deferred::Compaction(request) => {
                        let work = Work::Compaction(request);
                        sleep = self.run_turn(StartReason::Compaction, work).await?;
                    }
                }
            }
            let turn = self.next_turn(sleep).await?;
            next = turn.map(|(reason, requests)| (reason, Work::Turn(requests)));
        }
        Ok(())
    }

    /// Runs a turn, or what is reported like one.
    async fn run_turn(&mut self, reason: StartReason, work: Work) -> Result<Sleep, StoreError> {
        self.agent.emit(EventKind::TurnStarted(reason));
        let turn = self.while_taking_orders(work).await?;
        let (agent, stop) = (self.agent.id().to_string(), turn.done.stop.name());
        info!(agent, stop, "turn ended");
        self.agent.report_context();
        self.agent.emit(EventKind::TurnEnded(turn.done));
        self.agent.interrupt = self.shutdown.child_token();
        Ok(turn.sleep)
    }

    /// Why another turn has to follow right away, if it does.
    async fn next_turn(
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
            if self.agent.announce_mail().await? {
                return Ok(Some((StartReason::Mail, Requests::Granted)));
            }
            // The mail was read or withdrawn in the meantime, and other mail may have come.
            sleep = self.agent.record_end(Vec::new(), Ending::Answered).await?;
        }
    }

    /// Commits the start of a turn. Returns `None` if there is no longer a reason for one.
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
            Start::Continued => {
                self.agent.grant_costs().await?;
                self.agent.resume(Some(budget)).await.map(Some)
            }
            Start::Mail => Ok(self.announce_or_go_idle().await?.then_some(Requests::Granted)),
        }
    }

    /// Announces the agent's mail. If the mail that woke the agent is gone, the agent becomes idle;
    /// otherwise it would be woken forever.
    async fn announce_or_go_idle(&mut self) -> Result<bool, StoreError> {
        loop {
            if self.agent.announce_mail().await? {
                return Ok(true);
            }
            if self.agent.log().needs_turn() || self.agent.go_idle().await? == Sleep::Asleep {
                return Ok(false);
            }
        }
    }

    /// Works, and takes orders meanwhile.
    async fn while_taking_orders(&mut self, work: Work) -> Result<Turn, StoreError> {
        let shutdown = self.shutdown.clone();
        let (orders, texts) = TurnOrders::of(self.agent);
        let mut writing = std::pin::pin!(self.agent.queue_writer(texts)?);
        let mut lost = std::pin::pin!(self.agent.seat.lost());
        let agent = &mut *self.agent;
        let mut turn = std::pin::pin!(async move {
            match work {
                Work::Turn(requests) => agent.run_turn(requests).await,
                Work::Compaction(request) => agent.run_compaction(&request).await,
            }
        });
        let mut is_open = true;
        let done = loop {
            tokio::select! {
                done = &mut turn => break done?,
                order = self.orders.recv(), if is_open => match order {
                    Some(pending) => orders.take(pending, &mut self.deferred),
                    None => is_open = false,
                },
                error = &mut lost => return Err(error),
                // It ends without an error only after `orders` is dropped.
                Err(error) = &mut writing => return Err(error),
            }
        };
        drop(orders);
        // Waits until all user messages are queued, except when the program ends.
        shutdown.run_until_cancelled(writing).await.unwrap_or(Ok(())).map(|()| done)
    }
}

fn refuse(reply: PendingReply, nothing: Nothing) -> Result<(), StoreError> {
    reply.refuse(CommandError::NothingToDo(nothing));
    Ok(())
}
