//! A file after a write: the result for the model, and what is recorded about it.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;

use crate::context::Context;
use crate::diff::{COMPARED_BYTES, stored_diff};
use crate::file_error::FileError;
use crate::file_use::{Before, Change, FileUse};
use crate::place::Place;
use crate::replace::{Exchange, Keep, Replacement, Target};
use crate::result::{Execution, ToolResult};

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

    /// A success, unless it may not survive a crash of the machine. The change was made in any case. `after` makes what
    /// the file holds now of what it held before.
    pub(crate) fn execution<'a>(
        self,
        context: &Context,
        named: &str,
        success: ToolResult,
        after: impl FnOnce(&[u8]) -> Option<Cow<'a, [u8]>>,
    ) -> Execution {
        let WrittenFile { path, replaced, new_folders } = self;
        let path = path.or_else(|_| context.resolve(named).canonicalize());
        let before = replaced.exchange.as_ref().and_then(|exchange| match &exchange.before {
            Before::Absent => Some(&[][..]),
            Before::Content(content) => Some(&content.bytes[..]),
            Before::NotKept => None,
        });
        let before = before.filter(|before| before.len() <= COMPARED_BYTES);
        let diff = before.and_then(|before| stored_diff(named, before, &after(before)?));
        let result = match replaced.flushed {
            Ok(()) => success.with_diff(diff),
            Err(error) => {
                let failure = ToolResult::failure(&FileError::NotFlushed(error).describe(named));
                failure.with_diff(diff)
            }
        };
        let file = replaced.exchange.zip(path.ok()).map(|(exchange, path)| {
            let Exchange { before, looks, hash } = exchange;
            FileUse::Changed(Change { path, before, looks, hash, new_folders })
        });
        Execution { file, ..result.into() }
    }
}
