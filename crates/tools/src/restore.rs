//! Undo and redo of file changes: a file gets another content if it still has the expected one.
//! Locking and replacing work as in every other write.
//!
//! These functions block, so call them on a thread for blocking work.

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
pub enum FileState {
    /// Nothing.
    Absent,
    /// A file.
    File {
        /// The hash of its content.
        hash: ContentHash,
        /// All of its content, unless it is too large or unreadable.
        content: Option<Content>,
    },
    /// Something else: a folder or a link.
    Other,
}

/// What should be at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DesiredState {
    /// No file, and this many folders above it removed if they are empty.
    Absent {
        /// Counted from the file.
        folders: u32,
    },
    /// A file; an existing one keeps its permissions.
    Content(Content),
}

/// The outcome of a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreOutcome {
    /// It is restored now.
    Done,
    /// It was in that state before.
    Already,
    /// It is in neither the expected nor the desired state, and was left alone.
    Differs,
    /// It has become one of git's settings, which were not approved, and was left alone.
    Setting,
}

/// Inspects a path without links.
///
/// # Errors
/// A message if that fails.
pub fn find(path: &Path) -> Result<FileState, String> {
    let look = || match lock(path)? {
        None => Ok(FileState::Other),
        Some(target) => Ok(match target.hash()? {
            None => FileState::Absent,
            Some(hash) => {
                let content = match target.content() {
                    Before::Content(content) => Some(content),
                    Before::Absent | Before::NotKept => None,
                };
                FileState::File { hash, content }
            }
        }),
    };
    look().map_err(|error: FileError| error.describe(&path.to_string_lossy()))
}

/// Brings the file at a path without links into the `desired` state, if it is in the `expected`
/// one: its hash, or `None` for no file. Repeating it after a crash has the same result.
///
/// # Errors
/// A message if that fails; the file is unchanged then.
pub fn restore(
    path: &Path,
    expected: Option<&ContentHash>,
    desired: &DesiredState,
) -> Result<RestoreOutcome, String> {
    replace(path, expected, desired).map_err(|error| error.describe(&path.to_string_lossy()))
}

fn replace(
    path: &Path,
    expected: Option<&ContentHash>,
    desired: &DesiredState,
) -> Result<RestoreOutcome, FileError> {
    let Some(mut target) = lock(path)? else {
        return Ok(RestoreOutcome::Differs);
    };
    let hash = target.hash()?;
    let desired_hash = match desired {
        DesiredState::Absent { .. } => None,
        DesiredState::Content(content) => Some(ContentHash::of(&content.bytes)),
    };
    let is_content = matches!(desired, DesiredState::Content(_));
    let restored = if is_content && hash != desired_hash && has_become_setting(path) {
        RestoreOutcome::Setting
    } else if hash.as_ref() == expected {
        exchange(&mut target, desired)?
    } else if hash == desired_hash {
        RestoreOutcome::Already
    } else {
        RestoreOutcome::Differs
    };
    if let DesiredState::Absent { folders } = desired
        && matches!(restored, RestoreOutcome::Done | RestoreOutcome::Already)
    {
        remove_folders(path, *folders);
    }
    Ok(restored)
}

fn exchange(target: &mut Target, desired: &DesiredState) -> Result<RestoreOutcome, FileError> {
    let done = match desired {
        DesiredState::Absent { .. } => target.remove(),
        DesiredState::Content(content) => write(target, content),
    };
    match done {
        // Another program changed it after the check.
        Err(FileError::ChangedMeanwhile) => Ok(RestoreOutcome::Differs),
        done => done?.map(|()| RestoreOutcome::Done).map_err(FileError::NotFlushed),
    }
}

fn write(target: &mut Target, content: &Content) -> Result<io::Result<()>, FileError> {
    let folders = target.create_folders()?;
    let write = |output: &mut dyn io::Write| Ok(output.write_all(&content.bytes)?);
    let replaced = target.replace_with_mode(Keep::Nothing, Some(content.mode), write)?;
    folders.keep();
    Ok(replaced.flushed)
}

/// Locks the file at a path; `None` if it is not a file or the path now leads elsewhere.
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

/// Removes up to `count` folders above a file, as far as they are empty.
fn remove_folders(path: &Path, count: u32) {
    let folders = path.ancestors().skip(1).take(count as usize);
    // Stop at the first one that is not empty.
    let _ = folders.map(fs::remove_dir).find(Result::is_err);
}
