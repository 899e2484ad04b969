//! Orders: commands for an agent of this process, each of which is answered.

use ikigai_conversation::{AgentId, MessageId};
use ikigai_protocol::{CommandError, Reply};
use tokio::sync::oneshot;

/// The answer to an order.
pub type Answer = Result<Reply, CommandError>;

/// A command for an agent of this process. When the last sender of orders is dropped, the team ends
/// as soon as it has no work.
#[derive(Debug)]
pub struct Order {
    pub(crate) agent: AgentId,
    pub(crate) pending: Pending,
}

impl Order {
    /// An order and the receiver of its answer. It is answered exactly once.
    pub fn new(agent: AgentId, command: AgentCommand) -> (Order, oneshot::Receiver<Answer>) {
        let (sender, answer) = oneshot::channel();
        let reply = PendingReply(Some(sender));
        (Order { agent, pending: Pending { command, reply } }, answer)
    }
}

/// What an agent can be ordered to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentCommand {
    /// Take a message of the user. During a turn it is queued for the next step.
    Say(String),
    /// Take the last queued message back.
    Unqueue,
    /// Continue a turn that stopped because of a fault or because the request budget was used up.
    Continue,
    /// End the turn at once.
    Interrupt,
    /// Let the running command continue in the background.
    Background,
    /// Hold the mail of the agent while it is idle, because the user is typing to it.
    HoldMail,
    /// Stop holding it.
    ReleaseMail,
    /// Do this between turns. During a turn it is queued until the turn ends.
    BetweenTurns(BetweenTurns),
    /// Make room in the context. During a turn it is queued until the turn ends.
    Compact(CompactRequest),
    /// Check for mail and for a turn that was cut off. Only the team sends it.
    Look,
}

/// How the user wants room to be made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompactRequest {
    /// What the summary should dwell on.
    pub focus: Option<String>,
    /// The first message that stays as it is; by default as little as possible stays.
    pub before: Option<MessageId>,
}

/// Commands that are only possible between turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BetweenTurns {
    /// Start a fresh context.
    Clear,
    /// Set a mark.
    Mark(Option<String>),
    /// Rewind to the mark with this name, or to the latest.
    Rewind(Option<String>),
    /// Rewind to before this message of the user, or to this mark. Refused during a turn.
    RewindTo(MessageId),
    /// Log that the user ran a command. The model does not see it.
    Note(String),
}

/// An order that was queued until the end of the turn. It has been answered.
#[derive(Debug)]
pub(crate) enum Deferred {
    Command(BetweenTurns),
    Compaction(CompactRequest),
}

/// An order on its way to the agent.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) command: AgentCommand,
    pub(crate) reply: PendingReply,
}

impl Pending {
    /// An order of the team itself, without an answer.
    pub(crate) fn look() -> Pending {
        Pending { command: AgentCommand::Look, reply: PendingReply(None) }
    }
}

/// The reply to send. Dropping it means that the session has ended, and the reply says so.
#[derive(Debug)]
pub(crate) struct PendingReply(Option<oneshot::Sender<Answer>>);

impl PendingReply {
    pub(crate) fn send(mut self, answer: Answer) {
        if let Some(sender) = self.0.take() {
            // The front end may have disconnected.
            let _ = sender.send(answer);
        }
    }

    pub(crate) fn done(self) {
        self.send(Ok(Reply::Done));
    }

    pub(crate) fn refuse(self, error: CommandError) {
        self.send(Err(error));
    }
}

impl Drop for PendingReply {
    fn drop(&mut self) {
        if let Some(sender) = self.0.take() {
            let _ = sender.send(Err(CommandError::Closed));
        }
    }
}
