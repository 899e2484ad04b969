//! Process groups: whether one is alive, and which ones hang on a command.

use nix::unistd::getsid;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpgid, getpid, kill_process_group,
    test_kill_process_group, waitid, waitpgid,
};

/// Which processes below a command count as its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sessions {
    /// Not a daemon that made itself a session.
    Own,
    /// All: no daemon leaves the process space that bubblewrap made.
    Any,
}

/// The process group of a command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group(pub(super) Pid);

impl Group {
    /// The groups of all processes below `ancestor` and its group, its own left out: timeout(1) and shells
    /// with job control make groups of their own.
    pub(super) fn below(ancestor: Pid, sessions: Sessions) -> Vec<Group> {
        let (session, own) = (session(None), getpgid(Some(ancestor)).ok());
        let processes = processes();
        // Its group too: it may have ended before what it began.
        let members = processes.iter().filter(|process| process.group == ancestor);
        let mut below: Vec<Pid> = members.map(|process| process.id).collect();
        if !below.contains(&ancestor) {
            below.push(ancestor);
        }
        let mut groups: Vec<Group> = Vec::new();
        let mut next = 0;
        while let Some(&parent) = below.get(next) {
            for process in processes.iter().filter(|process| process.parent == Some(parent)) {
                if !below.contains(&process.id) {
                    below.push(process.id);
                }
                let is_new = !groups.iter().any(|group| group.0 == process.group);
                let is_ours = sessions == Sessions::Any || Some(process.session) == session;
                if is_ours && Some(process.group) != own && is_new {
                    groups.push(Group(process.group));
                }
            }
            next += 1;
        }
        groups
    }

    /// Whether anything of it is left. A stranger's group that got the same number does not count: it is
    /// in another session.
    ///
    /// Only to be asked after the leader's own end was noticed: it takes in all other ends.
    pub(super) fn is_alive(self) -> bool {
        while let Ok(Some(_)) = waitpgid(self.0, WaitOptions::NOHANG) {}
        let is_strange = session(Some(self.0)).is_some_and(|its| Some(its) != session(None));
        !is_strange && test_kill_process_group(self.0).is_ok()
    }

    pub(super) fn signal(self, signal: Signal) {
        // It may be gone by now.
        let _ = kill_process_group(self.0, signal);
    }
}

/// The session of a process, or of this one. It is 0 where its leader stands outside the container, which rustix holds
/// for impossible.
fn session(process: Option<Pid>) -> Option<i32> {
    let process = process.map(|process| nix::unistd::Pid::from_raw(process.as_raw_pid()));
    getsid(process).ok().map(nix::unistd::Pid::as_raw)
}

/// What commands in landlock have begun and that left their groups, as a daemon does: what hangs on this process and
/// has a filter of system calls more, but for the groups of commands that still run.
pub(super) fn strays(running: &[Group]) -> Vec<Pid> {
    // The usual case, seen without a look at other processes.
    let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    if running.is_empty() && waitid(WaitId::All, peek).err() == Some(Errno::CHILD) {
        return Vec::new();
    }
    let own = getpid();
    let Some(own_filters) = filters(own) else { return Vec::new() };
    let is_running = |process: &Pid| {
        getpgid(Some(*process)).is_ok_and(|group| running.iter().any(|known| known.0 == group))
    };
    let is_stray = |process: &Pid| filters(*process).is_some_and(|filters| filters > own_filters);
    let mut below = children(own);
    let mut next = 0;
    while let Some(&process) = below.get(next) {
        below.extend(children(process));
        next += 1;
    }
    below.retain(|process| !is_running(process) && is_stray(process));
    below
}

/// The children of a process.
fn children(process: Pid) -> Vec<Pid> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    let lists: Option<Vec<String>> = threads
        .filter_map(Result::ok)
        .map(|thread| std::fs::read_to_string(thread.path().join("children")).ok())
        .collect();
    let Some(lists) = lists else {
        // It has ended, or the kernel has no such lists.
        let children = processes().into_iter().filter(|other| other.parent == Some(process));
        return children.map(|child| child.id).collect();
    };
    let numbers = lists.iter().flat_map(|list| list.split_ascii_whitespace());
    numbers.filter_map(|number| Pid::from_raw(number.parse().ok()?)).collect()
}

/// How many filters of system calls a process has, or, where the kernel does not say, whether it has any.
fn filters(process: Pid) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse().ok()
    };
    field("Seccomp_filters:").or_else(|| field("Seccomp:"))
}

/// A process as the system lists it.
#[derive(Debug, PartialEq)]
struct Process {
    id: Pid,
    parent: Option<Pid>,
    group: Pid,
    /// Not a [`Pid`]: see [`session`].
    session: i32,
}

/// All processes; none where there is no /proc.
fn processes() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let stats = entries.filter_map(|entry| std::fs::read(entry.ok()?.path().join("stat")).ok());
    stats.filter_map(|stat| Process::parse_stat(&String::from_utf8_lossy(&stat))).collect()
}

impl Process {
    /// Reads `number (name) state parent group session …`; the name may hold anything.
    fn parse_stat(stat: &str) -> Option<Process> {
        let (id, _) = stat.split_once(" (")?;
        let (_, fields) = stat.rsplit_once(") ")?;
        let mut fields = fields.split(' ').skip(1);
        // Of a process that ends at this very moment, group and session are -1.
        let mut number = || fields.next()?.parse().ok().filter(|&id: &i32| id >= 0);
        let id = Pid::from_raw(id.parse().ok()?)?;
        let parent = number().and_then(Pid::from_raw);
        Some(Process { id, parent, group: Pid::from_raw(number()?)?, session: number()? })
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::Pid;

    use super::Process;

    #[test]
    fn a_process_is_read_whatever_its_name() {
        let pid = |number| Pid::from_raw(number).unwrap();
        let process = |parent| Process { id: pid(7), parent, group: pid(5), session: 4 };
        for (stat, expected) in [
            ("7 (sleep) S 6 5 4 0 -1", Some(process(Some(pid(6))))),
            ("7 (a) S 1 2 3) b (c) S 6 5 4 0 -1", Some(process(Some(pid(6))))),
            // The first process of a container has no parent.
            ("7 (init) S 0 5 4 0 -1", Some(process(None))),
            // The leader of its session stands outside the container.
            ("7 (sleep) S 6 5 0 0 -1", Some(Process { session: 0, ..process(Some(pid(6))) })),
            // Threads of the kernel have no group.
            ("2 (kthreadd) S 0 0 0 0 -1", None),
            // It ended while its line was written.
            ("7 (sleep) X 0 -1 -1 0 -1", None),
            ("7 (sleep", None),
            ("", None),
        ] {
            assert_eq!(Process::parse_stat(stat), expected, "{stat}");
        }
    }
}
