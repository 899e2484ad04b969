//! Taking a change of a file back, and the taking back as well: a file gets another content, if it still has
//! the one that is expected. The lock and the replacement are those of every write.
//!
//! These block: they belong on a thread for such work.

use std::fs;
use std::io;
use std::path::Path;

use crate::file_error::FileError;
use crate::file_use::{Before, Content};
use crate::looks::ContentHash;
use crate::place::Place;
use crate::protected::has_become_setting;
use crate::replace::{Keep, Target};

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Absent,
    /// A file.
    File {
        /// Of its content.
        hash: ContentHash,
        /// All of it, unless it is too large or may not be read.
        content: Option<Content>,
    },
    /// Something else: a folder, a link.
    Other,
}

/// What is to be at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// No file, and these many folders above it gone if nothing is left in them.
    Absent {
        /// Counted from the file.
        folders: u32,
    },
    /// A file; one that exists keeps its permissions.
    Content(Content),
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restored {
    /// It is now as wanted.
    Done,
    /// It was so before.
    Already,
    /// It is neither as expected nor as wanted, and was left alone.
    Differs,
    /// It is one of git's settings by now, which nobody has approved, and was left alone.
    Setting,
}

/// Looks what is at a path without links.
///
/// # Errors
/// In words, when it cannot be told.
pub fn find(path: &Path) -> Result<Found, String> {
    let look = || match lock(path)? {
        None => Ok(Found::Other),
        Some(target) => Ok(match target.hash()? {
            None => Found::Absent,
            Some(hash) => {
                let content = match target.content() {
                    Before::Content(content) => Some(content),
                    Before::Absent | Before::NotKept => None,
                };
                Found::File { hash, content }
            }
        }),
    };
    look().map_err(|error: FileError| error.describe(&path.to_string_lossy()))
}

/// Makes the file at a path without links as `wanted`, if it is as `expected`: its hash, or none for no file.
/// Repeated after a crash it comes to the same.
///
/// # Errors
/// In words, when it cannot be done; the file is then as it was.
pub fn restore(
    path: &Path,
    expected: Option<&ContentHash>,
    wanted: &Wanted,
) -> Result<Restored, String> {
    replace(path, expected, wanted).map_err(|error| error.describe(&path.to_string_lossy()))
}

fn replace(
    path: &Path,
    expected: Option<&ContentHash>,
    wanted: &Wanted,
) -> Result<Restored, FileError> {
    let Some(mut target) = lock(path)? else {
        return Ok(Restored::Differs);
    };
    let hash = target.hash()?;
    let wanted_hash = match wanted {
        Wanted::Absent { .. } => None,
        Wanted::Content(content) => Some(ContentHash::of(&content.bytes)),
    };
    let is_content = matches!(wanted, Wanted::Content(_));
    let restored = if is_content && hash != wanted_hash && has_become_setting(path) {
        Restored::Setting
    } else if hash.as_ref() == expected {
        exchange(&mut target, wanted)?
    } else if hash == wanted_hash {
        Restored::Already
    } else {
        Restored::Differs
    };
    if let Wanted::Absent { folders } = wanted
        && matches!(restored, Restored::Done | Restored::Already)
    {
        remove_folders(path, *folders);
    }
    Ok(restored)
}

fn exchange(target: &mut Target, wanted: &Wanted) -> Result<Restored, FileError> {
    let done = match wanted {
        Wanted::Absent { .. } => target.remove(),
        Wanted::Content(content) => write(target, content),
    };
    match done {
        // Somebody was quicker than the check.
        Err(FileError::ChangedMeanwhile) => Ok(Restored::Differs),
        done => done?.map(|()| Restored::Done).map_err(FileError::NotFlushed),
    }
}

fn write(target: &mut Target, content: &Content) -> Result<io::Result<()>, FileError> {
    let folders = target.create_folders()?;
    let write = |output: &mut dyn io::Write| Ok(output.write_all(&content.bytes)?);
    let replaced = target.replace_with_mode(Keep::Nothing, Some(content.mode), write)?;
    folders.keep();
    Ok(replaced.flushed)
}

/// The file at a path, locked; `None` when it is none or the path leads elsewhere by now.
fn lock(path: &Path) -> Result<Option<Target>, FileError> {
    match Place::without_links(path).and_then(Target::lock) {
        Ok(target) => Ok(Some(target)),
        Err(FileError::NotRegular | FileError::IsDirectory | FileError::NotDirectory) => Ok(None),
        Err(error) => match error.of_a_folder() {
            FileError::NotDirectory => Ok(None),
            error => Err(error),
        },
    }
}

/// Removes so many folders above a file, as far as they are empty.
fn remove_folders(path: &Path, count: u32) {
    let folders = path.ancestors().skip(1).take(count as usize);
    // The first that is not empty ends it.
    let _ = folders.map(fs::remove_dir).find(Result::is_err);
}
