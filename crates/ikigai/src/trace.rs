//! What the program notes about itself, for those who look for a fault: in a file, never on the screen or in
//! the database. Texts of people and models are not in it, and no key.

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

/// A larger file makes way for a new one, and is kept beside it.
const LIMIT: u64 = 10 * 1024 * 1024;

/// Begins to trace, if that is wanted.
pub(crate) fn begin(environment: &Environment, level: Option<Level>) -> anyhow::Result<()> {
    let Some(level) = level else { return Ok(()) };
    let path = environment.settings.folders().trace_file().context(
        "there is no place for traces, since neither XDG_STATE_HOME nor HOME names a folder",
    )?;
    let file = open(&path).with_context(|| format!("cannot trace to {}", path.display()))?;
    // Other libraries' notes may hold what was sent.
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
        // Another process may have done it in the same moment.
        let _ = fs::rename(path, path.with_extension("log.1"));
    }
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}
