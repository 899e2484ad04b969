//! A folder that commands may use, identified as of the start of the session.
//!
//! A path alone is not enough: a command that can write to the parent folder can replace the folder
//! with a link, and the next command would get access to the link's target. So a root is opened
//! once. From then on it means the folder with this device and inode, and any other folder at the
//! path is an error.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags};

/// A folder or file, opened when the session started.
#[derive(Debug, Clone)]
pub struct Root {
    path: PathBuf,
    identity: Identity,
    is_folder: bool,
    /// Kept open so that the inode number cannot be reused. The watchdog has no copy and relies on
    /// the main process.
    held: Option<Arc<OwnedFd>>,
}

/// Identifies a folder on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The device number.
    pub device: u64,
    /// The inode number.
    pub inode: u64,
}

/// Identifies a folder across processes. A part is `None` if it may change while the folder stays
/// the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastingIdentity {
    /// The device number; comparable only until the next reboot.
    pub device: Option<u64>,
    /// The inode number.
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

/// How long the inode and device numbers of a file system stay valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbering {
    /// The inode as long as the folder exists, the device until the next reboot.
    Lasting,
    /// The inode stays, but the device changes with every mount, as with an automounter or
    /// container start.
    LastingOnDevice,
    /// Inodes change with every mount, or whenever the kernel evicts them.
    Passing,
}

impl Numbering {
    /// By the constants in linux/magic.h. File systems not listed keep their numbers on disk or in
    /// memory.
    #[cfg(target_os = "linux")]
    fn of_file_system(kind: u32) -> Numbering {
        match kind {
            // NFS, AFS, Ceph, overlayfs, eCryptfs.
            0x6969 | 0x5346_414f | 0x00c3_6400 | 0x794c_7630 | 0xf15f => Numbering::LastingOnDevice,
            // FUSE (also virtiofs), 9P, SMB, VirtualBox shared folders, FAT, exFAT.
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
    /// Opens `path`, following links.
    ///
    /// # Errors
    /// If it does not exist or cannot be opened.
    pub fn open(path: &Path) -> io::Result<Root> {
        let path = path.canonicalize()?;
        let (held, identity, is_folder) = open_itself(&path)?;
        Ok(Root { path, identity, is_folder, held: Some(Arc::new(held)) })
    }

    /// A root that another process has opened and keeps open.
    pub(crate) fn known(path: PathBuf, identity: Identity, is_folder: bool) -> Root {
        Root { path, identity, is_folder, held: None }
    }

    /// The path without links, as of opening.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its device and inode.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Its identity for later processes. A file has none, since it may be replaced.
    pub fn lasting_identity(&self) -> LastingIdentity {
        let held = self.held.as_ref().filter(|_| self.is_folder);
        let numbering = held.map_or(Numbering::Passing, |held| Numbering::of(held));
        LastingIdentity::of(self.identity, numbering)
    }

    pub(crate) fn is_folder(&self) -> bool {
        self.is_folder
    }

    /// Opens it again and checks that it is the same.
    ///
    /// A file may have been replaced, as many programs do when saving. It only has to be at the
    /// same path, and not a link.
    ///
    /// # Errors
    /// If it was moved, replaced or removed.
    pub(crate) fn reopen(&self) -> io::Result<OwnedFd> {
        match open_itself(&self.path) {
            Ok((opened, identity, is_folder))
                if is_folder == self.is_folder && (!is_folder || identity == self.identity) =>
            {
                Ok(opened)
            }
            Ok(_) | Err(_) => Err(io::Error::other(format!(
                "{} was moved or replaced since the session started. Put it back, or restart \
                    ikigai",
                self.path.display()
            ))),
        }
    }
}

/// Opens a path without following links, and returns whether it is a folder.
fn open_itself(path: &Path) -> io::Result<(OwnedFd, Identity, bool)> {
    let opened = open_without_links(path)?;
    let found = File::from(opened.try_clone()?).metadata()?;
    let identity = Identity { device: found.dev(), inode: found.ino() };
    Ok((opened, identity, found.is_dir()))
}

/// Opens a path as a mere reference (`O_PATH`). Fails if any component is a link.
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
            // Before Linux 5.6 only the last component is checked.
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
