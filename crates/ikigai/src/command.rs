//! The commands, one file each.

pub(crate) mod agents;
pub(crate) mod auth;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod log;
pub(crate) mod mail;
pub(crate) mod man;
pub(crate) mod models;
pub(crate) mod quarantine;
pub(crate) mod run;
pub(crate) mod sessions;
pub(crate) mod tool;
pub(crate) mod tools;
pub(crate) mod tour;
pub(crate) mod undo;
pub(crate) mod usage;
pub(crate) mod watchdog;

use std::io::Read;

use anyhow::Context;

/// All of standard input.
pub(crate) fn read_stdin(what: &str) -> anyhow::Result<Vec<u8>> {
    /// More than any file that a model would write; it is held in memory.
    const LIMIT: u64 = 256 * 1024 * 1024;
    let mut bytes = Vec::new();
    std::io::stdin()
        .take(LIMIT + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {what} from standard input"))?;
    anyhow::ensure!(
        bytes.len() as u64 <= LIMIT,
        "{what} on standard input: more than {LIMIT} bytes"
    );
    Ok(bytes)
}
