//! Looking again at the files that a walk has found.
//!
//! The walker goes by paths: a folder that is swapped for a link just then leads it out of the tree. So what
//! it brings back is only believed when it is found once more from the open folders of the tree, and it is
//! read from there.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::context::Context;
use crate::file_error::FileError;
use crate::files::{open_anywhere, open_at, require_regular};
use crate::place::Place;
use crate::tree::Tree;

/// One thread's way to the files of a walk.
pub(crate) struct Revisit<'a> {
    /// `None` when the walk may go anywhere, and its paths are good as they are.
    tree: Option<&'a Tree>,
    /// The folder of the last file: the next one is mostly in it too.
    last: Option<(PathBuf, Arc<OwnedFd>)>,
}

impl<'a> Revisit<'a> {
    pub(crate) fn new(context: &'a Context) -> Revisit<'a> {
        Revisit { tree: context.tree(), last: None }
    }

    /// Whether there is a file at `path`.
    pub(crate) fn has(&mut self, path: &Path) -> bool {
        let Some(tree) = self.tree else {
            return true;
        };
        let stat = self.place(tree, path).ok().and_then(|place| place.stat().ok()?);
        stat.is_some_and(|stat| require_regular(&stat).is_ok())
    }

    /// Opens the file at `path`.
    pub(crate) fn open(&mut self, path: &Path) -> Result<File, FileError> {
        let (file, _) = match self.tree {
            Some(tree) => open_at(&self.place(tree, path)?)?,
            None => open_anywhere(path)?,
        };
        Ok(file)
    }

    fn place(&mut self, tree: &Tree, path: &Path) -> Result<Place, FileError> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(FileError::IsDirectory);
        };
        if tree.hides(path) {
            return Err(FileError::Hidden);
        }
        let folder = match &self.last {
            Some((last, folder)) if last == parent => Arc::clone(folder),
            _ => {
                let folder = tree.folder(parent)?;
                self.last = Some((parent.to_owned(), Arc::clone(&folder)));
                folder
            }
        };
        Ok(Place::new(folder, Vec::new(), name.to_owned()))
    }
}
