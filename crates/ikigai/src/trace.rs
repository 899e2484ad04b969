//! Tracing to a file for debugging, never to the screen or the database. Traces contain no text of
//! users or models, and no keys.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Mutex;

use anyhow::Context;
use ikigai_host::Environment;
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, Registry, fmt};

/// A larger file is rotated, keeping one old file.
const LIMIT: u64 = 10 * 1024 * 1024;

/// Starts tracing, if a level is given.
pub(crate) fn start(environment: &Environment, level: Option<Level>) -> anyhow::Result<()> {
    let Some(level) = level else { return Ok(()) };
    let path = environment.settings.folders().trace_file().context(
        "there is no place for traces, since neither XDG_STATE_HOME nor HOME names a folder",
    )?;
    let file = open(&path).with_context(|| format!("cannot trace to {}", path.display()))?;
    // Traces of other libraries may contain message text.
    let ours = Targets::new().with_target("ikigai", level);
    let lines = fmt::layer().with_ansi(false).with_writer(Mutex::new(file)).with_filter(ours);
    tracing::subscriber::set_global_default(Registry::default().with(lines))?;
    Ok(())
}

fn open(path: &Path) -> std::io::Result<File> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    if fs::metadata(path).is_ok_and(|file| file.len() > LIMIT) {
        // Another process may rotate it at the same time.
        let _ = fs::rename(path, path.with_extension("log.1"));
    }
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}
