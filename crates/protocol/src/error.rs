//! Why a command was refused.

use ikigai_conversation::AgentId;
use serde::Serialize;

/// Why a command was refused. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "error", content = "data", rename_all = "snake_case")]
pub enum CommandError {
    /// The session starts with the first message.
    #[error("The session starts with your first message; until then there is only agent 0/")]
    NotStarted,
    /// There is nothing for the command to act on.
    #[error("{0}")]
    NothingToDo(Nothing),
    /// There is no such agent.
    #[error("Agent {0} not found. /agents lists all")]
    AgentNotFound(String),
    /// The agent is dead.
    #[error("Agent {0} is dead")]
    AgentDead(AgentId),
    /// Another process runs the agent.
    #[error("Agent {0} is run by another terminal. Write to it: /mail send {0} TEXT")]
    RunElsewhere(AgentId),
    /// No process runs the agent.
    #[error("No terminal runs agent {0}. Open one for it: ikigai -c --agent {0}")]
    NotRunning(AgentId),
    /// An agent is working, and the command has to wait for it.
    #[error("Agent {0} is working. Interrupt it first, or end it with /kill {0}")]
    Working(AgentId),
    /// Too many commands are waiting for the agent.
    #[error("Too many messages are queued for agent {0}. Try again later")]
    QueueFull(AgentId),
    /// The command was not understood.
    #[error("{0}")]
    Usage(String),
    /// The session refused it, for the reason in the text.
    #[error("{0}")]
    Refused(String),
    /// The database failed.
    #[error("{0}")]
    Database(String),
    /// The session has ended.
    #[error("The session has ended")]
    Closed,
}

/// Why there is nothing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Nothing {
    /// There is no turn to continue.
    #[error("Nothing to continue")]
    Continue,
    /// The agent is idle.
    #[error("Nothing to interrupt")]
    Interrupt,
    /// No message is queued.
    #[error("No message is queued any more")]
    Queue,
    /// No call waits for this answer.
    #[error("This call no longer waits for approval")]
    Approval,
    /// The user has said nothing yet.
    #[error("There is no message yet")]
    Conversation,
    /// There is no mark, or none with this name.
    #[error("No such mark. /mark sets one")]
    Mark,
    /// The agent runs no command that could go to the background.
    #[error("No command runs")]
    Command,
    /// The message is not among those that the conversation can return to.
    #[error("There is no such message to return to. /rewind lists them")]
    RewindPoint,
    /// There are no file changes to undo.
    #[error("Nothing to undo")]
    Undo,
    /// Nothing was undone.
    #[error("Nothing to redo")]
    Redo,
}
