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

use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;

use super::{STACK, Work, work};
use crate::sandbox::Sandbox;
use crate::sandbox::landlock::{KeptRules, enclose, filter_calls};
use crate::watchdog::spawning::Spawning;

/// Starts commands within walls of landlock.
#[derive(Debug)]
pub(super) struct Ruled {
    spawning: Spawning,
    rules: Arc<Mutex<KeptRules>>,
    /// Those with a filter, without and with a network. What waits there is bounded by the commands that begin.
    filtered: [RefCell<Option<mpsc::Sender<Work>>>; 2],
}

impl Ruled {
    pub(super) fn new(spawning: Spawning) -> io::Result<Ruled> {
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        Ok(Ruled { spawning, rules: Arc::default(), filtered: Default::default() })
    }

    /// Starts a command in this sandbox.
    pub(super) async fn spawn(&self, mut command: Command, sandbox: Sandbox) -> io::Result<Child> {
        let filtered = self.filtered(sandbox.network).await?;
        let (rules, spawning) = (Arc::clone(&self.rules), self.spawning.clone());
        // Nothing but to end is left to the thread after this.
        let (work, child) = work(move |is_wanted| {
            // Whatever panicked while it held them, they are looked over before they are used.
            let rules = rules.lock().unwrap_or_else(PoisonError::into_inner).of(&sandbox)?;
            enclose(rules)?;
            if !is_wanted() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            spawning.spawn(command.kill_on_drop(true))
        });
        let gone = "the thread with the filter is gone";
        filtered.send(work).map_err(|_| io::Error::other(gone))?;
        child.await
    }

    /// The way to the thread that has the filter.
    async fn filtered(&self, network: bool) -> io::Result<mpsc::Sender<Work>> {
        let slot = &self.filtered[usize::from(network)];
        if let Some(filtered) = &*slot.borrow() {
            return Ok(filtered.clone());
        }
        let (sender, queue) = mpsc::channel::<Work>();
        let (ready, is_ready) = oneshot::channel();
        let serve = move || {
            let _ = ready.send(filter_calls(network));
            for work in queue {
                // One that cannot be begun is dropped, and that is noticed.
                let _ = thread::Builder::new().stack_size(STACK).spawn(work);
            }
        };
        thread::Builder::new().stack_size(STACK).spawn(serve)?;
        is_ready.await.map_err(io::Error::other)??;
        Ok(slot.borrow_mut().insert(sender).clone())
    }
}
