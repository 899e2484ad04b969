//! How fast the walk goes: for a person who reads along, or all at once.

use std::io::{self, BufRead, IsTerminal};
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Who reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speed {
    /// A person at a terminal.
    Readable,
    /// A file or a pipe.
    AtOnce,
}

impl Speed {
    /// Before the model answers.
    pub(super) fn thought(self) -> Duration {
        self.of_readable(Duration::from_millis(600))
    }

    /// Between two words of the model.
    pub(super) fn word(self) -> Duration {
        self.of_readable(Duration::from_millis(50))
    }

    /// Between two keys of the person.
    fn key(self) -> Duration {
        self.of_readable(Duration::from_millis(20))
    }

    /// Between two things that the person does.
    fn breath(self) -> Duration {
        self.of_readable(Duration::from_millis(300))
    }

    fn of_readable(self, duration: Duration) -> Duration {
        match self {
            Speed::Readable => duration,
            Speed::AtOnce => Duration::ZERO,
        }
    }
}

/// The pauses of the walk. An interrupt ends each of them.
pub(super) struct Pace {
    pub(super) speed: Speed,
    /// A signal for every Enter, where somebody can press it.
    enter: Option<mpsc::Receiver<()>>,
    interrupt: CancellationToken,
}

impl Pace {
    pub(super) fn new(speed: Speed, interrupt: CancellationToken) -> io::Result<Pace> {
        let is_at_keyboard = speed == Speed::Readable && io::stdin().is_terminal();
        let enter = is_at_keyboard.then(watch_enter).transpose()?;
        Ok(Pace { speed, enter, interrupt })
    }

    /// Waits for the next key of what the person types.
    pub(super) async fn key(&self) {
        self.rest(self.speed.key()).await;
    }

    /// Waits a little.
    pub(super) async fn breath(&self) {
        self.rest(self.speed.breath()).await;
    }

    /// Waits a little longer, as the model does before it speaks.
    pub(super) async fn thought(&self) {
        self.rest(self.speed.thought()).await;
    }

    /// Whether the person has pressed Enter while there was still something to read.
    pub(super) fn is_ahead(&mut self) -> bool {
        self.enter.as_mut().is_some_and(|enter| enter.try_recv().is_ok())
    }

    /// What ends the time for reading.
    pub(super) fn hint(&self) -> &'static str {
        match self.enter {
            Some(_) => "(Enter goes on)",
            None => "(goes on in a moment)",
        }
    }

    /// Waits until the person has read, and says what ended the wait.
    pub(super) async fn reading(&mut self) -> Read {
        /// For a screen of short lines.
        const TIME: Duration = Duration::from_secs(6);
        let entered = async {
            match &mut self.enter {
                Some(enter) => enter.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // Nothing comes any more once the input has ended: then the time decides.
            Some(()) = entered => Read::Entered,
            () = tokio::time::sleep(TIME) => Read::ForLong,
            () = self.interrupt.cancelled() => Read::ForLong,
        }
    }

    async fn rest(&self, duration: Duration) {
        if !duration.is_zero() {
            self.interrupt.run_until_cancelled(tokio::time::sleep(duration)).await;
        }
    }
}

/// What ended the time for reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    /// Enter, which has also ended the line on the screen.
    Entered,
    /// The time was up.
    ForLong,
}

/// Listens on a thread of its own, which may stay blocked in a read when the program ends. One Enter may be
/// ahead of its time; more are one.
fn watch_enter() -> io::Result<mpsc::Receiver<()>> {
    let (send, enter) = mpsc::channel(1);
    let watch = move || {
        let mut stdin = io::stdin().lock();
        while stdin.skip_until(b'\n').is_ok_and(|count| count > 0) {
            if let Err(mpsc::error::TrySendError::Closed(())) = send.try_send(()) {
                break;
            }
        }
    };
    thread::Builder::new().name("keyboard".to_owned()).spawn(watch)?;
    Ok(enter)
}
