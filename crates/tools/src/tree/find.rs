//! Resolves a path inside the roots manually, one component at a time.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::readlinkat;
use rustix::io::Errno;

use super::{FoundPath, Root};
use crate::file_error::FileError;
use crate::place::{LONGEST_CHAIN, Links, Place, is_link, open_folder};

/// Locates a file. Neither the file nor its parent folders need to exist.
pub(super) fn file(roots: &[Root], path: &Path) -> Result<FoundPath, FileError> {
    let mut search = Search::new(roots, path);
    while let Some(step) = search.ahead.pop() {
        match search.take(&step)? {
            StepOutcome::Moved => {}
            StepOutcome::Missing(name) => return search.missing(name),
            StepOutcome::Last(name) => return search.found(Vec::new(), name),
        }
    }
    // The path ended in a folder, through `..` or a link.
    search.folder()?;
    Err(FileError::IsDirectory)
}

/// Locates a folder.
pub(super) fn folder(roots: &[Root], path: &Path) -> Result<(Arc<OwnedFd>, PathBuf), FileError> {
    if path.as_os_str().as_bytes().contains(&0) {
        return Err(Errno::NOENT.into());
    }
    let mut search = Search::new(roots, path);
    // With this component at the end, no name is the last one, so each must be a folder.
    search.ahead.insert(0, PathStep::Here);
    while let Some(step) = search.ahead.pop() {
        let taken = search.take(&step).map_err(|error| match search.ahead.len() {
            0 | 1 => error.of_a_folder(),
            // Nothing can be inside a file.
            _ => error,
        });
        match taken? {
            StepOutcome::Moved => {}
            StepOutcome::Missing(_) => return Err(Errno::NOENT.into()),
            StepOutcome::Last(_) => return Err(FileError::NotDirectory),
        }
    }
    let folder = Arc::clone(search.folder()?);
    Ok((folder, search.root_path().join(search.inside())))
}

struct Search<'a> {
    roots: &'a [Root],
    at: Position<'a>,
    /// The remaining components, the next one last.
    ahead: Vec<PathStep>,
    links: usize,
}

/// The current position of a search.
enum Position<'a> {
    /// A parent folder of a root. Its path contains no links, so its `..` is known.
    Above(PathBuf),
    /// Inside a root, with all entered folders held open for the way back.
    Within { root: &'a Root, inside: Vec<(OsString, Arc<OwnedFd>)> },
}

enum PathStep {
    Here,
    Up,
    Name(OsString),
}

enum StepOutcome {
    Moved,
    /// The last component of the path, not a link.
    Last(OsString),
    /// No folder with this name exists.
    Missing(OsString),
}

impl<'a> Search<'a> {
    fn new(roots: &'a [Root], path: &Path) -> Search<'a> {
        let mut search =
            Search { roots, at: Position::Above(PathBuf::new()), ahead: Vec::new(), links: 0 };
        search.follow(path);
        search
    }

    /// Prepends `path` to the remaining components. An absolute one restarts at the top.
    fn follow(&mut self, path: &Path) {
        if !path.is_absolute() {
            self.ahead.extend(steps(path).into_iter().rev());
            return;
        }
        let named = self.roots.iter().find_map(|root| {
            let inside = path.strip_prefix(&root.named).ok()?;
            Some(root.path.join(inside))
        });
        self.ahead.extend(steps(named.as_deref().unwrap_or(path)).into_iter().rev());
        self.stand_above(PathBuf::from("/"));
    }

    /// Moves to a folder whose path contains no links, and which is a root or contains one.
    fn stand_above(&mut self, path: PathBuf) {
        let root = self.roots.iter().find(|root| root.path == path);
        self.at = match root {
            Some(root) => Position::Within { root, inside: Vec::new() },
            None => Position::Above(path),
        };
    }

    fn take(&mut self, step: &PathStep) -> Result<StepOutcome, FileError> {
        match step {
            PathStep::Here => Ok(StepOutcome::Moved),
            PathStep::Up => {
                self.go_up();
                Ok(StepOutcome::Moved)
            }
            PathStep::Name(name) => match &self.at {
                Position::Above(path) => self.go_down(path.join(name)),
                Position::Within { .. } if self.ahead.is_empty() => self.take_last(name),
                Position::Within { .. } => self.enter(name),
            },
        }
    }

    fn go_up(&mut self) {
        let above = match &mut self.at {
            Position::Within { root, inside } => match inside.pop() {
                Some(_) => return,
                None => root.path.parent().unwrap_or(Path::new("/")).to_owned(),
            },
            Position::Above(path) => path.parent().unwrap_or(Path::new("/")).to_owned(),
        };
        // From the top, since this folder may be in another root.
        self.ahead.extend(steps(&above).into_iter().rev());
        self.stand_above(PathBuf::from("/"));
    }

    /// A component outside the roots, which must lead towards one of them.
    fn go_down(&mut self, path: PathBuf) -> Result<StepOutcome, FileError> {
        if !self.roots.iter().any(|root| root.path.starts_with(&path)) {
            return Err(FileError::Outside);
        }
        self.stand_above(path);
        Ok(StepOutcome::Moved)
    }

    fn enter(&mut self, name: &OsStr) -> Result<StepOutcome, FileError> {
        match open_folder(self.folder()?, Path::new(name), Links::Refuse) {
            Ok(folder) => {
                if let Position::Within { inside, .. } = &mut self.at {
                    inside.push((name.to_owned(), Arc::new(folder)));
                }
                Ok(StepOutcome::Moved)
            }
            Err(Errno::NOENT) => Ok(StepOutcome::Missing(name.to_owned())),
            // Systems report a link with one of these errors.
            Err(Errno::NOTDIR | Errno::LOOP | Errno::MLINK) => self.follow_link(name),
            Err(error) => Err(error.into()),
        }
    }

    fn take_last(&mut self, name: &OsStr) -> Result<StepOutcome, FileError> {
        let here = Place::new(Arc::clone(self.folder()?), Vec::new(), name.to_owned());
        match here.stat()? {
            Some(stat) if is_link(&stat) => self.follow_link(name),
            _ => Ok(StepOutcome::Last(name.to_owned())),
        }
    }

    fn follow_link(&mut self, name: &OsStr) -> Result<StepOutcome, FileError> {
        self.links += 1;
        if self.links > LONGEST_CHAIN {
            return Err(Errno::LOOP.into());
        }
        let link = match readlinkat(self.folder()?, name, Vec::new()) {
            // It is not a link.
            Err(Errno::INVAL) => return Err(Errno::NOTDIR.into()),
            link => link?,
        };
        self.follow(Path::new(OsStr::from_bytes(link.as_bytes())));
        Ok(StepOutcome::Moved)
    }

    fn folder(&self) -> Result<&Arc<OwnedFd>, FileError> {
        match &self.at {
            Position::Above(_) => Err(FileError::Outside),
            Position::Within { root, inside } => {
                Ok(inside.last().map_or(&root.folder, |(_, folder)| folder))
            }
        }
    }

    /// Locates a file in missing folders, of which `first` is the outermost.
    fn missing(mut self, first: OsString) -> Result<FoundPath, FileError> {
        let mut missing = vec![first];
        while let Some(step) = self.ahead.pop() {
            match step {
                PathStep::Here => {}
                // A folder created later could be a link.
                PathStep::Up => return Err(Errno::NOENT.into()),
                PathStep::Name(name) => missing.push(name),
            }
        }
        let name = missing.pop().ok_or(Errno::NOENT)?;
        self.found(missing, name)
    }

    fn found(&self, missing: Vec<OsString>, name: OsString) -> Result<FoundPath, FileError> {
        let folder = Arc::clone(self.folder()?);
        let mut inside = self.inside();
        inside.extend(&missing);
        inside.push(&name);
        let root = self.root_path().to_owned();
        Ok(FoundPath { place: Place::new(folder, missing, name), root, inside })
    }

    fn root_path(&self) -> &Path {
        match &self.at {
            Position::Above(path) => path,
            Position::Within { root, .. } => &root.path,
        }
    }

    /// The folders entered inside the root.
    fn inside(&self) -> PathBuf {
        match &self.at {
            Position::Above(_) => PathBuf::new(),
            Position::Within { inside, .. } => inside.iter().map(|(name, _)| name).collect(),
        }
    }
}

fn steps(path: &Path) -> Vec<PathStep> {
    let step = |component| match component {
        Component::Prefix(_) | Component::RootDir | Component::CurDir => PathStep::Here,
        Component::ParentDir => PathStep::Up,
        Component::Normal(name) => PathStep::Name(name.to_owned()),
    };
    path.components().map(step).collect()
}
