//! One start of a process at a time.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::{FdFlags, fcntl_setfd};
use tokio::process::{Child, Command};

/// Starts processes one by one: what is left open for one of them would be inherited by another that is
/// started at the same moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Spawning(Arc<Mutex<()>>);

impl Spawning {
    pub(super) fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        self.spawn_with(command, Vec::new())
    }

    /// Starts a process that has `fds` open, by the numbers they have here.
    pub(super) fn spawn_with(&self, command: &mut Command, fds: Vec<OwnedFd>) -> io::Result<Child> {
        // Nothing is guarded that a panic could have left half done.
        let turn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left_open = fds.iter().try_for_each(|fd| fcntl_setfd(fd, FdFlags::empty()));
        let child = left_open.map_err(io::Error::from).and_then(|()| command.spawn());
        drop(fds);
        drop(turn);
        child
    }
}
