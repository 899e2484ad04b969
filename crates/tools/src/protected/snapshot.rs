//! A snapshot of the protected paths of a root.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::ops::Bound;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;

use super::folders::{WalkResult, is_shared_index};
use super::names::{OF_LAZYGIT, OF_SAPLING, START_UP, TOP};
use super::safe_files::{
    Content, FileStat, Root, TO_ENTER, TO_LIST, Version, entries_of, for_each_entry, is_absent,
    open_inside,
};

/// No project has more. Each costs some 15 system calls.
const MOST_REPOSITORIES: usize = 10_000;
/// Protected paths of a root, which take some 20 MB.
const MOST_ENTRIES: usize = 50_000;
/// Files in one protected folder, such as `.vscode`. Larger folders are not checked.
const MOST_IN_FOLDER: usize = 2_000;
/// Deeper folders inside a protected one are not checked.
const MOST_DEPTH: usize = 16;
/// The contents of all protected files of a root.
const MOST_BYTES: usize = 32 * 1024 * 1024;
/// Links in a folder of submodules. There should be none; the rest is found once these are gone.
const MOST_LINKS: usize = 100;
/// Indexes that others share, in a repository: git keeps those of two weeks.
const MOST_SHARED: usize = 1_000;
/// Reasons why a snapshot is incomplete.
const MOST_REASONS: usize = 20;

/// Why a path is protected, which decides what a command may do there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// At the top of a root, or inside such a folder.
    Top,
    /// `config` and `config.worktree`.
    Config,
    /// In `hooks`.
    Hook,
    /// `info/attributes`.
    Attributes,
    /// In `branches` or `remotes`, git's legacy settings.
    OldRemote,
    CommonDir,
    GitDir,
    /// Settings of another program in the folder of a repository.
    OfProgram,
    /// `index`; read only after a change.
    Index,
    /// `MERGE_RR`: files that git reads when it concludes a merge.
    Conflicts,
    /// The progress of a rebase, which shell prompts display.
    Counter,
    /// `.git` itself, of any type.
    DotGit,
    /// A folder that leads to protected paths; it must not become a link.
    Intermediate,
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) role: Role,
    pub(super) version: Version,
}

/// All paths are relative to the root.
#[derive(Debug, Clone, Default)]
pub(super) struct Snapshot {
    pub(super) entries: BTreeMap<PathBuf, Entry>,
    pub(super) repositories: BTreeSet<PathBuf>,
    /// Why some paths were not read.
    pub(super) incomplete: Vec<String>,
    bytes: usize,
}

impl Snapshot {
    /// Reads all protected paths. If there are too many repositories, those in `known` come first,
    /// so that no command can hide the user's among others.
    pub(super) fn take(root: &Root, mut found: WalkResult, known: &Snapshot) -> Snapshot {
        let mut snapshot = Snapshot { incomplete: found.incomplete, ..Snapshot::default() };
        for name in TOP.iter().chain(&START_UP) {
            snapshot.add_top(&root.folder, Path::new(""), name);
        }
        found.repositories.sort_by_cached_key(|path| !known.repositories.contains(path));
        found.with_git.sort_by_cached_key(|path| !known.entries.contains_key(&path.join(".git")));
        let mut repositories = found.repositories.into_iter();
        for repository in repositories.by_ref().take(MOST_REPOSITORIES) {
            if snapshot.add_repository(root, &repository) {
                snapshot.repositories.insert(repository);
            }
        }
        if repositories.next().is_some() {
            snapshot.note(format!("there are more than {MOST_REPOSITORIES} repositories"));
        }
        for repository in &found.with_shared_index {
            snapshot.add_shared_indexes(root, repository);
        }
        for folder in found.with_git {
            snapshot.add(root, &folder.join(".git"), Role::DotGit);
        }
        for nest in &found.nests {
            snapshot.add_links(root, nest);
        }
        snapshot
    }

    /// Reads paths that are only protected because a protected link leads to them.
    pub(super) fn add_linked(&mut self, root: &Root, linked: &BTreeMap<PathBuf, Role>) {
        for (path, role) in linked {
            self.add(root, path, *role);
        }
    }

    /// Copies a path and its contents from another snapshot, and the folders that contain it.
    pub(super) fn copy_from(&mut self, other: &Snapshot, path: &Path) {
        for folder in path.ancestors().skip(1) {
            if let Some(entry) = other.entries.get(folder).filter(|entry| entry.version.is_folder())
            {
                self.entries.insert(folder.to_owned(), entry.clone());
            }
        }
        self.entries.retain(|known, _| !known.starts_with(path));
        let entries = other.entries_under(path).map(|(path, entry)| (path.clone(), entry.clone()));
        self.entries.extend(entries);
        let repositories = other.repositories.iter().filter(|known| known.starts_with(path));
        self.repositories.extend(repositories.cloned());
    }

    /// The targets of protected links inside the root. They are trusted just as much, so they are
    /// protected as well.
    pub(super) fn linked(&self, root: &Root) -> BTreeMap<PathBuf, Role> {
        let target = |(path, entry): (&PathBuf, &Entry)| {
            let Content::Link(target) = &entry.version.content else { return None };
            let name = path.file_name()?;
            let role = match entry.role {
                Role::Intermediate if name == "hooks" => Role::Hook,
                Role::Top | Role::Config | Role::Hook | Role::Attributes => entry.role,
                _ => return None,
            };
            let folder = root.path.join(path.parent()?);
            let path = lexical(&folder, Path::new(OsStr::from_bytes(target)))?;
            let path = path.strip_prefix(&root.path).ok()?.to_owned();
            let is_known = self.entries.contains_key(&path) || path.as_os_str().is_empty();
            (!is_known).then_some((path, role))
        };
        self.entries.iter().filter_map(target).collect()
    }

    /// The entries at a path and inside it.
    pub(super) fn entries_under<'a>(
        &'a self,
        path: &'a Path,
    ) -> impl Iterator<Item = (&'a PathBuf, &'a Entry)> {
        let from = self.entries.range::<Path, _>((Bound::Included(path), Bound::Unbounded));
        from.take_while(move |(found, _)| found.starts_with(path))
    }

    /// Adds what is at the rest of a path, and the folders that lead there.
    fn add_top(&mut self, folder: &OwnedFd, around: &Path, path: &str) {
        if let Some((name, rest)) = path.split_once('/') {
            if let Some(inner) = self.add_at(folder, around, name, Role::Intermediate) {
                self.add_top(&inner, &around.join(name), rest);
            }
        } else if let Some(inner) = self.add_at(folder, around, path, Role::Top) {
            self.add_tree(&inner, &around.join(path), Role::Top, 0);
        }
    }

    /// Returns whether the repository still exists.
    fn add_repository(&mut self, root: &Root, repository: &Path) -> bool {
        let folder = match root.folder(repository, TO_ENTER) {
            Ok(folder) => folder,
            Err(error) => {
                self.note_error(repository, error);
                return false;
            }
        };
        for (name, role) in [
            ("config", Role::Config),
            ("config.worktree", Role::Config),
            ("commondir", Role::CommonDir),
            ("gitdir", Role::GitDir),
            ("MERGE_RR", Role::Conflicts),
            ("index", Role::Index),
            (OF_LAZYGIT, Role::OfProgram),
            ("modules", Role::Intermediate),
            ("worktrees", Role::Intermediate),
        ] {
            self.add_at(&folder, repository, name, role);
        }
        if let Some(info) = self.add_at(&folder, repository, "info", Role::Intermediate) {
            self.add_at(&info, &repository.join("info"), "attributes", Role::Attributes);
        }
        let [sapling, settings] = OF_SAPLING;
        if let Some(inner) = self.add_at(&folder, repository, sapling, Role::Intermediate) {
            self.add_at(&inner, &repository.join(sapling), settings, Role::OfProgram);
        }
        for (name, counters) in
            [("rebase-merge", ["msgnum", "end"]), ("rebase-apply", ["next", "last"])]
        {
            if let Some(rebase) = self.add_at(&folder, repository, name, Role::Intermediate) {
                for counter in counters {
                    self.add_at(&rebase, &repository.join(name), counter, Role::Counter);
                }
            }
        }
        for (name, role) in
            [("hooks", Role::Hook), ("branches", Role::OldRemote), ("remotes", Role::OldRemote)]
        {
            if let Some(inner) = self.add_at(&folder, repository, name, Role::Intermediate) {
                self.add_tree(&inner, &repository.join(name), role, 0);
            }
        }
        true
    }

    /// What an index shares with others is a part of it: it has changed when that has.
    fn add_shared_indexes(&mut self, root: &Root, repository: &Path) {
        let Some(index) = self.entries.get_mut(&repository.join("index")) else { return };
        let looked = root.folder(repository, TO_LIST).and_then(|folder| {
            let mut names = Vec::new();
            for_each_entry(folder, |name, _| {
                if is_shared_index(name) && names.len() < MOST_SHARED {
                    names.push(name.to_owned());
                }
            })?;
            let folder = root.folder(repository, TO_ENTER)?;
            for name in names {
                let shared = FileStat::at(&folder, OsStr::from_bytes(&name))?;
                index.version.stat.size = index.version.stat.size.wrapping_add(shared.size);
                index.version.stat.changed = index.version.stat.changed.max(shared.changed);
            }
            Ok(())
        });
        if let Err(error) = looked {
            self.note_error(repository, error);
        }
    }

    /// A link in place of a submodule's repository would lead git elsewhere.
    fn add_links(&mut self, root: &Root, nest: &Path) {
        let mut links = Vec::new();
        let listed = root.folder(nest, TO_LIST).and_then(|folder| {
            for_each_entry(folder, |name, kind| {
                if kind.is_symlink() && links.len() < MOST_LINKS {
                    links.push(nest.join(OsStr::from_bytes(name)));
                }
            })
        });
        if let Err(error) = listed {
            self.note_error(nest, error);
        }
        // Some were already added with a specific role.
        links.retain(|link| !self.entries.contains_key(link));
        for link in links {
            self.add(root, &link, Role::Intermediate);
        }
    }

    fn add(&mut self, root: &Root, path: &Path, role: Role) {
        let (folder, name) = match root.parent(path) {
            Ok(found) => found,
            Err(error) => return self.note_error(path, error),
        };
        let around = path.parent().unwrap_or(Path::new(""));
        let inner = self.add_at(&folder, around, name, role);
        let is_tree = matches!(role, Role::Top | Role::Hook);
        if let Some(inner) = inner.filter(|_| is_tree) {
            self.add_tree(&inner, path, role, 0);
        }
    }

    /// Adds an entry, and opens it if it is a folder.
    fn add_at(
        &mut self,
        folder: &OwnedFd,
        around: &Path,
        name: impl AsRef<OsStr>,
        role: Role,
    ) -> Option<OwnedFd> {
        let name = name.as_ref();
        let path = around.join(name);
        let read = match role {
            Role::Index => Version::stat(folder, name),
            _ => Version::read(folder, name),
        };
        let mut version = match read {
            Ok(version) => version,
            Err(error) => {
                self.note_error(&path, error);
                return None;
            }
        };
        if self.entries.len() >= MOST_ENTRIES {
            self.note(format!("there are more than {MOST_ENTRIES} protected files"));
            return None;
        }
        if let Content::Bytes(bytes) = &version.content {
            self.bytes += bytes.len();
            if self.bytes > MOST_BYTES {
                version.content = Content::Unknown;
            }
        }
        let is_folder = version.content == Content::Folder;
        self.entries.insert(path, Entry { role, version });
        is_folder.then(|| open_inside(folder, Path::new(name), TO_ENTER).ok()).flatten()
    }

    fn add_tree(&mut self, folder: &OwnedFd, path: &Path, role: Role, depth: usize) {
        let listed = open_inside(folder, Path::new(""), TO_LIST);
        let listed = listed.and_then(|folder| entries_of(folder, MOST_IN_FOLDER));
        let entries = match listed {
            Ok(Some(entries)) if depth < MOST_DEPTH => entries,
            Ok(_) => return self.forget_content(path),
            Err(error) => {
                self.forget_content(path);
                return self.note_error(path, error);
            }
        };
        for entry in entries {
            let is_sample = role == Role::Hook
                && entry.kind.is_file()
                && entry.name.as_bytes().ends_with(b".sample");
            if is_sample {
                continue;
            }
            if let Some(inner) = self.add_at(folder, path, &entry.name, role) {
                self.add_tree(&inner, &path.join(&entry.name), role, depth + 1);
            }
        }
    }

    fn forget_content(&mut self, path: &Path) {
        self.note(format!("{} is too large to be checked", path.display()));
        if let Some(entry) = self.entries.get_mut(path) {
            entry.version.content = Content::Unknown;
        }
    }

    fn note_error(&mut self, path: &Path, error: Errno) {
        if !is_absent(error) {
            self.note(format!("{} cannot be read: {error}", path.display()));
        }
    }

    fn note(&mut self, reason: String) {
        if self.incomplete.len() < MOST_REASONS && !self.incomplete.contains(&reason) {
            self.incomplete.push(reason);
        }
    }
}

/// Joins a path to a folder and resolves leading `..` components. After a name they could lead
/// elsewhere, since that may be a link. `None` for such paths, and for those that leave the top of
/// `folder`.
pub(super) fn lexical(folder: &Path, path: &Path) -> Option<PathBuf> {
    let mut joined = folder.to_owned();
    let mut is_down = false;
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if !is_down => {
                if !joined.pop() {
                    return None;
                }
            }
            Component::RootDir if folder.is_absolute() => joined = PathBuf::from("/"),
            Component::Normal(name) => {
                is_down = true;
                joined.push(name);
            }
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(joined)
}
