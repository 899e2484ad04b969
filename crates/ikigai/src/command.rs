//! The commands, one file each.

pub(crate) mod agents;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod log;
pub(crate) mod mail;
pub(crate) mod man;
pub(crate) mod sessions;
pub(crate) mod tool;
pub(crate) mod tools;
pub(crate) mod watchdog;

use std::time::{SystemTime, UNIX_EPOCH};

use ikigai_conversation::Time;

/// The time by the clock of this machine.
pub(crate) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
