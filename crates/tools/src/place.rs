//! The location of a file: an open folder and a name in it.
//!
//! Every operation is relative to the open folder, and no path is resolved twice. So whatever
//! replaces a parent folder, a write in progress stays in the folder that was found.

use std::collections::BTreeMap;
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

/// A folder is opened as a mere reference (`O_PATH`) where possible: it need not be readable then.
#[cfg(any(target_os = "linux", target_os = "android"))]
const AS_FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const AS_FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The limit of the kernel for symbolic links.
pub(crate) const LONGEST_CHAIN: usize = 40;

/// The location of a file that may exist. The name was not a link when checked; if it becomes one,
/// it is not followed.
pub(crate) struct Place {
    folder: Arc<OwnedFd>,
    /// Missing folders between `folder` and the file; empty if the file exists.
    missing: Vec<OsString>,
    name: OsString,
}

impl Place {
    pub(crate) fn new(folder: Arc<OwnedFd>, missing: Vec<OsString>, name: OsString) -> Place {
        Place { folder, missing, name }
    }

    /// Locates `path`, wherever it leads.
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
                // A dangling link cannot be created as a folder.
                Err(Errno::NOENT) if !parent.is_symlink() => {
                    // After a missing folder, `..` leads nowhere either.
                    missing.push(parent.file_name().ok_or(Errno::NOENT)?.to_owned());
                    parent = parent.parent().unwrap_or(Path::new("/"));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Locates a file by a path without links. If there are links by now, it fails.
    pub(crate) fn without_links(path: &Path) -> Result<Place, FileError> {
        let name = path.file_name().ok_or(FileError::IsDirectory)?.to_owned();
        let place = Place::anywhere(path)?;
        match place.name == name && place.real_path()? == path {
            true => Ok(place),
            false => Err(FileError::NotRegular),
        }
    }

    /// The metadata of the file, if it exists.
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

    /// Fails unless the user may write the file.
    pub(crate) fn require_writable(&self) -> Result<(), Errno> {
        accessat(&self.folder, &self.name, Access::WRITE_OK, AtFlags::EACCESS)
    }

    /// Opens the file. Never blocks on a FIFO or terminal, and follows no link.
    pub(crate) fn open(&self, access: OFlags) -> Result<File, Errno> {
        if !self.missing.is_empty() {
            return Err(Errno::NOENT);
        }
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.folder, &self.name, access | flags, Mode::empty())?.into())
    }

    /// Creates a new file next to this one.
    pub(crate) fn create_beside(&self, name: &str, mode: Mode) -> Result<File, Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        Ok(openat(&self.folder, name, flags, mode)?.into())
    }

    /// Renames a neighbor to this name, replacing the file.
    pub(crate) fn take_over(&self, name: &str) -> Result<(), Errno> {
        renameat(&self.folder, name, &self.folder, &self.name)
    }

    /// The same, if no file exists yet. Where the system cannot guarantee that, a file created in
    /// between is replaced.
    pub(crate) fn take_free(&self, name: &str) -> Result<(), Errno> {
        match rename_as(&self.folder, OsStr::new(name), &self.name, Renamed::Free) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => match self.stat()? {
                Some(_) => Err(Errno::EXIST),
                None => self.take_over(name),
            },
            renamed => renamed,
        }
    }

    /// Swaps this file with a neighbor atomically.
    pub(crate) fn exchange(&self, name: &str) -> Result<(), Errno> {
        rename_as(&self.folder, OsStr::new(name), &self.name, Renamed::Exchanged)
    }

    /// Renames the file to a name that is still free.
    pub(crate) fn move_aside(&self, name: &str) -> Result<(), Errno> {
        rename_as(&self.folder, &self.name, OsStr::new(name), Renamed::Free)
    }

    /// The metadata of a neighbor.
    pub(crate) fn stat_beside(&self, name: &str) -> Result<Stat, Errno> {
        statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Removes the file.
    pub(crate) fn remove(&self) -> Result<(), Errno> {
        unlinkat(&self.folder, &self.name, AtFlags::empty())
    }

    /// The absolute path, without links.
    pub(crate) fn real_path(&self) -> io::Result<PathBuf> {
        let mut path = path_of(&self.folder)?;
        path.extend(&self.missing);
        path.push(&self.name);
        Ok(path)
    }

    /// Removes a neighbor.
    pub(crate) fn remove_beside(&self, name: &str) -> Result<(), Errno> {
        unlinkat(&self.folder, name, AtFlags::empty())
    }

    pub(crate) fn flush_folder(&self) -> io::Result<()> {
        flush(&self.folder)
    }

    /// Creates missing folders. They are removed again unless `keep` is called.
    pub(crate) fn create_folders(&mut self) -> Result<NewFolders, FileError> {
        let mut created = NewFolders { folders: Vec::new(), innermost: 0 };
        for name in std::mem::take(&mut self.missing) {
            let is_new = match mkdirat(&self.folder, &name, Mode::from_raw_mode(0o777)) {
                Ok(()) => true,
                // Another agent was faster.
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

/// Folders that were created for a file that is not written yet, each with its parent.
pub(crate) struct NewFolders {
    folders: Vec<(Arc<OwnedFd>, OsString)>,
    /// How many of them are directly above the file, with no existing folder in between.
    innermost: u32,
}

impl NewFolders {
    /// Keeps them, and returns how many are directly above the file.
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

/// Whether to follow a link in place of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    Follow,
    Refuse,
}

/// Opens a folder to work in it.
pub(crate) fn open_folder(from: impl AsFd, path: &Path, links: Links) -> Result<OwnedFd, Errno> {
    let flags = match links {
        Links::Follow => AS_FOLDER,
        Links::Refuse => AS_FOLDER | OFlags::NOFOLLOW,
    };
    openat(from, path, flags, Mode::empty())
}

/// Resolves an absolute path, even if its last components do not exist. `None` if that is not
/// possible.
pub(crate) fn real_path(path: &Path) -> Option<PathBuf> {
    let mut missing = Vec::new();
    let mut existing = path;
    loop {
        match existing.canonicalize() {
            Ok(mut found) => {
                found.extend(missing.iter().rev());
                return Some(found);
            }
            // A dangling link: a write would follow it.
            Err(_) if existing.is_symlink() => return None,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // After a missing folder, `..` leads nowhere.
                missing.push(existing.file_name()?);
                existing = existing.parent()?;
            }
            Err(_) => return None,
        }
    }
}

/// The same for many paths, nearly all of which are in the same few folders and do not exist.
pub(crate) fn real_paths(
    paths: impl IntoIterator<Item = PathBuf>,
) -> impl Iterator<Item = PathBuf> {
    let mut folders: BTreeMap<PathBuf, Option<PathBuf>> = BTreeMap::new();
    paths.into_iter().filter_map(move |path| {
        let is_link = path.symlink_metadata().is_ok_and(|found| found.is_symlink());
        let (Some(folder), Some(name), false) = (path.parent(), path.file_name(), is_link) else {
            return real_path(&path);
        };
        let real = folders.entry(folder.to_owned()).or_insert_with(|| real_path(folder));
        real.as_ref().map(|folder| folder.join(name))
    })
}

/// Opens a folder inside another; no link, `..` or magic link of /proc can leave it. Not every
/// system supports this, and it rejects links that leave and return, so an error says nothing about
/// the path.
pub(crate) fn open_inside(root: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
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

/// Opens a folder inside another for listing. Follows no links and allows no `..`.
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
            // The kernel is too old, the path too long, or a component was renamed meanwhile.
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

/// Fails unless an open folder may be listed.
pub(crate) fn require_readable(folder: impl AsFd) -> Result<(), Errno> {
    openat(folder, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map(drop)
}

/// How to rename over another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Renamed {
    /// Only if there is none.
    Free,
    /// Swap the two.
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

/// The path of an open file or folder, as reported by the system.
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

/// Follows a chain of symbolic links; the last one may lead to a missing file.
fn follow_links(path: &Path) -> Result<PathBuf, FileError> {
    if names_a_folder(path) {
        return Err(FileError::IsDirectory);
    }
    let mut path = path.to_owned();
    for _ in 0..LONGEST_CHAIN {
        match fs::read_link(&path) {
            Ok(link) => path = path.parent().unwrap_or(Path::new("/")).join(link),
            // Not a link, or missing.
            Err(_) => return Ok(path),
        }
    }
    Err(Errno::LOOP.into())
}

/// Whether a path can only name a folder, existing or not.
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
        // A folder that is writable but not readable cannot be flushed.
        Err(Errno::ACCESS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
