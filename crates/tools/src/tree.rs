//! The working tree: the folders that file tools are confined to, safe against races.
//!
//! Its roots (the working directory, folders that the user added, the session's temporary folder)
//! are opened once. From then on, every path is followed from one of these open folders, one
//! component at a time, or by the kernel with `RESOLVE_BENEATH`. Links are read and their targets
//! resolved by the same rules. `..` returns to a folder that is held open, and is never passed to
//! the kernel. So it does not matter what is replaced meanwhile: everything found was reached
//! inside.
//!
//! Hidden paths in the tree (keys in a home directory, a database) are not entered either. Commands
//! cannot see them, and write access to ikigai's own settings there would bypass the rules.
//!
//! Links that stay inside work, including absolute ones and those between roots. What is outside is
//! not inspected, so error messages do not reveal whether it exists.
//!
//! # Not covered
//!
//! - A hard link to a file outside is that file: its names are indistinguishable. Creating one requires
//!   access to the file. Writing replaces the name inside, and the other one keeps its content.
//! - If a folder in use is moved out of the tree, a write in progress goes with it. Moving it requires
//!   write access to the destination.
//! - A mount inside the tree counts as inside.

mod find;

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::fs::CWD;

use crate::file_error::FileError;
use crate::gate::without_dots;
use crate::lock::lock;
use crate::place::{
    Links, Place, is_link, names_a_folder, open_folder, open_inside, real_path, real_paths,
};
use crate::protected::is_guarded_at;

/// The folders that file tools may use.
#[derive(Debug)]
pub struct Tree {
    roots: Vec<Root>,
    /// Paths inside that tools may not use: absolute, without links. Usually there are none.
    hidden: Vec<PathBuf>,
    /// Held while a path is checked and written: two concurrent writes could create a repository,
    /// which neither does alone.
    writing: Mutex<()>,
}

#[derive(Debug)]
struct Root {
    /// As it was named, for paths that start with it.
    named: PathBuf,
    /// Without links, as of opening.
    path: PathBuf,
    folder: Arc<OwnedFd>,
}

/// The target of a path.
pub(crate) struct FoundPath {
    pub(crate) place: Place,
    /// The path of its root.
    pub(crate) root: PathBuf,
    /// Relative to its root, without links.
    pub(crate) inside: PathBuf,
}

/// The target of a path, for callers that do not open it.
pub(crate) struct PathInfo {
    pub(crate) root: PathBuf,
    pub(crate) inside: PathBuf,
    pub(crate) is_hidden: bool,
}

impl Tree {
    /// Opens the folders, given as absolute paths.
    ///
    /// # Errors
    /// If a folder cannot be opened.
    pub fn open<P: AsRef<Path>>(roots: impl IntoIterator<Item = P>) -> io::Result<Tree> {
        let roots = roots.into_iter().map(|root| Root::open(root.as_ref()));
        Ok(Tree {
            roots: roots.collect::<io::Result<_>>()?,
            hidden: Vec::new(),
            writing: Mutex::default(),
        })
    }

    /// Hides absolute paths of files or folders, which need not exist. A root that is one of them,
    /// or inside one, was requested and stays.
    #[must_use]
    pub fn hiding(self, places: impl IntoIterator<Item = PathBuf>) -> Tree {
        let is_inside = |place: &PathBuf| {
            self.roots.iter().any(|root| place.starts_with(&root.path) && *place != root.path)
        };
        let hidden = real_paths(places).filter(is_inside).collect();
        Tree { hidden, ..self }
    }

    /// Whether an absolute path leads to a hidden path of this tree.
    pub fn is_hidden(&self, path: &Path) -> bool {
        real_path(path).is_some_and(|path| self.hides(&path))
    }

    /// The same for a path without links.
    pub(crate) fn hides(&self, path: &Path) -> bool {
        self.hidden.iter().filter(|place| path.starts_with(place)).any(|place| {
            let is_asked_for = |root: &Root| root.path.starts_with(place);
            !self.roots.iter().any(|root| is_asked_for(root) && path.starts_with(&root.path))
        })
    }

    fn require_seen(&self, path: &Path) -> Result<(), FileError> {
        match self.hides(path) {
            true => Err(FileError::Hidden),
            false => Ok(()),
        }
    }

    /// Locates an absolute `path`, following links one component at a time.
    pub(crate) fn find(&self, path: &Path) -> Result<FoundPath, FileError> {
        if names_a_folder(path) {
            return match self.find_folder(path) {
                Err(error @ (FileError::Outside | FileError::Hidden)) => Err(error),
                // Whether it exists or not.
                _ => Err(FileError::IsDirectory),
            };
        }
        let found = find::file(&self.roots, path)?;
        self.require_seen(&found.root.join(&found.inside))?;
        Ok(found)
    }

    /// Waits for the turn to check a path and write it.
    pub(crate) fn turn_to_write(&self) -> MutexGuard<'_, ()> {
        lock(&self.writing)
    }

    /// Whether a file is protected by its name, or by that of a link on the path to it. The links
    /// are the user's, and their targets are trusted as much.
    pub(crate) fn is_guarded_by_name(&self, path: &Path) -> bool {
        /// The kernel follows no more.
        const MOST_LINKS: usize = 40;
        let is_guarded = |path: &Path| {
            let inside = |root: &Root| {
                let inside =
                    path.strip_prefix(&root.path).or_else(|_| path.strip_prefix(&root.named));
                inside.is_ok_and(|inside| is_guarded_at(&root.path, inside))
            };
            self.roots.iter().any(inside)
        };
        let mut path = path.to_owned();
        for _ in 0..MOST_LINKS {
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
                return false;
            };
            let real = parent.canonicalize().unwrap_or_else(|_| parent.to_owned()).join(name);
            if is_guarded(&path) || is_guarded(&real) {
                return true;
            }
            let Ok(target) = real.read_link() else { return false };
            path = without_dots(&real.parent().unwrap_or(Path::new("/")).join(target));
        }
        true
    }

    /// Locates the file at an absolute `path`. Faster than [`find`](Tree::find) where the system
    /// helps.
    pub(crate) fn place(&self, path: &Path) -> Result<Place, FileError> {
        match self.place_at_once(path) {
            Some(place) => Ok(place),
            None => Ok(self.find(path)?.place),
        }
    }

    /// The folder at an absolute `path`, and its path without links.
    pub(crate) fn find_folder(&self, path: &Path) -> Result<(Arc<OwnedFd>, PathBuf), FileError> {
        let (folder, path) = find::folder(&self.roots, path)?;
        self.require_seen(&path)?;
        Ok((folder, path))
    }

    /// Locates the file or folder at an absolute `path` without opening it.
    pub(crate) fn look(&self, path: &Path) -> Result<PathInfo, FileError> {
        match find::file(&self.roots, path) {
            Ok(FoundPath { root, inside, .. }) => {
                let is_hidden = self.hides(&root.join(&inside));
                Ok(PathInfo { root, inside, is_hidden })
            }
            Err(FileError::IsDirectory) => {
                let (_, path) = find::folder(&self.roots, path)?;
                let root =
                    self.roots.iter().map(|root| &root.path).find(|root| path.starts_with(root));
                let root = root.cloned().unwrap_or_default();
                let inside = path.strip_prefix(&root).unwrap_or(&path).to_owned();
                Ok(PathInfo { root, inside, is_hidden: self.hides(&path) })
            }
            Err(error) => Err(error),
        }
    }

    /// Whether an absolute path without `..` starts with a root.
    pub(crate) fn names(&self, path: &Path) -> bool {
        let is_inside_root =
            |root: &Root| path.starts_with(&root.path) || path.starts_with(&root.named);
        self.roots.iter().any(is_inside_root)
    }

    fn place_at_once(&self, path: &Path) -> Option<Place> {
        if names_a_folder(path) {
            return None;
        }
        let folder = self.folder_at_once(path.parent()?)?;
        let place = Place::new(folder, Vec::new(), path.file_name()?.to_owned());
        let stat = place.stat().ok()??;
        (!is_link(&stat)).then_some(place)
    }

    fn folder_at_once(&self, path: &Path) -> Option<Arc<OwnedFd>> {
        // The kernel follows links and does not report the resulting path.
        if !self.hidden.is_empty() {
            return None;
        }
        let (root, inside) =
            self.roots.iter().find_map(|root| Some((root, path.strip_prefix(&root.path).ok()?)))?;
        match inside.as_os_str().is_empty() {
            true => Some(Arc::clone(&root.folder)),
            false => Some(Arc::new(open_inside(&root.folder, inside).ok()?)),
        }
    }
}

impl Root {
    fn open(named: &Path) -> io::Result<Root> {
        let path = named.canonicalize()?;
        let folder = Arc::new(open_folder(CWD, &path, Links::Follow)?);
        Ok(Root { named: named.to_owned(), path, folder })
    }
}
