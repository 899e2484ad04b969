//! A folder that commands may use, known by what it was when the session opened.
//!
//! A path says nothing about tomorrow: a command that may write around a folder can put a link in its place, and
//! the next command would be let into whatever that leads to. So a root is opened once. From then on it is the folder
//! with this device and inode, and a path that leads to another one is an error.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags};

/// A folder, or a file, that was opened when the session opened.
#[derive(Debug, Clone)]
pub struct Root {
    path: PathBuf,
    identity: Identity,
    is_folder: bool,
    /// While it is open no other folder gets its inode. The watchdog has none: the program's keeps it for both.
    held: Option<Arc<OwnedFd>>,
}

/// What tells a folder from every other one of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The device that it is on.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

/// What a later process can tell a folder by. A part is `None` if it can change while the folder stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastingIdentity {
    /// The device; comparable only until the machine is started again.
    pub device: Option<u64>,
    /// The number on it.
    pub inode: Option<u64>,
}

impl LastingIdentity {
    fn of(identity: Identity, numbering: Numbering) -> LastingIdentity {
        let Identity { device, inode } = identity;
        match numbering {
            Numbering::Lasting => LastingIdentity { device: Some(device), inode: Some(inode) },
            Numbering::LastingOnDevice => LastingIdentity { device: None, inode: Some(inode) },
            Numbering::Passing => LastingIdentity { device: None, inode: None },
        }
    }
}

/// How long the numbers of a file system mean the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbering {
    /// As long as the folder is there, and until the machine is started again also the device.
    Lasting,
    /// The same, but the device is another one after every mount: an automounter or the start of a container is enough.
    LastingOnDevice,
    /// Files are numbered anew with every mount, or whenever the kernel has forgotten them.
    Passing,
}

impl Numbering {
    /// By the numbers of linux/magic.h. What is not listed keeps its numbers on a disk or in memory.
    #[cfg(target_os = "linux")]
    fn of_file_system(kind: u32) -> Numbering {
        match kind {
            // NFS, AFS, Ceph, overlayfs, eCryptfs.
            0x6969 | 0x5346_414f | 0x00c3_6400 | 0x794c_7630 | 0xf15f => Numbering::LastingOnDevice,
            // FUSE (and virtiofs), 9P, SMB, the folders that VirtualBox shares, FAT, exFAT.
            0x6573_5546 | 0x0102_1997 | 0x517b | 0xff53_4d42 | 0xfe53_4d42 | 0x786f_4256
            | 0x4d44 | 0x2011_bab0 => Numbering::Passing,
            _ => Numbering::Lasting,
        }
    }

    fn of(folder: &OwnedFd) -> Numbering {
        #[cfg(target_os = "linux")]
        {
            let kind = rustix::fs::fstatfs(folder).map(|system| system.f_type as u32);
            kind.map_or(Numbering::Lasting, Numbering::of_file_system)
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = folder;
            Numbering::LastingOnDevice
        }
    }
}

impl PartialEq for Root {
    fn eq(&self, other: &Root) -> bool {
        let known = |root: &Root| (root.path.clone(), root.identity, root.is_folder);
        known(self) == known(other)
    }
}

impl Eq for Root {}

impl Root {
    /// Opens what `path` leads to, links followed.
    ///
    /// # Errors
    /// When it is not there, or cannot be opened.
    pub fn open(path: &Path) -> io::Result<Root> {
        let path = path.canonicalize()?;
        let (held, identity, is_folder) = open_itself(&path)?;
        Ok(Root { path, identity, is_folder, held: Some(Arc::new(held)) })
    }

    /// A root that was opened by another process, which keeps it open.
    pub(crate) fn known(path: PathBuf, identity: Identity, is_folder: bool) -> Root {
        Root { path, identity, is_folder, held: None }
    }

    /// Its path without links, as it was when it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it is known by.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// What a later process can tell it by. Nothing tells a file: it may be replaced.
    pub fn lasting_identity(&self) -> LastingIdentity {
        let held = self.held.as_ref().filter(|_| self.is_folder);
        let numbering = held.map_or(Numbering::Passing, |held| Numbering::of(held));
        LastingIdentity::of(self.identity, numbering)
    }

    pub(crate) fn is_folder(&self) -> bool {
        self.is_folder
    }

    /// Opens it once more, and makes sure that it is the same.
    ///
    /// A file may have been replaced: programs save their files that way. Only its path has to be the same then, and no link.
    ///
    /// # Errors
    /// When it was moved, replaced or removed.
    pub(crate) fn reopen(&self) -> io::Result<OwnedFd> {
        match open_itself(&self.path) {
            Ok((opened, identity, is_folder))
                if is_folder == self.is_folder && (!is_folder || identity == self.identity) =>
            {
                Ok(opened)
            }
            Ok(_) | Err(_) => Err(io::Error::other(format!(
                "{} is not what it was when the session started: it was moved or replaced. Put it back, or start ikigai again",
                self.path.display()
            ))),
        }
    }
}

/// What stands at a path without links, and whether that is a folder.
fn open_itself(path: &Path) -> io::Result<(OwnedFd, Identity, bool)> {
    let opened = open_without_links(path)?;
    let found = File::from(opened.try_clone()?).metadata()?;
    let identity = Identity { device: found.dev(), inode: found.ino() };
    Ok((opened, identity, found.is_dir()))
}

/// Opens a path only to name what is there. A link on the way is an error.
pub(super) fn open_without_links(path: &Path) -> io::Result<OwnedFd> {
    let found = fs::symlink_metadata(path)?;
    if found.is_symlink() {
        return Err(io::Error::other(format!("{} is a link", path.display())));
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{ResolveFlags, openat2};
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            // Older than Linux 5.6: then only the last name is known to be no link.
            Err(rustix::io::Errno::NOSYS) => {
                Ok(rustix::fs::openat(CWD, path, flags, Mode::empty())?)
            }
            opened => Ok(opened?),
        }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(CWD, path, flags, Mode::empty())?)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::{Identity, LastingIdentity, Numbering, Root};

    #[test]
    fn a_folder_is_told_by_numbers_that_last_and_a_file_by_none() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        let file = Root::open(&folder.path().join("file")).unwrap();
        assert_eq!(file.lasting_identity(), LastingIdentity { device: None, inode: None });
        let root = Root::open(folder.path()).unwrap();
        let Identity { device, inode } = root.identity();
        let numbering = Numbering::of(root.held.as_ref().unwrap());
        let told = root.lasting_identity();
        assert_eq!(told, LastingIdentity::of(root.identity(), numbering));
        let parts = |numbering| {
            let told = LastingIdentity::of(root.identity(), numbering);
            (told.device, told.inode)
        };
        assert_eq!(parts(Numbering::Lasting), (Some(device), Some(inode)));
        assert_eq!(parts(Numbering::LastingOnDevice), (None, Some(inode)));
        assert_eq!(parts(Numbering::Passing), (None, None));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_not_listed_keeps_its_numbers() {
        for (kind, expected) in [
            (0xef53, Numbering::Lasting),
            (0x9123_683e, Numbering::Lasting),
            (0x0102_1994, Numbering::Lasting),
            (0x6969, Numbering::LastingOnDevice),
            (0x6573_5546, Numbering::Passing),
        ] {
            assert_eq!(Numbering::of_file_system(kind), expected, "{kind:x}");
        }
    }

    #[test]
    fn a_folder_that_was_replaced_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("sub")).unwrap();
        let root = Root::open(&at("sub")).unwrap();
        root.reopen().unwrap();
        fs::rename(at("sub"), at("aside")).unwrap();
        root.reopen().unwrap_err();
        fs::create_dir(at("sub")).unwrap();
        let error = root.reopen().unwrap_err().to_string();
        assert!(error.contains(&root.path().display().to_string()), "{error}");
        fs::remove_dir(at("sub")).unwrap();
        symlink(at("aside"), at("sub")).unwrap();
        root.reopen().unwrap_err();
        fs::remove_file(at("sub")).unwrap();
        fs::rename(at("aside"), at("sub")).unwrap();
        root.reopen().unwrap();
    }

    #[test]
    fn a_file_may_be_saved_by_renaming_another_over_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "a").unwrap();
        let root = Root::open(&at("file")).unwrap();
        fs::write(at("new"), "b").unwrap();
        fs::rename(at("new"), at("file")).unwrap();
        root.reopen().unwrap();
        fs::remove_file(at("file")).unwrap();
        symlink("/etc/passwd", at("file")).unwrap();
        root.reopen().unwrap_err();
    }

    #[test]
    fn a_link_on_the_way_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("a/b")).unwrap();
        let root = Root::open(&at("a/b")).unwrap();
        fs::rename(at("a"), at("c")).unwrap();
        symlink("c", at("a")).unwrap();
        root.reopen().unwrap_err();
    }
}
