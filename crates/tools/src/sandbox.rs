//! The sandbox of commands: what a command may reach of the machine, and by which means it is kept to it.
//!
//! A [`Sandbox`] is plain data. It travels with the request to the watchdog, of which a thread starts the command
//! (`watchdog/enclosed.rs`): by way of `bwrap`, or enclosed by landlock itself. So nothing is ever done between a
//! fork and an exec.
//!
//! Every command has walls of its own: within common ones commands could signal each other, and a folder that
//! comes to be beside a hidden one would stay out of reach until the end.
//!
//! | | bubblewrap | landlock with seccomp |
//! | --- | --- | --- |
//! | writing outside | read-only file system | permission denied |
//! | hidden places | empty | permission denied; folders above them cannot be listed |
//! | network | a namespace without one | no sockets at all |
//! | Unix sockets | in what can be written; others are covered | only pairs |
//! | git's hooks and settings, start-up files | read-only, as far as they are at the top of the tree | not kept apart |
//! | other processes | not there | cannot be traced, and from Linux 6.12 on not signalled |
//!
//! # What neither bounds
//!
//! Memory, processes and space on the disk. `RLIMIT_NPROC` counts all processes of the user, so a limit
//! that stops a fork bomb would also stop an editor; `RLIMIT_AS` breaks what reserves much and uses
//! little (Go, Java, sanitizers); control groups need a delegation that few systems give. The bounds
//! are the time limit, and that a whole process space can be ended at once.
//!
//! Landlock leaves more open than bubblewrap: mode, owner, times and attributes of the user's files
//! outside can be changed, and the names of hidden files be asked for, since the kernel has no rule for any of
//! it. It also takes more away: tracers and debuggers, `/dev/shm` and what System V shares, pseudo-terminals, listing the folders above a hidden place. So bubblewrap is taken wherever
//! it works.

#[cfg(target_os = "linux")]
pub(crate) mod bubblewrap;
#[cfg(target_os = "linux")]
mod ground;
#[cfg(target_os = "linux")]
mod guarded;
mod hint;
#[cfg(target_os = "linux")]
pub(crate) mod landlock;
#[cfg(target_os = "linux")]
mod mounts;
mod places;
mod root;
#[cfg(target_os = "linux")]
mod seccomp;
mod secrets;
#[cfg(target_os = "linux")]
pub(crate) mod sockets;
mod wire;

use std::fmt;
use std::path::PathBuf;

pub(crate) use hint::{Ended, hint};
pub use mounts::other_names;
#[cfg(target_os = "linux")]
pub(crate) use places::{Cover, Place};
pub use root::{Identity, LastingIdentity, Root};
pub use secrets::secret_places;
pub(crate) use wire::Enclosure;

/// What a command may reach. Everything that is not named can be read and not be written.
///
/// Of two places that lie in one another the deeper one counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// What can be written: the working tree, the session's temporary folder, what the user adds.
    pub write: Vec<Root>,
    /// Those of them in which nothing is protected: the session's temporary folder.
    pub unprotected: Vec<PathBuf>,
    /// What can be read although it is, or lies in, a hidden place.
    pub read: Vec<Root>,
    /// What can be neither read nor written: see [`secret_places`]. Absolute; what does not exist is passed over. The
    /// folder in which services keep their sockets (`/run`) is always hidden.
    pub hidden: Vec<PathBuf>,
    /// Whether there is a network.
    pub network: bool,
    /// Whether Unix sockets can be made. Only bubblewrap can allow that, and then hides `/tmp` and the sockets it knows.
    pub unix_sockets: bool,
    /// By which means; `None` is the best one that works.
    pub kind: Option<Kind>,
}

/// The means by which a command is enclosed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Namespaces, set up by `bwrap`.
    Bubblewrap,
    /// Rules and a filter of system calls, which a thread takes upon itself and what it starts.
    Landlock,
}

impl Kind {
    /// The better one first.
    pub const ALL: [Kind; 2] = [Kind::Bubblewrap, Kind::Landlock];

    /// Whether it is worth a try, as far as can be told without one.
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

/// Whether some sandbox works here for certain. That costs next to nothing; that none does is only known by a
/// trial.
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
