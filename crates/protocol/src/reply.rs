//! Replies: what a command did.

use std::path::PathBuf;

use ikigai_conversation::{
    AgentId, CommandId, Correspondent, Effort, MailId, Message, Mode, SessionId, Time,
};
use serde::Serialize;

use crate::agents::AgentSummary;
use crate::model_summary::ModelSummary;
use crate::rewind::{RewindPoint, RewindReport};
use crate::undo::UndoReport;
use crate::usage::UsageTable;

/// What a command did. [`render_reply`](crate::render_reply) makes the text that a user reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "reply", content = "data", rename_all = "snake_case")]
pub enum Reply {
    /// The command is done and has no output.
    Done,
    /// The command is queued.
    Queued(QueuedUntil),
    /// This message is no longer queued.
    Unqueued(String),
    /// A command of the user has ended.
    Shell(ShellOutput),
    /// The context is fresh.
    Cleared,
    /// What the context consists of.
    Context(ContextReport),
    /// A mark is set.
    Marked {
        /// Its name, if it has one.
        label: Option<String>,
    },
    /// The conversation continues from a mark.
    Rewound {
        /// Its name, if it has one.
        label: Option<String>,
    },
    /// The points that the conversation can return to, in order.
    RewindPoints(Vec<RewindPoint>),
    /// The conversation or the files returned to a point.
    RewoundTo(RewindReport),
    /// File changes were undone.
    Undone(UndoReport),
    /// File changes were redone.
    Redone(UndoReport),
    /// A mailbox.
    Inbox(Inbox),
    /// A mail that was read.
    Mail(Mail),
    /// Mail was sent.
    MailSent {
        /// The recipient.
        to: Correspondent,
    },
    /// A mail was marked as unread.
    MailUnread(MailId),
    /// A child was forked.
    Forked(AgentId),
    /// Agents were killed, children first.
    Killed(Vec<AgentId>),
    /// The model that answers.
    Model(ModelChoice),
    /// How long the model thinks.
    Effort {
        /// The effort in force from the next request on; `None` if the provider decides.
        effort: Option<Effort>,
        /// Whether the command changed it.
        changed: bool,
    },
    /// The mode.
    Mode {
        /// The mode in force from the next call on.
        mode: Mode,
        /// Whether the command changed it.
        changed: bool,
    },
    /// The conversation of the agent that was opened.
    Opened {
        /// The agent.
        agent: AgentId,
        /// Its log, or the latest [`RECALLED`](crate::RECALLED) messages of it.
        log: Vec<Message>,
    },
    /// The agents of the session that are alive, parents before children.
    Agents(Vec<AgentSummary>),
    /// The latest sessions, and how many more there are.
    Sessions {
        /// The latest first.
        sessions: Vec<SessionSummary>,
        /// How many are not listed.
        more: usize,
        /// The session that the command came from.
        current: SessionId,
        /// Its working directory.
        here: String,
    },
    /// Background commands, in the order of their numbers.
    Commands(Vec<CommandSummary>),
    /// A background command is being ended.
    CommandStopped(CommandId),
    /// The end of a session's conversation.
    SessionPreview {
        /// The session.
        session: SessionId,
        /// A line per message, the latest last.
        text: String,
    },
    /// A session has another title.
    SessionRenamed {
        /// The session.
        session: SessionId,
        /// The title.
        title: String,
    },
    /// A session was deleted.
    SessionDeleted(SessionId),
    /// The tools that the agent has.
    Tools(Vec<ToolSummary>),
    /// What requests to models used and cost.
    Usage(UsageTable),
    /// The settings, as `ikigai config` prints them.
    Config(String),
    /// A rule was saved in the user's configuration.
    RuleSaved {
        /// The file.
        file: PathBuf,
        /// The rule, as it stands there.
        rule: String,
    },
    /// The conversation was written to a file.
    Exported {
        /// The file.
        path: PathBuf,
        /// How many messages it holds.
        messages: usize,
    },
    /// The files and folders of the working tree, relative to it. Folders end with a slash.
    Files(Vec<String>),
    /// The models that can be chosen.
    Models(Vec<ModelSummary>),
}

/// Until when a command is queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QueuedUntil {
    /// The next step of the turn: before the next request to the model.
    NextStep,
    /// The end of the turn.
    TurnEnd,
}

/// What a command of the user did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShellOutput {
    /// The command.
    pub line: String,
    /// Its exit code.
    pub exit_code: i64,
    /// What it printed, bounded.
    pub output: String,
}

/// A page of a mailbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Inbox {
    /// The owner of the mailbox.
    pub owner: Correspondent,
    /// Unread mail first.
    pub mail: Vec<MailSummary>,
    /// How much mail is not listed.
    pub more: u32,
}

/// A mail in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MailSummary {
    /// Its ID.
    pub id: MailId,
    /// Whether it is unread.
    pub unread: bool,
    /// The sender.
    pub from: Correspondent,
    /// The start of the text, on one line.
    pub preview: String,
}

/// A mail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mail {
    /// The sender.
    pub from: Correspondent,
    /// How long ago it was sent: `2 minutes ago`.
    pub age: String,
    /// The text.
    pub body: String,
    /// The owner of the mailbox for whom it was marked read, if it was.
    pub read_for: Option<Correspondent>,
}

/// A model that answers an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelChoice {
    /// The agent.
    pub agent: AgentId,
    /// `provider/name`.
    pub label: String,
    /// How many tokens fit into its context, where that is known.
    pub context_tokens: Option<u64>,
    /// Whether the command chose it.
    pub changed: bool,
}

/// What the context of an agent consists of. Sizes are in tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContextReport {
    /// The agent.
    pub agent: AgentId,
    /// What its next request takes, as far as the provider reported it.
    pub used: u64,
    /// What fits, where that is known.
    pub window: Option<u64>,
    /// Its parts, estimated.
    pub parts: Vec<ContextPart>,
}

/// A part of a context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContextPart {
    /// Its name: `tools`, `results of bash`.
    pub name: String,
    /// Its estimated size in tokens.
    pub tokens: u64,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionSummary {
    /// Its ID.
    pub id: SessionId,
    /// Its working directory.
    pub directory: String,
    /// The first line of the first message of the user; empty if there is none.
    pub title: String,
    /// When it was last written to.
    pub updated_at: Time,
    /// The same as text: `2 minutes ago`.
    pub age: String,
    /// How many agents it has, dead ones included.
    pub agents: u32,
    /// How many messages their logs hold.
    pub messages: u32,
}

/// A background command in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommandSummary {
    /// Its number.
    pub id: CommandId,
    /// The agent that it belongs to.
    pub agent: String,
    /// Its first line.
    pub line: String,
    /// For how many seconds it has been running, or ran.
    pub seconds: u64,
    /// Its exit code, if it has ended.
    pub exit_code: Option<i32>,
    /// The last line of its output.
    pub last_line: String,
}

/// A tool in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolSummary {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The names of its required parameters.
    pub required: Vec<String>,
    /// The names of its optional parameters.
    pub optional: Vec<String>,
}

/// Tokens sent and received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TokenCount {
    /// Sent to models.
    pub input: u64,
    /// Received from them.
    pub output: u64,
}
