//! Orders: what an agent of this process is asked to do, and the answer that each of them gets.

use ikigai_conversation::AgentId;
use ikigai_protocol::{ApprovalAnswer, CommandError, Reply};
use tokio::sync::oneshot;

/// What became of an order.
pub type Answer = Result<Reply, CommandError>;

/// Something for an agent of this process to do. When no sender of orders is left, the team ends as soon as there is
/// nothing to do.
#[derive(Debug)]
pub struct Order {
    pub(crate) agent: AgentId,
    pub(crate) pending: Pending,
}

impl Order {
    /// An order, and where its answer arrives. It is answered exactly once.
    pub fn new(agent: AgentId, command: AgentCommand) -> (Order, oneshot::Receiver<Answer>) {
        let (sender, answer) = oneshot::channel();
        let reply = PendingReply(Some(sender));
        (Order { agent, pending: Pending { command, reply } }, answer)
    }
}

/// What an agent can be asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentCommand {
    /// Take a message of the user. During a turn it is queued for the next step.
    Say(String),
    /// Continue a turn that stopped by a fault or for lack of requests.
    Continue,
    /// End the turn at once.
    Interrupt,
    /// Hold the mail of the agent while it is idle, because the user is typing to it.
    HoldMail,
    /// Stop holding it.
    ReleaseMail,
    /// Take the user's answer to a call that needs approval.
    Answer(ApprovalAnswer),
    /// Do this between turns. During a turn it is queued until the turn ends.
    BetweenTurns(BetweenTurns),
    /// Look for mail and for a turn that was cut off. The team's own.
    Look,
}

/// What an agent can only do between turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BetweenTurns {
    /// Start a fresh context.
    Clear,
    /// Set a mark.
    Mark(Option<String>),
    /// Return to a mark: the one with this name, or the latest.
    Rewind(Option<String>),
    /// Log that the user used a command. The model does not see it.
    Note(String),
}

/// An order on its way to the agent.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) command: AgentCommand,
    pub(crate) reply: PendingReply,
}

impl Pending {
    /// An order of the team itself, which needs no answer.
    pub(crate) fn look() -> Pending {
        Pending { command: AgentCommand::Look, reply: PendingReply(None) }
    }
}

/// The answer that is owed. If it is dropped, the session has ended, and the answer says so.
#[derive(Debug)]
pub(crate) struct PendingReply(Option<oneshot::Sender<Answer>>);

impl PendingReply {
    pub(crate) fn send(mut self, answer: Answer) {
        if let Some(sender) = self.0.take() {
            // A front end may have left.
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
