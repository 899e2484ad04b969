//! Moves files and folders between open folders without following links, on one file system and
//! across.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, chmodat, fchmod, mkdirat, openat, readlinkat, renameat,
    symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::safe_files::{FileStat, TO_ENTER, TO_LIST, entries_of, open_inside};

/// Mode bits that are preserved; a copy is never setuid.
pub(super) const PLAIN_MODE: u32 = 0o777;

/// Limits of a copy across file systems. Protected files are far smaller.
const MOST_BYTES: u64 = 64 * 1024 * 1024;
const MOST_FILES: usize = 5_000;
const MOST_DEPTH: usize = 32;

/// Renames unless the target exists.
pub(super) fn rename_free(
    from: impl AsFd,
    name: &OsStr,
    to: impl AsFd,
    new_name: &OsStr,
) -> Result<(), Errno> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{RenameFlags, renameat_with};
        match renameat_with(&from, name, &to, new_name, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            renamed => return renamed,
        }
    }
    match FileStat::at(&to, new_name) {
        Err(Errno::NOENT) => renameat(from, name, to, new_name),
        Err(error) => Err(error),
        Ok(_) => Err(Errno::EXIST),
    }
}

/// Moves to a path that does not exist yet, by copying across file systems.
pub(super) fn relocate(
    from: &OwnedFd,
    name: &OsStr,
    to: &OwnedFd,
    new_name: &OsStr,
) -> io::Result<()> {
    match rename_free(from, name, to, new_name) {
        Err(Errno::XDEV) => {
            copy(from, name, to, new_name)?;
            Ok(remove(from, name)?)
        }
        renamed => Ok(renamed?),
    }
}

/// Copies a file, a link or a folder tree to a path that does not exist yet. A partial copy is
/// removed.
pub(super) fn copy(from: &OwnedFd, name: &OsStr, to: &OwnedFd, new_name: &OsStr) -> io::Result<()> {
    if FileStat::at(to, new_name).is_ok() {
        return Err(Errno::EXIST.into());
    }
    let mut copying = CopyBudget { bytes: MOST_BYTES, files: MOST_FILES };
    let copied = copying.copy(from, name, to, new_name, 0);
    if copied.is_err() {
        let _ = remove(to, new_name);
    }
    copied
}

/// The remaining limits of a copy.
struct CopyBudget {
    bytes: u64,
    files: usize,
}

impl CopyBudget {
    fn copy(
        &mut self,
        from: &OwnedFd,
        name: &OsStr,
        to: &OwnedFd,
        new_name: &OsStr,
        depth: usize,
    ) -> io::Result<()> {
        let too_large = || io::Error::from(io::ErrorKind::FileTooLarge);
        self.files = self.files.checked_sub(1).ok_or_else(too_large)?;
        let stat = FileStat::at(from, name)?;
        match stat.kind() {
            FileType::RegularFile => self.copy_file(from, name, to, new_name),
            FileType::Symlink => {
                let target = readlinkat(from, name, Vec::new())?;
                Ok(symlinkat(target, to, new_name)?)
            }
            FileType::Directory if depth >= MOST_DEPTH => Err(too_large()),
            FileType::Directory => {
                mkdirat(to, new_name, Mode::RWXU)?;
                let inner = openat(to, new_name, TO_ENTER, Mode::empty())?;
                let folder = open_inside(from, Path::new(name), TO_ENTER)?;
                let entries = entries_of(open_inside(from, Path::new(name), TO_LIST)?, self.files);
                for entry in entries?.ok_or_else(too_large)? {
                    self.copy(&folder, &entry.name, &inner, &entry.name, depth + 1)?;
                }
                Ok(chmodat(&inner, ".", plain_mode(stat.mode), AtFlags::empty())?)
            }
            // Pipes and sockets have no content.
            _ => Ok(()),
        }
    }

    fn copy_file(
        &mut self,
        from: &OwnedFd,
        name: &OsStr,
        to: &OwnedFd,
        new_name: &OsStr,
    ) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let mut source = File::from(openat(from, name, flags | OFlags::CLOEXEC, Mode::empty())?)
            .take(self.bytes + 1);
        let mode = FileStat::of_open(source.get_ref())?.mode;
        let mut copy = create(to, new_name)?;
        let copied = io::copy(&mut source, &mut copy)?;
        let too_large = || io::Error::from(io::ErrorKind::FileTooLarge);
        self.bytes = self.bytes.checked_sub(copied).ok_or_else(too_large)?;
        Ok(fchmod(&copy, plain_mode(mode))?)
    }
}

/// Writes a new file with the given content and mode.
pub(super) fn write(to: &OwnedFd, name: &OsStr, content: &[u8], mode: u32) -> io::Result<()> {
    let mut file = create(to, name)?;
    file.write_all(content)?;
    fchmod(&file, plain_mode(mode))?;
    file.sync_all()
}

fn create(to: &OwnedFd, name: &OsStr) -> Result<File, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(to, name, flags, Mode::RUSR | Mode::WUSR)?.into())
}

#[allow(clippy::useless_conversion, reason = "the type differs between systems")]
pub(super) fn plain_mode(mode: u32) -> Mode {
    Mode::from_raw_mode((mode & PLAIN_MODE).try_into().unwrap_or_default())
}

/// Removes a file, a link or a folder tree, up to the limits of a copy.
pub(super) fn remove(from: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    let mut files = 2 * MOST_FILES;
    remove_up_to(from, name, &mut files, 0)
}

fn remove_up_to(
    from: &OwnedFd,
    name: &OsStr,
    files: &mut usize,
    depth: usize,
) -> Result<(), Errno> {
    *files = files.checked_sub(1).ok_or(Errno::TOOBIG)?;
    match unlinkat(from, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) if depth <= MOST_DEPTH => {}
        unlinked => return unlinked,
    }
    let folder = open_inside(from, Path::new(name), TO_ENTER)?;
    let entries = entries_of(open_inside(from, Path::new(name), TO_LIST)?, *files)?;
    for entry in entries.ok_or(Errno::TOOBIG)? {
        remove_up_to(&folder, &entry.name, files, depth + 1)?;
    }
    unlinkat(from, name, AtFlags::REMOVEDIR)
}
