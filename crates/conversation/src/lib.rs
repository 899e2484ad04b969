//! The conversation between agents and models: one append-only log per agent, and what is derived
//! from it.
//!
//! A log is a list of canonical [`Message`]s, in no provider's format. Requests to a model, the
//! screen and a resumed session are all derived from it.
//!
//! In reading order:
//!
//! | type | is | lives in |
//! | --- | --- | --- |
//! | [`Kind`], [`Body`] | the kinds of messages and their data | `kind.rs`, `body.rs` |
//! | [`Message`], [`NewMessage`] | one entry of a log, and one that is not in it yet | `message.rs`, `compose.rs` |
//! | [`CallSummary`], [`ResultSummary`], [`Preview`] | how calls are displayed | `shown.rs`, `diff.rs` |
//! | [`Log`] | an agent's messages: open calls, whether a turn is due | `log.rs`, `pairs.rs` |
//! | [`Seen`] | what a model may see of a log, by [`Log::view`] | `view.rs` |
//! | [`TrimPlan`], [`SummaryPlan`] | what can be left out when a context fills up | `making_room.rs`, `counting.rs`, `size.rs` |
//! | [`Reduction`] | the part of a log that is still needed after that | `reduction.rs` |
//! | [`AgentId`], [`Correspondent`], [`MessageId`], … | IDs | `agent_id.rs`, `correspondent.rs`, `ids.rs` |
//!
//! # Invariants
//!
//! - No IO, no clock, no waiting: pure functions of text and values.
//! - No provider's format: each provider's client translates in both directions.
//! - A message never changes. Clear, rewind, summary and trim are messages as well, and what they
//!   hide stays in the log.
//! - Wherever a crash cut a log off, a model sees each call with exactly one result, and no result
//!   without its call.
//! - Every message is one line of JSON that decodes to exactly the same message.
//! - Everything derived from a log takes time linear in its length.
//!
//! # Example
//!
//! ```
//! use ikigai_conversation::{AgentId, Log, MessageId, NewMessage, ResponseId, Seen, Time, ToolCallId};
//!
//! // The program ended while the call ran.
//! let (call, response) = (ToolCallId::new("call_1"), ResponseId::new("r1"));
//! let log: Vec<_> = [
//!     NewMessage::user("Which C files are there?"),
//!     NewMessage::tool_call(call, "glob", r#"{"pattern":"*.c"}"#, response),
//! ]
//! .into_iter()
//! .zip((1..).filter_map(MessageId::new))
//! .map(|(new, id)| new.into_message(id, AgentId::top_level(0), Time::from_millis(0)))
//! .collect();
//!
//! let log = Log::new(&log);
//! assert_eq!(log.open_calls()[0].content, "error: Interrupted: the program ended before the call did");
//! assert!(log.needs_turn());
//!
//! let view = log.view();
//! assert!(matches!(view[0], Seen::Identity(identity) if identity.to_string() == "[You are agent 0/]"));
//! assert_eq!(view[1], Seen::User("Which C files are there?"));
//! assert!(matches!(view[2..], [Seen::ToolCall(_), Seen::ToolResult { success: false, .. }]));
//! ```

#![forbid(unsafe_code)]

mod effort;
mod kind;
mod mode;

mod body;
mod extras;

mod compose;
mod diff;
mod message;
mod one_line;
mod shown;

mod identity;
mod log;
mod pairs;
mod reduction;
mod view;

mod counting;
mod making_room;
mod size;

mod agent_id;
mod correspondent;
mod error;
mod ids;
mod time;

pub use agent_id::AgentId;
pub use body::{
    Approval, Assistant, Body, Command, Decision, Fork, Interrupted, Kill, Mark, Notification,
    Rewind, Summary, ToolCall, ToolResult, Trim, Usage,
};
pub use compose::THINKING_LIMIT;
pub use correspondent::Correspondent;
pub use diff::{DiffLine, FileDiff, Hunk};
pub use effort::Effort;
pub use error::{DecodeError, IdError};
pub use extras::Extras;
pub use identity::Identity;
pub use ids::{CommandId, MailId, MessageId, ResponseId, SessionId, ToolCallId};
pub use kind::Kind;
pub use log::Log;
pub use making_room::{KeptRoom, SummaryPlan, TrimPlan};
pub use message::{Message, NewMessage};
pub use mode::Mode;
pub use reduction::Reduction;
pub use shown::{CallSummary, EffectKind, Preview, ResultState, ResultSummary};
pub use size::{bytes_of, tokens_in, tokens_of};
pub use time::Time;
pub use view::Seen;
