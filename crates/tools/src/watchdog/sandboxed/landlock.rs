//! Starts commands from threads that are restricted by landlock.
//!
//! Landlock rules, a seccomp filter and dropped capabilities apply to the calling thread and to
//! everything it starts. So a thread restricts itself, starts the command, and exits. That needs no
//! extra process, and no code between fork and exec.
//!
//! Loading the filter takes longer than all the rest. So a thread with the filter, which does
//! nothing else, is the parent of those threads, and they inherit it.
//!
//! Until the thread has exited, it shares the sandbox with the command, and the rules permit
//! tracing it: so tracing the watchdog is forbidden. Signalling it, and with it the watchdog, is
//! not prevented: a command that is fast enough ends its own supervision, but stays in its sandbox.

use std::cell::OnceCell;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use super::{STACK, split_start};
use crate::sandbox::landlock::{RulesCache, install_filter, restrict_thread};
use crate::sandbox::{Kind, Sandbox};
use crate::watchdog::spawner::Spawner;
use crate::watchdog::start::{StartedCommand, shell};
use crate::watchdog::wire::Request;

/// Starts commands in the landlock sandbox.
#[derive(Debug)]
pub(super) struct LandlockStarter {
    spawner: Spawner,
    rules: Arc<RulesCache>,
    /// Queues of the threads with a filter, without and with network.
    filtered: [OnceCell<mpsc::Sender<StartWork>>; 2],
}

/// Work for a thread with the filter, or with the error of installing it. The queue is bounded by
/// the number of commands being started.
type StartWork = Box<dyn FnOnce(io::Result<()>) + Send>;

impl LandlockStarter {
    pub(super) fn new(spawner: Spawner) -> io::Result<LandlockStarter> {
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        let landlock =
            LandlockStarter { spawner, rules: Arc::default(), filtered: Default::default() };
        // The first command will probably need it, so prepare it while the process starts up. On
        // failure, that command tries again.
        if !Kind::Bubblewrap.is_installed() {
            let _ = landlock.filtered(false);
        }
        Ok(landlock)
    }

    /// Starts the requested command in this sandbox.
    pub(super) async fn start(
        &self,
        request: &Request,
        sandbox: Sandbox,
        output: OwnedFd,
        cleared: Receiver<()>,
    ) -> io::Result<StartedCommand> {
        let filtered = self.filtered(sandbox.network)?;
        let mut shell = shell(request, output)?;
        let (rules, spawner) = (Arc::clone(&self.rules), self.spawner.clone());
        // Afterwards the thread can only exit.
        let (work, spawned) = split_start(cleared, move |is_wanted| {
            restrict_thread(rules.rules_for(&sandbox)?)?;
            if !is_wanted() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            spawner.spawn(&mut shell)
        });
        let gone = "the thread with the filter is gone";
        filtered.send(Box::new(work)).map_err(|_| io::Error::other(gone))?;
        Ok(StartedCommand::of(spawned.await?, None))
    }

    /// The queue of the thread that has the filter, or is about to install it.
    fn filtered(&self, network: bool) -> io::Result<&mpsc::Sender<StartWork>> {
        let slot = &self.filtered[usize::from(network)];
        if let Some(filtered) = slot.get() {
            return Ok(filtered);
        }
        let (sender, queue) = mpsc::channel::<StartWork>();
        let serve = move || {
            let filtered = install_filter(network).map_err(|error| error.to_string());
            for work in queue {
                let filtered = filtered.clone().map_err(io::Error::other);
                // If the thread cannot be started, its work is dropped, which the receiver notices.
                let _ = thread::Builder::new().stack_size(STACK).spawn(move || work(filtered));
            }
        };
        thread::Builder::new().stack_size(STACK).spawn(serve)?;
        Ok(slot.get_or_init(|| sender))
    }
}
