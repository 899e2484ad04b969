//! Who runs an agent: a process on a machine, told from every other one, also from a later one with the
//! same number.

use std::fmt;
use std::fs;

use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

/// A process, as a lease names its holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// The machine, whatever its name is at the moment.
    pub machine: String,
    /// Its name, for people.
    pub host: String,
    /// Different after every start of the machine.
    pub boot: String,
    /// Where process numbers mean the same: containers of one machine have each their own.
    pub namespace: String,
    /// The process number.
    pub pid: u32,
    /// When the process started, in the system's own counting; another one with this number started later.
    pub start: u64,
}

impl Process {
    /// The process that calls this.
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

    /// Whether this process can see that `other` is gone. Of another machine's processes nobody here knows; and
    /// machines that were made as copies of one may share its id, but not its name.
    pub fn sees_dead(&self, other: &Process) -> bool {
        if self.machine != other.machine || self.host != other.host {
            return false;
        }
        if self.boot == other.boot && self.namespace != other.namespace {
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

/// What the system says about a process number.
struct Stat {
    /// It ended, and only waits for its parent to notice; some parents never do.
    ended: bool,
    start: u64,
}

/// The 3rd and the 22nd field of the process's line; the second may hold spaces and brackets of any kind.
fn stat(pid: u32) -> Option<Stat> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = line.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let ended = matches!(fields.next()?, "Z" | "X");
    Some(Stat { ended, start: fields.nth(18)?.parse().ok()? })
}
