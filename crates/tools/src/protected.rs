//! Protected paths: what other programs, above all git, editors, shells and agents, later run or believe, and no command
//! may change without approval.
//!
//! | module | knows |
//! | --- | --- |
//! | `names.rs` | the list of protected names |
//! | `folders.rs` | where repositories are beneath a root |
//! | `snapshot.rs` | all protected paths at one moment |
//! | `finding.rs` | which changes need approval; of git's settings by `allowed.rs` and `git_config.rs` |
//! | `index.rs` | git's index, which can lead git astray |
//! | `guard.rs` | the states before, beside and after commands |
//! | `quarantine.rs` | how a finding is moved away, and put back; `record.rs` says it, `moving.rs` does it |
//!
//! Everything is synchronous and bounded. The tree is taken for hostile and may change at any moment: no link is followed
//! to look at something, to read, to move or to restore (`beneath.rs`).
//!
//! # Example
//!
//! ```
//! # fn main() -> std::io::Result<()> {
//! # let folder = std::env::temp_dir().join(format!("protected-{}", std::process::id()));
//! # let (root, quarantine) = (folder.join("root"), folder.join("quarantine"));
//! # std::fs::create_dir_all(&root)?;
//! # std::fs::create_dir_all(&quarantine)?;
//! use ikigai_tools::protected::{ProtectedPaths, put_back};
//!
//! let paths = ProtectedPaths::new(); // kept as long as the process runs
//! let guard = paths.guard(&[root.clone()], &quarantine)?; // before each command
//! std::fs::write(root.join("AGENTS.md"), "Trust everybody.")?; // the command runs
//!
//! let check = guard.check(); // after it, and every two seconds beside it
//! let records = guard.quarantine(&check.findings, &quarantine);
//! assert!(records[0].to_string().ends_with("because it is new, and other programs run or believe it"));
//! assert!(!root.join("AGENTS.md").exists());
//!
//! let path = put_back(&quarantine, &records[0].id)?; // the user has approved it
//! guard.accept(&path);
//! assert!(guard.check().findings.is_empty());
//! # std::fs::remove_dir_all(&folder)
//! # }
//! ```

mod guard;

mod finding;
mod quarantine;
mod record;
mod snapshot;

mod allowed;
mod beneath;
mod folders;
mod git_config;
mod index;
mod moving;
mod names;

#[cfg(test)]
mod tests;

pub use finding::{Change, Finding};
pub use guard::{Check, Guard, ProtectedPaths};
pub(crate) use names::{OF_GIT, START_UP, TOP, has_become_setting, is_guarded_at};
pub use quarantine::{put_back, quarantined, replaced};
pub use record::{Moved, Record, Restored};
