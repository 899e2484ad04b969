//! The time of a unit of work.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use ikigai_conversation::Time;

/// The source of the time. Leases and logs of an embedded database use the clock of the machine.
/// Tests use a clock that they control.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The system clock.
    #[default]
    Machine,
    /// Milliseconds since the Unix epoch, controlled by a test.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// The time of a manual clock; `None` for the system clock.
    pub(crate) fn manual_time(&self) -> Option<Time> {
        matches!(self, Clock::Manual(_)).then(|| self.now())
    }

    pub(crate) fn now(&self) -> Time {
        Time::from_millis(match self {
            Clock::Machine => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX)),
            Clock::Manual(time) => time.load(Ordering::SeqCst),
        })
    }
}
