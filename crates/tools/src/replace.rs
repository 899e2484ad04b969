//! Replacing a file's content so that it is the old or the new at every moment, and nobody's change is
//! lost.
//!
//! The new content goes into a temporary file beside the target, is flushed, and renamed over it; then the
//! folder is flushed. While that happens a lock on the old file keeps other agents and processes of
//! ikigai out. Owner and mode of an existing file are kept, a symbolic link stays a link. A file with
//! several hard links loses the other names, and access lists and extended attributes are not kept: that is
//! the price of the rename.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, Stat, fstat};
use rustix::io::Errno;

use crate::file_error::FileError;
use crate::files::require_regular;
use crate::place::{NewFolders, Place};

/// The file that a write is about, locked if it exists.
pub(crate) struct Target {
    place: Place,
    existing: Option<Existing>,
}

/// An existing target. The lock lasts as long as `file` is open.
struct Existing {
    file: File,
    metadata: Metadata,
    stat: Stat,
}

impl Target {
    /// Locks the file at `place`. It need not exist.
    pub(crate) fn lock(place: Place) -> Result<Target, FileError> {
        let existing = match place.stat()? {
            Some(stat) => {
                require_regular(&stat)?;
                place.require_writable()?;
                Some(lock_existing(&place)?)
            }
            None => None,
        };
        Ok(Target { place, existing })
    }

    /// The file as it is now, for reading; `None` when there is none.
    pub(crate) fn existing(&mut self) -> Option<&mut File> {
        self.existing.as_mut().map(|existing| &mut existing.file)
    }

    /// Creates the folders that are missing above the target. They are taken back unless `keep` is called.
    pub(crate) fn create_folders(&mut self) -> Result<NewFolders, FileError> {
        self.place.create_folders()
    }

    /// Replaces the content by what `write` puts out. When this fails the target is as it was, except for
    /// [`FileError::NotFlushed`].
    pub(crate) fn replace(
        &self,
        write: impl FnOnce(&mut dyn Write) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        let mut temporary = Temporary::create(&self.place, self.existing.as_ref())?;
        write(&mut temporary.file)?;
        if let Some(existing) = &self.existing {
            existing.keep_owner_and_mode(&temporary.file)?;
        }
        temporary.file.sync_all()?;
        self.require_unchanged()?;
        temporary.take_over()?;
        self.place.flush_folder().map_err(FileError::NotFlushed)
    }

    /// Programs that know nothing of our lock may have changed the file since we looked.
    fn require_unchanged(&self) -> Result<(), FileError> {
        let Some(existing) = &self.existing else {
            return Ok(());
        };
        let stamp = |s: &Stat| (s.st_dev, s.st_ino, s.st_size, s.st_mtime, s.st_mtime_nsec);
        match self.place.stat() {
            Ok(Some(now)) if stamp(&now) == stamp(&existing.stat) => Ok(()),
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

/// Waits for the lock on an existing file.
fn lock_existing(place: &Place) -> Result<Existing, FileError> {
    /// A write takes milliseconds: who holds the lock longer is not one of us.
    const PATIENCE: Duration = Duration::from_secs(10);
    let started = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        let file = open_to_lock(place)?;
        let stat = fstat(&file)?;
        require_regular(&stat)?;
        match file.try_lock() {
            // Who held the lock before has put a new file in this one's place.
            Ok(()) if !is_still_at(&stat, place)? => continue,
            Ok(()) => return existing(file),
            Err(fs::TryLockError::WouldBlock) if started.elapsed() > PATIENCE => {
                return Err(FileError::Locked);
            }
            Err(fs::TryLockError::WouldBlock) => {
                // Called on a thread for blocking work. Polling, since a blocking lock has no time limit.
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(5));
            }
            // Some network file systems have no locks; there the check before the rename has to do.
            Err(fs::TryLockError::Error(error)) if has_no_locks(&error) => return existing(file),
            Err(fs::TryLockError::Error(error)) => return Err(error.into()),
        }
    }
}

fn existing(file: File) -> Result<Existing, FileError> {
    Ok(Existing { metadata: file.metadata()?, stat: fstat(&file)?, file })
}

fn open_to_lock(place: &Place) -> Result<File, Errno> {
    // A network file system gives the lock only to who may write; a program that runs cannot be opened for
    // that, and what may not be read has to be opened without.
    place
        .open(OFlags::RDWR)
        .or_else(|_| place.open(OFlags::RDONLY))
        .or_else(|_| place.open(OFlags::WRONLY))
}

fn is_still_at(stat: &Stat, place: &Place) -> Result<bool, Errno> {
    let now = place.stat()?.ok_or(Errno::NOENT)?;
    Ok((now.st_dev, now.st_ino) == (stat.st_dev, stat.st_ino))
}

fn has_no_locks(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS))
}

/// A file beside the target, removed unless it took the target's place.
struct Temporary<'a> {
    file: File,
    name: String,
    place: &'a Place,
}

impl<'a> Temporary<'a> {
    fn create(place: &'a Place, existing: Option<&Existing>) -> Result<Temporary<'a>, Errno> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        // What may become secret starts so; a new file gets what the user's umask leaves.
        let mode = Mode::from_raw_mode(if existing.is_some() { 0o600 } else { 0o666 });
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!(".ikigai-{}-{number}.tmp", std::process::id());
            match place.create_beside(&name, mode) {
                // Left behind by a process that was killed and had the same number.
                Err(Errno::EXIST) => continue,
                file => return Ok(Temporary { file: file?, name, place }),
            }
        }
    }

    fn take_over(self) -> Result<(), Errno> {
        self.place.take_over(&self.name)
        // The drop below finds nothing to remove any more.
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        let _ = self.place.remove_beside(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::Target;
    use crate::file_error::FileError;
    use crate::place::Place;

    fn lock(path: &Path) -> Target {
        Target::lock(Place::anywhere(path).unwrap()).unwrap()
    }

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
        let target = lock(&path);
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
        let replaced = lock(&path).replace(|output| {
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
        let mut target = lock(&folder.path().join("a/b/file"));
        drop(target.create_folders().unwrap());
        assert_eq!(names(folder.path()), Vec::<String>::new());
        let mut target = lock(&folder.path().join("a/b/file"));
        target.create_folders().unwrap().keep();
        assert!(folder.path().join("a/b").is_dir());
    }
}
