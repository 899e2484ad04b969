//! Starts commands in a sandbox.
//!
//! This never happens on the watchdog's main thread: all paths of a sandbox are resolved again for
//! every command, and one on a network file system may hang.

mod bubblewrap;
mod landlock;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::Receiver;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use bubblewrap::BubblewrapStarter;
use landlock::LandlockStarter;

use super::Watch;
use super::spawner::Spawner;
use super::start::StartedCommand;
use super::wire::Request;
use crate::sandbox::{Kind, ResolvedSandbox};

/// The stack size of threads that start a command, generously measured.
pub(super) const STACK: usize = 256 * 1024;

/// Starts commands in a sandbox.
#[derive(Debug)]
pub(super) struct SandboxStarter {
    bubblewrap: BubblewrapStarter,
    landlock: LandlockStarter,
}

impl SandboxStarter {
    pub(super) fn new(spawner: Spawner, watch: Watch) -> io::Result<SandboxStarter> {
        let bubblewrap = BubblewrapStarter::new(spawner.clone(), watch);
        Ok(SandboxStarter { bubblewrap, landlock: LandlockStarter::new(spawner)? })
    }

    /// Starts the requested command, which writes its output to `output`.
    ///
    /// # Cancel safety
    /// If the future is dropped, the command is ended.
    pub(super) async fn start(
        &self,
        request: &Request,
        resolved: &ResolvedSandbox,
        output: OwnedFd,
        cleared: Receiver<()>,
    ) -> io::Result<StartedCommand> {
        let sandbox = resolved.sandbox.clone();
        match resolved.kind {
            Kind::Bubblewrap => self.bubblewrap.start(request, sandbox, output, cleared).await,
            Kind::Landlock => self.landlock.start(request, sandbox, output, cleared).await,
        }
    }
}

/// Splits the start of a command into work for a thread and a future of its result. The work gets
/// an error if it cannot run. Once all is set up, it waits for `cleared` and checks that the
/// command is still wanted.
fn split_start<T: Send + 'static>(
    cleared: Receiver<()>,
    start: impl FnOnce(&dyn Fn() -> bool) -> io::Result<T> + Send + 'static,
) -> (impl FnOnce(io::Result<()>) + Send + 'static, impl Future<Output = io::Result<T>>) {
    let (sender, started) = oneshot::channel();
    let runtime = Handle::current();
    let work = move |can_begin: io::Result<()>| {
        let _runtime = runtime.enter();
        let started =
            can_begin.and_then(|()| start(&|| cleared.recv().is_ok() && !sender.is_closed()));
        // If the receiver is gone, dropping the command ends it.
        let _ = sender.send(started);
    };
    let gone = |_| io::Error::other("the thread that is to start the command is gone");
    (work, async move { started.await.map_err(gone)? })
}
