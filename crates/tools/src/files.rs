//! Opening what must be a regular file.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FileType, OFlags, Stat, fstat, lstat, stat};

use crate::file_error::FileError;
use crate::place::Place;

/// Opens a regular file for reading, wherever it is, together with its length at that moment.
///
/// A FIFO, a socket or a device is refused without being opened, where it would block or act; should one
/// take the file's place in between, the open does not block and the second look refuses it.
pub(crate) fn open_anywhere(path: &Path) -> Result<(File, u64), FileError> {
    require_regular(&stat(path)?)?;
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    with_length(file)
}

/// Opens a regular file for reading, and nothing else: a FIFO would be waited for, and a device may act.
///
/// # Errors
/// It cannot be opened, or is no regular file.
pub fn open_regular(path: &Path) -> std::io::Result<File> {
    open_anywhere(path).map(|(file, _)| file).map_err(|error| match error {
        FileError::System(error) => error,
        _ => std::io::Error::other("not a regular file"),
    })
}

/// The same as [`open_anywhere`], unless `path` itself is a link.
pub(crate) fn open_named(path: &Path) -> Result<(File, u64), FileError> {
    require_regular(&lstat(path)?)?;
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    with_length(file)
}

/// The same for a file whose place was found already.
pub(crate) fn open_at(place: &Place) -> Result<(File, u64), FileError> {
    require_regular(&place.stat()?.ok_or(rustix::io::Errno::NOENT)?)?;
    with_length(place.open(OFlags::RDONLY)?)
}

fn with_length(file: File) -> Result<(File, u64), FileError> {
    let stat = fstat(&file)?;
    require_regular(&stat)?;
    Ok((file, u64::try_from(stat.st_size).unwrap_or(0)))
}

pub(crate) fn require_regular(stat: &Stat) -> Result<(), FileError> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(FileError::IsDirectory),
        _ => Err(FileError::NotRegular),
    }
}
