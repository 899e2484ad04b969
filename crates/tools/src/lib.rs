//! What a model can do to the machine: list, read, search, write and edit files, and run commands.
//!
//! Three layers, each ignorant of the next one's business:
//!
//! | layer | turns | into | lives in |
//! | --- | --- | --- | --- |
//! | schema | a [`Declaration`] | what a model is told | `declaration.rs` |
//! | dispatcher | a name and raw JSON | a [`Call`] with typed parameters, or a refusal | `dispatcher.rs`, `arguments.rs`, `repair.rs` |
//! | executor | typed parameters | an [`Execution`] with its [`ToolResult`] | one file per tool |
//!
//! A [`Tool`] is a value: those of this crate, those on the database and those from elsewhere are the same. Its calls say
//! what they would do ([`Effect`]) and how they are shown before they run.
//!
//! Read [`Tool`] and [`Dispatcher`] first, then `file_read.rs` as the plainest tool, then `bash.rs` with
//! `commands.rs` and `watchdog.rs` as the most involved one.
//!
//! Between dispatcher and executor stands a [`Gate`]: it judges what is known about the effects of a call (its [`Fact`]s)
//! by mode and rules. A [`Tree`] in the [`Context`] confines the file tools, whatever was judged before.
//!
//! # Invariants
//!
//! - An executor never sees JSON, the dispatcher never does a tool's work.
//! - Whatever goes wrong for the model is a [`ToolResult`]; nothing in here panics or returns `Err` to
//!   the caller of a tool.
//! - No executor holds a whole file or a whole output: everything streams into a capture that bounds
//!   itself (`output.rs`). Only what a write replaces is held for a moment, up to 10 MB (`file_use.rs`).
//! - Only this crate starts processes. Each ends when the program ends, unless it made itself a session of
//!   its own.
//! - In a confined context no path is followed but from the open folders of its tree.
//! - Nothing here reads the environment or the configuration.
//!
//! # Example
//!
//! ```
//! use ikigai_tools::{Dispatcher, built_in};
//!
//! let dispatcher = Dispatcher::<()>::new(built_in());
//! let refusal = dispatcher.dispatch("glob", b"{}").unwrap_err();
//! assert_eq!(refusal.to_string(), r#"{"error":"Missing required parameter: pattern"}"#);
//! assert!(dispatcher.dispatch("glob", br#"{"pattern":"*.rs"}"#).is_ok());
//! ```

#![forbid(unsafe_code)]

mod tool;

mod call;
mod dispatcher;
mod effect;

mod arguments;
mod declaration;
mod repair;
mod result;

mod context;
mod file_use;
mod gate;
mod memory;
mod notes;
mod output;
mod tree;

mod background;
mod bash;
mod command;
mod file_edit;
mod file_read;
mod file_write;
mod glob;
mod grep;

mod diff;
mod file_error;
mod files;
mod inexact;
mod lines;
mod live_output;
mod lock;
mod looks;
mod owners;
mod pattern;
mod place;
mod present;
mod replace;
mod restore;
mod similar_names;
mod walk;
mod written;

mod caches;
mod change_time;
mod commands;
pub mod protected;
mod sandbox;
mod search_paths;
mod watchdog;
mod words;

pub use arguments::{Argument, Arguments, Choice, FileContent, ShellCommand, Texts, Whole};
pub use background::{
    Adopted, Background, BackgroundResult, CommandReport, Ended, Leaving, Listed,
};
pub use caches::CACHE_FOLDER;
pub use call::{Call, Executor, Work};
pub use commands::{ApprovedWrite, Commands, Loopback};
pub use context::Context;
pub use declaration::{Declaration, Parameter, ParameterType};
pub use dispatcher::{CORE, Dispatcher, built_in};
pub use effect::Effect;
pub use file_use::{Before, Change, Content, FileUse, Sight, Stale};
pub use files::open_regular;
pub use gate::{
    Access, Confinement, Decision, Fact, FileFacts, Gate, Mode, Question, Reach, Rule, Verdict,
    WHERE_RULES_STAND, Whereabouts, interrupted, offers, path_pattern, refusal,
};
pub use live_output::{LiveOutput, LiveSink};
pub use looks::{ContentHash, Fingerprint};
pub use memory::FileMemory;
pub use notes::Note;
pub use output::{OutputSize, cut};
pub use owners::{ForeignFile, Owners, passed_over, project_folders};
pub use repair::Repairs;
pub use restore::{DesiredState, FileState, RestoreOutcome, find, restore};
pub use result::{Execution, Refusal, ToolResult, counted};
pub use sandbox::{
    Identity, Kind as SandboxKind, LastingIdentity, NoSandbox, Root, Sandbox, other_names,
    secret_places, secret_places_of,
};
pub use search_paths::avoiding;
pub use tool::{BuiltIn, Tool};
pub use tree::Tree;
pub use walk::list_files;
pub use watchdog::{Approved, Watch, serve as serve_watchdog};

/// What the [`tool!`] macro needs where it is used.
#[doc(hidden)]
pub mod declaring {
    pub use crate::declaration::{required_first, text};
}
