//! What ignore files say: which entries of a folder a walk leaves out.
//!
//! The precedence is ripgrep's: `.ignore` goes before `.gitignore`, and that before `.git/info/exclude`; of
//! each kind the file of the innermost folder that says something counts, and in it the last line. A line
//! with `!` brings an entry back.
//!
//! Ignore files come with a clone, so they are read with care: only regular files of a bounded size, opened
//! without waiting. Everything else (a FIFO, a device, a link that leads out of the tree) is passed over.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::files::{open_at, open_named};
use crate::owners::Owners;
use crate::tree::Tree;

/// The rules that hold in a folder: its own, and those of the folders above it. Shared by all folders that
/// add none.
pub(super) struct Rules {
    outer: Option<Arc<Rules>>,
    /// Where the part of a path begins that is relative to the folder of these rules.
    beneath: usize,
    ignore: Gitignore,
    git_ignore: Gitignore,
    git_exclude: Gitignore,
    /// Whether the folder is the top of a repository: what git ignores further out does not count in it.
    is_repository: bool,
    /// The length of all ignore files that these rules were made of, those above included.
    bytes: usize,
}

/// What rules say of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Nothing,
    Leave,
    Take,
}

impl Rules {
    /// What is said of an entry in the folder of these rules, by its absolute path.
    pub(super) fn judge(&self, path: &Path, is_folder: bool) -> Said {
        let mut said = [Said::Nothing; 3];
        let mut is_inside_repository = false;
        let mut rules = Some(self);
        while let Some(Rules { outer, beneath, ignore, git_ignore, git_exclude, .. }) = rules {
            let path = path.as_os_str().as_bytes().get(*beneath..).unwrap_or_default();
            let path = OsStr::from_bytes(path);
            let matchers = [ignore, git_ignore, git_exclude];
            let matchers = if is_inside_repository { &matchers[..1] } else { &matchers[..] };
            for (said, matcher) in said.iter_mut().zip(matchers) {
                if *said == Said::Nothing {
                    *said = match matcher.matched(path, is_folder) {
                        Match::None => Said::Nothing,
                        Match::Ignore(_) => Said::Leave,
                        Match::Whitelist(_) => Said::Take,
                    };
                }
            }
            is_inside_repository |= rules.is_some_and(|rules| rules.is_repository);
            rules = outer.as_deref();
        }
        said.into_iter().find(|said| *said != Said::Nothing).unwrap_or(Said::Nothing)
    }

    fn is_empty(&self) -> bool {
        !self.is_repository
            && self.ignore.is_empty()
            && self.git_ignore.is_empty()
            && self.git_exclude.is_empty()
    }
}

/// Which ignore files a folder has, as far as the names in it tell.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Present {
    ignore: bool,
    git_ignore: bool,
    git: bool,
}

impl Present {
    /// For a folder whose names nobody has read.
    const PERHAPS: Present = Present { ignore: true, git_ignore: true, git: true };

    pub(super) fn note(&mut self, name: &[u8]) {
        match name {
            b".ignore" => self.ignore = true,
            b".gitignore" => self.git_ignore = true,
            b".git" => self.git = true,
            _ => {}
        }
    }
}

/// Reads ignore files.
pub(super) struct IgnoreFiles<'a> {
    /// Where links may lead.
    pub(super) tree: &'a Tree,
    /// Whose files count above the tree.
    pub(super) owners: Owners,
}

impl IgnoreFiles<'_> {
    /// The rules from above that hold for the folder where a walk starts, an absolute path without links.
    pub(super) fn above(&self, start: &Path) -> Option<Arc<Rules>> {
        let above: Vec<&Path> = start.ancestors().skip(1).collect();
        above
            .into_iter()
            .rev()
            .fold(None, |rules, folder| self.of_folder(rules.as_ref(), folder, Present::PERHAPS))
    }

    /// The rules that hold for what is in `folder`, given those of the folder around it.
    pub(super) fn of_folder(
        &self,
        outer: Option<&Arc<Rules>>,
        folder: &Path,
        present: Present,
    ) -> Option<Arc<Rules>> {
        let is_repository = present.git && self.is_believed(&folder.join(".git"));
        let mut bytes = outer.map_or(0, |outer| outer.bytes);
        let mut compile = |text: Option<Vec<u8>>| match text {
            Some(text) if bytes + text.len() <= LARGEST_TOGETHER => {
                bytes += text.len();
                compile(&text)
            }
            _ => Gitignore::empty(),
        };
        let read = |is_present: bool, name: &str| {
            is_present.then(|| self.read(&folder.join(name))).flatten()
        };
        let length = folder.as_os_str().len();
        let rules = Rules {
            outer: outer.cloned(),
            // With the slash; only the root folder brings its own.
            beneath: if length > 1 { length + 1 } else { length },
            ignore: compile(read(present.ignore, ".ignore")),
            git_ignore: compile(read(present.git_ignore, ".gitignore")),
            git_exclude: compile(is_repository.then(|| self.exclude(folder)).flatten()),
            is_repository,
            bytes,
        };
        if rules.is_empty() { outer.cloned() } else { Some(Arc::new(rules)) }
    }

    /// Whether there is something at `path` that counts: in the tree everything does.
    fn is_believed(&self, path: &Path) -> bool {
        match self.tree.names(path) {
            true => path.symlink_metadata().is_ok(),
            false => self.owners.check(path) == Ok(true),
        }
    }

    /// The text of `info/exclude` of the repository whose work tree is `folder`.
    fn exclude(&self, folder: &Path) -> Option<Vec<u8>> {
        let git = folder.join(".git");
        match self.read(&git) {
            Some(pointer) => {
                read_outside(&common_folder(folder, &pointer, self.owners)?, self.owners)
            }
            None => self.read(&git.join("info/exclude")),
        }
    }

    fn read(&self, path: &Path) -> Option<Vec<u8>> {
        match self.tree.names(path) {
            true => read_bounded(open_at(&self.tree.place(path).ok()?).ok()?.0),
            false => read_outside(path, self.owners),
        }
    }
}

/// The `info/exclude` that a linked work tree shares with its repository: its `.git` is a file that names a
/// folder, and in that `commondir` names another. Both are usually outside the tree.
fn common_folder(folder: &Path, pointer: &[u8], owners: Owners) -> Option<PathBuf> {
    let git = folder.join(first_line(pointer.strip_prefix(b"gitdir: ")?));
    let common = read_outside(&git.join("commondir"), owners)?;
    Some(git.join(first_line(&common)).join("info/exclude"))
}

fn first_line(text: &[u8]) -> &Path {
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    Path::new(OsStr::from_bytes(line.trim_ascii_end()))
}

/// A file above the tree, or of a repository elsewhere: no link, and of somebody who is believed.
fn read_outside(path: &Path, owners: Owners) -> Option<Vec<u8>> {
    let (file, _) = open_named(path).ok()?;
    let owner = file.metadata().ok()?.uid();
    if owners.include(owner) { read_bounded(file) } else { None }
}

/// What a longer file says is passed over. The worst patterns take a hundred milliseconds and 40 MB of memory
/// for so many bytes, and nobody writes as many by hand.
const LARGEST: usize = 128 * 1024;
/// The same for all files that hold in one folder: each level of a deep tree could bring its own.
const LARGEST_TOGETHER: usize = 2 * LARGEST;

fn read_bounded(file: File) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let length = file.take(LARGEST as u64 + 1).read_to_end(&mut text).ok()?;
    (length <= LARGEST).then_some(text)
}

/// Lines that are no pattern are passed over; those behind one that is no UTF-8, too, as ripgrep does.
fn compile(text: &[u8]) -> Gitignore {
    let text = match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(error) => {
            let valid = std::str::from_utf8(&text[..error.valid_up_to()]).unwrap_or_default();
            valid.rsplit_once('\n').map_or("", |(before, _)| before)
        }
    };
    let mut builder = GitignoreBuilder::new("");
    for line in text.trim_start_matches('\u{feff}').lines() {
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
