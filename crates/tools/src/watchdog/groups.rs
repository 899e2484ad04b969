//! Process groups: whether one is alive, and which ones belong to a command.

use nix::unistd::getsid;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpgid, getpid, kill_process_group,
    test_kill_process_group, waitid, waitpgid,
};

/// Which descendants of a command belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sessions {
    /// Those in our session: not a daemon that created its own.
    Own,
    /// All: no daemon can leave the PID namespace of bubblewrap.
    Any,
}

/// The process group of a command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group(pub(super) Pid);

impl Group {
    /// The groups of all descendants of `ancestor` and its group, without its own: timeout(1) and
    /// shells with job control create groups.
    pub(super) fn below(ancestor: Pid, sessions: Sessions) -> Vec<Group> {
        let (session, own) = (session(None), getpgid(Some(ancestor)).ok());
        let processes = processes();
        // The members of its group count as well, since it may have ended before its children.
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

    /// Whether any process of the group is left. A group in another session is unrelated and has
    /// reused the number.
    ///
    /// Call this only after the leader was waited for: it reaps all other members.
    pub(super) fn is_alive(self) -> bool {
        while let Ok(Some(_)) = waitpgid(self.0, WaitOptions::NOHANG) {}
        let is_strange = session(Some(self.0)).is_some_and(|its| Some(its) != session(None));
        !is_strange && test_kill_process_group(self.0).is_ok()
    }

    pub(super) fn signal(self, signal: Signal) {
        // It may be gone already.
        let _ = kill_process_group(self.0, signal);
    }
}

/// The session of a process, or of this one. It is 0 if the session leader is outside the
/// container, which rustix considers impossible.
fn session(process: Option<Pid>) -> Option<i32> {
    let process = process.map(|process| nix::unistd::Pid::from_raw(process.as_raw_pid()));
    getsid(process).ok().map(nix::unistd::Pid::as_raw)
}

/// Processes of landlock commands that have left their groups, as daemons do: descendants of this
/// process with more seccomp filters than it has, except the groups of running commands.
pub(super) fn strays(running: &[Group]) -> Vec<Pid> {
    // The usual case, detected without inspecting other processes.
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
        // It has ended, or the kernel does not provide these lists.
        let children = processes().into_iter().filter(|other| other.parent == Some(process));
        return children.map(|child| child.id).collect();
    };
    let numbers = lists.iter().flat_map(|list| list.split_ascii_whitespace());
    numbers.filter_map(|number| Pid::from_raw(number.parse().ok()?)).collect()
}

/// The number of seccomp filters of a process or, where the kernel does not report it, whether
/// there are any. A zombie has none: it runs no code.
fn filters(process: Pid) -> Option<u32> {
    filters_in(&std::fs::read_to_string(format!("/proc/{process}/status")).ok()?)
}

fn filters_in(status: &str) -> Option<u32> {
    if status.lines().any(|line| line.starts_with("State:\tZ")) {
        return None;
    }
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse().ok()
    };
    field("Seccomp_filters:").or_else(|| field("Seccomp:"))
}

/// An entry of /proc.
#[derive(Debug, PartialEq)]
struct Process {
    id: Pid,
    parent: Option<Pid>,
    group: Pid,
    /// Not a [`Pid`]: see [`session`].
    session: i32,
}

/// All processes; none without /proc.
fn processes() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let stats = entries.filter_map(|entry| std::fs::read(entry.ok()?.path().join("stat")).ok());
    stats.filter_map(|stat| Process::parse_stat(&String::from_utf8_lossy(&stat))).collect()
}

impl Process {
    /// Parses `number (name) state parent group session …`; the name may contain anything.
    fn parse_stat(stat: &str) -> Option<Process> {
        let (id, _) = stat.split_once(" (")?;
        let (_, fields) = stat.rsplit_once(") ")?;
        let mut fields = fields.split(' ').skip(1);
        // For a process that is just ending, group and session are -1.
        let mut number = || fields.next()?.parse().ok().filter(|&id: &i32| id >= 0);
        let id = Pid::from_raw(id.parse().ok()?)?;
        let parent = number().and_then(Pid::from_raw);
        Some(Process { id, parent, group: Pid::from_raw(number()?)?, session: number()? })
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::Pid;

    use super::{Process, filters_in};

    /// A watchdog that took them for running processes hunted them forever.
    #[test]
    fn a_zombie_is_not_a_stray() {
        let status = |state| format!("Name:\tchain\nState:\t{state}\nSeccomp_filters:\t3\n");
        assert_eq!(filters_in(&status("S (sleeping)")), Some(3));
        assert_eq!(filters_in(&status("Z (zombie)")), None);
        assert_eq!(filters_in("State:\tS (sleeping)\nSeccomp:\t2\n"), Some(2));
    }

    #[test]
    fn a_process_is_read_whatever_its_name() {
        let pid = |number| Pid::from_raw(number).unwrap();
        let process = |parent| Process { id: pid(7), parent, group: pid(5), session: 4 };
        for (stat, expected) in [
            ("7 (sleep) S 6 5 4 0 -1", Some(process(Some(pid(6))))),
            ("7 (a) S 1 2 3) b (c) S 6 5 4 0 -1", Some(process(Some(pid(6))))),
            // The first process of a container has no parent.
            ("7 (init) S 0 5 4 0 -1", Some(process(None))),
            // The session leader is outside the container.
            ("7 (sleep) S 6 5 0 0 -1", Some(Process { session: 0, ..process(Some(pid(6))) })),
            // Kernel threads have no group.
            ("2 (kthreadd) S 0 0 0 0 -1", None),
            // It ended while the line was written.
            ("7 (sleep) X 0 -1 -1 0 -1", None),
            ("7 (sleep", None),
            ("", None),
        ] {
            assert_eq!(Process::parse_stat(stat), expected, "{stat}");
        }
    }
}
