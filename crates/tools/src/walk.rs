//! Walking a folder as ripgrep does: in parallel, without what is ignored or hidden.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;

use ignore::{DirEntry, WalkBuilder, WalkState};

use crate::context::Context;
use crate::file_error::FileError;
use crate::lines::SortedFindings;

/// Where a walk starts, and how the paths it finds are shown.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) path: PathBuf,
    /// `path` relative to the working directory, with a trailing slash; empty for that directory itself.
    /// Absolute when it lies elsewhere and was given so.
    shown: Vec<u8>,
}

impl Start {
    /// The working directory, or the folder or file that a model named.
    pub(crate) fn new(context: &Context, path: Option<&str>) -> Start {
        let Some(path) = path else {
            return Start { path: context.directory().to_owned(), shown: Vec::new() };
        };
        let resolved = context.resolve(path);
        let relative = resolved.strip_prefix(context.directory()).unwrap_or(&resolved);
        let tidy: PathBuf = relative.components().filter(|c| *c != Component::CurDir).collect();
        let mut shown = tidy.into_os_string().into_encoded_bytes();
        if !shown.is_empty() && !shown.ends_with(b"/") {
            shown.push(b'/');
        }
        Start { path: resolved, shown }
    }

    /// How a file beneath the start is shown.
    pub(crate) fn show(&self, relative: &Path) -> Vec<u8> {
        let mut shown = self.shown.clone();
        match relative.as_os_str().as_bytes() {
            // The start is a file itself.
            [] => drop(shown.pop()),
            relative => shown.extend_from_slice(relative),
        }
        shown
    }

    /// A walk passes over folders that it cannot read, but not over the one it starts from.
    pub(crate) fn require_directory(&self, context: &Context) -> Result<(), FileError> {
        match context.is_folder(&self.path)? {
            true => Ok(()),
            false => Err(FileError::NotDirectory),
        }
    }
}

/// Which part of the tree a walk enters.
pub(crate) struct Extent {
    /// Names of folders that lead to everything wanted: others beside them are not entered.
    pub(crate) prefix: Vec<Vec<u8>>,
    /// How many levels down files are wanted; `None` for all.
    pub(crate) depth: Option<usize>,
}

impl Extent {
    pub(crate) const ALL: Extent = Extent { prefix: Vec::new(), depth: None };

    fn enters(&self, entry: &DirEntry) -> bool {
        let level = entry.depth();
        level == 0
            || self
                .prefix
                .get(level - 1)
                .is_none_or(|name| OsStr::from_bytes(name) == entry.file_name())
    }
}

/// Calls what `visitor` makes (once per thread) for every regular file, with its path and the part of it
/// beneath the start, and brings the findings together.
///
/// Which files are ignored is read by paths too. Whoever makes an ignore file a link to one outside learns
/// no more than whether a line of that file is the name of a file inside.
pub(crate) fn walk<V>(
    context: &Context,
    start: &Start,
    extent: Extent,
    visitor: impl Fn() -> V + Sync,
) -> Result<SortedFindings, FileError>
where
    V: FnMut(&Path, &Path, &mut SortedFindings) + Send,
{
    let from = context.to_walk(&start.path)?;
    let all = Mutex::new(SortedFindings::new(context.output_size));
    let walker = WalkBuilder::new(&from)
        .require_git(false)
        // The user's own ignore file of git: with it the same tree would give other results for other
        // people.
        .git_global(false)
        .max_depth(extent.depth)
        .filter_entry(move |entry| extent.enters(entry))
        .build_parallel();
    let from = &from;
    walker.run(|| {
        let mut visit = visitor();
        let mut found = Worker { all: &all, own: SortedFindings::new(context.output_size) };
        Box::new(move |entry| {
            if context.is_interrupted() {
                return WalkState::Quit;
            }
            // A folder that cannot be read or a file that vanished is passed over, as ripgrep does.
            if let Ok(entry) = entry
                && entry.file_type().is_some_and(|kind| kind.is_file())
            {
                let relative = entry.path().strip_prefix(from).unwrap_or(entry.path());
                visit(entry.path(), relative, &mut found.own);
            }
            WalkState::Continue
        })
    });
    Ok(all.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// The findings of one thread, handed over when the thread ends.
struct Worker<'a> {
    all: &'a Mutex<SortedFindings>,
    own: SortedFindings,
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        let empty = SortedFindings::new(self.own.size());
        let own = std::mem::replace(&mut self.own, empty);
        self.all.lock().unwrap_or_else(std::sync::PoisonError::into_inner).merge(own);
    }
}
