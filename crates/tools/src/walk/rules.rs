//! Ignore files: which entries of a folder a walk skips.
//!
//! The precedence is ripgrep's: `.ignore` over `.gitignore` over `.git/info/exclude`. For each kind
//! the innermost file that mentions an entry counts, and in it the last matching line. A line with
//! `!` includes an entry again.
//!
//! Ignore files may come from a cloned repository, so they are read with care: only regular files
//! of bounded size, opened without blocking. Everything else (a FIFO, a device, a link out of the
//! tree) is skipped.

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

/// The rules that apply in a folder: its own and those of its parents. Shared by all folders that
/// add none.
pub(super) struct Rules {
    outer: Option<Arc<Rules>>,
    /// The offset at which paths become relative to the folder of these rules.
    offset: usize,
    ignore: Gitignore,
    git_ignore: Gitignore,
    git_exclude: Gitignore,
    /// Whether the folder is the top of a repository: gitignore rules from further out do not apply
    /// in it.
    is_repository: bool,
    /// The total length of the ignore files behind these rules, including those of parents.
    bytes: usize,
}

/// What the rules say about an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleMatch {
    Nothing,
    Ignore,
    Include,
}

impl Rules {
    /// What applies to an entry in the folder of these rules, by its absolute path.
    pub(super) fn judge(&self, path: &Path, is_folder: bool) -> RuleMatch {
        let mut said = [RuleMatch::Nothing; 3];
        let mut is_inside_repository = false;
        let mut rules = Some(self);
        while let Some(Rules { outer, offset, ignore, git_ignore, git_exclude, .. }) = rules {
            let path = path.as_os_str().as_bytes().get(*offset..).unwrap_or_default();
            let path = OsStr::from_bytes(path);
            let matchers = [ignore, git_ignore, git_exclude];
            let matchers = if is_inside_repository { &matchers[..1] } else { &matchers[..] };
            for (said, matcher) in said.iter_mut().zip(matchers) {
                if *said == RuleMatch::Nothing {
                    *said = match matcher.matched(path, is_folder) {
                        Match::None => RuleMatch::Nothing,
                        Match::Ignore(_) => RuleMatch::Ignore,
                        Match::Whitelist(_) => RuleMatch::Include,
                    };
                }
            }
            is_inside_repository |= rules.is_some_and(|rules| rules.is_repository);
            rules = outer.as_deref();
        }
        said.into_iter().find(|said| *said != RuleMatch::Nothing).unwrap_or(RuleMatch::Nothing)
    }

    fn is_empty(&self) -> bool {
        !self.is_repository
            && self.ignore.is_empty()
            && self.git_ignore.is_empty()
            && self.git_exclude.is_empty()
    }
}

/// Which ignore files a folder has, judging by its entries.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Present {
    ignore: bool,
    git_ignore: bool,
    git: bool,
}

impl Present {
    /// For a folder that was not listed.
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
    /// The rules of parents that apply to the starting folder of a walk, an absolute path without
    /// links.
    pub(super) fn above(&self, start: &Path) -> Option<Arc<Rules>> {
        let above: Vec<&Path> = start.ancestors().skip(1).collect();
        above
            .into_iter()
            .rev()
            .fold(None, |rules, folder| self.of_folder(rules.as_ref(), folder, Present::PERHAPS))
    }

    /// The rules that apply to the entries of `folder`, given those of its parent.
    pub(super) fn of_folder(
        &self,
        outer: Option<&Arc<Rules>>,
        folder: &Path,
        present: Present,
    ) -> Option<Arc<Rules>> {
        let is_repository = present.git && self.is_trusted(&folder.join(".git"));
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
            // With the slash; only the root folder ends with one.
            offset: if length > 1 { length + 1 } else { length },
            ignore: compile(read(present.ignore, ".ignore")),
            git_ignore: compile(read(present.git_ignore, ".gitignore")),
            git_exclude: compile(is_repository.then(|| self.exclude(folder)).flatten()),
            is_repository,
            bytes,
        };
        if rules.is_empty() { outer.cloned() } else { Some(Arc::new(rules)) }
    }

    /// Whether a trusted entry exists at `path`; in the tree all are.
    fn is_trusted(&self, path: &Path) -> bool {
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

/// The `info/exclude` that a linked work tree shares with its repository: its `.git` file names a
/// folder, in which `commondir` names another. Both are usually outside the tree.
fn common_folder(folder: &Path, pointer: &[u8], owners: Owners) -> Option<PathBuf> {
    let git = folder.join(first_line(pointer.strip_prefix(b"gitdir: ")?));
    let common = read_outside(&git.join("commondir"), owners)?;
    Some(git.join(first_line(&common)).join("info/exclude"))
}

fn first_line(text: &[u8]) -> &Path {
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    Path::new(OsStr::from_bytes(line.trim_ascii_end()))
}

/// Reads a file above the tree or in another repository, if it is not a link and its owner is
/// trusted.
fn read_outside(path: &Path, owners: Owners) -> Option<Vec<u8>> {
    let (file, _) = open_named(path).ok()?;
    let owner = file.metadata().ok()?.uid();
    if owners.include(owner) { read_bounded(file) } else { None }
}

/// Longer files are ignored. The worst patterns of this length take a hundred milliseconds and 40
/// MB of memory, and no handwritten file is longer.
const LARGEST: usize = 128 * 1024;
/// The limit for all files that apply to one folder: each level of a deep tree could add its own.
const LARGEST_TOGETHER: usize = 2 * LARGEST;

fn read_bounded(file: File) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let length = file.take(LARGEST as u64 + 1).read_to_end(&mut text).ok()?;
    (length <= LARGEST).then_some(text)
}

/// Invalid patterns are skipped, and so is everything after invalid UTF-8, as in ripgrep.
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
