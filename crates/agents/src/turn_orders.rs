//! Orders that arrive during a turn: each is carried out, queued or refused at once, and answered.

use std::collections::VecDeque;
use std::sync::Arc;

use ikigai_conversation::AgentId;
use ikigai_protocol::{CommandError, Event, EventKind, Nothing, QueuedUntil, Reply};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, TeamSetup};
use crate::order::{AgentCommand, BetweenTurns, Deferred, Pending, PendingReply};

/// The maximum number of user messages waiting to be committed, and of orders waiting for the end
/// of the turn. A user does not type more in that time.
const MAX_WAITING: usize = 64;

/// A change of the queue of user messages, and the reply to send once it is committed.
pub(crate) enum QueueChange {
    /// Add a message.
    Add(String, PendingReply),
    /// Take the last message back.
    TakeLast(PendingReply),
}

/// Takes the orders for an agent during a turn.
pub(crate) struct TurnOrders {
    agent: AgentId,
    setup: Arc<TeamSetup>,
    interrupt: CancellationToken,
    typed: mpsc::Sender<QueueChange>,
    leave: Arc<Notify>,
}

impl TurnOrders {
    /// For an agent whose turn is about to run. Also returns the receiver of the user messages to
    /// commit during the turn.
    pub(crate) fn of(agent: &Agent) -> (TurnOrders, mpsc::Receiver<QueueChange>) {
        let (typed, texts) = mpsc::channel(MAX_WAITING);
        let orders = TurnOrders {
            agent: agent.id().clone(),
            setup: agent.setup(),
            interrupt: agent.interrupt.clone(),
            typed,
            leave: Arc::clone(&agent.leave),
        };
        (orders, texts)
    }

    /// Handles an order. Orders that are only possible between turns are added to `deferred`.
    pub(crate) fn take(&self, pending: Pending, deferred: &mut VecDeque<Deferred>) {
        let Pending { command, reply } = pending;
        match command {
            AgentCommand::Say(text) => self.queue(text, reply),
            AgentCommand::Unqueue => {
                if let Err(error) = self.typed.try_send(QueueChange::TakeLast(reply)) {
                    let (mpsc::error::TrySendError::Full(change)
                    | mpsc::error::TrySendError::Closed(change)) = error;
                    let (QueueChange::Add(_, reply) | QueueChange::TakeLast(reply)) = change;
                    reply.refuse(CommandError::QueueFull(self.agent.clone()));
                }
            }
            AgentCommand::Interrupt => {
                self.interrupt.cancel();
                reply.done();
            }
            AgentCommand::Background => {
                self.leave.notify_waiters();
                reply.done();
            }
            AgentCommand::BetweenTurns(BetweenTurns::RewindTo(_)) => {
                reply.refuse(CommandError::Working(self.agent.clone()));
            }
            AgentCommand::BetweenTurns(_) | AgentCommand::Compact(_)
                if deferred.len() >= MAX_WAITING =>
            {
                reply.refuse(CommandError::QueueFull(self.agent.clone()));
            }
            AgentCommand::BetweenTurns(command) => {
                deferred.push_back(Deferred::Command(command));
                reply.send(Ok(Reply::Queued(QueuedUntil::TurnEnd)));
            }
            AgentCommand::Compact(request) => {
                deferred.push_back(Deferred::Compaction(request));
                reply.send(Ok(Reply::Queued(QueuedUntil::TurnEnd)));
            }
            AgentCommand::Continue => {
                reply.refuse(CommandError::NothingToDo(Nothing::Continue));
            }
            // Handled by the team.
            AgentCommand::HoldMail | AgentCommand::ReleaseMail => reply.done(),
            // The end of the turn checks for mail.
            AgentCommand::Look => {}
        }
    }

    /// Queues a message of the user, which is answered once it is committed.
    fn queue(&self, text: String, reply: PendingReply) {
        use mpsc::error::TrySendError::{Closed, Full};
        let sent = self.typed.try_send(QueueChange::Add(text, reply));
        if let Err(Full(QueueChange::Add(text, reply)) | Closed(QueueChange::Add(text, reply))) =
            sent
        {
            let (agent, kind) = (self.agent.clone(), EventKind::InputRejected(text));
            (self.setup.events)(Event { agent, kind });
            reply.refuse(CommandError::QueueFull(self.agent.clone()));
        }
    }
}
