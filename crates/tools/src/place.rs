//! Where a file is: a folder that is held open, and a name in it.
//!
//! Everything is done relative to the open folder, never by a path a second time: whatever somebody puts
//! in the place of a folder on the way, a write that has begun stays in the folder that was found.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
#[cfg(not(target_vendor = "apple"))]
use std::os::fd::AsRawFd;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{
    Access, AtFlags, CWD, FileType, Mode, OFlags, Stat, accessat, fsync, mkdirat, openat, renameat,
    statat, unlinkat,
};
use rustix::io::Errno;

use crate::file_error::FileError;

/// A folder is held as a mere place where the system can do that: it need not be readable then.
#[cfg(any(target_os = "linux", target_os = "android"))]
const AS_FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const AS_FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// As many symbolic links as the system itself follows.
pub(crate) const LONGEST_CHAIN: usize = 40;

/// The place of a file that may exist. The name is no link, as far as could be seen; should one be put
/// there, it is not followed.
pub(crate) struct Place {
    folder: Arc<OwnedFd>,
    /// Folders between `folder` and the file that do not exist; empty for a file that does.
    missing: Vec<OsString>,
    name: OsString,
}

impl Place {
    pub(crate) fn new(folder: Arc<OwnedFd>, missing: Vec<OsString>, name: OsString) -> Place {
        Place { folder, missing, name }
    }

    /// Where `path` leads, wherever that is.
    pub(crate) fn anywhere(path: &Path) -> Result<Place, FileError> {
        let path = follow_links(path)?;
        let name = path.file_name().ok_or(FileError::IsDirectory)?.to_owned();
        let mut missing = Vec::new();
        let mut parent = path.parent().unwrap_or(Path::new("/"));
        loop {
            match open_folder(CWD, parent, Links::Follow) {
                Ok(folder) => {
                    missing.reverse();
                    return Ok(Place::new(Arc::new(folder), missing, name));
                }
                // A link that leads to nothing is no folder that could be made.
                Err(Errno::NOENT) if !parent.is_symlink() => {
                    // Nor does `..` lead anywhere behind a folder that does not exist.
                    missing.push(parent.file_name().ok_or(Errno::NOENT)?.to_owned());
                    parent = parent.parent().unwrap_or(Path::new("/"));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The place of a file whose path has no links. Should there be links by now, none is followed.
    pub(crate) fn without_links(path: &Path) -> Result<Place, FileError> {
        let name = path.file_name().ok_or(FileError::IsDirectory)?.to_owned();
        let place = Place::anywhere(path)?;
        match place.name == name && place.real_path()? == path {
            true => Ok(place),
            false => Err(FileError::NotRegular),
        }
    }

    /// What is there now, if anything.
    pub(crate) fn stat(&self) -> Result<Option<Stat>, Errno> {
        if !self.missing.is_empty() {
            return Ok(None);
        }
        match statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether the user may write the file that is there.
    pub(crate) fn require_writable(&self) -> Result<(), Errno> {
        accessat(&self.folder, &self.name, Access::WRITE_OK, AtFlags::EACCESS)
    }

    /// Opens the file that is there. Neither a FIFO nor a terminal is waited for, and no link is followed.
    pub(crate) fn open(&self, access: OFlags) -> Result<File, Errno> {
        if !self.missing.is_empty() {
            return Err(Errno::NOENT);
        }
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.folder, &self.name, access | flags, Mode::empty())?.into())
    }

    /// Creates a new file beside the one that this place is about.
    pub(crate) fn create_beside(&self, name: &str, mode: Mode) -> Result<File, Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        Ok(openat(&self.folder, name, flags, mode)?.into())
    }

    /// Puts a file beside this place into it.
    pub(crate) fn take_over(&self, name: &str) -> Result<(), Errno> {
        renameat(&self.folder, name, &self.folder, &self.name)
    }

    /// The same, where there is no file yet. Where the system cannot promise that, one that comes in between is
    /// replaced.
    pub(crate) fn take_free(&self, name: &str) -> Result<(), Errno> {
        match rename_as(&self.folder, OsStr::new(name), &self.name, Renamed::Free) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => match self.stat()? {
                Some(_) => Err(Errno::EXIST),
                None => self.take_over(name),
            },
            renamed => renamed,
        }
    }

    /// Lets a file beside this place and the one in it change places, in one step.
    pub(crate) fn exchange(&self, name: &str) -> Result<(), Errno> {
        rename_as(&self.folder, OsStr::new(name), &self.name, Renamed::Exchanged)
    }

    /// Gives the file that is there another name, which nothing has yet.
    pub(crate) fn move_aside(&self, name: &str) -> Result<(), Errno> {
        rename_as(&self.folder, &self.name, OsStr::new(name), Renamed::Free)
    }

    /// What is beside this place.
    pub(crate) fn stat_beside(&self, name: &str) -> Result<Stat, Errno> {
        statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Removes the file that is there.
    pub(crate) fn remove(&self) -> Result<(), Errno> {
        unlinkat(&self.folder, &self.name, AtFlags::empty())
    }

    /// The absolute path of this place, without links.
    pub(crate) fn real_path(&self) -> io::Result<PathBuf> {
        let mut path = path_of(&self.folder)?;
        path.extend(&self.missing);
        path.push(&self.name);
        Ok(path)
    }

    /// Removes a file beside this place.
    pub(crate) fn remove_beside(&self, name: &str) -> Result<(), Errno> {
        unlinkat(&self.folder, name, AtFlags::empty())
    }

    pub(crate) fn flush_folder(&self) -> io::Result<()> {
        flush(&self.folder)
    }

    /// Creates the folders that are missing. They are taken back unless `keep` is called.
    pub(crate) fn create_folders(&mut self) -> Result<NewFolders, FileError> {
        let mut created = NewFolders { folders: Vec::new(), innermost: 0 };
        for name in std::mem::take(&mut self.missing) {
            let is_new = match mkdirat(&self.folder, &name, Mode::from_raw_mode(0o777)) {
                Ok(()) => true,
                // Another agent was quicker.
                Err(Errno::EXIST) => false,
                Err(error) => return Err(error.into()),
            };
            let inner = open_folder(&self.folder, Path::new(&name), Links::Refuse)?;
            let outer = std::mem::replace(&mut self.folder, Arc::new(inner));
            if is_new {
                let flushed = flush(&outer);
                created.folders.push((outer, name));
                created.innermost += 1;
                flushed?;
            } else {
                created.innermost = 0;
            }
        }
        Ok(created)
    }
}

/// Folders that were created for a file that is not written yet, each with the one it is in.
pub(crate) struct NewFolders {
    folders: Vec<(Arc<OwnedFd>, OsString)>,
    /// How many of them lie right above the file, with nobody else's between.
    innermost: u32,
}

impl NewFolders {
    /// Lets them stay, and says how many were made right above the file.
    pub(crate) fn keep(mut self) -> u32 {
        self.folders.clear();
        self.innermost
    }
}

impl Drop for NewFolders {
    fn drop(&mut self) {
        for (outer, name) in self.folders.iter().rev() {
            let _ = unlinkat(outer, name, AtFlags::REMOVEDIR);
        }
    }
}

/// Whether a link is followed where a folder is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    Follow,
    Refuse,
}

/// Opens a folder to do something in it.
pub(crate) fn open_folder(from: impl AsFd, path: &Path, links: Links) -> Result<OwnedFd, Errno> {
    let flags = match links {
        Links::Follow => AS_FOLDER,
        Links::Refuse => AS_FOLDER | OFlags::NOFOLLOW,
    };
    openat(from, path, flags, Mode::empty())
}

/// Where an absolute path leads, links followed, also if its last names do not exist. `None` when that cannot be
/// told.
pub(crate) fn real_path(path: &Path) -> Option<PathBuf> {
    let mut missing = Vec::new();
    let mut existing = path;
    loop {
        match existing.canonicalize() {
            Ok(mut found) => {
                found.extend(missing.iter().rev());
                return Some(found);
            }
            // A link that leads to nothing yet: whoever writes follows it.
            Err(_) if existing.is_symlink() => return None,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Behind a folder that does not exist `..` leads nowhere.
                missing.push(existing.file_name()?);
                existing = existing.parent()?;
            }
            Err(_) => return None,
        }
    }
}

/// Opens a folder beneath another: no link, no `..` and no file of /proc leads out of that one. Not every
/// system can do this in one step, nor does it cover links that lead out and in again: an error says
/// nothing about the path.
pub(crate) fn open_beneath(root: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use rustix::fs::{ResolveFlags, openat2};
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        openat2(root, path, AS_FOLDER, Mode::empty(), resolve)
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = (root, path);
        Err(Errno::NOSYS)
    }
}

/// Opens a folder beneath another to read the names in it. No link is followed, and there is no `..`.
pub(crate) fn open_without_links(root: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    const TO_READ: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
    if path.as_os_str().is_empty() {
        return openat(root, ".", TO_READ, Mode::empty());
    }
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use rustix::fs::{ResolveFlags, openat2};
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        match openat2(&root, path, TO_READ, Mode::empty(), resolve) {
            // Too old a system, too long a path, or something was renamed on the way.
            Err(Errno::NOSYS | Errno::PERM | Errno::NAMETOOLONG | Errno::AGAIN) => {}
            opened => return opened,
        }
    }
    let mut names = path.iter();
    let last = names.next_back().ok_or(Errno::NOENT)?;
    let mut folder = open_folder(root, Path::new("."), Links::Refuse)?;
    for name in names {
        folder = open_folder(&folder, Path::new(name), Links::Refuse)?;
    }
    openat(&folder, last, TO_READ | OFlags::NOFOLLOW, Mode::empty())
}

/// Whether the names in an open folder may be read.
pub(crate) fn require_readable(folder: impl AsFd) -> Result<(), Errno> {
    openat(folder, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map(drop)
}

/// How a file is renamed where another may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Renamed {
    /// Only if there is none.
    Free,
    /// The two change places.
    Exchanged,
}

fn rename_as(folder: impl AsFd, from: &OsStr, to: &OsStr, how: Renamed) -> Result<(), Errno> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use rustix::fs::{RenameFlags, renameat_with};
        let flags = match how {
            Renamed::Free => RenameFlags::NOREPLACE,
            Renamed::Exchanged => RenameFlags::EXCHANGE,
        };
        renameat_with(&folder, from, &folder, to, flags)
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = (folder, from, to, how);
        Err(Errno::NOSYS)
    }
}

/// Where an open file or folder lies, as the system says.
pub(crate) fn path_of(open: impl AsFd) -> io::Result<PathBuf> {
    #[cfg(not(target_vendor = "apple"))]
    {
        fs::read_link(format!("/proc/self/fd/{}", open.as_fd().as_raw_fd()))
    }
    #[cfg(target_vendor = "apple")]
    {
        use std::os::unix::ffi::OsStringExt;
        Ok(PathBuf::from(OsString::from_vec(rustix::fs::getpath(open)?.into_bytes())))
    }
}

pub(crate) fn is_link(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Symlink
}

/// Where a chain of symbolic links ends; the last link may lead to a file that does not exist yet.
fn follow_links(path: &Path) -> Result<PathBuf, FileError> {
    if names_a_folder(path) {
        return Err(FileError::IsDirectory);
    }
    let mut path = path.to_owned();
    for _ in 0..LONGEST_CHAIN {
        match fs::read_link(&path) {
            Ok(link) => path = path.parent().unwrap_or(Path::new("/")).join(link),
            // Not a link, or nothing there.
            Err(_) => return Ok(path),
        }
    }
    Err(Errno::LOOP.into())
}

/// Whether a path is the name of a folder, whether that exists or not.
pub(crate) fn names_a_folder(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/")
        || path.file_name().is_none()
        || path.as_os_str().as_encoded_bytes().ends_with(b"/.")
}

fn flush(folder: impl AsFd) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match openat(folder, OsStr::new("."), flags, Mode::empty()) {
        Ok(folder) => match fsync(folder) {
            // Some file systems cannot flush a folder.
            Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
            flushed => Ok(flushed?),
        },
        // A folder that may be written but not read cannot be flushed.
        Err(Errno::ACCESS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
