//! A file after a write: the result for the model, and what is recorded about it.

use std::io;
use std::path::PathBuf;

use crate::context::Context;
use crate::file_error::FileError;
use crate::place::Place;
use crate::replace::{Exchange, Keep, Replacement, Target};
use crate::result::{Achieved, Outcome};
use crate::touched::{Before, Change, Touched};

/// A file with its new content.
pub(crate) struct WrittenFile {
    /// Its path, if the system reports it.
    pub(crate) path: io::Result<PathBuf>,
    pub(crate) replaced: Replacement,
    /// How many folders directly above it were created.
    pub(crate) new_folders: u32,
}

impl WrittenFile {
    /// Reverts the write if the file has become one of git's settings meanwhile.
    pub(crate) fn unless_guarded(self, context: &Context) -> Result<WrittenFile, FileError> {
        let Some(path) = self.path.as_ref().ok().filter(|path| context.has_become_guarded(path))
        else {
            return Ok(self);
        };
        let target = Target::lock(Place::without_links(path)?)?;
        let before = self.replaced.exchange.map(|exchange| exchange.before);
        let reverted = match before {
            Some(Before::Content(content)) => target
                .replace(Keep::Nothing, |file| Ok(file.write_all(&content.bytes)?))
                .map(|replaced| replaced.flushed)?,
            Some(Before::Absent | Before::NotKept) | None => target.remove()?,
        };
        reverted?;
        Err(FileError::Guarded)
    }

    /// A success, unless the write may not survive a system crash. The change was made in either
    /// case.
    pub(crate) fn achieved(self, context: &Context, named: &str, success: Outcome) -> Achieved {
        let WrittenFile { path, replaced, new_folders } = self;
        let path = path.or_else(|_| context.resolve(named).canonicalize());
        let touched = replaced.exchange.zip(path.ok()).map(|(exchange, path)| {
            let Exchange { before, looks, hash } = exchange;
            Touched::Changed(Change { path, before, looks, hash, new_folders })
        });
        let outcome = match replaced.flushed {
            Ok(()) => success,
            Err(error) => Outcome::Failure(FileError::NotFlushed(error).describe(named)),
        };
        Achieved { outcome, touched }
    }
}
