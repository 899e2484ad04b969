//! Signals that end what goes on.

use std::thread;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::environment;

/// Any of the signals by which a person or the system ends a program.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// `None` when the program is to live on without its terminal.
    hangup: Option<Signal>,
}

impl Signals {
    /// Listens from now on.
    pub(crate) fn listen() -> std::io::Result<Signals> {
        // A shell without job control has SIGINT ignored by what it starts in the background. Whoever sends it
        // all the same means it; it is only SIGHUP that somebody has ignored on purpose.
        let is_kept = environment::is_ignored(SignalKind::hangup());
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: (!is_kept).then(|| signal(SignalKind::hangup())).transpose()?,
        })
    }

    /// Waits for one.
    pub(crate) async fn next(&mut self) -> Caught {
        tokio::select! {
            _ = self.interrupt.recv() => Caught::Interrupt,
            _ = self.terminate.recv() => Caught::Ending,
            () = one(&mut self.hangup) => Caught::Ending,
        }
    }
}

/// What a signal wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caught {
    /// An end to what goes on: SIGINT.
    Interrupt,
    /// The end of the program: SIGTERM, SIGHUP.
    Ending,
}

async fn one(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Cancels `token` at the first signal and ends the program at the second, from a thread of its own: a reader
/// that does not read our output must not keep us from being ended. What is committed is safe at any moment.
pub(crate) fn cancel(token: CancellationToken) -> std::io::Result<()> {
    cancel_and(token, Heeded::All, || ())
}

/// Which signals count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heeded {
    All,
    /// Not SIGINT: that is what Ctrl-C does to whoever has the terminal.
    Endings,
}

impl Heeded {
    fn has(self, caught: Caught) -> bool {
        match self {
            Heeded::All => true,
            Heeded::Endings => caught == Caught::Ending,
        }
    }
}

/// The same, with something to do before the program is ended by the second signal.
pub(crate) fn cancel_and(
    token: CancellationToken,
    heeded: Heeded,
    at_last: impl FnOnce() + Send + 'static,
) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let mut signals = {
        let _inside = runtime.enter();
        Signals::listen()?
    };
    let mut wait = move || runtime.block_on(async { while !heeded.has(signals.next().await) {} });
    let listen = move || {
        wait();
        token.cancel();
        wait();
        at_last();
        std::process::exit(130);
    };
    thread::Builder::new().name("signals".to_owned()).spawn(listen).map(drop)
}
