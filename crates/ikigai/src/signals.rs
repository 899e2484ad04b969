//! Signals that interrupt or end the program.

use std::thread;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::environment;

/// The signals by which the user or the system ends a program.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// `None` if the program should survive the loss of its terminal.
    hangup: Option<Signal>,
}

impl Signals {
    /// Starts listening.
    pub(crate) fn listen() -> std::io::Result<Signals> {
        // A shell without job control starts background processes with SIGINT ignored, so we listen
        // to it anyway. Only SIGHUP is ignored on purpose, by `nohup`.
        let is_kept = environment::is_ignored(SignalKind::hangup());
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: (!is_kept).then(|| signal(SignalKind::hangup())).transpose()?,
        })
    }

    /// Waits for a signal.
    pub(crate) async fn next(&mut self) -> StopSignal {
        tokio::select! {
            _ = self.interrupt.recv() => StopSignal::Interrupt,
            _ = self.terminate.recv() => StopSignal::Terminate,
            () = wait_for(&mut self.hangup) => StopSignal::Terminate,
        }
    }
}

/// The meaning of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopSignal {
    /// Interrupt the current work: SIGINT.
    Interrupt,
    /// End the program: SIGTERM, SIGHUP.
    Terminate,
}

async fn wait_for(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Cancels `token` at the first signal and exits at the second. It runs on a separate thread, so
/// that a blocked write cannot prevent it. Committed data is safe at any moment.
pub(crate) fn cancel(token: CancellationToken) -> std::io::Result<()> {
    cancel_and(token, SignalFilter::All, || ())
}

/// Which signals to handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignalFilter {
    All,
    /// Without SIGINT, which Ctrl-C sends to the foreground program.
    Terminations,
}

impl SignalFilter {
    fn has(self, signal: StopSignal) -> bool {
        match self {
            SignalFilter::All => true,
            SignalFilter::Terminations => signal == StopSignal::Terminate,
        }
    }
}

/// Like [`cancel`], with cleanup before the second signal ends the program.
pub(crate) fn cancel_and(
    token: CancellationToken,
    filter: SignalFilter,
    cleanup: impl FnOnce() + Send + 'static,
) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let mut signals = {
        let _inside = runtime.enter();
        Signals::listen()?
    };
    let mut wait = move || runtime.block_on(async { while !filter.has(signals.next().await) {} });
    let listen = move || {
        wait();
        token.cancel();
        wait();
        cleanup();
        std::process::exit(130);
    };
    thread::Builder::new().name("signals".to_owned()).spawn(listen).map(drop)
}
