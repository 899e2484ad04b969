//! Finds changes of protected paths that need approval.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::allowed::{ConfigLocation, PathBounds};
use super::git_config::Settings;
use super::index::{leads_astray, shared_indexes};
use super::names::{folded, is_guarded_at};
use super::safe_files::{Content, FileStat, LARGEST_KEPT, Root, Version, read_file};
use super::snapshot::{Entry, Role, Snapshot, lexical};

/// The index of a million files takes some 100 MB.
const LARGEST_INDEX: u64 = 256 * 1024 * 1024;

/// A change of a protected path that needs approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The root that contains it.
    pub root: PathBuf,
    /// The absolute path.
    pub path: PathBuf,
    /// What happened to it.
    pub change: Change,
    /// Why it needs approval, as a clause: `it sets core.fsmonitor, which git may run or trust`.
    pub reason: String,
}

/// What happened to a protected path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It did not exist before.
    New,
    /// It differs from before.
    Changed,
    /// It was deleted.
    Deleted,
}

/// A root at the time of a check.
pub(super) struct CurrentRoot<'a> {
    pub(super) root: &'a Root,
    pub(super) now: &'a Snapshot,
}

/// All roots at the time of a check.
pub(super) struct Roots<'a>(pub(super) Vec<CurrentRoot<'a>>);

impl Roots<'_> {
    /// Compares the root with index `at` to an earlier snapshot. Returns at most `most` findings.
    pub(super) fn compare(&self, at: usize, before: &Snapshot, most: usize) -> Vec<Finding> {
        let CurrentRoot { root, now } = self.0[at];
        let mut findings: Vec<Finding> = Vec::new();
        let paths: BTreeSet<&PathBuf> = before.entries.keys().chain(now.entries.keys()).collect();
        // Paths at the top come first, so that no number of repositories can crowd them out.
        let is_top = |path: &PathBuf| {
            let entry = now.entries.get(path).or_else(|| before.entries.get(path));
            entry.is_some_and(|entry| entry.role == Role::Top)
        };
        let (top, others): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| is_top(path));
        for path in top.into_iter().chain(others) {
            if findings.len() >= most {
                break;
            }
            let absolute = root.path.join(path);
            // The contents of a folder are moved along with it.
            if findings.last().is_some_and(|finding| absolute.starts_with(&finding.path)) {
                continue;
            }
            let (was, is) = (before.entries.get(path), now.entries.get(path));
            let compared = Comparison { roots: self, root, now, path, absolute: &absolute };
            if let Err((change, reason)) = compared.judge(was, is) {
                findings.push(Finding { root: root.path.clone(), path: absolute, change, reason });
            }
        }
        findings.extend(self.replaced_folders(at, before, most.saturating_sub(findings.len())));
        findings
    }

    /// Parent folders of repositories that were replaced with a link, which would lead to another
    /// repository.
    fn replaced_folders(&self, at: usize, before: &Snapshot, most: usize) -> Vec<Finding> {
        let CurrentRoot { root, now } = self.0[at];
        let gone = before.repositories.difference(&now.repositories);
        let link = |repository: &PathBuf| {
            let mut folders: Vec<&Path> = repository.ancestors().collect();
            folders.pop();
            let is_link = |path: &&&Path| root.read(path).is_ok_and(|found| found.is_link());
            folders.iter().rev().find(is_link).map(|path| root.path.join(path))
        };
        let links: BTreeSet<PathBuf> = gone.filter_map(link).take(most).collect();
        let finding = |path| Finding {
            root: root.path.clone(),
            path,
            change: Change::Changed,
            reason: "it is a link in the place of a folder with a repository".to_owned(),
        };
        links.into_iter().map(finding).collect()
    }

    /// The root of an absolute path that contains no links, and the path relative to it.
    fn find(&self, path: &Path) -> Option<(&CurrentRoot<'_>, PathBuf)> {
        let (current, inside) = self.0.iter().find_map(|current| {
            let inside = path.strip_prefix(&current.root.path).ok()?;
            Some((current, inside.to_owned()))
        })?;
        if inside.as_os_str().is_empty() {
            return Some((current, inside));
        }
        let parent = current.root.parent(&inside);
        let is_without_links = match parent.and_then(|(folder, name)| FileStat::at(folder, name)) {
            Ok(stat) => !stat.kind().is_symlink(),
            Err(error) => error == rustix::io::Errno::NOENT,
        };
        is_without_links.then_some((current, inside))
    }

    /// Whether there is a repository at an absolute path.
    fn is_repository(&self, path: &Path) -> bool {
        self.find(path).is_some_and(|(current, inside)| current.now.repositories.contains(&inside))
    }

    /// Whether an absolute path is the location of a worktree's or submodule's repository. Git
    /// writes the `.git` file that points there first.
    fn is_of_repository(&self, path: &Path) -> bool {
        let is_place = |folder: &Path| {
            let name = folder.file_name();
            let is_nest = name.is_some_and(|name| name == "modules" || name == "worktrees");
            is_nest && folder.parent().is_some_and(|around| self.is_repository(around))
        };
        self.find(path).is_some() && path.ancestors().skip(1).any(is_place)
    }
}

impl PathBounds for Roots<'_> {
    fn leads_inside(&self, folder: &Path, path: &Path) -> bool {
        lexical(folder, path).is_some_and(|path| self.find(&path).is_some())
    }

    /// The `.git` file of a submodule leads back to its repository. A folder in a repository is none, even with such a file:
    /// git would write hooks there.
    fn leads_to_working_tree(&self, repository: &Path, path: &Path) -> bool {
        let Some(folder) = lexical(repository, path) else { return false };
        let Some((current, inside)) = self.find(&folder) else { return false };
        let is_of_git = inside.iter().any(|name| folded(name) == ".git")
            || current.now.repositories.contains(&inside)
            || is_guarded_at(&current.root.path, &inside.join("file"));
        let dot_git = current.now.entries.get(&inside.join(".git"));
        let leads_back = dot_git.is_some_and(|entry| match &entry.version.content {
            Content::Bytes(bytes) => leads_to(&folder, bytes).as_deref() == Some(repository),
            Content::Link(_) | Content::Folder | Content::Unknown => false,
        });
        leads_back && !is_of_git
    }
}

/// A path to compare.
struct Comparison<'a> {
    roots: &'a Roots<'a>,
    root: &'a Root,
    now: &'a Snapshot,
    /// Relative to the root.
    path: &'a Path,
    absolute: &'a Path,
}

type Judgement = Result<(), (Change, String)>;

impl Comparison<'_> {
    fn judge(&self, was: Option<&Entry>, is: Option<&Entry>) -> Judgement {
        match (was, is) {
            (None, None) => Ok(()),
            (Some(was), None) => self.judge_deleted(was),
            (Some(was), Some(is)) if was.version.is_same(&is.version) => Ok(()),
            // Too large to be checked, which has been reported to the user.
            (Some(was), Some(is)) if was.version.is_unknown_folder() && is.version.is_folder() => {
                Ok(())
            }
            (was, Some(is)) => {
                let change = if was.is_some() { Change::Changed } else { Change::New };
                let judged = self.judge_present(was.map(|was| &was.version), is);
                judged.map_err(|reason| (change, reason.into_owned()))
            }
        }
    }

    fn judge_deleted(&self, was: &Entry) -> Judgement {
        let deleted = |reason: &str| Err((Change::Deleted, reason.to_owned()));
        match was.role {
            Role::Top => deleted("it was deleted"),
            Role::Intermediate | Role::DotGit | Role::OldRemote | Role::OfProgram => Ok(()),
            Role::Index | Role::Conflicts | Role::Counter => Ok(()),
            // Deleting a whole repository is allowed.
            _ if !self.is_in_repository() => Ok(()),
            Role::Hook if was.version.is_folder() || !was.version.stat.is_executable() => Ok(()),
            Role::Config => {
                let judged = self.judge_config(Some(&was.version), b"");
                judged.map_err(|_| (Change::Deleted, "it was deleted".to_owned()))
            }
            Role::Hook | Role::Attributes | Role::CommonDir | Role::GitDir => {
                deleted("it was deleted")
            }
        }
    }

    fn is_in_repository(&self) -> bool {
        self.path.ancestors().skip(1).any(|folder| self.now.repositories.contains(folder))
    }

    fn judge_present(&self, was: Option<&Version>, is: &Entry) -> Result<(), Cow<'static, str>> {
        let version = &is.version;
        let is_link = version.is_link();
        let refuse = |reason: &'static str| Err(Cow::Borrowed(reason));
        match is.role {
            Role::Top if was.is_some() => refuse("it was changed"),
            Role::Top => refuse("it is new, and other programs run or trust it"),
            _ if is_link => refuse("it is a link"),
            _ if version.is_unknown_folder() => refuse("it contains too much to be checked"),
            Role::Intermediate => Ok(()),
            Role::Hook if version.is_folder() => Ok(()),
            Role::Hook if was.is_some() => refuse("git runs it, and it was changed"),
            Role::Hook if version.stat.is_executable() => refuse("git runs it"),
            Role::Hook => Ok(()),
            Role::OldRemote if version.is_folder() => Ok(()),
            Role::OldRemote => refuse("git reads URLs from it"),
            Role::OfProgram => refuse("other programs run or trust it"),
            Role::DotGit if version.is_folder() => Ok(()),
            Role::DotGit if was.is_some_and(Version::is_folder) => {
                refuse("it replaced the folder of a repository")
            }
            Role::Index => match self.leads_astray() {
                Ok(false) => Ok(()),
                Ok(true) => refuse("it names files outside the working tree, or in a .git"),
                Err(_) => refuse("it cannot be checked"),
            },
            Role::Config
            | Role::Attributes
            | Role::CommonDir
            | Role::GitDir
            | Role::DotGit
            | Role::Conflicts
            | Role::Counter => match &version.content {
                Content::Bytes(bytes) => self.judge_file(is.role, was, bytes),
                Content::Folder => Ok(()),
                Content::Link(_) | Content::Unknown => refuse("it cannot be checked"),
            },
        }
    }

    fn judge_file(
        &self,
        role: Role,
        was: Option<&Version>,
        bytes: &[u8],
    ) -> Result<(), Cow<'static, str>> {
        let require = |is_fine: bool, reason| if is_fine { Ok(()) } else { Err(Cow::from(reason)) };
        match role {
            Role::Config => self.judge_config(was, bytes).map_err(Cow::Owned),
            Role::Attributes => {
                let is_blank = bytes.iter().all(u8::is_ascii_whitespace);
                require(is_blank && was.is_none(), "git reads the names of filters from it")
            }
            Role::DotGit => {
                let is_fine = self.leads_to_repository(bytes);
                require(is_fine, "it does not lead to a repository in the working tree")
            }
            Role::CommonDir => {
                let is_fine = self.is_normal_common_dir(bytes);
                require(is_fine, "it leads git to the settings of another repository")
            }
            Role::GitDir => {
                let is_fine = self.is_normal_git_dir(bytes);
                require(is_fine, "it leads outside the working tree")
            }
            Role::Conflicts => {
                let is_fine = !bytes.split(|byte| *byte == 0).any(names_outside);
                require(is_fine, "it names files outside the working tree, or in a .git")
            }
            Role::Counter => {
                let is_fine = bytes.trim_ascii().iter().all(u8::is_ascii_digit);
                require(is_fine, "it must be a number, since a prompt may run it")
            }
            Role::Top
            | Role::Hook
            | Role::OldRemote
            | Role::OfProgram
            | Role::Intermediate
            | Role::Index => Ok(()),
        }
    }

    /// Whether the index, or a shared index it uses, contains names that mislead git.
    fn leads_astray(&self) -> io::Result<bool> {
        let (folder, name) = self.root.parent(self.path)?;
        let config = read_file(&folder, OsStr::new("config"), LARGEST_KEPT).unwrap_or_default();
        let format = Settings::parse(&config).ok();
        let values = format.as_ref().map(|settings| settings.values(b"extensions.objectformat"));
        let is_long = values.and_then(<[_]>::last).is_some_and(|value| {
            value.as_deref().is_some_and(|value| value.eq_ignore_ascii_case(b"sha256"))
        });
        let hash = if is_long { 32 } else { 20 };
        let index = read_file(&folder, name, LARGEST_INDEX)?;
        if leads_astray(&index, hash) {
            return Ok(true);
        }
        let shared = shared_indexes(&index, hash).into_iter();
        let read = |name: String| read_file(&folder, OsStr::new(&name), LARGEST_INDEX).ok();
        Ok(shared.filter_map(read).any(|shared| leads_astray(&shared, hash)))
    }

    fn judge_config(&self, was: Option<&Version>, bytes: &[u8]) -> Result<(), String> {
        let parse = |bytes: &[u8]| {
            let parsed = Settings::parse(bytes);
            parsed.map_err(|line| format!("its line {} cannot be checked", line.0))
        };
        let now = parse(bytes)?;
        let before = match was.map(|was| &was.content) {
            Some(Content::Bytes(bytes)) => parse(bytes)?,
            Some(Content::Folder) | None => Settings::default(),
            Some(Content::Link(_) | Content::Unknown) => {
                return Err("it was changed, and its earlier content is unknown".to_owned());
            }
        };
        let repository = self.absolute.parent().unwrap_or(self.absolute);
        ConfigLocation { bounds: self.roots, repository }.judge(&before, &now)
    }

    /// Whether a `.git` file, which contains `gitdir: PATH`, leads to a repository of the roots.
    fn leads_to_repository(&self, bytes: &[u8]) -> bool {
        let target = self.absolute.parent().and_then(|folder| leads_to(folder, bytes));
        let is_fine = |target: PathBuf| {
            self.roots.is_repository(&target) || self.roots.is_of_repository(&target)
        };
        target.is_some_and(is_fine)
    }

    /// `REPOSITORY/worktrees/NAME/commondir` contains `../..`.
    fn is_normal_common_dir(&self, bytes: &[u8]) -> bool {
        let Some(expected) = self.repository_of_worktree() else { return false };
        let target = one_line(bytes).and_then(|path| lexical(self.absolute.parent()?, path));
        target.as_deref() == Some(expected) && self.roots.is_repository(expected)
    }

    /// `REPOSITORY/worktrees/NAME/gitdir` contains the path of the worktree's `.git`.
    fn is_normal_git_dir(&self, bytes: &[u8]) -> bool {
        let (Some(folder), Some(path)) = (self.absolute.parent(), one_line(bytes)) else {
            return false;
        };
        let is_worktree = self.repository_of_worktree().is_some();
        is_worktree && path.ends_with(".git") && self.roots.leads_inside(folder, path)
    }

    fn repository_of_worktree(&self) -> Option<&Path> {
        let worktrees = self.absolute.parent()?.parent()?;
        let is_inside = worktrees.starts_with(&self.root.path);
        (is_inside && worktrees.file_name()? == "worktrees").then(|| worktrees.parent()).flatten()
    }
}

/// Whether a line of `MERGE_RR` names a file outside the working tree.
fn names_outside(line: &[u8]) -> bool {
    let path = line.iter().position(|byte| *byte == b'\t').map(|at| &line[at + 1..]);
    path.is_some_and(|path| {
        path.split(|byte| *byte == b'/').any(|part| {
            matches!(part, b"" | b"." | b"..") || folded(OsStr::from_bytes(part)) == ".git"
        })
    })
}

/// Where `gitdir: PATH` leads, the content of the `.git` file in a folder.
fn leads_to(folder: &Path, bytes: &[u8]) -> Option<PathBuf> {
    lexical(folder, bytes.strip_prefix(b"gitdir: ").and_then(one_line)?)
}

/// The path in a file of a single line.
fn one_line(bytes: &[u8]) -> Option<&Path> {
    let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let is_plain = !line.is_empty() && !line.iter().any(u8::is_ascii_control);
    is_plain.then(|| Path::new(OsStr::from_bytes(line)))
}

impl Version {
    pub(super) fn is_link(&self) -> bool {
        self.stat.kind().is_symlink()
    }

    pub(super) fn is_folder(&self) -> bool {
        self.stat.kind().is_dir()
    }

    fn is_unknown_folder(&self) -> bool {
        self.is_folder() && self.content == Content::Unknown
    }
}
