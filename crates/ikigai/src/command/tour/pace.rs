//! The pace of the tour: readable on a terminal, otherwise without delays.

use std::io::{self, BufRead, IsTerminal};
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The speed of the tour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speed {
    /// For a user at a terminal.
    Readable,
    /// For a file or a pipe.
    AtOnce,
}

impl Speed {
    /// The delay before the model answers.
    pub(super) fn answer_delay(self) -> Duration {
        self.if_readable(Duration::from_millis(600))
    }

    /// The delay between two words of the model.
    pub(super) fn word_delay(self) -> Duration {
        self.if_readable(Duration::from_millis(50))
    }

    /// The delay between two keys that are typed.
    fn key_delay(self) -> Duration {
        self.if_readable(Duration::from_millis(20))
    }

    /// The delay between two actions of the user.
    fn action_delay(self) -> Duration {
        self.if_readable(Duration::from_millis(300))
    }

    fn if_readable(self, duration: Duration) -> Duration {
        match self {
            Speed::Readable => duration,
            Speed::AtOnce => Duration::ZERO,
        }
    }
}

/// The pauses of the tour. An interrupt ends a pause.
pub(super) struct Pace {
    pub(super) speed: Speed,
    /// Receives every Enter, if there is a keyboard.
    enter: Option<mpsc::Receiver<()>>,
    interrupt: CancellationToken,
}

impl Pace {
    pub(super) fn new(speed: Speed, interrupt: CancellationToken) -> io::Result<Pace> {
        let is_at_keyboard = speed == Speed::Readable && io::stdin().is_terminal();
        let enter = is_at_keyboard.then(watch_enter).transpose()?;
        Ok(Pace { speed, enter, interrupt })
    }

    /// Waits between two keys that are typed.
    pub(super) async fn key(&self) {
        self.sleep(self.speed.key_delay()).await;
    }

    /// Waits between two actions.
    pub(super) async fn short_pause(&self) {
        self.sleep(self.speed.action_delay()).await;
    }

    /// Waits a little longer, as the model does before it answers.
    pub(super) async fn long_pause(&self) {
        self.sleep(self.speed.answer_delay()).await;
    }

    /// Whether the user has already pressed Enter before the pause.
    pub(super) fn is_ahead(&mut self) -> bool {
        self.enter.as_mut().is_some_and(|enter| enter.try_recv().is_ok())
    }

    /// Says what ends the pause.
    pub(super) fn hint(&self) -> &'static str {
        match self.enter {
            Some(_) => "(Press Enter)",
            None => "(continues in a moment)",
        }
    }

    /// Waits until the user has had time to read; returns what ended the pause.
    pub(super) async fn reading_pause(&mut self) -> PauseEnd {
        /// For a screen of short lines.
        const TIME: Duration = Duration::from_secs(6);
        let entered = async {
            match &mut self.enter {
                Some(enter) => enter.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // After the end of input only the time counts.
            Some(()) = entered => PauseEnd::Enter,
            () = tokio::time::sleep(TIME) => PauseEnd::Timeout,
            () = self.interrupt.cancelled() => PauseEnd::Timeout,
        }
    }

    async fn sleep(&self, duration: Duration) {
        if !duration.is_zero() {
            self.interrupt.run_until_cancelled(tokio::time::sleep(duration)).await;
        }
    }
}

/// What ended a pause for reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PauseEnd {
    /// Enter, which also moved the cursor to the next line.
    Enter,
    /// The time was up.
    Timeout,
}

/// Listens for Enter on a separate thread, which may still be blocked in a read when the program
/// exits. One early Enter is kept; more are dropped.
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
