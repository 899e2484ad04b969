//! What lies in the working tree and is run or believed later, outside: git's hooks and settings, the start-up
//! files of shells, and what agents are told of the project. A command can read it.
//!
//! A mount can only lie on what exists, and looking through the whole tree before every command would take
//! too long. So this is about the top of each folder that can be written, and what is there when a command
//! starts. A link is left out, since whoever can write around it can put another in its place.

use std::fs;
use std::path::{Path, PathBuf};

use super::places::Places;
use crate::gate::{OF_GIT, START_UP};

/// More mounts would make every command slow. Each submodule has one or two such places.
const MOST: usize = 100;

/// Lets nothing be written there, unless one of the `writable` is just that place.
pub(super) fn guard(places: &mut Places, writable: &[PathBuf]) {
    let roots: Vec<PathBuf> = writable.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let mut guarded = Guarded::default();
    for root in &roots {
        for name in START_UP.iter().chain(&[".ikigai", "AGENTS.md"]) {
            guarded.add(root.join(name));
        }
        guarded.add_git(&root.join(".git"));
    }
    for path in guarded.pinned {
        places.pin(path);
    }
    for path in guarded.read_only.into_iter().filter(|path| !roots.contains(path)) {
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
        if is_own && self.read_only.len() < MOST {
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

    fn add_repository(&mut self, folder: &Path) {
        for name in OF_GIT {
            self.add(folder.join(name));
        }
        self.add_submodules(&folder.join("modules"));
    }

    /// The name of a submodule may have slashes in it.
    fn add_submodules(&mut self, folder: &Path) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.filter_map(Result::ok) {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if !is_folder || self.read_only.len() >= MOST {
                continue;
            }
            let path = entry.path();
            match path.join("HEAD").exists() {
                true => self.add_repository(&path),
                false => self.add_submodules(&path),
            }
        }
    }
}
