//! Test helpers for several crates: servers, processes with faults, and checkers. Never a normal
//! dependency.
//!
//! - [`TestStore`]: a database per test, of either kind, with a clock that the test controls.
//!   [`Raw`]: a connection beside it.
//! - [`PostgresServer`]: a temporary server, which tests can kill.
//! - [`TestAgent`]: an agent that handles its mail like a real one: call, step, result.
//! - [`driver`]: a process that writes like an agent, prints what was accepted, and can be made to
//!   die at a chosen point or to misbehave.
//! - [`ModelServer`]: a model server that follows a script, including faults. [`AgentScripts`]: scripts for
//!   several agents.
//! - [`Slip`]: a malformed call of a model, and what has to come of it.
//! - [`strict`]: checks requests by the rules of their APIs.
//! - [`checker`]: a process that opens the database after a crash, and accounts for every message.
//!
//! The driver and the checker are functions, so that a test program can run them in a child
//! process. The programs `store-driver` and `store-checker` are for manual use, and
//! `scripted-model` is the model server.

#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test that cannot continue fails")]

pub mod checker;
pub mod driver;
pub mod strict;

mod model_server;
mod pooler;
mod postgres_server;
mod proxy;
mod random;
mod raw;
mod slips;
mod test_agent;
mod test_store;
mod view;

pub use model_server::{
    AgentScripts, CapturedRequest, Gate, ModelServer, Point, Reply, assert_prefix, scripted_model,
};
pub use pooler::Pooler;
pub use postgres_server::{PostgresServer, SERVER_VARIABLE, drop_database, fresh_database};
pub use proxy::{Cut, Proxy};
pub use random::Random;
pub use raw::{Raw, RawRow};
pub use slips::{Slip, SlipKind, run_slips};
pub use test_agent::{
    ROOM, TestAgent, by_id, everything, new_fork, output_of, result_of, said, send_to,
    send_to_user, wait_for,
};
pub use test_store::{Kind, PLENTY, TestDatabase, TestStore, location, opening};
pub use view::fault_of_view;
