//! The kinds of messages.

use std::fmt;

/// What a message is. [`Body`](crate::Body) has the facts that go with each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The prompt that a session begins with.
    System,
    /// What a person typed, or the task of a fork.
    User,
    /// The text of a model's response.
    Assistant,
    /// A call that a model asked for; in the log before it runs.
    ToolCall,
    /// What came out of a call.
    ToolResult,
    /// The news that there is mail.
    Notification,
    /// What stands for an earlier part of the log in requests.
    Summary,
    /// Where a fork's own messages begin.
    Fork,
    /// What a response cost.
    Usage,
    /// A point to return to.
    Mark,
    /// The return to an earlier point.
    Rewind,
    /// The beginning of a fresh context.
    Clear,
    /// The shortening of earlier tool outputs in requests.
    Trim,
    /// The end of other agents.
    Kill,
    /// The end of a turn by the person.
    Interrupted,
    /// A command that the person typed.
    Command,
    /// A person's answer to a call that needed a permission.
    Approval,
}

impl Kind {
    /// Every kind, in the order of the contract's table.
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

    /// The kind of this name.
    pub fn parse(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
