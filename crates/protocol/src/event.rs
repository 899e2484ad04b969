//! Events: what agents report while they work.

use std::sync::Arc;
use std::time::Duration;

use ikigai_conversation::{AgentId, CommandId, EffectKind, Message, Summary, ToolCall, ToolCallId};
use serde::Serialize;

use crate::approval::ApprovalRequest;

/// Receives the events of all agents. Events of one agent arrive one at a time and in order. It
/// must not block on an agent.
pub type EventSink = Arc<dyn Fn(Event) + Send + Sync>;

/// An event emitted by an agent.
#[derive(Debug, Clone, Serialize)]
pub struct Event {
    /// The agent that emitted it.
    pub agent: AgentId,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// The kinds of events.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", content = "data", rename_all = "snake_case")]
pub enum EventKind {
    /// A turn has started.
    TurnStarted(StartReason),
    /// A message was committed to the log.
    Message(Message),
    /// A piece of an answer. It is not in the log until the answer is complete.
    TextDelta(String),
    /// A piece of what the model thinks before it answers. The log keeps it with the response.
    ThinkingDelta(String),
    /// The model writes the arguments of a call, which may come to nothing. At most ten times a
    /// second.
    CallProgress {
        /// The tool.
        name: String,
        /// The kinds of effects that it can have.
        effects: Vec<EffectKind>,
        /// What the call is about, once known.
        subject: Option<String>,
        /// The lines of text so far.
        lines: u64,
    },
    /// The model, named by its label, refused the effort, and is used without it from now on.
    EffortRefused(String),
    /// The request is repeated, which voids the text since the last tool result, retry or start.
    Retry {
        /// The number of the retry, from 1.
        attempt: u32,
        /// How many there are at most.
        of: u32,
        /// What went wrong.
        reason: String,
        /// How long the agent waits first.
        #[serde(rename = "delay_ms", serialize_with = "as_millis")]
        delay: Duration,
    },
    /// Calls that only read run at the same time. They reach the log together, when all have ended.
    ReadsStarted(Vec<ToolCall>),
    /// How full the agent's context is, in tokens.
    ContextUsed {
        /// What the next request takes, partly estimated.
        used: u64,
        /// What fits, where that is known.
        window: Option<u64>,
    },
    /// Room was made in the context.
    Compaction(Compaction),
    /// A running command has printed something. What the call printed in all is in its result.
    ToolOutput {
        /// The call.
        #[serde(rename = "id")]
        call: ToolCallId,
        /// The newest part of the output.
        delta: String,
        /// How many bytes before it were left out.
        skipped: u64,
    },
    /// A command continues in the background.
    CommandStarted {
        /// Its number.
        command: CommandId,
        /// Its first line.
        line: String,
    },
    /// A background command has printed something.
    CommandOutput {
        /// Its number.
        command: CommandId,
        /// The newest part of the output.
        delta: String,
        /// How many bytes before it were left out.
        skipped: u64,
    },
    /// A background command has ended.
    CommandEnded {
        /// Its number.
        command: CommandId,
        /// Its exit code.
        exit_code: i32,
    },
    /// A background command is ended because this process ends.
    CommandLost {
        /// Its number.
        command: CommandId,
        /// Its first line.
        line: String,
    },
    /// A call needs approval. The answer appears in the log, unless the turn ends first.
    ApprovalRequested(ApprovalRequest),
    /// The database cannot be reached; the agent keeps trying.
    DatabaseUnavailable(String),
    /// Mail is waiting, but the session has no wake left. The user's next message releases it.
    MailHeld,
    /// The user should know this, but it stops nothing.
    Warning(String),
    /// A message of the user was not accepted because too many are queued.
    InputRejected(String),
    /// A turn has ended.
    TurnEnded(TurnEnd),
    /// This process no longer runs the agent.
    AgentLost(String),
}

/// Why a turn started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StartReason {
    /// The user said something.
    UserMessage,
    /// Mail arrived.
    Mail,
    /// An earlier process did not finish the turn.
    CutOff,
    /// The user continued a turn that had stopped.
    Continued,
    /// The user wants room in the context. It is not a turn, but it takes time and can be
    /// interrupted like one.
    Compaction,
}

/// How room was made in a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Compaction {
    /// What was done.
    pub method: CompactionMethod,
    /// The tokens in the context before it.
    pub before: u64,
    /// The tokens in the context after it.
    pub after: u64,
    /// How long it took.
    #[serde(rename = "elapsed_ms", serialize_with = "as_millis")]
    pub elapsed: Duration,
}

impl Compaction {
    /// How this summary made room.
    pub fn by_summary(summary: &Summary) -> Compaction {
        let Summary { before, after, elapsed_ms, .. } = *summary;
        let elapsed = Duration::from_millis(elapsed_ms);
        Compaction { method: CompactionMethod::Summary, before, after, elapsed }
    }
}

/// What makes room in a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionMethod {
    /// Earlier outputs are shortened.
    Trim,
    /// A summary replaces the conversation.
    Summary,
}

impl CompactionMethod {
    /// The name that events use.
    pub fn name(self) -> &'static str {
        match self {
            CompactionMethod::Trim => "trim",
            CompactionMethod::Summary => "summary",
        }
    }
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TurnEnd {
    /// Why it ended.
    pub stop: StopReason,
    /// The whole answer, or what had arrived of it.
    pub text: String,
    /// What went wrong and what to do about it.
    pub error: Option<String>,
    /// Whether the turn can be continued as it is.
    pub can_continue: bool,
}

impl TurnEnd {
    /// What the user can do to continue it, if that is possible.
    pub fn how_to_continue(&self) -> Option<&'static str> {
        let is_limit = self.stop == StopReason::ToolLimit;
        let hint = if is_limit { "Press Enter to continue" } else { "Press Enter to retry" };
        self.can_continue.then_some(hint)
    }
}

/// Why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model answered.
    Stop,
    /// The model ended the turn with a call, and needed no answer.
    #[serde(rename = "stop")]
    Call,
    /// The answer was cut off at the model's token limit.
    Length,
    /// The limit of tool calls was reached; the answer says where the work stands.
    ToolLimit,
    /// The user interrupted it.
    Interrupted,
    /// It failed.
    Error,
}

impl StopReason {
    /// The name that events use.
    pub fn name(self) -> &'static str {
        match self {
            StopReason::Stop | StopReason::Call => "stop",
            StopReason::Length => "length",
            StopReason::ToolLimit => "tool_limit",
            StopReason::Interrupted => "interrupted",
            StopReason::Error => "error",
        }
    }
}

fn as_millis<S: serde::Serializer>(delay: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX))
}
