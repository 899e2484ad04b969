//! The sandbox of commands: what a command may access, and how that is enforced.
//!
//! A [`Sandbox`] is plain data. It is sent with the request to the watchdog, where a thread starts
//! the command (`watchdog/sandboxed.rs`): through `bwrap`, or after restricting itself with
//! landlock. So no code runs between fork and exec.
//!
//! Every command gets its own sandbox. In a shared one, commands could signal each other, and a
//! folder created next to a hidden one would stay inaccessible until the end of the session.
//!
//! | | bubblewrap | landlock with seccomp |
//! | --- | --- | --- |
//! | writing elsewhere | read-only file system | permission denied |
//! | hidden paths | empty | permission denied; their parent folders cannot be listed |
//! | network | a namespace without one | no sockets at all |
//! | Unix sockets | in writable folders; others are covered | only pairs |
//! | git's hooks and settings, startup files | read-only at the top of the tree | writable, checked afterwards |
//! | other processes | invisible | cannot be traced, nor signalled since Linux 6.12 |
//!
//! # What neither kind limits
//!
//! Memory, processes and disk space. `RLIMIT_NPROC` counts all processes of the user, so a limit
//! that stops a fork bomb would also stop an editor. `RLIMIT_AS` breaks programs that reserve much
//! memory and use little (Go, Java, sanitizers). Control groups need a delegation that few systems
//! provide. Commands are limited by their timeout, after which the whole PID namespace is killed.
//!
//! Landlock permits more than bubblewrap: a command can change mode, owner, times and attributes of
//! the user's files outside, and probe for the names of hidden files, since the kernel has no rules
//! for that. It also breaks more: tracers and debuggers, `/dev/shm` and System V IPC,
//! pseudo-terminals, and listing the parent folders of hidden paths. So bubblewrap is preferred
//! wherever it works.

mod access_map;
#[cfg(target_os = "linux")]
pub(crate) mod bubblewrap;
mod hint;
#[cfg(target_os = "linux")]
pub(crate) mod landlock;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod path_state;
#[cfg(target_os = "linux")]
mod read_only;
mod root;
#[cfg(target_os = "linux")]
mod seccomp;
mod secrets;
#[cfg(target_os = "linux")]
pub(crate) mod sockets;
mod wire;

use std::fmt;
use std::path::PathBuf;

#[cfg(target_os = "linux")]
pub(crate) use access_map::{Cover, PathAccess};
pub(crate) use hint::{EndedCommand, hint};
pub use mounts::other_names;
pub use root::{Identity, LastingIdentity, Root};
pub use secrets::{secret_places, secret_places_of};
pub(crate) use wire::ResolvedSandbox;

/// What a command may access. Everything not named here is readable but not writable.
///
/// If two paths are nested, the deeper one wins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// Writable: the working tree, the session's temporary folder, and what the user adds.
    pub write: Vec<Root>,
    /// The writable roots in which no path is protected: the session's temporary folder.
    pub unprotected: Vec<PathBuf>,
    /// Readable even if hidden or inside a hidden path.
    pub read: Vec<Root>,
    /// Neither readable nor writable: see [`secret_places`]. Absolute paths; those that do not
    /// exist are skipped. `/run`, where services keep their sockets, is always hidden.
    pub hidden: Vec<PathBuf>,
    /// Whether the command has a network.
    pub network: bool,
    /// Whether the command can create Unix sockets. Only bubblewrap can allow that; it then hides
    /// `/tmp` and all sockets it knows of.
    pub unix_sockets: bool,
    /// Which kind to use; `None` picks the best one that works.
    pub kind: Option<Kind>,
}

/// How a command is sandboxed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Namespaces, set up by `bwrap`.
    Bubblewrap,
    /// Landlock rules and a seccomp filter, which a thread applies to itself and its children
    /// inherit.
    Landlock,
}

impl Kind {
    /// Best first.
    pub const ALL: [Kind; 2] = [Kind::Bubblewrap, Kind::Landlock];

    /// Whether it is worth trying, as far as that can be known without a trial.
    pub(crate) fn is_installed(self) -> bool {
        match self {
            #[cfg(target_os = "linux")]
            Kind::Bubblewrap => bubblewrap::program().is_some(),
            #[cfg(not(target_os = "linux"))]
            Kind::Bubblewrap => false,
            Kind::Landlock => true,
        }
    }
}

/// Whether some sandbox certainly works here. This check is almost free; that no sandbox works is
/// only known after a trial.
pub(crate) fn is_certain() -> bool {
    #[cfg(target_os = "linux")]
    return landlock::is_there();
    #[cfg(not(target_os = "linux"))]
    return false;
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Bubblewrap => "bubblewrap",
            Kind::Landlock => "landlock",
        })
    }
}

/// Why no sandbox works here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoSandbox {
    /// One reason for each kind.
    pub why: String,
}

impl fmt::Display for NoSandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no sandbox works here ({})", self.why)
    }
}

impl std::error::Error for NoSandbox {}
