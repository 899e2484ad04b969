//! What a call or a command of mail is told when it is not carried out, letter by letter.

use ikigai_conversation::AgentId;
use ikigai_store::{BODY_LIMIT, MAILBOX_LIMIT, Outcome};
use ikigai_tools::ToolResult;

/// Why nothing was done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MailError {
    /// No action at all.
    #[error("Missing required parameter: {0}")]
    Missing(&'static str),
    /// The action is no string.
    #[error("Invalid action type")]
    ActionType,
    /// There is no such action.
    #[error("Unknown action: {}", cut(.0))]
    UnknownAction(String),
    /// A filter of the inbox is wrong.
    #[error("Invalid parameter: {0}")]
    InvalidFilter(&'static str),
    /// A string that is no positive number.
    #[error("Invalid message ID")]
    InvalidId,
    /// Neither a number nor a string.
    #[error("Invalid id type")]
    IdType,
    /// No such message in this mailbox, whoever else may have it.
    #[error("Message #{0} not found")]
    NoMail(i128),
    /// Nothing to send.
    #[error("Message body cannot be empty")]
    EmptyBody,
    /// Too much to send.
    #[error(
        "Message body too large ({0} bytes, at most {BODY_LIMIT}): put it in a file and send its path"
    )]
    BodyTooLarge(usize),
    /// No such agent.
    #[error("Agent {} not found", cut(.0))]
    NoAgent(String),
    /// The recipient was killed.
    #[error("Agent {0} is dead")]
    Dead(AgentId),
    /// The recipient does not read.
    #[error("Mailbox of agent {0} is full ({MAILBOX_LIMIT} unread)")]
    Full(AgentId),
    /// The database refused the step.
    #[error("Database error")]
    Database,
}

impl MailError {
    /// The failure that an outcome tells of, if it is one.
    pub fn of(outcome: &Outcome) -> Option<MailError> {
        match outcome {
            Outcome::Inbox(_)
            | Outcome::Read(_)
            | Outcome::MadeUnread(_)
            | Outcome::Sent { .. } => None,
            // No step of mail comes to these.
            Outcome::Forked(_)
            | Outcome::Killed(_)
            | Outcome::Agents(_)
            | Outcome::Waited(_)
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

/// What a model made up may be long.
fn cut(text: &str) -> String {
    text.chars().take(64).collect()
}
