//! Whose files are trusted: those of the user, of root and of the owner of the working directory.
//!
//! `.git`, `AGENTS.md`, `.ikigai/config.toml` and ignore files are also searched in parent folders,
//! where other users may be able to create files (`/tmp`, a shared folder). The rule is that of
//! git's `safe.directory`: only the owner of the file counts. The permissions of the folders on the
//! path do not matter, so in a world-writable parent with the sticky bit, other users' files are
//! skipped while the user's own still count.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The users whose files are trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owners {
    user: u32,
    /// The owner of the working directory, if known.
    directory: Option<u32>,
}

/// A file or folder that was skipped because of its owner.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ForeignFile {
    /// What was skipped.
    pub path: PathBuf,
    /// The owner of it, or of its link target.
    pub owner: u32,
}

impl std::fmt::Display for ForeignFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ForeignFile { path, owner } = self;
        let path = path.display();
        write!(f, "{path} belongs to user {owner}, not to you, root or the owner of this directory")
    }
}

impl Owners {
    /// The trusted users for work in `directory`.
    pub fn of(directory: &Path) -> Owners {
        Owners {
            user: rustix::process::geteuid().as_raw(),
            directory: fs::metadata(directory).ok().map(|found| found.uid()),
        }
    }

    /// Whether files of this user are trusted.
    pub fn include(self, owner: u32) -> bool {
        owner == self.user || owner == 0 || Some(owner) == self.directory
    }

    /// Whether a trusted file exists at `path`. For a link, both its owner and that of its target
    /// count. `Ok(false)` if nothing exists.
    ///
    /// # Errors
    /// If it belongs to another user.
    pub fn check(self, path: &Path) -> Result<bool, ForeignFile> {
        let Ok(found) = fs::symlink_metadata(path) else { return Ok(false) };
        // A dangling link has no target to check.
        let target = fs::metadata(path).map_or(found.uid(), |target| target.uid());
        match [found.uid(), target].into_iter().find(|owner| !self.include(*owner)) {
            Some(owner) => Err(ForeignFile { path: path.to_owned(), owner }),
            None => Ok(true),
        }
    }
}

/// The folders that belong to the project of `directory`, innermost first: up to the first one with
/// a trusted `.git`, or only `directory`. Without this limit, a file in `/tmp` would apply to
/// everything inside it.
pub fn project_folders(directory: &Path, owners: Owners) -> Vec<&Path> {
    let is_root = |folder: &Path| owners.check(&folder.join(".git")) == Ok(true);
    let depth = directory.ancestors().position(is_root).unwrap_or(0);
    directory.ancestors().take(depth + 1).collect()
}

/// What is skipped in the project of `directory`, an absolute path, because of its owner.
pub fn passed_over(directory: &Path) -> Vec<ForeignFile> {
    const TRUSTED: [&str; 3] = ["AGENTS.md", ".ikigai", ".ikigai/config.toml"];
    let owners = Owners::of(directory);
    let folders = project_folders(directory, owners);
    let has_root = folders.last().is_some_and(|top| owners.check(&top.join(".git")) == Ok(true));
    let searched = directory.ancestors().take(if has_root { folders.len() } else { usize::MAX });
    let repositories = searched.map(|folder| folder.join(".git"));
    let files = folders.iter().flat_map(|folder| TRUSTED.map(|name| folder.join(name)));
    repositories.chain(files).filter_map(|path| owners.check(&path).err()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_root_and_the_owner_of_the_directory_are_believed() {
        let owners = Owners { user: 1000, directory: Some(1001) };
        for (owner, expected) in [(1000, true), (0, true), (1001, true), (1002, false)] {
            assert_eq!(owners.include(owner), expected, "{owner}");
        }
        let root = Owners { user: 0, directory: Some(1000) };
        assert!(root.include(1000) && !root.include(1001));
        assert!(!Owners { user: 1000, directory: None }.include(1001));
    }

    #[test]
    fn nothing_is_there_without_a_file() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Owners::of(folder.path()).check(&folder.path().join("nothing")), Ok(false));
    }
}
