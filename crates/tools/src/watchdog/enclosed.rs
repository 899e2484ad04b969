//! Starting commands behind walls.
//!
//! Nothing of that is done by the watchdog's own thread: the places that a command may reach are looked up anew
//! for each, and where one lies on another machine that may hang.

mod ruled;
mod wrapped;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use tokio::process::Child;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use ruled::Ruled;
use wrapped::Wrapped;

use super::spawning::Spawning;
use super::start::{Started, shell};
use super::wire::Request;
use crate::sandbox::sockets::SocketFolders;
use crate::sandbox::{Enclosure, Kind};

/// The stack of a thread that starts a command: far more than looking around and starting a process take.
const STACK: usize = 256 * 1024;

/// Starts commands behind walls.
#[derive(Debug)]
pub(super) struct Enclosed {
    spawning: Spawning,
    ruled: Ruled,
    socket_folders: Arc<Mutex<SocketFolders>>,
}

impl Enclosed {
    pub(super) fn new(spawning: Spawning) -> io::Result<Enclosed> {
        let ruled = Ruled::new(spawning.clone())?;
        Ok(Enclosed { spawning, ruled, socket_folders: Arc::default() })
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
    ) -> io::Result<Started> {
        match walls.kind {
            Kind::Bubblewrap => {
                let wrapped = Wrapped::new(request, &walls.sandbox, output)?;
                wrapped.spawn(Arc::clone(&self.socket_folders), self.spawning.clone()).await
            }
            Kind::Landlock => {
                let command = shell(request, output)?;
                Started::of(self.ruled.spawn(command, walls.sandbox.clone()).await?, None)
            }
        }
    }
}

/// Makes a thread's work of the start of a command, and a future of what comes of it. The work is told whether it
/// can be begun, and can ask whether that is still wanted.
fn work(
    start: impl FnOnce(&dyn Fn() -> bool) -> io::Result<Child> + Send + 'static,
) -> (impl FnOnce(io::Result<()>) + Send + 'static, impl Future<Output = io::Result<Child>>) {
    let (sender, started) = oneshot::channel();
    let runtime = Handle::current();
    let work = move |can_begin: io::Result<()>| {
        let _runtime = runtime.enter();
        let started = can_begin.and_then(|()| start(&|| !sender.is_closed()));
        // Whoever asked may be gone, and the command ends with the last hold of it.
        let _ = sender.send(started);
    };
    let gone = |_| io::Error::other("the thread that is to start the command is gone");
    (work, async move { started.await.map_err(gone)? })
}
