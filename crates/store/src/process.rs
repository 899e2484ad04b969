//! Identifies the process that runs an agent, distinct from every other process, including a later
//! one with the same process id.

use std::fmt;
use std::fs;

use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

/// A process, as a lease names its holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// The id of the machine, which does not depend on its current name.
    pub machine: String,
    /// The name of the machine, for display.
    pub host: String,
    /// The boot id, which is different after every start of the machine.
    pub boot: String,
    /// The namespace of process ids: containers of one machine each have their own.
    pub namespace: String,
    /// The process number.
    pub pid: u32,
    /// The start time of the process in clock ticks. A later process with the
    /// same id has a later one.
    pub start: u64,
}

impl Process {
    /// The current process.
    pub fn current() -> Process {
        let read = |path| fs::read_to_string(path).map(|text| text.trim().to_owned());
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let pid = std::process::id();
        Process {
            machine: read("/etc/machine-id")
                .ok()
                .filter(|id| !id.is_empty())
                .unwrap_or_else(|| host.clone()),
            host,
            boot: read("/proc/sys/kernel/random/boot_id").unwrap_or_default(),
            namespace: fs::read_link("/proc/self/ns/pid")
                .map(|link| link.to_string_lossy().into_owned())
                .unwrap_or_default(),
            pid,
            start: stat(pid).map_or(0, |stat| stat.start),
        }
    }

    /// Whether both run on one machine. Clones of a machine may share its id, but not its name.
    pub(crate) fn is_same_machine(&self, other: &Process) -> bool {
        self.machine == other.machine && self.host == other.host
    }

    /// Whether this process can tell if `other` is alive.
    pub(crate) fn can_see(&self, other: &Process) -> bool {
        self.is_same_machine(other)
            && (self.boot != other.boot || self.namespace == other.namespace)
    }

    /// Whether this process can tell that `other` is gone. It knows nothing about processes of
    /// other machines. Clones of a machine may share its id, but not its name.
    pub fn sees_dead(&self, other: &Process) -> bool {
        if !self.can_see(other) {
            return false;
        }
        let exists = i32::try_from(other.pid)
            .ok()
            .and_then(Pid::from_raw)
            .is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH));
        self.boot != other.boot
            || !exists
            || stat(other.pid).is_some_and(|stat| stat.ended || stat.start != other.start)
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pid {} on {}", self.pid, self.host)
    }
}

/// The system's information about a process.
struct Stat {
    /// It has ended, and waits for its parent to reap it. Some parents never do.
    ended: bool,
    start: u64,
}

/// The 3rd and the 22nd field of the process's line. The second field may contain spaces and
/// parentheses.
fn stat(pid: u32) -> Option<Stat> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = line.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let ended = matches!(fields.next()?, "Z" | "X");
    Some(Stat { ended, start: fields.nth(18)?.parse().ok()? })
}
