//! Replaces a file so that it has its old or new content at every moment, and no concurrent change
//! is lost.
//!
//! The new content is written to a temporary file next to the target, flushed, and renamed over it;
//! then the folder is flushed. Meanwhile a lock on the old file keeps out other agents and
//! processes of ikigai. Programs that ignore the lock are detected. Where the system supports it,
//! the two files are swapped atomically, so the replaced one can be checked and put back. A new
//! file is only created if there still is none.
//!
//! Owner and mode of an existing file are kept, and a symbolic link stays a link. Other hard links,
//! access lists and extended attributes are lost: that is the price of the rename.

mod temporary;

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, fchown};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, Stat, fstat};
use rustix::io::Errno;

use temporary::{Temporary, temporary_name};

use crate::file_error::FileError;
use crate::file_use::{Before, Content, KEPT_BYTES};
use crate::files::require_regular;
use crate::looks::{ContentHash, Fingerprint, Hasher, Hashing};
use crate::place::{NewFolders, Place};

/// The target of a write, locked if it exists.
pub(crate) struct Target {
    place: Place,
    existing: Option<Existing>,
}

/// An existing target. It is locked as long as `file` is open.
struct Existing {
    file: File,
    metadata: Metadata,
    stat: Stat,
}

/// Whether the replaced content is needed later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    Nothing,
    Content,
}

/// A completed replacement.
pub(crate) struct Replacement {
    /// `None` if it was not asked for.
    pub(crate) exchange: Option<Exchange>,
    /// Whether it survives a system crash.
    pub(crate) flushed: io::Result<()>,
}

/// The old and the new content.
pub(crate) struct Exchange {
    pub(crate) before: Before,
    /// The fingerprint of the new file.
    pub(crate) looks: Fingerprint,
    pub(crate) hash: ContentHash,
}

impl Target {
    /// Locks the file at `place`, which need not exist.
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

    /// The current file, for reading; `None` if there is none.
    pub(crate) fn existing(&mut self) -> Option<&mut File> {
        self.existing.as_mut().map(|existing| &mut existing.file)
    }

    /// The fingerprint of the current file; `None` if there is none.
    pub(crate) fn looks(&self) -> Option<Fingerprint> {
        self.existing.as_ref().map(|existing| Fingerprint::of(&existing.stat))
    }

    /// The hash of the current content; `None` if there is no file.
    pub(crate) fn hash(&self) -> io::Result<Option<ContentHash>> {
        self.existing.as_ref().map(|existing| hash_of(&existing.file)).transpose()
    }

    /// The current content; one that is too large is not kept.
    pub(crate) fn content(&self) -> Before {
        self.existing.as_ref().map_or(Before::Absent, Existing::content)
    }

    /// The absolute path of the target, without links.
    pub(crate) fn real_path(&self) -> io::Result<PathBuf> {
        self.place.real_path()
    }

    /// Creates missing folders above the target. They are removed again unless `keep` is called.
    pub(crate) fn create_folders(&mut self) -> Result<NewFolders, FileError> {
        self.place.create_folders()
    }

    /// Replaces the content with what `write` produces. On failure the target is unchanged.
    pub(crate) fn replace(
        &self,
        keep: Keep,
        write: impl FnOnce(&mut dyn Write) -> Result<(), FileError>,
    ) -> Result<Replacement, FileError> {
        self.replace_with_mode(keep, None, write)
    }

    /// The same; a new file gets these permissions.
    pub(crate) fn replace_with_mode(
        &self,
        keep: Keep,
        mode: Option<u32>,
        write: impl FnOnce(&mut dyn Write) -> Result<(), FileError>,
    ) -> Result<Replacement, FileError> {
        let temporary = Temporary::create(&self.place, self.existing.as_ref())?;
        let hash = match keep {
            Keep::Nothing => {
                write(&mut &temporary.file)?;
                None
            }
            Keep::Content => {
                let mut output = Hashing::new(&temporary.file);
                write(&mut output)?;
                Some(output.hasher.finish())
            }
        };
        match (&self.existing, mode) {
            (Some(existing), _) => existing.keep_owner_and_mode(&temporary.file)?,
            (None, Some(mode)) => {
                temporary.file.set_permissions(Permissions::from_mode(mode & 0o7777))?;
            }
            (None, None) => {}
        }
        temporary.file.sync_all()?;
        let looks = Fingerprint::of(&fstat(&temporary.file)?);
        self.require_unchanged()?;
        temporary.take_over(self.existing.as_ref())?;
        // The replaced file is the one that is open here, so this is its final content.
        let exchange = hash.map(|hash| Exchange { before: self.content(), looks, hash });
        Ok(Replacement { exchange, flushed: self.place.flush_folder() })
    }

    /// Removes the file. Returns whether that survives a system crash.
    pub(crate) fn remove(&self) -> Result<io::Result<()>, FileError> {
        self.require_unchanged()?;
        let Some(existing) = &self.existing else {
            return Ok(Ok(()));
        };
        // Moved aside first, so that it can be put back if it turns out to be another file.
        let aside = temporary_name();
        match self.place.move_aside(&aside) {
            Ok(()) => {}
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                self.place.remove()?;
                return Ok(self.place.flush_folder());
            }
            Err(error) => return Err(error.into()),
        }
        if !self.place.stat_beside(&aside).is_ok_and(|moved| existing.is(&moved)) {
            self.place.take_free(&aside)?;
            return Err(FileError::ChangedMeanwhile);
        }
        self.place.remove_beside(&aside)?;
        Ok(self.place.flush_folder())
    }

    /// Programs that ignore our lock may have changed the file since the last check.
    fn require_unchanged(&self) -> Result<(), FileError> {
        let Some(existing) = &self.existing else {
            return Ok(());
        };
        match self.place.stat() {
            Ok(Some(now)) if existing.is(&now) => Ok(()),
            _ => Err(FileError::ChangedMeanwhile),
        }
    }
}

impl Existing {
    /// Whether this is the file, unchanged.
    fn is(&self, stat: &Stat) -> bool {
        Fingerprint::of(stat) == Fingerprint::of(&self.stat)
    }

    fn content(&self) -> Before {
        let mode = self.metadata.mode() & 0o7777;
        match read_up_to(&self.file, KEPT_BYTES) {
            Ok(Some(bytes)) => Before::Content(Content { bytes, mode }),
            Ok(None) | Err(_) => Before::NotKept,
        }
    }

    fn keep_owner_and_mode(&self, file: &File) -> io::Result<()> {
        let own = file.metadata()?;
        let (uid, gid) = (self.metadata.uid(), self.metadata.gid());
        if (own.uid(), own.gid()) != (uid, gid) {
            // Only root may change the owner; other users become the owner, as with any editor.
            let _ = fchown(file, Some(uid), Some(gid));
        }
        file.set_permissions(Permissions::from_mode(self.metadata.mode() & 0o7777))
    }
}

/// Reads a whole file; `None` if it is longer than `limit`.
pub(crate) fn read_up_to(file: &File, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    each_chunk(file, |chunk| {
        bytes.extend_from_slice(chunk);
        bytes.len() as u64 <= limit
    })?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

fn hash_of(file: &File) -> io::Result<ContentHash> {
    let mut hasher = Hasher::new();
    each_chunk(file, |chunk| {
        hasher.push(chunk);
        true
    })?;
    Ok(hasher.finish())
}

/// Reads from the start, whatever the position of the file is, until `visit` returns false.
fn each_chunk(file: &File, mut visit: impl FnMut(&[u8]) -> bool) -> io::Result<()> {
    let mut chunk = vec![0; 64 * 1024];
    let mut position = 0;
    loop {
        match file.read_at(&mut chunk, position) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                position += count as u64;
                if !visit(&chunk[..count]) {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits for the lock on an existing file.
fn lock_existing(place: &Place) -> Result<Existing, FileError> {
    /// A write takes milliseconds, so a lock held longer is not one of ours.
    const PATIENCE: Duration = Duration::from_secs(10);
    let started = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        let file = open_to_lock(place)?;
        let stat = fstat(&file)?;
        require_regular(&stat)?;
        match file.try_lock() {
            // The previous holder of the lock has replaced the file.
            Ok(()) if !is_still_at(&stat, place)? => continue,
            Ok(()) => return existing(file),
            Err(fs::TryLockError::WouldBlock) if started.elapsed() > PATIENCE => {
                return Err(FileError::Locked);
            }
            Err(fs::TryLockError::WouldBlock) => {
                // This thread may block. Polled, since a blocking lock has no timeout.
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(5));
            }
            // Some network file systems have no locks; there the check before the rename must
            // suffice.
            Err(fs::TryLockError::Error(error)) if has_no_locks(&error) => return existing(file),
            Err(fs::TryLockError::Error(error)) => return Err(error.into()),
        }
    }
}

fn existing(file: File) -> Result<Existing, FileError> {
    Ok(Existing { metadata: file.metadata()?, stat: fstat(&file)?, file })
}

fn open_to_lock(place: &Place) -> Result<File, Errno> {
    // Network file systems only lock files that are open for writing, a running program cannot be
    // opened for that, and an unreadable file not for reading.
    place
        .open(OFlags::RDWR)
        .or_else(|_| place.open(OFlags::RDONLY))
        .or_else(|_| place.open(OFlags::WRONLY))
}

fn is_still_at(stat: &Stat, place: &Place) -> Result<bool, Errno> {
    Ok(file_id(&place.stat()?.ok_or(Errno::NOENT)?) == file_id(stat))
}

fn has_no_locks(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS))
}

/// The identity of a file, whatever its content is.
fn file_id(stat: &Stat) -> impl PartialEq + use<> {
    (stat.st_dev, stat.st_ino)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{Keep, Target};
    use crate::file_error::FileError;
    use crate::place::Place;

    fn lock(path: &Path) -> Target {
        Target::lock(Place::anywhere(path).unwrap()).unwrap()
    }

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).collect()
    }

    /// Another program that ignores our lock runs `meddle` between our check and the rename.
    #[track_caller]
    fn check(meddle: impl FnOnce(&Path), after: Option<&str>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "old").unwrap();
        let target = lock(&path);
        let replaced = target.replace(Keep::Content, |output| {
            output.write_all(b"new")?;
            meddle(&path);
            Ok(())
        });
        let error = replaced.err().expect("it was changed");
        assert!(matches!(error, FileError::ChangedMeanwhile), "{error:?}");
        assert_eq!(fs::read_to_string(&path).ok().as_deref(), after);
        let left: &[&str] = if after.is_some() { &["file"] } else { &[] };
        assert_eq!(names(folder.path()), left);
    }

    #[test]
    fn a_concurrent_change_by_another_program_is_kept() {
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
        let replaced = lock(&path).replace(Keep::Content, |output| {
            output.write_all(b"half of the new")?;
            Err(FileError::NotText)
        });
        assert!(matches!(replaced, Err(FileError::NotText)));
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[test]
    fn new_folders_are_removed_unless_they_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut target = lock(&folder.path().join("a/b/file"));
        drop(target.create_folders().unwrap());
        assert_eq!(names(folder.path()), Vec::<String>::new());
        let mut target = lock(&folder.path().join("a/b/file"));
        target.create_folders().unwrap().keep();
        assert!(folder.path().join("a/b").is_dir());
    }
}
