//! Sessions, agents, their logs and their mail, in one database.
//!
//! Everything that ikigai promises about mail and conversations is kept here, by one idea: **a step is one
//! commit**. The methods of [`Store`] are named after what happens (a call is closed, mail is announced, an
//! agent goes idle), each is one transaction, and there is no way to do half of it. What a tool did to the
//! database, its result in the log and the marks that go with them stand or fall together.
//!
//! Read [`Store`], then `writer.rs` (how units of work share a commit), then the methods by subject:
//! `sessions.rs`, `roots.rs`, `agents.rs`, `leases.rs`, `log.rs`, `queue.rs`, `calls.rs`, `waking.rs`, `work.rs`, `causes.rs`,
//! `files.rs`, `undos.rs`, `copies.rs`; and `steps.rs` with what its steps do: `mailbox.rs`, `forks.rs`, `kills.rs`, `waits.rs`,
//! `reports.rs`.
//!
//! # Invariants
//!
//! - The log is only ever appended to.
//! - Who writes to a log holds the lease of its top-level agent; the check is inside the same transaction.
//! - A unit says what it is about (`Scope`), and nobody else writes there until its commit: what it reads stays
//!   true. A file has one writer at a time; on a server that is the lock of the session's row.
//! - Conditions that fail are values (an [`Outcome`], a [`Sleep`]); `Err` means that nothing was done, but for
//!   [`StoreError::Uncertain`]: then nobody knows.
//! - Nothing here knows what a tool or a model is. Texts for a model are made by functions that are passed
//!   in, from facts that are only known inside the transaction.

#![forbid(unsafe_code)]

mod store;

mod agents;
mod calls;
mod causes;
mod copies;
mod files;
mod forks;
mod kills;
mod leases;
mod letters;
mod log;
mod mailbox;
mod queue;
mod reports;
mod roots;
mod sessions;
mod steps;
mod undos;
mod waits;
mod waking;
mod work;

mod changes;
mod clock;
mod error;
mod process;
mod refusal;
mod unit;
mod writer;

mod address;
mod dialect;
mod postgres;
mod sql;
mod sqlite;
mod tables;

pub use address::database_files;
pub use agents::{Agent, AgentLimits, State, Tokens};
pub use changes::Changes;
pub use clock::Clock;
pub use error::StoreError;
pub use files::{Change, ChangedBy, Content, Kept, SIGHTS, Sight, Touched};
pub use forks::{Context, NewFork};
pub use leases::Lease;
pub use log::{Input, Next, Recorded, Requests};
pub use mailbox::{BODY_LIMIT, InboxFilter, InboxPage, Listed, MAILBOX_LIMIT, Mail};
pub use postgres::Locks;
pub use process::Process;
pub use refusal::Refusal;
pub use roots::RootFolder;
pub use sessions::{Budget, Place, Session};
pub use steps::{Acted, Address, Named, Outcome, Step};
pub use store::{Options, Store};
pub use undos::{Begun, ChangeId, Direction, KeptChange, Settled, Undo, Undoable};
pub use waits::{Awaited, Status, Wait, Waited, Waiting};
pub use waking::{Announced, Ended, Ending, Sleep, Unread};
pub use work::{Patience, Work};
