//! What went wrong with a file, in words.

use std::io;
use std::path::Path;

use rustix::io::Errno;

/// Why a file could not be used. `describe` makes the text for the model.
#[derive(Debug)]
pub(crate) enum FileError {
    IsDirectory,
    NotRegular,
    NotDirectory,
    NotText,
    /// Not beneath the working tree, to which the call is confined.
    Outside,
    /// Inside, but one of the places that a person is always asked for.
    Guarded,
    /// Inside, but where secrets are, or what is ikigai's own.
    Hidden,
    /// A link on the way was changed after the call was approved.
    LeadsElsewhere,
    Locked,
    ChangedMeanwhile,
    /// The agent would overwrite what it has never read.
    NotSeen,
    /// The agent would overwrite what was changed since it has read it.
    Stale,
    /// The content is new, but it may not survive a crash of the machine.
    NotFlushed(io::Error),
    System(io::Error),
}

impl FileError {
    /// The failure in words, with the path as the model gave it.
    pub(crate) fn describe(&self, path: &str) -> String {
        let path = shorten(path);
        match self {
            FileError::Outside => format!("Not permitted: {path} is outside the working tree"),
            FileError::Guarded => format!("Not permitted: {path} is only written with a yes"),
            FileError::Hidden => format!("Not permitted: {}", hidden(&path)),
            FileError::LeadsElsewhere => {
                format!("Not permitted: {path} no longer leads to the path that was approved")
            }
            FileError::NotSeen => format!("Read {path} before overwriting it"),
            _ => format!("{}: {path}", self.reason()),
        }
    }

    /// For a write: a name on the way to the file is not that of a folder.
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
                "File was changed by somebody else at the same time, try again".to_owned()
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

/// Why nothing in a hidden place is read or written without a yes.
pub(crate) fn hidden(path: &str) -> String {
    format!("{path} is where secrets or ikigai's own files are kept")
}

const CHANGED_SINCE: &str = "File changed since you read it";

/// The words for a stale write when it is known who was quicker: `by agent 0/1/, 40 seconds ago`.
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
        // BADF: a file that may be written but not read was opened for writing only, and then read.
        Some(Errno::ACCESS | Errno::PERM | Errno::BADF) => "Permission denied".to_owned(),
        Some(Errno::ISDIR) => "Is a directory".to_owned(),
        // Opening a socket.
        Some(Errno::NXIO) => "Not a regular file".to_owned(),
        Some(Errno::NOSPC) => "No space left on device".to_owned(),
        Some(_) => without_number(&error.to_string()),
        // No system call was made: the path holds a NUL character, so no file can have that name.
        None if error.kind() == io::ErrorKind::InvalidInput => "File not found".to_owned(),
        None => error.to_string(),
    }
}

/// The system's words without Rust's `(os error 36)`.
pub(crate) fn without_number(message: &str) -> String {
    message.split(" (os error").next().unwrap_or(message).to_owned()
}

/// A path of up to this many characters is quoted whole; the system allows none longer.
const SHOWN_PATH: usize = 4_096;

pub(crate) fn shorten(path: &str) -> String {
    match path.char_indices().nth(SHOWN_PATH) {
        Some((end, _)) => format!("{}…", &path[..end]),
        None => path.to_owned(),
    }
}

/// The last part of a path, as the messages name a file.
pub(crate) fn file_name(path: &str) -> String {
    Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned()
}
