//! One start of a process at a time, and none behind the end.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal};
use tokio::process::{Child, Command};

use super::groups::Group;

/// Starts processes one by one: what is left open for one of them would be inherited by another that is
/// started at the same moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Spawning(Arc<Mutex<Closed>>);

/// Whether nothing is to be started any more.
type Closed = bool;

impl Spawning {
    pub(super) fn spawn(&self, command: &mut Command) -> io::Result<Spawned> {
        self.spawn_with(command, Vec::new())
    }

    /// Starts a process that has `fds` open, by the numbers they have here.
    pub(super) fn spawn_with(
        &self,
        command: &mut Command,
        fds: Vec<OwnedFd>,
    ) -> io::Result<Spawned> {
        let is_closed = self.lock();
        if *is_closed {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let left_open = fds.iter().try_for_each(|fd| fcntl_setfd(fd, FdFlags::empty()));
        let spawned = left_open.map_err(io::Error::from).and_then(|()| command.spawn());
        let spawned = spawned.and_then(Spawned::of);
        // Before it is somebody else's turn.
        drop(fds);
        drop(is_closed);
        spawned
    }

    /// Whatever was started is a child of this process when this returns, and nothing is started after it.
    pub(super) fn close(&self) {
        *self.lock() = true;
    }

    /// Nothing is guarded that a panic could have left half done.
    fn lock(&self) -> MutexGuard<'_, Closed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The leader of a process group that was just started. Unless somebody takes it over, all of the group is ended.
#[derive(Debug)]
pub(super) struct Spawned {
    group: Group,
    leader: Option<Child>,
}

impl Spawned {
    fn of(child: Child) -> io::Result<Spawned> {
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let id = id.ok_or_else(|| io::Error::other("the command has no process number"))?;
        Ok(Spawned { group: Group(id), leader: Some(child) })
    }

    /// The leader, and its group.
    pub(super) fn take_over(mut self) -> (Child, Group) {
        let leader = self.leader.take().expect("it is taken once, by value");
        (leader, self.group)
    }
}

impl Drop for Spawned {
    fn drop(&mut self) {
        if self.leader.is_some() {
            self.group.signal(Signal::KILL);
        }
    }
}
