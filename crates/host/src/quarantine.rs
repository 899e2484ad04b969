//! The quarantine: the folder for files that commands put into protected paths.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::environment::Environment;
use crate::temporary::permanent_folder;

/// The path of the quarantine, which is created when it is first needed. It is in ikigai's data
/// folder, which commands cannot write; if that cannot be used, elsewhere outside the working tree.
///
/// # Errors
/// When there is no suitable folder.
pub fn folder(environment: &Environment) -> anyhow::Result<PathBuf> {
    let own = environment.settings.folders().quarantine().and_then(|path| without_links(&path));
    own.map_or_else(|| permanent_folder(environment, "quarantine"), Ok)
}

/// The real path of a folder, if it can be written or created.
fn without_links(path: &Path) -> Option<PathBuf> {
    let there = path.ancestors().find(|path| path.exists())?;
    access(there, Access::WRITE_OK | Access::EXEC_OK).ok()?;
    let rest = path.strip_prefix(there).ok()?;
    // Joining an empty path would add a slash.
    let there = there.canonicalize().ok()?;
    Some(if rest.as_os_str().is_empty() { there } else { there.join(rest) })
}
