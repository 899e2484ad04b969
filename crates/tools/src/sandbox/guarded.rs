//! What lies in the working tree and is run or believed later, outside: git's hooks and settings, the start-up
//! files of shells, and what agents are told of the project. A command can read it.
//!
//! A mount can only lie on what exists, and looking through the whole tree before every command would take
//! too long. So this is about the top of each folder that can be written, and what is there when a command
//! starts. A link is left out, since whoever can write around it can put another in its place.

use std::fs;
use std::path::{Path, PathBuf};

use super::Root;
use super::places::Places;
use crate::protected::{OF_GIT, START_UP, TOP};

/// Each submodule has one or two places of its own beside this, and more mounts would make every command slow.
const MOST_PINNED: usize = 100;
/// A command could have made any number of them, and each is looked at before the next one.
const MOST_FOLDERS: usize = 1_000;

/// Lets nothing be written there, unless one of the `writable` is just that place.
pub(super) fn guard<'a>(places: &mut Places, roots: impl Iterator<Item = &'a Root>) {
    let mut guarded = Guarded::default();
    for root in roots.map(Root::path) {
        for name in START_UP.iter().chain(&TOP) {
            guarded.add(root.join(name));
        }
        guarded.add_git(&root.join(".git"));
    }
    for path in guarded.pinned {
        places.pin(path);
    }
    for path in guarded.read_only {
        places.guard(path);
    }
}

#[derive(Debug, Default)]
struct Guarded {
    read_only: Vec<PathBuf>,
    /// Folders that cannot be put aside for others with other hooks.
    pinned: Vec<PathBuf>,
}

impl Guarded {
    fn add(&mut self, path: PathBuf) {
        let is_own = fs::symlink_metadata(&path).is_ok_and(|found| !found.is_symlink());
        if is_own {
            self.read_only.push(path);
        }
    }

    /// In a worktree and in a submodule `.git` is a file with the path of the folder.
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

    /// A repository with its submodules, and theirs; where there are too many of them, they can all only be read.
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
                // The name of a submodule may have slashes in it.
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

    /// Of a submodule the folders up to its repository: whoever moves one of them moves the settings.
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

/// Its settings are what cannot be taken away from it.
fn is_repository(path: &Path) -> bool {
    let found = |name: &str| fs::symlink_metadata(path.join(name));
    found("config").is_ok_and(|config| config.is_file()) || found("HEAD").is_ok()
}

/// A folder, unless it is a link: what that leads to may not be there inside.
fn folder(path: PathBuf) -> Option<PathBuf> {
    fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()).then_some(path)
}

fn folders_in(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path())
}
