//! What tests of several crates need: fakes, faults and judges. Never a normal dependency.
//!
//! - [`TestStore`]: a database per test, of either kind, with a clock that the test turns; [`Raw`]: a connection
//!   beside it.
//! - [`PostgresServer`]: a server that is thrown away, and may be killed before.
//! - [`TestAgent`]: an agent that works on its mail as the real one does: call, step, result.
//! - [`driver`]: a process that writes like an agent, says aloud what was accepted, and can be made to die at
//!   a chosen moment or to do it wrong on purpose.
//! - [`ModelServer`]: a model server that follows a script, its faults included; [`Cast`]: one that plays several
//!   agents at once.
//! - [`strict`]: judges of requests, with the rules of the APIs that they are for.
//! - [`checker`]: a process that opens the database after the crash, and accounts for every message.
//!
//! The driver and the checker are functions here, so that a test program can be its own child; the programs
//! `store-driver` and `store-checker` are the same for use by hand, and `scripted-model` is the model server.

#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

pub mod checker;
pub mod driver;
pub mod strict;

mod model_server;
mod pooler;
mod postgres_server;
mod proxy;
mod random;
mod raw;
mod test_agent;
mod test_store;
mod view;

pub use model_server::{
    Captured, Cast, Gate, ModelServer, Point, Reply, assert_prefix, scripted_model,
};
pub use pooler::Pooler;
pub use postgres_server::{PostgresServer, SERVER_VARIABLE, drop_database, fresh_database};
pub use proxy::{Cut, Proxy};
pub use random::Random;
pub use raw::{Raw, RawRow};
pub use test_agent::{
    ROOM, TestAgent, by_id, everything, new_fork, output_of, said, send_to, wait_for,
};
pub use test_store::{Kind, PLENTY, TestDatabase, TestStore, place};
pub use view::fault_of_view;
