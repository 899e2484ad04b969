//! Starting commands behind walls.
//!
//! Nothing of that is done by the watchdog's own thread: the places that a command may reach are looked up anew
//! for each, and where one lies on another machine that may hang.

mod ruled;
mod wrapped;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::Receiver;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use ruled::Ruled;
use wrapped::Wrapped;

use super::Watch;
use super::spawning::Spawning;
use super::start::Started;
use super::wire::Request;
use crate::sandbox::{Enclosure, Kind};

/// The stack of a thread that starts a command: far more than looking around and starting a process take.
pub(super) const STACK: usize = 256 * 1024;

/// Starts commands behind walls.
#[derive(Debug)]
pub(super) struct Enclosed {
    wrapped: Wrapped,
    ruled: Ruled,
}

impl Enclosed {
    pub(super) fn new(spawning: Spawning, watch: Watch) -> io::Result<Enclosed> {
        let wrapped = Wrapped::new(spawning.clone(), watch);
        Ok(Enclosed { wrapped, ruled: Ruled::new(spawning)? })
    }

    /// Starts what is asked for; its output goes to `output`.
    ///
    /// # Cancel safety
    /// What was started is ended when the future is dropped.
    pub(super) async fn start(
        &self,
        request: &Request,
        walls: &Enclosure,
        output: OwnedFd,
        cleared: Receiver<()>,
    ) -> io::Result<Started> {
        let sandbox = walls.sandbox.clone();
        match walls.kind {
            Kind::Bubblewrap => self.wrapped.start(request, sandbox, output, cleared).await,
            Kind::Landlock => self.ruled.start(request, sandbox, output, cleared).await,
        }
    }
}

/// Makes a thread's work of the start of a command, and a future of what comes of it. The work is told whether it
/// can be begun. When all is set up it waits to be `cleared`, and asks whether the command is still wanted.
fn work<T: Send + 'static>(
    cleared: Receiver<()>,
    start: impl FnOnce(&dyn Fn() -> bool) -> io::Result<T> + Send + 'static,
) -> (impl FnOnce(io::Result<()>) + Send + 'static, impl Future<Output = io::Result<T>>) {
    let (sender, started) = oneshot::channel();
    let runtime = Handle::current();
    let work = move |can_begin: io::Result<()>| {
        let _runtime = runtime.enter();
        let started =
            can_begin.and_then(|()| start(&|| cleared.recv().is_ok() && !sender.is_closed()));
        // Whoever asked may be gone; then nobody takes the command over.
        let _ = sender.send(started);
    };
    let gone = |_| io::Error::other("the thread that is to start the command is gone");
    (work, async move { started.await.map_err(gone)? })
}
