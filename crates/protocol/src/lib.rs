//! The protocol between front ends and a session. Plain data: no database, no socket, no terminal.
//!
//! A front end sends [`Command`]s and gets a [`Reply`] or a [`CommandError`] for each. In between
//! it receives [`Event`]s. Its display and input are up to the front end.
//!
//! In reading order:
//!
//! | | is | lives in |
//! | --- | --- | --- |
//! | [`Event`] | what agents report while they work | `event.rs` |
//! | [`ApprovalRequest`], [`ApprovalAnswer`] | a call that needs approval, and the decision | `approval.rs` |
//! | [`Attachment`] | what goes with a message of the user | `attachments.rs` |
//! | [`Request`], [`Command`] | what the user wants to do | `command.rs` |
//! | [`SlashCommand`] | a command as typed | `slash.rs` |
//! | [`Reply`], [`CommandError`] | the outcome of a command | `reply.rs`, `agents.rs`, `rewind.rs`, `undo.rs`, `usage.rs`, `error.rs` |
//! | [`render_reply`] | a reply as text | `render.rs` |
//! | [`TranscriptReducer`], [`Block`] | events and logs as the blocks that front ends show | `transcript.rs`, `block.rs` |
//! | [`PlainText`], [`PlainLog`] | blocks and logs as plain text | `plain.rs` |
//!
//! # Invariants
//!
//! - Every command is answered exactly once.
//! - A reply holds data. It is rendered as text in one place, and nothing parses that text.
//!
//! # Example
//!
//! ```
//! use ikigai_protocol::{Command, Request};
//!
//! let line = r#"{"agent":"0/","command":"say","text":"hello"}"#;
//! let request: Request = serde_json::from_str(line)?;
//! assert_eq!(request.command, Command::Say { text: "hello".to_owned() });
//! # Ok::<(), serde_json::Error>(())
//! ```

#![forbid(unsafe_code)]

mod approval;
mod attachments;
mod event;

mod command;
mod slash;

mod agents;
mod error;
mod reply;
mod rewind;
mod undo;
mod usage;

mod elapsed;
mod model_summary;
mod money;
mod render;

mod block;
mod mail_card;
mod notice;
mod plain;
mod safe;
mod transcript;

pub use agents::{AgentState, AgentSummary, Runner};
pub use approval::{ApprovalAnswer, ApprovalRequest, RULE_LOCATION};
pub use attachments::{Attachment, attach, shown_message, typed_text};
pub use block::{
    Block, BlockChange, BlockContent, BlockId, CallBlock, CallChange, CallEnd, CallState,
    NoticeTone, OutputPreview, ThoughtChange, Visibility,
};
pub use command::{Command, EffortChoice, Request};
pub use elapsed::{render_duration, render_elapsed};
pub use error::{CommandError, Nothing};
pub use event::{
    Compaction, CompactionMethod, Event, EventKind, EventSink, StartReason, StopReason, TurnEnd,
};
pub use mail_card::MailCard;
pub use model_summary::{ModelPrices, ModelSummary, did_you_mean, render_models};
pub use money::{dollars, render_dollars, render_exact_dollars};
pub use notice::{MAIL_HELD, effort_refused, input_rejected};
pub use plain::{
    PlainLog, PlainText, output_line, output_preview, render_below, render_notice, render_outcome,
};
pub use render::{
    render_agent, render_compaction, render_context_use, render_redo, render_reply, render_session,
    render_short_count, render_thought, render_tokens, render_tools, render_undo,
};
pub use reply::{
    CommandSummary, ContextPart, ContextReport, Inbox, Mail, MailSummary, ModelChoice, QueuedUntil,
    Reply, SessionSummary, ShellOutput, TokenCount, ToolSummary,
};
pub use rewind::{RewindPart, RewindPoint, RewindReport};
pub use safe::{safe, safe_json};
pub use slash::{Copied, SLASH_COMMANDS, SlashCommand, is_slash_command};
pub use transcript::{Recalled, TranscriptReducer};
pub use undo::{FileOutcome, LeftReason, UndoReport};
pub use usage::{UsageBy, UsageRow, UsageTable, render_count, render_usage};

/// How many messages of a log are shown when an agent is opened: more than a user scrolls through,
/// and few enough to load quickly.
pub const RECALLED: u32 = 10_000;
