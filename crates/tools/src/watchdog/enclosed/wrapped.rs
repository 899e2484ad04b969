//! Starting commands in bubblewrap.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::thread;

use super::{STACK, work};
use crate::sandbox::Sandbox;
use crate::sandbox::bubblewrap::{Inside, enclose, program};
use crate::sandbox::sockets::SocketFolders;
use crate::watchdog::spawning::Spawning;
use crate::watchdog::start::{SHELL, Started, command};
use crate::watchdog::wire::Request;
use crate::words::{Variables, is_loaders};

/// Starts commands by way of `bwrap`.
#[derive(Debug)]
pub(super) struct Wrapped {
    spawning: Spawning,
    socket_folders: Arc<Mutex<SocketFolders>>,
}

impl Wrapped {
    pub(super) fn new(spawning: Spawning) -> Wrapped {
        Wrapped { spawning, socket_folders: Arc::default() }
    }

    /// Starts what is asked for in this sandbox.
    pub(super) async fn start(
        &self,
        request: &Request,
        sandbox: Sandbox,
        output: OwnedFd,
    ) -> io::Result<Started> {
        let program = program().ok_or_else(|| io::Error::other("bubblewrap is not installed"))?;
        let variables = request.variables.iter().cloned();
        let (loader, harmless): (Variables, Variables) =
            variables.partition(|(name, _)| is_loaders(name));
        let mut bwrap = command(program, &request.directory, &harmless, output)?;
        let inside = Inside { sandbox, directory: request.directory.clone(), loader };
        let (report, bwraps_end) = UnixStream::pair()?;
        report.set_nonblocking(true)?;
        let (folders, spawning) = (Arc::clone(&self.socket_folders), self.spawning.clone());
        let command = request.command.clone();
        let (work, spawned) = work(move |is_wanted| {
            let call = enclose(&inside, &folders, bwraps_end.into())?;
            if !is_wanted() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            spawning.spawn_with(bwrap.args(call.arguments).args(SHELL).arg(command), call.fds)
        });
        thread::Builder::new().stack_size(STACK).spawn(|| work(Ok(())))?;
        Ok(Started::of(spawned.await?, Some(report)))
    }
}
