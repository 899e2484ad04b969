//! The temporary file of a write, and how it takes the place of the target.

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Mode, fstat};
use rustix::io::Errno;

use super::{Existing, file_id};
use crate::file_error::FileError;
use crate::place::Place;

/// A name that no other write of this process uses.
pub(super) fn temporary_name() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!(".ikigai-{}-{number}.tmp", std::process::id())
}

/// A file next to the target, removed unless it has replaced the target.
pub(super) struct Temporary<'a> {
    pub(super) file: File,
    name: String,
    place: &'a Place,
    /// It holds a foreign file that could not be put back and must not be removed.
    is_foreign: bool,
}

impl<'a> Temporary<'a> {
    pub(super) fn create(
        place: &'a Place,
        existing: Option<&Existing>,
    ) -> Result<Temporary<'a>, Errno> {
        // The content may be secret, so start private; a new file follows the umask.
        let mode = Mode::from_raw_mode(if existing.is_some() { 0o600 } else { 0o666 });
        loop {
            let name = temporary_name();
            match place.create_beside(&name, mode) {
                // Left behind by a killed process with the same number.
                Err(Errno::EXIST) => continue,
                file => return Ok(Temporary { file: file?, name, place, is_foreign: false }),
            }
        }
    }

    /// Takes the place of the target. The old file is gone, except for processes that have it open.
    pub(super) fn take_over(self, existing: Option<&Existing>) -> Result<(), FileError> {
        match existing {
            Some(existing) => self.exchange(existing),
            None => match self.place.take_free(&self.name) {
                Err(Errno::EXIST) => Err(FileError::ChangedMeanwhile),
                taken => Ok(taken?),
            },
        }
        // Dropping `self` removes the old file, if it is here now.
    }

    /// Swaps with the target, if that is still the same file.
    fn exchange(mut self, existing: &Existing) -> Result<(), FileError> {
        match self.place.exchange(&self.name) {
            Ok(()) => {}
            // Not supported by the file system: the check just before must suffice.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                return Ok(self.place.take_over(&self.name)?);
            }
            Err(Errno::NOENT) => return Err(FileError::ChangedMeanwhile),
            Err(error) => return Err(error.into()),
        }
        match self.place.stat_beside(&self.name) {
            Ok(replaced) if existing.is(&replaced) => Ok(()),
            _ => {
                self.is_foreign = self.put_back().is_err();
                Err(FileError::ChangedMeanwhile)
            }
        }
    }

    /// Puts back a file that another program placed here just before the swap. It may do so again:
    /// then the latest of its files stays, as it would without us.
    fn put_back(&self) -> Result<(), Errno> {
        let ours = file_id(&fstat(&self.file)?);
        loop {
            let theirs = file_id(&self.place.stat_beside(&self.name)?);
            match self.place.exchange(&self.name) {
                // Removed meanwhile, and ours with it.
                Err(Errno::NOENT) => return self.place.take_free(&self.name),
                exchange => exchange?,
            }
            if file_id(&self.place.stat_beside(&self.name)?) == ours {
                return Ok(());
            }
            // We now hold a newer file of theirs, which must go back instead.
            self.place.exchange(&self.name)?;
            if file_id(&self.place.stat_beside(&self.name)?) == theirs {
                return Ok(());
            }
        }
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.is_foreign {
            let _ = self.place.remove_beside(&self.name);
        }
    }
}
