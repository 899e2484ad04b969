//! How long, and how often.

use std::time::Duration;

/// What a client bears. There is no limit to the whole: a long answer is a good one as long as it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Until there is a connection. Ten seconds: three lost packets of a slow line, no more.
    pub connect: Duration,
    /// Until the answer begins. Five minutes: a model on one's own machine reads a long prompt that slowly.
    pub first_byte: Duration,
    /// Between two pieces of an answer. Two minutes: a model that thinks sends signs of life more often.
    pub idle: Duration,
    /// How often a request is made again.
    pub retries: u32,
    /// Before the first retry; it doubles with each.
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
