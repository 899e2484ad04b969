//! Replacing a file's content so that it is the old or the new at every moment, and nobody's change is
//! lost.
//!
//! The new content goes into a temporary file beside the target, is flushed, and renamed over it; then the
//! folder is flushed. While that happens a lock on the old file keeps other agents and processes of
//! ikigai out. Owner and mode of an existing file are kept, a symbolic link stays a link. A file with
//! several hard links loses the other names, and access lists and extended attributes are not kept: that is
//! the price of the rename.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{Access, AtFlags, CWD, OFlags, accessat};
use rustix::io::Errno;

use crate::file_error::FileError;
use crate::files::require_regular;

/// The file that a write is about, links followed, and locked if it exists.
pub(crate) struct Target {
    path: PathBuf,
    existing: Option<Existing>,
}

/// An existing target. The lock lasts as long as `file` is open.
struct Existing {
    file: File,
    metadata: Metadata,
}

impl Target {
    /// Finds and locks the file that `path` leads to. It need not exist.
    pub(crate) fn lock(path: &Path) -> Result<Target, FileError> {
        let path = follow_links(path)?;
        let existing = match fs::symlink_metadata(&path) {
            Ok(metadata) => {
                require_regular(metadata.file_type())?;
                accessat(CWD, &path, Access::WRITE_OK, AtFlags::EACCESS)?;
                Some(lock_existing(&path)?)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return Err(FileError::NotDirectory);
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Target { path, existing })
    }

    /// The file as it is now, for reading; `None` when there is none.
    pub(crate) fn existing(&mut self) -> Option<&mut File> {
        self.existing.as_mut().map(|existing| &mut existing.file)
    }

    /// Creates the folders that are missing above the target. They are taken back unless `keep` is called.
    pub(crate) fn create_folders(&self) -> Result<NewFolders, FileError> {
        let mut folders = NewFolders(Vec::new());
        let missing: Vec<&Path> = self
            .path
            .ancestors()
            .skip(1)
            .take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists())
            .collect();
        for folder in missing.into_iter().rev() {
            match fs::create_dir(folder) {
                Ok(()) => folders.0.push(folder.to_owned()),
                // Another agent was quicker.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error.into()),
            }
            flush_folder(folder.parent().unwrap_or(folder))?;
        }
        Ok(folders)
    }

    /// Replaces the content by what `write` puts out. When this fails the target is as it was, except for
    /// [`FileError::NotFlushed`].
    pub(crate) fn replace(
        &self,
        write: impl FnOnce(&mut dyn Write) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let mut temporary = Temporary::create(folder, self.existing.as_ref())?;
        write(&mut temporary.file)?;
        if let Some(existing) = &self.existing {
            existing.keep_owner_and_mode(&temporary.file)?;
        }
        temporary.file.sync_all()?;
        self.require_unchanged()?;
        temporary.rename_to(&self.path)?;
        flush_folder(folder).map_err(FileError::NotFlushed)
    }

    /// Programs that know nothing of our lock may have changed the file since we looked.
    fn require_unchanged(&self) -> Result<(), FileError> {
        let Some(existing) = &self.existing else {
            return Ok(());
        };
        let stamp = |m: &Metadata| (m.dev(), m.ino(), m.size(), m.mtime(), m.mtime_nsec());
        match fs::symlink_metadata(&self.path) {
            Ok(now) if stamp(&now) == stamp(&existing.metadata) => Ok(()),
            _ => Err(FileError::ChangedMeanwhile),
        }
    }
}

impl Existing {
    fn keep_owner_and_mode(&self, file: &File) -> io::Result<()> {
        let own = file.metadata()?;
        let (uid, gid) = (self.metadata.uid(), self.metadata.gid());
        if (own.uid(), own.gid()) != (uid, gid) {
            // Only root may give a file away; for anybody else it becomes theirs, as with any editor.
            let _ = fchown(file, Some(uid), Some(gid));
        }
        file.set_permissions(Permissions::from_mode(self.metadata.mode() & 0o7777))
    }
}

/// Where a chain of symbolic links ends; the last link may lead to a file that does not exist yet.
fn follow_links(path: &Path) -> Result<PathBuf, FileError> {
    /// As many as the system itself follows.
    const LONGEST_CHAIN: usize = 40;
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") || path.file_name().is_none() {
        // The name of a folder, whether it exists or not.
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

/// Waits for the lock on an existing file.
fn lock_existing(path: &Path) -> Result<Existing, FileError> {
    /// A write takes milliseconds: who holds the lock longer is not one of us.
    const PATIENCE: Duration = Duration::from_secs(10);
    let started = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        let file = open_to_lock(path)?;
        let metadata = file.metadata()?;
        require_regular(metadata.file_type())?;
        match file.try_lock() {
            // Who held the lock before has put a new file in this one's place.
            Ok(()) if !is_still_at(&metadata, path)? => continue,
            Ok(()) => return Ok(Existing { metadata: file.metadata()?, file }),
            Err(fs::TryLockError::WouldBlock) if started.elapsed() > PATIENCE => {
                return Err(FileError::Locked);
            }
            Err(fs::TryLockError::WouldBlock) => {
                // Called on a thread for blocking work. Polling, since a blocking lock has no time limit.
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(5));
            }
            // Some network file systems have no locks; there the check before the rename has to do.
            Err(fs::TryLockError::Error(error)) if has_no_locks(&error) => {
                return Ok(Existing { metadata, file });
            }
            Err(fs::TryLockError::Error(error)) => return Err(error.into()),
        }
    }
}

fn open_to_lock(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW).bits().cast_signed();
    // A network file system gives the lock only to who may write; a program that runs cannot be opened for
    // that, and what may not be read has to be opened without.
    let open =
        |read, write| OpenOptions::new().read(read).write(write).custom_flags(flags).open(path);
    open(true, true).or_else(|_| open(true, false)).or_else(|_| open(false, true))
}

fn is_still_at(metadata: &Metadata, path: &Path) -> io::Result<bool> {
    let now = fs::symlink_metadata(path)?;
    Ok((now.dev(), now.ino()) == (metadata.dev(), metadata.ino()))
}

fn has_no_locks(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS))
}

/// A file beside the target, removed unless it took the target's place.
struct Temporary {
    file: File,
    path: PathBuf,
}

impl Temporary {
    fn create(folder: &Path, existing: Option<&Existing>) -> io::Result<Temporary> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        // What may become secret starts so; a new file gets what the user's umask leaves.
        let mode = if existing.is_some() { 0o600 } else { 0o666 };
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!(".ikigai-{}-{number}.tmp", std::process::id()));
            match OpenOptions::new().write(true).create_new(true).mode(mode).open(&path) {
                // Left behind by a process that was killed and had the same number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                file => return Ok(Temporary { file: file?, path }),
            }
        }
    }

    fn rename_to(self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)
        // The drop below finds nothing to remove any more.
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Folders that were created for a file that is not written yet.
pub(crate) struct NewFolders(Vec<PathBuf>);

impl NewFolders {
    pub(crate) fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for NewFolders {
    fn drop(&mut self) {
        for folder in self.0.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}

fn flush_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder) {
        Ok(folder) => match folder.sync_all() {
            // Some file systems cannot flush a folder.
            Err(error)
                if matches!(Errno::from_io_error(&error), Some(Errno::INVAL | Errno::NOTSUP)) =>
            {
                Ok(())
            }
            flushed => flushed,
        },
        // A folder that may be written but not read cannot be flushed by its name.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::Target;
    use crate::file_error::FileError;

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).collect()
    }

    /// Somebody who knows nothing of our lock does `meddle` between our look at the file and the rename.
    #[track_caller]
    fn check(meddle: impl FnOnce(&Path), after: Option<&str>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "old").unwrap();
        let target = Target::lock(&path).unwrap();
        let replaced = target.replace(|output| {
            output.write_all(b"new")?;
            meddle(&path);
            Ok(())
        });
        assert!(matches!(replaced, Err(FileError::ChangedMeanwhile)), "{replaced:?}");
        assert_eq!(fs::read_to_string(&path).ok().as_deref(), after);
        let left: &[&str] = if after.is_some() { &["file"] } else { &[] };
        assert_eq!(names(folder.path()), left);
    }

    #[test]
    fn a_file_that_somebody_else_changed_meanwhile_keeps_that_change() {
        check(|path| fs::write(path, "longer than before").unwrap(), Some("longer than before"));
        check(|path| fs::remove_file(path).unwrap(), None);
        let exchange = |path: &Path| {
            let other = path.with_extension("other");
            fs::write(&other, "alt").unwrap();
            fs::rename(other, path).unwrap();
        };
        check(exchange, Some("alt"));
    }

    #[test]
    fn a_write_that_fails_half_way_leaves_the_old_content_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "old").unwrap();
        let replaced = Target::lock(&path).unwrap().replace(|output| {
            output.write_all(b"half of the new")?;
            Err(FileError::NotText)
        });
        assert!(matches!(replaced, Err(FileError::NotText)));
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[test]
    fn new_folders_are_taken_back_unless_they_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let target = Target::lock(&folder.path().join("a/b/file")).unwrap();
        drop(target.create_folders().unwrap());
        assert_eq!(names(folder.path()), Vec::<String>::new());
        target.create_folders().unwrap().keep();
        assert!(folder.path().join("a/b").is_dir());
    }
}
