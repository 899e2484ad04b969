//! Running agents: a prompt goes in, a model streams, tools run, and the answer is in the log.
//!
//! A working agent is a task that owns its state; an idle one is a row in the database. [`serve`]
//! takes [`Order`]s and emits [`Event`](ikigai_protocol::Event)s, and there is no other access to an agent. Its log in the
//! database is authoritative; what it holds in memory is a copy.
//!
//! In reading order:
//!
//! | | is | lives in |
//! | --- | --- | --- |
//! | [`serve`] | the agents of a process: starting, waking, stopping them | `team.rs`, `task.rs` |
//! | [`Order`], [`AgentCommand`] | what an agent can be ordered to do | `order.rs`, `turn_orders.rs`, `between_turns.rs` |
//! | the loop | ask the model, run its calls, ask again | `turn.rs`, `ask.rs`, `response_messages.rs`, `call.rs`, `reads.rs` |
//! | [`ContextSettings`] | making room when a context fills up | `compaction.rs`, `compaction/`, `context_parts.rs` |
//! | [`Permissions`] | whether a call may run or needs approval | `permission.rs` |
//! | [`TeamSetup`], [`Seat`] | what agents share, and the lease for writing to a log | `agent.rs`, `seat.rs`, `keeper.rs`, `journal.rs` |
//! | [`Costs`] | what may be spent | `costs.rs` |
//! | [`Models`] | which model each agent uses | `models.rs` |
//! | [`system_prompt`] | the system prompt of a session | `prompt.rs` |
//! | [`catalogue()`] | all built-in tools | `catalogue.rs` |
//! | [`undo()`] | undoing and redoing file changes | `undo.rs`, `files.rs` |
//! | [`renderer`] | the tools for agents, and the results of their calls | `tools.rs`, `tools/` |
//! | [`until_over`] | waiting for other agents | `wait.rs` |
//!
//! # Invariants
//!
//! - A call is committed before it runs, and its result right after. What a tool did to the
//!   database is committed together with its result. Calls that only read are committed together
//!   with their results.
//! - An incomplete call never runs: calls are taken from complete responses only.
//! - An agent becomes idle only in a transaction that finds no new mail.
//! - A process that lost its lease writes nothing more.
//! - This crate knows no wire format and no colour.

#![forbid(unsafe_code)]

mod team;

mod task;

mod between_turns;
mod order;
mod turn_orders;

mod ask;
mod call;
mod compaction;
mod context_parts;
mod permission;
mod questions;
mod reads;
mod response_messages;
mod thought;
mod turn;

mod agent;
mod background;
mod costs;
mod files;
mod journal;
mod keeper;
mod models;
mod notification;
mod seat;

mod catalogue;
mod prompt;
mod tools;
mod undo;
mod wait;
mod written_call;

pub use agent::{
    CommandsAtEnd, FreeAgents, Limits, Model, Notify, TeamSetup, Toolbox, offered_tools,
};
pub use catalogue::catalogue;
pub use compaction::{CompactionTrigger, ContextSettings};
pub use context_parts::{context_parts, tokens_of_tools};
pub use costs::{CostLimits, Costs};
pub use models::Models;
pub use order::{AgentCommand, Answer, BetweenTurns, CompactRequest, Order};
pub use permission::{Permissions, User};
pub use prompt::{Surroundings, system_prompt};
pub use seat::{Seat, SeatError, SessionChoice};
pub use team::serve;
pub use tools::{Render, renderer};
pub use undo::{Fate, Reason as LeftFor, Report, Undone, undo, undo_range};
pub use wait::until_over;
