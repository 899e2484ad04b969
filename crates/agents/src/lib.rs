//! Agents at work: a prompt goes in, a model streams, tools run, the answer is in the log.
//!
//! An agent at work is a task that owns its state; an idle one is a row. [`serve`] takes [`Order`]s and emits
//! [`Event`]s, and nobody reaches into an agent. Its log in the database is the truth; what it holds in memory is a copy of it.
//!
//! In reading order:
//!
//! | | is | lives in |
//! | --- | --- | --- |
//! | [`serve`], [`Order`], [`AgentCommand`] | the agents of a process: started, woken, interrupted | `team.rs`, `task.rs` |
//! | the loop | ask the model, run its calls, ask again | `turn.rs`, `call.rs`, `ask.rs` |
//! | [`Permissions`] | whether a call may be carried out, and who is asked | `permission.rs` |
//! | [`Event`], [`Done`] | what others see of it | `event.rs` |
//! | [`Equipment`], [`Seat`] | what agents have in common, and the right to write to a log | `agent.rs`, `seat.rs`, `keeper.rs`, `journal.rs` |
//! | [`Models`] | which model answers whom | `models.rs` |
//! | [`system_prompt`] | what every model is told first | `prompt.rs` |
//! | [`catalogue()`] | all tools that there are | `catalogue.rs` |
//! | [`undo()`] | what a message set going, taken back | `undo.rs`, `files.rs` |
//! | [`renderer`] | the tools on agents, and what a model is told of their outcomes | `tools.rs`, `tools/` |
//! | [`until_over`] | waiting for other agents | `wait.rs` |
//!
//! # Invariants
//!
//! - A call is committed before it runs, its result right after; what a tool did to the database is
//!   committed together with its result.
//! - Half a call is never run: calls are taken from complete responses only.
//! - An agent becomes idle only by a transaction that finds no news.
//! - A process that lost its lease writes nothing more.
//! - No wire format and no colour is known here.

#![forbid(unsafe_code)]

mod team;

mod task;

mod attention;
mod between_turns;
mod order;

mod ask;
mod call;
mod permission;
mod turn;
mod written;

mod agent;
mod files;
mod journal;
mod keeper;
mod models;
mod seat;

mod catalogue;
mod prompt;
mod tools;
mod undo;
mod wait;

pub use agent::{Equipment, FreeAgents, Limits, Model, Notify, Toolbox};
pub use catalogue::catalogue;
pub use models::Models;
pub use order::{AgentCommand, Answer, BetweenTurns, Order};
pub use permission::{Permissions, Person};
pub use prompt::{Surroundings, system_prompt};
pub use seat::{Seat, SeatError, Which};
pub use team::serve;
pub use tools::{Render, renderer};
pub use undo::{Fate, Reason as LeftFor, Report, Undone, undo};
pub use wait::until_over;
