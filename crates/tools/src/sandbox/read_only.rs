//! The protected paths that bubblewrap mounts read-only: git's hooks and settings, the startup
//! files of shells, and instructions for agents.
//!
//! A mount needs an existing path, and searching the whole tree before every command would take too
//! long. So this covers only the top of each writable root, and only what exists when the command
//! starts. Links are left out: a command that can write to the folder could replace them.

use std::fs;
use std::path::{Path, PathBuf};

use super::Root;
use super::access_map::AccessMap;
use crate::protected::{OF_GIT, START_UP, TOP};

/// Each submodule adds one or two more mounts, and too many would slow down every command.
const MOST_PINNED: usize = 100;
/// A command could have created any number of them, and each is inspected before the next command.
const MOST_FOLDERS: usize = 1_000;

/// Makes the protected paths of the writable `roots` read-only, except where one of them is a root
/// itself.
pub(super) fn protect<'a>(access_map: &mut AccessMap, roots: impl Iterator<Item = &'a Root>) {
    let mut paths = ReadOnlyPaths::default();
    for root in roots.map(Root::path) {
        for name in START_UP.iter().chain(&TOP) {
            paths.add(root.join(name));
        }
        paths.add_git(&root.join(".git"));
    }
    for path in paths.pinned {
        access_map.pin(path);
    }
    for path in paths.read_only {
        access_map.make_read_only(path);
    }
}

#[derive(Debug, Default)]
struct ReadOnlyPaths {
    read_only: Vec<PathBuf>,
    /// Folders that must not be renamed, since a replacement could have other hooks.
    pinned: Vec<PathBuf>,
}

impl ReadOnlyPaths {
    fn add(&mut self, path: PathBuf) {
        let is_own = fs::symlink_metadata(&path).is_ok_and(|found| !found.is_symlink());
        if is_own {
            self.read_only.push(path);
        }
    }

    /// In a worktree or submodule, `.git` is a file that names the actual folder.
    fn add_git(&mut self, git: &Path) {
        match fs::symlink_metadata(git) {
            Ok(found) if found.is_file() => self.add(git.to_owned()),
            Ok(found) if found.is_dir() => {
                self.pinned.push(git.to_owned());
                self.add_repository(git);
            }
            Ok(_) | Err(_) => {}
        }
    }

    /// Adds a repository and, recursively, its submodules. If there are too many, `modules` becomes
    /// read-only as a whole.
    fn add_repository(&mut self, git: &Path) {
        self.add_settings(git);
        let modules = git.join("modules");
        let mut folders: Vec<PathBuf> = folder(modules.clone()).into_iter().collect();
        let mut looked_at = 0;
        while let Some(around) = folders.pop() {
            for path in folders_in(&around) {
                looked_at += 1;
                if looked_at > MOST_FOLDERS || self.pinned.len() > MOST_PINNED {
                    return self.add(modules);
                }
                // The name of a submodule may contain slashes.
                if is_repository(&path) {
                    self.add_settings(&path);
                    self.pin_between(git, &path);
                    folders.extend(folder(path.join("modules")));
                } else {
                    folders.push(path);
                }
            }
        }
    }

    /// Pins all folders down to a submodule's repository, since moving one of them would move its
    /// settings.
    fn pin_between(&mut self, git: &Path, submodule: &Path) {
        let between = submodule.ancestors().take_while(|path| *path != git);
        for path in between.map(Path::to_owned) {
            if !self.pinned.contains(&path) {
                self.pinned.push(path);
            }
        }
    }

    fn add_settings(&mut self, repository: &Path) {
        for name in OF_GIT {
            self.add(repository.join(name));
        }
    }
}

/// Checks for `config` first: a command cannot remove that.
fn is_repository(path: &Path) -> bool {
    let found = |name: &str| fs::symlink_metadata(path.join(name));
    found("config").is_ok_and(|config| config.is_file()) || found("HEAD").is_ok()
}

/// The path if it is a folder and not a link, whose target may not exist inside the sandbox.
fn folder(path: PathBuf) -> Option<PathBuf> {
    fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()).then_some(path)
}

fn folders_in(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path())
}
