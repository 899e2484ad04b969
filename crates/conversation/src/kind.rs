//! The kinds of messages.

use std::fmt;

/// The kind of a message. [`Body`](crate::Body) has the data of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The system prompt.
    System,
    /// A message of the user, or the task of a fork.
    User,
    /// The text of a model's response.
    Assistant,
    /// A call that a model requested; logged before it runs.
    ToolCall,
    /// The result of a call.
    ToolResult,
    /// The notification of new mail.
    Notification,
    /// A summary that replaces an earlier part of the log in requests.
    Summary,
    /// The start of a fork's own messages.
    Fork,
    /// The token usage of a response.
    Usage,
    /// A point to return to.
    Mark,
    /// The return to an earlier point.
    Rewind,
    /// The start of a fresh context.
    Clear,
    /// The shortening of earlier tool outputs in requests.
    Trim,
    /// The killing of other agents.
    Kill,
    /// The interrupt of a turn by the user.
    Interrupted,
    /// A command that the user typed.
    Command,
    /// The user's answer to a call that needed approval.
    Approval,
}

impl Kind {
    /// Every kind, in the order of the table in the contract.
    pub const ALL: [Kind; 17] = [
        Kind::System,
        Kind::User,
        Kind::Assistant,
        Kind::ToolCall,
        Kind::ToolResult,
        Kind::Notification,
        Kind::Summary,
        Kind::Fork,
        Kind::Usage,
        Kind::Mark,
        Kind::Rewind,
        Kind::Clear,
        Kind::Trim,
        Kind::Kill,
        Kind::Interrupted,
        Kind::Command,
        Kind::Approval,
    ];

    /// The name in the database and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::System => "system",
            Kind::User => "user",
            Kind::Assistant => "assistant",
            Kind::ToolCall => "tool_call",
            Kind::ToolResult => "tool_result",
            Kind::Notification => "notification",
            Kind::Summary => "summary",
            Kind::Fork => "fork",
            Kind::Usage => "usage",
            Kind::Mark => "mark",
            Kind::Rewind => "rewind",
            Kind::Clear => "clear",
            Kind::Trim => "trim",
            Kind::Kill => "kill",
            Kind::Interrupted => "interrupted",
            Kind::Command => "command",
            Kind::Approval => "approval",
        }
    }

    /// The kind with this name.
    pub fn parse(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
