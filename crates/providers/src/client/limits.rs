//! Limits for time and retries.

use std::time::Duration;

/// The limits of a client. There is none for the whole response: a long one is fine as long as it
/// makes progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For connecting. Ten seconds: enough for three lost packets on a slow line.
    pub connect: Duration,
    /// Until the response starts. Five minutes: a local model reads a long prompt that slowly.
    pub first_byte: Duration,
    /// Between two pieces of a response. Two minutes: a model that thinks
    /// sends signs of life more often.
    pub idle: Duration,
    /// How often a request is retried.
    pub retries: u32,
    /// Before the first retry. It doubles with each one.
    pub first_delay: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(300),
            idle: Duration::from_secs(120),
            retries: 5,
            first_delay: Duration::from_millis(500),
        }
    }
}
