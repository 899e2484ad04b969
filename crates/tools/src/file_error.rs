//! Errors of file operations, and their messages.

use std::io;

use rustix::io::Errno;

/// Why a file could not be used. `describe` returns the message for the model.
#[derive(Debug)]
pub(crate) enum FileError {
    IsDirectory,
    NotRegular,
    NotDirectory,
    NotText,
    /// Outside the working tree, to which the call is confined.
    Outside,
    /// Inside, but a path that always needs approval.
    Guarded,
    /// Inside, but a place of secrets or of ikigai itself.
    Hidden,
    /// A link on the path was changed after the call was approved.
    LeadsElsewhere,
    Locked,
    ChangedMeanwhile,
    /// The agent would overwrite a file that it has never read.
    NotSeen,
    /// The agent would overwrite changes made since it read the file.
    Stale,
    /// The content is new, but may not survive a system crash.
    NotFlushed(io::Error),
    System(io::Error),
}

impl FileError {
    /// The error message, with the path as the model gave it.
    pub(crate) fn describe(&self, path: &str) -> String {
        let path = shorten(path);
        match self {
            FileError::Outside => format!("Not permitted: {path} is outside the working tree"),
            FileError::Guarded => {
                format!("Not permitted: {path} can only be written with approval")
            }
            FileError::Hidden => format!("Not permitted: {}", hidden(&path)),
            FileError::LeadsElsewhere => {
                format!("Not permitted: {path} no longer leads to the path that was approved")
            }
            FileError::NotSeen => format!("Read {path} before overwriting it"),
            _ => format!("{}: {path}", self.reason()),
        }
    }

    /// Whether there is no such file.
    pub(crate) fn is_missing(&self) -> bool {
        let missing = |error: &io::Error| Errno::from_io_error(error) == Some(Errno::NOENT);
        matches!(self, FileError::System(error) if missing(error))
    }

    /// For writes: a component of the path is not a folder.
    pub(crate) fn of_a_folder(self) -> FileError {
        match self {
            FileError::System(error) if Errno::from_io_error(&error) == Some(Errno::NOTDIR) => {
                FileError::NotDirectory
            }
            error => error,
        }
    }

    fn reason(&self) -> String {
        match self {
            FileError::IsDirectory => "Is a directory".to_owned(),
            FileError::NotRegular => "Not a regular file".to_owned(),
            FileError::NotDirectory => "Not a directory".to_owned(),
            FileError::NotText => "Not a text file".to_owned(),
            FileError::Outside
            | FileError::Guarded
            | FileError::Hidden
            | FileError::LeadsElsewhere => "Not permitted".to_owned(),
            FileError::Locked => "File is locked by another process".to_owned(),
            FileError::ChangedMeanwhile => {
                "File was changed by another program at the same time; try again".to_owned()
            }
            FileError::NotSeen => "Not read before".to_owned(),
            FileError::Stale => CHANGED_SINCE.to_owned(),
            FileError::NotFlushed(error) => {
                format!("Written, but not flushed to the disk ({})", system_reason(error))
            }
            FileError::System(error) => system_reason(error),
        }
    }
}

/// Why a hidden file is neither read nor written without approval.
pub(crate) fn hidden(path: &str) -> String {
    format!("{path} contains secrets or ikigai's own files")
}

const CHANGED_SINCE: &str = "File changed since you read it";

/// The message for a stale write if the other writer is known: `by agent 0/1/, 40 seconds ago`.
pub(crate) fn describe_stale(path: &str, by: &str) -> String {
    format!("{CHANGED_SINCE} ({by}): {}", shorten(path))
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> FileError {
        FileError::System(error)
    }
}

impl From<Errno> for FileError {
    fn from(error: Errno) -> FileError {
        FileError::System(error.into())
    }
}

fn system_reason(error: &io::Error) -> String {
    match Errno::from_io_error(error) {
        Some(Errno::NOENT | Errno::NOTDIR) => "File not found".to_owned(),
        // BADF: reading a file that is writable but not readable, and was opened for writing only.
        Some(Errno::ACCESS | Errno::PERM | Errno::BADF) => "Permission denied".to_owned(),
        Some(Errno::ISDIR) => "Is a directory".to_owned(),
        // Opening a socket.
        Some(Errno::NXIO) => "Not a regular file".to_owned(),
        Some(Errno::NOSPC) => "No space left on device".to_owned(),
        Some(_) => without_number(&error.to_string()),
        // Not a system error: the path contains a NUL character, so no such file can exist.
        None if error.kind() == io::ErrorKind::InvalidInput => "File not found".to_owned(),
        None => error.to_string(),
    }
}

/// The system's message without Rust's `(os error 36)`.
pub(crate) fn without_number(message: &str) -> String {
    message.split(" (os error").next().unwrap_or(message).to_owned()
}

/// Longer paths are cut in messages; the system does not allow them.
const SHOWN_PATH: usize = 4_096;

pub(crate) fn shorten(path: &str) -> String {
    match path.char_indices().nth(SHOWN_PATH) {
        Some((end, _)) => format!("{}…", &path[..end]),
        None => path.to_owned(),
    }
}
