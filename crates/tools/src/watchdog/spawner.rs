//! Starts processes one at a time, and none after the end; reaps those that are not awaited.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, WaitOptions, waitpid};
use tokio::process::{Child, Command};

use super::groups::Group;
use crate::lock::lock;

/// Starts processes one at a time: file descriptors that are left open for one would be inherited
/// by another that starts at the same moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Spawner(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Whether no more processes may be started.
    is_closed: bool,
    /// Processes that another task waits for.
    awaited: Vec<Pid>,
}

impl State {
    /// Forgets processes whose status has been taken: their numbers can be used again.
    fn forget_reaped(&mut self) {
        self.awaited.retain(|process| is_child(*process));
    }
}

impl Spawner {
    pub(super) fn spawn(&self, command: &mut Command) -> io::Result<SpawnedProcess> {
        self.spawn_with(command, Vec::new())
    }

    /// Starts a process that inherits `fds` under the same numbers.
    pub(super) fn spawn_with(
        &self,
        command: &mut Command,
        fds: Vec<OwnedFd>,
    ) -> io::Result<SpawnedProcess> {
        let mut state = lock(&self.0);
        if state.is_closed {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let left_open = fds.iter().try_for_each(|fd| fcntl_setfd(fd, FdFlags::empty()));
        let spawned = left_open.map_err(io::Error::from).and_then(|()| command.spawn());
        let spawned = spawned.and_then(SpawnedProcess::of);
        // Close them before the next process is started.
        drop(fds);
        state.forget_reaped();
        state.awaited.extend(spawned.iter().map(|spawned| spawned.group.0));
        spawned
    }

    /// When this returns, all started processes are children of this one, and no more will start.
    pub(super) fn close(&self) {
        lock(&self.0).is_closed = true;
    }

    /// Reaps processes that no task waits for: orphans of commands become our children, and zombies
    /// would use up the system's process numbers.
    pub(super) fn reap_orphans(&self) {
        let mut state = lock(&self.0);
        // A chain of processes uses up all numbers within seconds. One of its own that got the number
        // of an earlier command would never be reaped, nor would those behind it.
        state.forget_reaped();
        let is_awaited = |process: &Pid| state.awaited.contains(process);
        while let Some(ended) = ended_child().filter(|process| !is_awaited(process)) {
            if !matches!(waitpid(Some(ended), WaitOptions::NOHANG), Ok(Some(_))) {
                return;
            }
        }
    }
}

/// Whether a process is a child of this one that has not been reaped.
#[cfg(target_os = "linux")]
fn is_child(process: Pid) -> bool {
    use nix::sys::wait::{Id, WaitPidFlag, waitid};
    let id = Id::Pid(nix::unistd::Pid::from_raw(process.as_raw_pid()));
    waitid(id, WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT).is_ok()
}

/// A child that has ended.
#[cfg(target_os = "linux")]
fn ended_child() -> Option<Pid> {
    use nix::sys::wait::{Id, WaitPidFlag, waitid};
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    let status = waitid(Id::All, flags).ok()?;
    Pid::from_raw(status.pid()?.as_raw())
}

/// On other systems, orphans become children of another process.
#[cfg(not(target_os = "linux"))]
fn is_child(_process: Pid) -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
fn ended_child() -> Option<Pid> {
    None
}

/// The leader of a new process group. Unless it is taken over, the whole group is killed.
#[derive(Debug)]
pub(super) struct SpawnedProcess {
    group: Group,
    leader: Option<Child>,
}

impl SpawnedProcess {
    fn of(child: Child) -> io::Result<SpawnedProcess> {
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let id = id.ok_or_else(|| io::Error::other("the command has no process number"))?;
        Ok(SpawnedProcess { group: Group(id), leader: Some(child) })
    }

    /// The leader and its group.
    pub(super) fn take_over(mut self) -> (Child, Group) {
        let leader = self.leader.take().expect("it is taken once, by value");
        (leader, self.group)
    }
}

impl Drop for SpawnedProcess {
    fn drop(&mut self) {
        if self.leader.is_some() {
            self.group.signal(Signal::KILL);
        }
    }
}
