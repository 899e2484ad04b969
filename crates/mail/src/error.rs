//! Errors of mail calls and commands, letter by letter.

use ikigai_conversation::{AgentId, Correspondent};
use ikigai_store::{BODY_LIMIT, MAILBOX_LIMIT, Outcome};
use ikigai_tools::ToolResult;

/// Why nothing was done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MailError {
    /// A parameter is missing.
    #[error("Missing required parameter: {0}")]
    Missing(&'static str),
    /// The action is not a string.
    #[error("Invalid action type")]
    ActionType,
    /// There is no such action.
    #[error("Unknown action: {}", cut(.0))]
    UnknownAction(String),
    /// An optional parameter is invalid.
    #[error("Invalid parameter: {0}")]
    InvalidParameter(&'static str),
    /// A string that is not a positive number.
    #[error("Invalid message ID")]
    InvalidId,
    /// Neither a number nor a string.
    #[error("Invalid id type")]
    IdType,
    /// There is no such message in this mailbox, even if another mailbox has it.
    #[error("Message #{0} not found")]
    NoMail(i128),
    /// The body is empty.
    #[error("Message body cannot be empty")]
    EmptyBody,
    /// The body is too large.
    #[error(
        "Message body too large ({0} bytes, at most {BODY_LIMIT}): put it in a file and send its path"
    )]
    BodyTooLarge(usize),
    /// There is no such agent.
    #[error("Agent {} not found", cut(.0))]
    NoAgent(String),
    /// The recipient was killed.
    #[error("Agent {0} is dead")]
    Dead(AgentId),
    /// The recipient has too much unread mail.
    #[error("Mailbox of {} is full ({MAILBOX_LIMIT} unread)", named(.0))]
    Full(Correspondent),
    /// The database refused the step.
    #[error("Database error")]
    Database,
}

impl MailError {
    /// The error that an outcome stands for, if it does.
    pub fn of(outcome: &Outcome) -> Option<MailError> {
        match outcome {
            Outcome::Inbox(_)
            | Outcome::Read(_)
            | Outcome::Peeked(_)
            | Outcome::MadeUnread(_)
            | Outcome::Sent { .. } => None,
            // No step of mail has these outcomes.
            Outcome::Forked(_)
            | Outcome::Killed(_)
            | Outcome::Agents(_)
            | Outcome::WaitEnded(_)
            | Outcome::Abandoned
            | Outcome::Refused(_) => Some(MailError::Database),
            Outcome::NoMail(id) => Some(MailError::NoMail(i128::from(*id))),
            Outcome::NoAgent(given) => Some(MailError::NoAgent(given.clone())),
            Outcome::Dead(agent) => Some(MailError::Dead(agent.clone())),
            Outcome::Full(agent) => Some(MailError::Full(agent.clone())),
        }
    }
}

impl From<MailError> for ToolResult {
    fn from(error: MailError) -> ToolResult {
        ToolResult::error(&error.to_string())
    }
}

/// `agent 1/` or `user`
fn named(owner: &Correspondent) -> String {
    match owner {
        Correspondent::User => owner.to_string(),
        Correspondent::Agent(agent) => format!("agent {agent}"),
    }
}

/// A model can make up long values.
fn cut(text: &str) -> String {
    text.chars().take(64).collect()
}
