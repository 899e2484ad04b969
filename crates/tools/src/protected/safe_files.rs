//! File access inside a root that a hostile command may be changing: every operation is relative to
//! an open folder, follows no link, never blocks, and reads a limited size.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat,
};
use rustix::io::Errno;

use crate::place::{Links, open_folder};

/// Contents of larger files are not kept. Settings are a thousand times smaller.
pub(super) const LARGEST_KEPT: u64 = 1024 * 1024;
/// The longest path passed to the kernel at once, with room to spare.
pub(super) const LONGEST_STRETCH: usize = 3_000;
/// How often a file is read again that changes during the read.
const READINGS: usize = 3;

/// Flags to list a folder.
pub(super) const TO_LIST: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
/// Flags to use a folder that need not be readable, where the system supports it.
#[cfg(target_os = "linux")]
pub(super) const TO_ENTER: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
pub(super) const TO_ENTER: OFlags = TO_LIST.union(OFlags::NOFOLLOW);

/// An open folder that commands may write to.
#[derive(Debug)]
pub(super) struct Root {
    /// Absolute and canonical.
    pub(super) path: PathBuf,
    pub(super) folder: OwnedFd,
}

impl Root {
    pub(super) fn open(path: &Path) -> io::Result<Root> {
        let folder = open_folder(CWD, path, Links::Refuse)?;
        Ok(Root { path: path.to_owned(), folder })
    }

    /// Opens the parent folder of a path relative to the root, and returns it with the last
    /// component.
    pub(super) fn parent<'a>(&self, inside: &'a Path) -> Result<(OwnedFd, &'a OsStr), Errno> {
        let (Some(folder), Some(name)) = (inside.parent(), inside.file_name()) else {
            return Err(Errno::ISDIR);
        };
        Ok((self.folder(folder, TO_ENTER)?, name))
    }

    /// Opens a folder by its path relative to the root.
    pub(super) fn folder(&self, inside: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        open_inside(&self.folder, inside, flags)
    }

    /// Reads what is at a path relative to the root.
    pub(super) fn read(&self, inside: &Path) -> Result<Version, Errno> {
        let (folder, name) = self.parent(inside)?;
        Version::read(folder, name)
    }
}

/// Whether an error means that a path does not exist or leads through a link.
pub(super) fn is_absent(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
}

/// A file's identity and metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileStat {
    pub(super) device: u64,
    pub(super) inode: u64,
    /// Change time in seconds and nanoseconds.
    pub(super) changed: (i64, i64),
    pub(super) size: u64,
    pub(super) mode: u32,
    /// The number of hard links.
    pub(super) links: u64,
}

impl FileStat {
    #[allow(clippy::unnecessary_cast, reason = "the types of the fields differ between systems")]
    pub(super) fn of(stat: &Stat) -> FileStat {
        FileStat {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            size: stat.st_size as u64,
            mode: stat.st_mode as u32,
            links: stat.st_nlink as u64,
        }
    }

    /// The entry of a folder, without following a link.
    pub(super) fn at(folder: impl AsFd, name: impl rustix::path::Arg) -> Result<FileStat, Errno> {
        Ok(FileStat::of(&statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    pub(super) fn of_open(open: impl AsFd) -> Result<FileStat, Errno> {
        Ok(FileStat::of(&fstat(open)?))
    }

    pub(super) fn kind(&self) -> FileType {
        #[allow(clippy::useless_conversion, reason = "the type differs between systems")]
        FileType::from_raw_mode(self.mode.try_into().unwrap_or_default())
    }

    pub(super) fn is_executable(&self) -> bool {
        self.mode & 0o111 != 0
    }

    /// Device and inode.
    pub(super) fn id(&self) -> (u64, u64) {
        (self.device, self.inode)
    }
}

/// A protected file, link or folder at one moment.
#[derive(Debug, Clone)]
pub(super) struct Version {
    pub(super) stat: FileStat,
    pub(super) content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    Bytes(Arc<[u8]>),
    /// The target of a link.
    Link(Vec<u8>),
    Folder,
    /// A file that is too large, unreadable, or keeps changing; or a special file.
    Unknown,
}

impl Version {
    /// Reads an entry of a folder.
    ///
    /// Files are always read again: writes through a mapping do not always update the times.
    pub(super) fn read(folder: impl AsFd, name: &OsStr) -> Result<Version, Errno> {
        let stat = FileStat::at(&folder, name)?;
        let content = match stat.kind() {
            FileType::RegularFile => return Version::read_file(folder, name, stat),
            FileType::Symlink => Content::Link(readlinkat(folder, name, Vec::new())?.into_bytes()),
            FileType::Directory => Content::Folder,
            _ => Content::Unknown,
        };
        Ok(Version { stat, content })
    }

    fn read_file(folder: impl AsFd, name: &OsStr, stat: FileStat) -> Result<Version, Errno> {
        let unknown = |stat| Version { stat, content: Content::Unknown };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let mut file = match openat(&folder, name, flags | OFlags::CLOEXEC, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Err(Errno::NOENT),
            // It cannot be read later either, or it has been replaced, which the next check will
            // notice.
            Err(_) => return Ok(unknown(stat)),
        };
        for _ in 0..READINGS {
            let before = FileStat::of_open(&file)?;
            if before.kind() != FileType::RegularFile || before.size > LARGEST_KEPT {
                return Ok(unknown(before));
            }
            let Ok(bytes) = read_bounded(&mut file) else { return Ok(unknown(before)) };
            if FileStat::of_open(&file)? == before && bytes.len() as u64 == before.size {
                return Ok(Version { stat: before, content: Content::Bytes(bytes.into()) });
            }
        }
        Ok(unknown(stat))
    }

    /// Whether it is a file with several hard links.
    pub(super) fn is_shared(&self) -> bool {
        matches!(self.content, Content::Bytes(_)) && self.stat.links > 1
    }

    /// Gets only the metadata, for a file that is read only after a change.
    pub(super) fn stat(folder: impl AsFd, name: &OsStr) -> Result<Version, Errno> {
        Ok(Version { stat: FileStat::at(folder, name)?, content: Content::Unknown })
    }

    /// Whether both have the same effect when read or run, even if they are different files.
    pub(super) fn is_same(&self, other: &Version) -> bool {
        const RUNS: u32 = 0o6111;
        let is_same_mode = self.stat.mode & RUNS == other.stat.mode & RUNS;
        match (&self.content, &other.content) {
            (Content::Folder, Content::Folder) => true,
            (Content::Link(a), Content::Link(b)) => a == b,
            (Content::Bytes(a), Content::Bytes(b)) => a == b && is_same_mode,
            (Content::Unknown, Content::Unknown) => self.stat == other.stat,
            _ => false,
        }
    }
}

/// Reads a file of at most `most` bytes.
pub(super) fn read_file(folder: impl AsFd, name: &OsStr, most: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(openat(&folder, name, flags | OFlags::CLOEXEC, Mode::empty())?);
    if FileStat::of_open(&file)?.kind() != FileType::RegularFile {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

fn read_bounded(file: &mut File) -> io::Result<Vec<u8>> {
    use std::io::Seek;
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(LARGEST_KEPT + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a folder by a relative path of any length, of which no component may be a link or `..`.
pub(super) fn open_inside(from: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut folder: Option<OwnedFd> = None;
    let mut stretch = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => stretch.push(name),
            Component::CurDir => {}
            _ => return Err(Errno::XDEV),
        }
        if stretch.as_os_str().len() > LONGEST_STRETCH {
            let further = match &folder {
                Some(folder) => open_stretch(folder, &stretch, TO_ENTER)?,
                None => open_stretch(&from, &stretch, TO_ENTER)?,
            };
            folder = Some(further);
            stretch = PathBuf::new();
        }
    }
    if stretch.as_os_str().is_empty() {
        stretch.push(".");
    }
    match &folder {
        Some(folder) => open_stretch(folder, &stretch, flags),
        None => open_stretch(&from, &stretch, flags),
    }
}

#[cfg(target_os = "linux")]
fn open_stretch(from: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(&from, path, flags, Mode::empty(), resolve) {
        // An old kernel, or a seccomp filter that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => open_by_names(from, path, flags),
        // A component was renamed meanwhile; opening one at a time tolerates that.
        Err(Errno::AGAIN) => open_by_names(from, path, flags),
        opened => opened,
    }
}

#[cfg(not(target_os = "linux"))]
fn open_stretch(from: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    open_by_names(from, path, flags)
}

/// Opens one component at a time.
fn open_by_names(from: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let (above, last) = (path.parent().unwrap_or(Path::new("")), path.file_name());
    let mut folder = openat(from, ".", TO_ENTER, Mode::empty())?;
    for name in above.iter() {
        folder = openat(&folder, name, TO_ENTER, Mode::empty())?;
    }
    openat(&folder, last.unwrap_or(OsStr::new(".")), flags | OFlags::NOFOLLOW, Mode::empty())
}

/// An entry of a folder.
pub(super) struct FolderEntry {
    pub(super) name: OsString,
    pub(super) kind: FileType,
}

/// Calls `each` for every entry of an open folder.
pub(super) fn for_each_entry(
    folder: OwnedFd,
    mut each: impl FnMut(&[u8], FileType),
) -> Result<(), Errno> {
    // Some file systems do not report the type, so it is queried below.
    let mut unknown = Vec::new();
    let mut entries = Dir::new(folder)?;
    while let Some(entry) = entries.read() {
        let entry = entry?;
        match (entry.file_name().to_bytes(), entry.file_type()) {
            (b"." | b"..", _) => {}
            (name, FileType::Unknown) => unknown.push(name.to_owned()),
            (name, kind) => each(name, kind),
        }
    }
    for name in unknown {
        if let Ok(stat) = FileStat::at(entries.fd()?, OsStr::from_bytes(&name)) {
            each(&name, stat.kind());
        }
    }
    Ok(())
}

/// The entries of an open folder; `None` if there are more than `most`.
pub(super) fn entries_of(folder: OwnedFd, most: usize) -> Result<Option<Vec<FolderEntry>>, Errno> {
    let mut entries = Vec::new();
    let mut count = 0;
    for_each_entry(folder, |name, kind| {
        count += 1;
        if count <= most {
            entries.push(FolderEntry { name: OsString::from_vec(name.to_owned()), kind });
        }
    })?;
    Ok((count <= most).then_some(entries))
}
