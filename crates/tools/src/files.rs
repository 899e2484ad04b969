//! Opening what must be a regular file.

use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use crate::file_error::FileError;

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
