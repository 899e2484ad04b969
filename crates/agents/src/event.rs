//! What others see of an agent at work.

use std::sync::Arc;
use std::time::Duration;

use ikigai_conversation::{AgentId, Message};

use ikigai_protocol::ApprovalRequest;

/// Takes the events of all agents; those of one agent come one at a time, in the order in which they happen. It
/// must not wait for an agent.
pub type EventSink = Arc<dyn Fn(Event) + Send + Sync>;

/// Something that happened to an agent.
#[derive(Debug, Clone)]
pub struct Event {
    /// Whose it is.
    pub agent: AgentId,
    /// What it is.
    pub kind: EventKind,
}

/// The things that happen.
#[derive(Debug, Clone)]
pub enum EventKind {
    /// A turn has begun, for this reason.
    Started(Reason),
    /// A message is in the log.
    Logged(Message),
    /// A piece of an answer. It is not in the log until the answer is complete.
    Text(String),
    /// The model is asked again, which voids the text since the last result, retry or start.
    Retry {
        /// Which retry it is, from 1.
        attempt: u32,
        /// What went wrong.
        reason: String,
        /// How long is waited first.
        delay: Duration,
    },
    /// A call needs a yes. The answer is in the log, unless the turn ends first.
    Asks(ApprovalRequest),
    /// The database cannot be reached; it is tried again.
    StoreWaits(String),
    /// Mail waits, but the session has no wake left; the person's next message frees it.
    MailHeld,
    /// So much waits that this was not taken.
    Full(String),
    /// A turn has ended.
    Done(TurnEnd),
    /// The agent is not run here any more.
    Lost(String),
}

/// Why a turn began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A person said something.
    Said,
    /// There is mail.
    Mail,
    /// An earlier process had not come to its end.
    CutOff,
    /// A person wants it to go on.
    Resumed,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnEnd {
    /// Why.
    pub stop: Stop,
    /// The whole answer, or as much of it as there was.
    pub text: String,
    /// What went wrong, and what to do about it.
    pub error: Option<String>,
    /// Whether it makes sense to let the turn go on as it is.
    pub can_continue: bool,
}

/// Why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// By an answer.
    Stop,
    /// By an answer that was cut at the model's limit of tokens.
    Length,
    /// By the limit of tool calls; the answer says where the work stands.
    ToolLimit,
    /// By the person.
    Interrupted,
    /// By a fault.
    Error,
}

impl Stop {
    /// Its name in events.
    pub fn name(self) -> &'static str {
        match self {
            StopReason::Stop => "stop",
            StopReason::Length => "length",
            StopReason::ToolLimit => "tool_limit",
            StopReason::Interrupted => "interrupted",
            StopReason::Error => "error",
        }
    }
}
