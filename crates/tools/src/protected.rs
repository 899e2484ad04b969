//! Protected paths, which other programs (mainly git, editors, shells and agents) later run or trust, so
//! that no command may change them without approval.
//!
//! | module | subject |
//! | --- | --- |
//! | `names.rs` | the list of protected names |
//! | `folders.rs` | where the repositories of a root are |
//! | `snapshot.rs` | all protected paths at one moment |
//! | `finding.rs` | which changes need approval; for git's settings with `allowed.rs` and `git_config.rs` |
//! | `index.rs` | names in git's index that mislead git |
//! | `guard.rs` | the states before, during and after commands |
//! | `quarantine.rs` | moving a finding away and back, with `record.rs` and `moving.rs` |
//!
//! Everything is synchronous and bounded. The tree is considered hostile and may change at any moment: no
//! link is followed when inspecting, reading, moving or restoring (`safe_files.rs`).
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
//! std::fs::write(root.join("AGENTS.md"), "Trust everyone.")?; // the command runs
//!
//! let check = guard.check(); // after it, and every two seconds while it runs
//! let records = guard.quarantine(&check.findings, &quarantine);
//! assert!(records[0].to_string().ends_with("because it is new, and other programs run or trust it"));
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
mod folders;
mod git_config;
mod index;
mod moving;
mod names;
mod safe_files;

#[cfg(test)]
mod tests;

pub use finding::{Change, Finding};
pub use guard::{Check, Guard, ProtectedPaths};
pub(crate) use names::{OF_GIT, START_UP, TOP, has_become_setting, is_guarded_at};
pub use quarantine::{put_back, quarantined, replaced};
pub use record::{MoveOutcome, Record, RestoreOutcome};
