//! The commands, one file each.

pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod man;
pub(crate) mod tool;
pub(crate) mod tools;
pub(crate) mod watchdog;
