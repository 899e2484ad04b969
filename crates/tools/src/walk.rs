//! Walks a folder as ripgrep does: in parallel, skipping ignored and hidden files.
//!
//! Each folder is opened relative to the start of the walk, without following links, and its files
//! relative to it. So replacing something with a link during the walk has no effect.

mod queue;
mod rules;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rustix::fs::{AtFlags, CWD, Dir, FileType, statat};

use crate::context::Context;
use crate::file_error::FileError;
use crate::files::open_at;
use crate::lines::SortedFindings;
use crate::lock::lock;
use crate::owners::Owners;
use crate::place::{Links, Place, open_folder, open_without_links};
use crate::tree::Tree;
use queue::Queue;
use rules::{IgnoreFiles, Present, RuleMatch, Rules};

/// Where a walk starts, and how its paths are displayed.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) path: PathBuf,
    /// `path` relative to the working directory, with a trailing slash; empty for that directory
    /// itself. Absolute if it is elsewhere and was given as such.
    shown: Vec<u8>,
}

impl Start {
    /// The working directory, or the path that a model named.
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

    /// The displayed path of a file under the start.
    pub(crate) fn show(&self, relative: &Path) -> Vec<u8> {
        let mut shown = self.shown.clone();
        match relative.as_os_str().as_bytes() {
            // The start itself is a file.
            [] => drop(shown.pop()),
            relative => shown.extend_from_slice(relative),
        }
        shown
    }

    /// A walk skips folders that it cannot read, but not the one it starts from.
    pub(crate) fn require_directory(&self, context: &Context) -> Result<(), FileError> {
        match context.is_folder(&self.path)? {
            true => Ok(()),
            false => Err(FileError::NotDirectory),
        }
    }
}

/// Which part of the tree a walk visits.
pub(crate) struct Extent {
    /// The only folder names to enter on the first levels.
    pub(crate) prefix: Vec<Vec<u8>>,
    /// The number of levels to visit; `None` for all.
    pub(crate) depth: Option<usize>,
}

impl Extent {
    pub(crate) const ALL: Extent = Extent { prefix: Vec::new(), depth: None };

    /// Whether an entry on a level, counted from 1, should be visited.
    fn includes(&self, level: usize, name: &[u8]) -> bool {
        self.depth.is_none_or(|depth| level <= depth)
            && self.prefix.get(level - 1).is_none_or(|wanted| wanted == name)
    }
}

/// A regular file found by a walk.
pub(crate) struct FoundFile<'a> {
    folder: &'a Arc<OwnedFd>,
    name: OsString,
    /// Relative to the start.
    pub(crate) relative: PathBuf,
}

impl FoundFile<'_> {
    pub(crate) fn open(&self) -> Result<File, FileError> {
        Ok(open_at(&Place::new(Arc::clone(self.folder), Vec::new(), self.name.clone()))?.0)
    }
}

/// Calls a visitor (one per thread, made by `visitor`) for every regular file, and collects the
/// findings.
pub(crate) fn walk<V>(
    context: &Context,
    start: &Start,
    extent: &Extent,
    visitor: impl Fn() -> V + Sync,
) -> Result<SortedFindings, FileError>
where
    V: FnMut(&FoundFile<'_>, &mut SortedFindings) + Send,
{
    let (folder, path) = context.start_of_walk(&start.path)?;
    // A walk follows no links, so what it enters is determined by names.
    let prefix = extent.prefix.iter().map(|name| OsStr::from_bytes(name));
    context.require_destination(|| Ok(path.join(prefix.collect::<PathBuf>())))?;
    let lent = match context.tree() {
        Some(_) => None,
        None => Some(Tree::open([context.directory(), &path])?),
    };
    let walk = Walk {
        folder: &folder,
        path: &path,
        ignore_files: IgnoreFiles {
            tree: context.tree().or(lent.as_ref()).ok_or(FileError::Outside)?,
            owners: Owners::of(context.directory()),
        },
        hides: context.tree(),
        extent,
        is_over: &|| context.is_interrupted(),
    };
    let all = Mutex::new(SortedFindings::new(context.output_size));
    walk.run(|| {
        let mut visit = visitor();
        let mut found = Worker { all: &all, own: SortedFindings::new(context.output_size) };
        move |file: &FoundFile<'_>| visit(file, &mut found.own)
    });
    Ok(all.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Lists up to `most` files in a folder as relative paths, until the given time. Ignored and hidden
/// files are skipped, and so are names that are not UTF-8.
pub fn list_files(directory: &Path, most: usize, until: Instant) -> Vec<String> {
    let opened = open_folder(CWD, directory, Links::Follow).ok().zip(Tree::open([directory]).ok());
    let (Some((folder, tree)), Ok(path)) = (opened, directory.canonicalize()) else {
        return Vec::new();
    };
    let names = Mutex::new(Vec::new());
    let found = || lock(&names);
    let walk = Walk {
        folder: &folder,
        path: &path,
        ignore_files: IgnoreFiles { tree: &tree, owners: Owners::of(directory) },
        hides: None,
        extent: &Extent::ALL,
        is_over: &|| Instant::now() >= until || found().len() >= most,
    };
    walk.run(|| |file: &FoundFile<'_>| found().extend(file.relative.to_str().map(str::to_owned)));
    let mut names = std::mem::take(&mut *found());
    names.sort_unstable();
    names.truncate(most);
    names
}

/// The findings of one thread, merged when it ends.
struct Worker<'a> {
    all: &'a Mutex<SortedFindings>,
    own: SortedFindings,
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        let empty = SortedFindings::new(self.own.size());
        let own = std::mem::replace(&mut self.own, empty);
        lock(self.all).merge(own);
    }
}

/// A walk, shared by its threads.
struct Walk<'a> {
    /// Where it starts.
    folder: &'a OwnedFd,
    /// Its absolute path, without links.
    path: &'a Path,
    ignore_files: IgnoreFiles<'a>,
    /// The tree, if it may have hidden paths.
    hides: Option<&'a Tree>,
    extent: &'a Extent,
    /// Whether the walk should stop early.
    is_over: &'a (dyn Fn() -> bool + Sync),
}

/// A task for one thread.
enum Task {
    /// A folder on this level, relative to the start, and the rules of its parent.
    Folder { relative: PathBuf, level: usize, rules: Option<Arc<Rules>> },
    /// Some files of a folder.
    Files { folder: Arc<OwnedFd>, relative: PathBuf, names: Vec<OsString> },
}

/// How many files form one task, so that a large folder is shared between threads.
const FILES_AT_ONCE: usize = 64;

impl Walk<'_> {
    fn run<V: FnMut(&FoundFile<'_>)>(&self, visitor: impl Fn() -> V + Sync) {
        /// More threads would only wait for each other.
        const MOST_THREADS: usize = 12;
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        let rules = self.ignore_files.above(self.path);
        let start = Task::Folder { relative: PathBuf::new(), level: 0, rules };
        let queue = Queue::new(start);
        let walk = || {
            let mut visit = visitor();
            while let Some(task) = queue.next(self.is_over) {
                task.add(self.work(&task.work, &mut visit));
            }
        };
        std::thread::scope(|scope| {
            // If the system cannot start more threads, the existing ones do all the work.
            for _ in 1..threads.min(MOST_THREADS) {
                if std::thread::Builder::new().spawn_scoped(scope, walk).is_err() {
                    break;
                }
            }
            walk();
        });
    }

    /// Processes a task and returns those that follow from it.
    fn work(&self, work: &Task, visit: &mut impl FnMut(&FoundFile<'_>)) -> Vec<Task> {
        match work {
            // Unreadable folders are skipped, as in ripgrep.
            Task::Folder { relative, level, rules } => {
                let mut work = self.enter(relative, level + 1, rules.as_ref()).unwrap_or_default();
                // Most folders have few files, which are not worth handing over.
                if let Some(Task::Files { .. }) = work.last()
                    && let Some(files) = work.pop()
                {
                    self.work(&files, visit);
                }
                work
            }
            Task::Files { folder, relative, names } => {
                for name in names {
                    if (self.is_over)() {
                        break;
                    }
                    let relative = relative.join(name);
                    visit(&FoundFile { folder, name: name.clone(), relative });
                }
                Vec::new()
            }
        }
    }

    /// The tasks for the entries of a folder, which are on this level.
    fn enter(
        &self,
        relative: &Path,
        level: usize,
        rules: Option<&Arc<Rules>>,
    ) -> Result<Vec<Task>, FileError> {
        let folder = Arc::new(open_without_links(self.folder, relative)?);
        let (entries, present) = self.list(&folder, level)?;
        let path = if level == 1 { self.path.to_owned() } else { self.path.join(relative) };
        let rules = self.ignore_files.of_folder(rules, &path, present);
        let (mut work, mut names) = (Vec::new(), Vec::new());
        for (name, kind) in entries {
            let is_folder = kind == FileType::Directory;
            if !self.takes(&path.join(&name), is_folder, rules.as_deref()) {
                continue;
            }
            if is_folder {
                let relative = relative.join(&name);
                work.push(Task::Folder { relative, level, rules: rules.clone() });
            } else {
                names.push(name);
            }
        }
        work.extend(names.chunks(FILES_AT_ONCE).map(|names| Task::Files {
            folder: Arc::clone(&folder),
            relative: relative.to_owned(),
            names: names.to_vec(),
        }));
        Ok(work)
    }

    /// The folders and regular files of a folder that should be visited, and which ignore files it
    /// has.
    fn list(
        &self,
        folder: &OwnedFd,
        level: usize,
    ) -> Result<(Vec<(OsString, FileType)>, Present), FileError> {
        /// How often to check whether the walk should stop.
        const ENTRIES_AT_ONCE: usize = 1024;
        let mut present = Present::default();
        let mut entries = Vec::new();
        for (number, entry) in Dir::read_from(folder)?.enumerate() {
            if number % ENTRIES_AT_ONCE == 0 && (self.is_over)() {
                break;
            }
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            present.note(name);
            if name == b"." || name == b".." || !self.extent.includes(level, name) {
                continue;
            }
            let kind = match entry.file_type() {
                // Not all file systems report the type.
                FileType::Unknown => {
                    let stat = statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW);
                    stat.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
                }
                kind => kind,
            };
            if kind == FileType::Directory || kind == FileType::RegularFile {
                entries.push((OsString::from_vec(name.to_vec()), kind));
            }
        }
        Ok((entries, present))
    }

    /// Whether an entry is neither ignored nor hidden. A whitelisting rule overrides the leading
    /// dot.
    fn takes(&self, path: &Path, is_folder: bool, rules: Option<&Rules>) -> bool {
        let is_dotted = path.file_name().map(OsStr::as_bytes).is_some_and(|n| n.starts_with(b"."));
        let is_taken = match rules.map_or(RuleMatch::Nothing, |rules| rules.judge(path, is_folder))
        {
            RuleMatch::Nothing => !is_dotted,
            RuleMatch::Ignore => false,
            RuleMatch::Include => true,
        };
        is_taken && !self.hides.is_some_and(|tree| tree.hides(path))
    }
}
