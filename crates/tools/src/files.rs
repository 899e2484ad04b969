//! Opens regular files.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FileType, OFlags, Stat, fstat, lstat, stat};

use crate::file_error::FileError;
use crate::place::Place;

/// Opens a regular file for reading, whether it is in the tree or not, and returns its current
/// length.
///
/// FIFOs, sockets and devices are refused without opening them, since that could block or have
/// effects. If one appears in between, the open does not block, and the second check refuses it.
pub(crate) fn open_anywhere(path: &Path) -> Result<(File, u64), FileError> {
    require_regular(&stat(path)?)?;
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    with_length(file)
}

/// Opens a regular file for reading. Anything else is refused: opening a FIFO would block, and a
/// device could act.
///
/// # Errors
/// If it cannot be opened or is not a regular file.
pub fn open_regular(path: &Path) -> std::io::Result<File> {
    open_anywhere(path).map(|(file, _)| file).map_err(|error| match error {
        FileError::System(error) => error,
        _ => std::io::Error::other("not a regular file"),
    })
}

/// Like [`open_anywhere`], but fails if `path` itself is a link.
pub(crate) fn open_named(path: &Path) -> Result<(File, u64), FileError> {
    require_regular(&lstat(path)?)?;
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    with_length(file)
}

/// The same for a file that has been located already.
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
