//! Opening what must be a regular file, and the words for what went wrong with a path.

use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

/// Opens a regular file for reading, together with what it was at that moment.
///
/// A FIFO, a socket or a device is refused without being opened, where it would block or act; should one
/// take the file's place in between, the open does not block and the second look refuses it.
pub(crate) fn open_regular(path: &Path) -> Result<(File, Metadata), FileError> {
    require_regular(fs::metadata(path)?.file_type())?;
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let metadata = file.metadata()?;
    require_regular(metadata.file_type())?;
    Ok((file, metadata))
}

pub(crate) fn require_regular(file_type: FileType) -> Result<(), FileError> {
    match file_type {
        kind if kind.is_file() => Ok(()),
        kind if kind.is_dir() => Err(FileError::IsDirectory),
        _ => Err(FileError::NotRegular),
    }
}

/// Why a file could not be used. `describe` makes the text for the model.
#[derive(Debug)]
pub(crate) enum FileError {
    IsDirectory,
    NotRegular,
    NotDirectory,
    NotText,
    Locked,
    ChangedMeanwhile,
    System(io::Error),
}

impl FileError {
    /// The failure in words, with the path as the model gave it.
    pub(crate) fn describe(&self, path: &str) -> String {
        format!("{}: {}", self.reason(), shorten(path))
    }

    fn reason(&self) -> String {
        match self {
            FileError::IsDirectory => "Is a directory".to_owned(),
            FileError::NotRegular => "Not a regular file".to_owned(),
            FileError::NotDirectory => "Not a directory".to_owned(),
            FileError::NotText => "Not a text file".to_owned(),
            FileError::Locked => "File is locked by another process".to_owned(),
            FileError::ChangedMeanwhile => {
                "File was changed by somebody else at the same time, try again".to_owned()
            }
            FileError::System(error) => system_reason(error),
        }
    }
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
