//! Starting commands from threads that are enclosed by landlock.
//!
//! Rules of landlock, a filter of system calls and the loss of capabilities hold for the one thread that takes
//! them upon itself, and for all that it starts. So a command's walls are put up around a thread that starts
//! the command and ends. No process has to be begun for that, and nothing is done between a fork and an exec.
//!
//! The kernel takes longer to read the filter than for all the rest. So a thread that has it, and nothing else to
//! do, is the parent of those threads, which inherit it.
//!
//! For the moment in which a thread is on its way out the command has company within its walls, and rules
//! allow that company to be traced: so nobody may trace the watchdog. That it is signalled then, and the watchdog
//! with it, is not prevented; who is so fast ends its own supervision, and stays within its walls.

use std::cell::OnceCell;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use super::{STACK, work};
use crate::sandbox::landlock::{KeptRules, enclose, filter_calls};
use crate::sandbox::{Kind, Sandbox};
use crate::watchdog::spawning::Spawning;
use crate::watchdog::start::{Started, shell};
use crate::watchdog::wire::Request;

/// Starts commands within walls of landlock.
#[derive(Debug)]
pub(super) struct Ruled {
    spawning: Spawning,
    rules: Arc<KeptRules>,
    /// The ways to the threads that have a filter, without and with a network.
    filtered: [OnceCell<mpsc::Sender<Work>>; 2],
}

/// What a thread is to do that has the filter, or could not get it. What waits is bounded by the commands that begin.
type Work = Box<dyn FnOnce(io::Result<()>) + Send>;

impl Ruled {
    pub(super) fn new(spawning: Spawning) -> io::Result<Ruled> {
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        let ruled = Ruled { spawning, rules: Arc::default(), filtered: Default::default() };
        // Then the first command is likely to need it, and this process has other things to begin with meanwhile. If it
        // cannot be had now, that command tries again.
        if !Kind::Bubblewrap.is_installed() {
            let _ = ruled.filtered(false);
        }
        Ok(ruled)
    }

    /// Starts what is asked for in this sandbox.
    pub(super) async fn start(
        &self,
        request: &Request,
        sandbox: Sandbox,
        output: OwnedFd,
        cleared: Receiver<()>,
    ) -> io::Result<Started> {
        let filtered = self.filtered(sandbox.network)?;
        let mut shell = shell(request, output)?;
        let (rules, spawning) = (Arc::clone(&self.rules), self.spawning.clone());
        // Nothing but to end is left to the thread after this.
        let (work, spawned) = work(cleared, move |is_wanted| {
            enclose(rules.of(&sandbox)?)?;
            if !is_wanted() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            spawning.spawn(&mut shell)
        });
        let gone = "the thread with the filter is gone";
        filtered.send(Box::new(work)).map_err(|_| io::Error::other(gone))?;
        Ok(Started::of(spawned.await?, None))
    }

    /// The way to the thread that has the filter, or is about to take it.
    fn filtered(&self, network: bool) -> io::Result<&mpsc::Sender<Work>> {
        let slot = &self.filtered[usize::from(network)];
        if let Some(filtered) = slot.get() {
            return Ok(filtered);
        }
        let (sender, queue) = mpsc::channel::<Work>();
        let serve = move || {
            let filtered = filter_calls(network).map_err(|error| error.to_string());
            for work in queue {
                let filtered = filtered.clone().map_err(io::Error::other);
                // One that cannot be begun is dropped, and that is noticed.
                let _ = thread::Builder::new().stack_size(STACK).spawn(move || work(filtered));
            }
        };
        thread::Builder::new().stack_size(STACK).spawn(serve)?;
        Ok(slot.get_or_init(|| sender))
    }
}
