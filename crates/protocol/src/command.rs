//! Commands: what the user, through a front end, wants a session to do.

use ikigai_conversation::{AgentId, CommandId, Effort, MessageId, Mode, SessionId};
use serde::{Deserialize, Serialize};

use crate::approval::ApprovalAnswer;
use crate::rewind::RewindPart;
use crate::usage::UsageBy;

/// A command with the agent that it concerns: the one that the user looks at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The agent.
    pub agent: AgentId,
    /// What to do.
    #[serde(flatten)]
    pub command: Command,
}

/// A command. Every one is answered: by a [`Reply`](crate::Reply) that says what was done or until
/// when it is queued, or by a [`CommandError`](crate::CommandError) that says why not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Say something to the agent. While it works, the message is queued for the next step.
    Say {
        /// The message.
        text: String,
    },
    /// Take the last message back that is queued for the agent.
    Unqueue,
    /// Run a command of the user's own, outside the sandbox. Its output goes with the user's next
    /// message to the agent.
    Shell {
        /// The command.
        line: String,
    },
    /// Continue a turn that stopped because of a fault or because the request budget was used up.
    Continue,
    /// End the turn at once.
    Interrupt,
    /// Answer an [`ApprovalRequest`](crate::ApprovalRequest).
    Answer(ApprovalAnswer),
    /// Start a fresh context. The log keeps everything.
    Clear,
    /// Make room in the context now.
    Compact {
        /// What the summary should dwell on.
        #[serde(default)]
        focus: Option<String>,
        /// The first message that stays as it is; by default as little as possible stays.
        #[serde(default)]
        before: Option<MessageId>,
    },
    /// Show what the context consists of.
    Context,
    /// Set a mark to return to.
    Mark {
        /// Its name, if it gets one.
        #[serde(default)]
        label: Option<String>,
    },
    /// Return to a mark: the one with this name, or the latest.
    Rewind {
        /// The name.
        #[serde(default)]
        label: Option<String>,
    },
    /// List the messages of the user and the marks that the conversation can return to.
    ListRewindPoints,
    /// Return to before a message of the user, or to a mark.
    RewindTo {
        /// The message or the mark.
        point: MessageId,
        /// What returns there.
        #[serde(default)]
        part: RewindPart,
    },
    /// Undo the file changes of the user's latest message.
    Undo,
    /// Redo what the last undo undid.
    Redo,
    /// Use the agent's mailbox, with the arguments of `/mail`.
    Mail {
        /// `inbox`, `read ID`, `peek ID`, `send AGENT TEXT`, `unread ID`; empty for the inbox.
        #[serde(default)]
        line: String,
    },
    /// Hold the agent's mail while it is idle, because the user is typing to it.
    HoldMail,
    /// Stop holding the agent's mail.
    ReleaseMail,
    /// Fork a child that knows the conversation.
    Fork {
        /// Its task. Without one it is idle.
        #[serde(default)]
        prompt: Option<String>,
    },
    /// End an agent and its descendants.
    Kill {
        /// Its ID or name; without one, the agent of the request.
        #[serde(default)]
        target: Option<String>,
    },
    /// Show or choose the model that answers the agent.
    Model {
        /// The model to choose.
        #[serde(default)]
        name: Option<String>,
    },
    /// Show or choose how long the agent's model thinks before it answers.
    Effort {
        /// The effort to choose.
        #[serde(default)]
        effort: Option<EffortChoice>,
    },
    /// Show or change the mode.
    Mode {
        /// The mode to change to.
        #[serde(default)]
        mode: Option<Mode>,
    },
    /// Open an agent to talk to: its conversation so far.
    Open {
        /// Its ID or name; without one, the agent of the request.
        #[serde(default)]
        target: Option<String>,
    },
    /// List the agents of the session.
    Agents,
    /// List the latest sessions.
    Sessions,
    /// List the background commands of all agents that this process runs.
    ListCommands,
    /// End a background command.
    StopCommand {
        /// Its number.
        id: CommandId,
    },
    /// Let the command that the agent waits for continue in the background.
    Background,
    /// Show the end of a session's conversation.
    PreviewSession {
        /// The session.
        session: SessionId,
    },
    /// Give a session another title.
    RenameSession {
        /// The session.
        session: SessionId,
        /// The title.
        title: String,
    },
    /// Delete a session that no process runs, for good.
    DeleteSession {
        /// The session.
        session: SessionId,
    },
    /// List the tools that the agent has.
    Tools,
    /// Show what requests to models used and cost.
    Usage {
        /// What each row is about.
        #[serde(default)]
        by: UsageBy,
    },
    /// Show the settings in force.
    Config,
    /// Write the conversation to a new file.
    Export {
        /// The file: JSON lines if it ends in `.jsonl` or `.json`, else Markdown.
        file: String,
    },
    /// List the files and folders of the working tree, for completion.
    ListFiles,
    /// List the models of all connected providers, those of the agent's own first.
    ListModels,
}

/// An effort that the user chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffortChoice {
    /// The provider decides.
    Default,
    /// This one.
    #[serde(untagged)]
    Effort(Effort),
}

impl EffortChoice {
    /// Parses the word that `/effort` takes.
    pub fn parse(word: &str) -> Option<EffortChoice> {
        match word {
            "default" => Some(EffortChoice::Default),
            word => Effort::parse(word).map(EffortChoice::Effort),
        }
    }

    /// The effort, unless the provider decides.
    pub fn effort(self) -> Option<Effort> {
        match self {
            EffortChoice::Default => None,
            EffortChoice::Effort(effort) => Some(effort),
        }
    }
}
