//! Starting commands in bubblewrap.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::thread;

use tokio::process::Command;

use super::{STACK, work};
use crate::sandbox::bubblewrap::{Inside, enclose, program};
use crate::sandbox::sockets::SocketFolders;
use crate::sandbox::{Sandbox, is_loaders};
use crate::watchdog::spawning::Spawning;
use crate::watchdog::start::{SHELL, Started, command};
use crate::watchdog::wire::Request;
use crate::words::Variables;

/// A command that is to be started.
#[derive(Debug)]
pub(super) struct Wrapped {
    /// Calls `bwrap`; what that is to do is still to be added.
    bwrap: Command,
    command: OsString,
    inside: Inside,
}

impl Wrapped {
    pub(super) fn new(
        request: &Request,
        sandbox: &Sandbox,
        output: OwnedFd,
    ) -> io::Result<Wrapped> {
        let program = program().ok_or_else(|| io::Error::other("bubblewrap is not installed"))?;
        let variables = request.variables.iter().cloned();
        let (loader, harmless): (Variables, Variables) =
            variables.partition(|(name, _)| is_loaders(name));
        let bwrap = command(program, &request.directory, &harmless, output)?;
        let (sandbox, directory) = (sandbox.clone(), request.directory.clone());
        let inside = Inside { sandbox, directory, loader };
        Ok(Wrapped { bwrap, command: request.command.clone(), inside })
    }

    pub(super) async fn spawn(
        self,
        folders: Arc<Mutex<SocketFolders>>,
        spawning: Spawning,
    ) -> io::Result<Started> {
        let (report, bwraps_end) = UnixStream::pair()?;
        report.set_nonblocking(true)?;
        let Wrapped { mut bwrap, command, inside } = self;
        let (work, child) = work(move |is_wanted| {
            let call = enclose(&inside, &folders, bwraps_end.into())?;
            bwrap.args(call.arguments).args(SHELL).arg(command);
            if !is_wanted() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            spawning.spawn_with(bwrap.kill_on_drop(true), call.fds)
        });
        thread::Builder::new().stack_size(STACK).spawn(|| work(Ok(())))?;
        Started::of(child.await?, Some(report))
    }
}
