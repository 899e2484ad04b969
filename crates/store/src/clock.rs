//! The time of a unit of work.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use ikigai_conversation::Time;

/// Where the store takes the time from. Leases and logs of an embedded database go by the clock of its one
/// machine; tests turn a clock of their own.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The machine's.
    #[default]
    Machine,
    /// Milliseconds since the Unix epoch, turned by whoever holds the other end.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// The time by a clock that somebody turns; nothing if it is a machine's.
    pub(crate) fn turned(&self) -> Option<Time> {
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
