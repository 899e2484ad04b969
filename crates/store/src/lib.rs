//! Sessions, agents, their logs and their mail, in one database.
//!
//! All guarantees about mail and conversations are kept here, by one idea: **a step is one
//! commit**. The methods of [`Store`] are named after what happens (a call is closed, mail is
//! announced, an agent goes idle). Each is one transaction, and no method does half of it. What a
//! tool changed in the database, its result in the log and the marks that belong to them are
//! committed together.
//!
//! Read [`Store`], then `writer.rs` (how units of work share a commit), then the methods by
//! subject: `sessions.rs`, `roots.rs`, `agents.rs`, `openings.rs`, `leases.rs`, `log.rs`, `queue.rs`,
//! `calls.rs`, `questions.rs`, `waking.rs`, `work.rs`, `causes.rs`, `commands.rs`, `spending.rs`, `files.rs`, `undos.rs`,
//! `needed.rs`
//! with `obligations.rs` (what is left of a conversation after a summary), `copies.rs` with
//! `tables.rs`; and
//! `steps.rs` with its steps: `mailbox.rs`, `forks.rs`, `kills.rs`, `waits.rs`, `reports.rs`.
//!
//! # Invariants
//!
//! - The log is only ever appended to.
//! - Every writer to a log holds the lease of its top-level agent. This is checked in the same
//!   transaction.
//! - A unit declares what it is about (`Scope`), and nothing else writes there until its commit, so
//!   what it reads stays true. A file has one writer at a time. On a server, the unit locks the row
//!   of the session.
//! - Conditions that fail are values (an [`Outcome`], a [`Sleep`]). `Err` means that nothing was
//!   done, except for [`StoreError::Uncertain`]: then it is not known.
//! - The store does not know what a tool or a model is. Texts for a model are made by functions
//!   that the caller passes in, from facts that are only known inside the transaction.

#![forbid(unsafe_code)]

mod store;

mod agents;
mod calls;
mod causes;
mod commands;
mod copies;
mod files;
mod forks;
mod kills;
mod leases;
mod letters;
mod log;
mod mailbox;
mod needed;
mod obligations;
mod openings;
mod questions;
mod queue;
mod reports;
mod roots;
mod sessions;
mod spending;
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
pub use commands::{CommandEnd, EndedCommand, MatchedLine, StartedCommand};
pub use error::StoreError;
pub use files::{
    Change, ChangedBy, Content, FileAccess, LogEntry, SIGHTS, SeenFile, StoredContent,
};
pub use forks::{ForkContext, NewFork};
pub use leases::Lease;
pub use log::{AppendOutcome, Input, Next, Requests};
pub use mailbox::{BODY_LIMIT, InboxEntry, InboxFilter, InboxPage, MAILBOX_LIMIT, Mail};
pub use obligations::Obligations;
pub use openings::{ClaimedAgent, Opening};
pub use postgres::Locks;
pub use process::Process;
pub use questions::{
    AnswerOutcome, AnswersFrom, AskedQuestion, NewQuestion, QuestionId, Respondent,
};
pub use refusal::Refusal;
pub use roots::RootFolder;
pub use sessions::{Budget, Location, Session};
pub use spending::{Cause, Spending, Spent};
pub use steps::{AgentAddress, MailAddress, NamedAgent, Outcome, Step, StepRecord};
pub use store::{Options, Store};
pub use undos::{
    ChangeId, ChangeOutcome, Direction, StoredChange, Undo, UndoEntry, UndoRange, UndoStart,
};
pub use waits::{AwaitedAgent, AwaitedCommand, StartedWait, Status, Wait, WaitReport};
pub use waking::{Announcement, EndedTurn, Ending, Sleep, Unread};
pub use work::{PendingWork, TakeoverPolicy};
