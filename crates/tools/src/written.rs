//! A file that was written: what the model is told, and what is kept of it.

use std::io;
use std::path::PathBuf;

use crate::context::Context;
use crate::file_error::FileError;
use crate::replace::{Exchanged, Replaced};
use crate::result::{Achieved, Outcome};
use crate::touched::{Change, Touched};

/// A file with its new content.
pub(crate) struct Written {
    /// Where it is, if the system says so.
    pub(crate) path: io::Result<PathBuf>,
    pub(crate) replaced: Replaced,
    /// How many folders were made right above it.
    pub(crate) new_folders: u32,
}

impl Written {
    /// A success, unless it may not survive a crash of the machine. The change was made in any case.
    pub(crate) fn achieved(self, context: &Context, named: &str, success: Outcome) -> Achieved {
        let Written { path, replaced, new_folders } = self;
        let path = path.or_else(|_| context.resolve(named).canonicalize());
        let touched = replaced.exchanged.zip(path.ok()).map(|(exchanged, path)| {
            let Exchanged { before, looks, hash } = exchanged;
            Touched::Changed(Change { path, before, looks, hash, new_folders })
        });
        let outcome = match replaced.flushed {
            Ok(()) => success,
            Err(error) => Outcome::Failure(FileError::NotFlushed(error).describe(named)),
        };
        Achieved { outcome, touched }
    }
}
