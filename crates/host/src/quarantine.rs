//! The folder for files that commands put into protected paths.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::environment::Environment;
use crate::temporary::lasting_folder;

/// Where it is, or is made once something has to be moved there. Commands cannot write to the folder of ikigai's data;
/// without that folder, it is another place outside of the working tree.
///
/// # Errors
/// When there is no such place.
pub fn folder(environment: &Environment) -> anyhow::Result<PathBuf> {
    let own = environment.settings.folders().quarantine().and_then(|path| without_links(&path));
    own.map_or_else(|| lasting_folder(environment, "quarantine"), Ok)
}

/// The path of a folder that can be written, or made.
fn without_links(path: &Path) -> Option<PathBuf> {
    let there = path.ancestors().find(|path| path.exists())?;
    access(there, Access::WRITE_OK | Access::EXEC_OK).ok()?;
    let rest = path.strip_prefix(there).ok()?;
    // Joining nothing would add a slash.
    let there = there.canonicalize().ok()?;
    Some(if rest.as_os_str().is_empty() { there } else { there.join(rest) })
}
