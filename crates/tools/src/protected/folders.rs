//! Finds the repositories of a root, visiting only what has changed since the last time.
//!
//! Between two commands, a tree of tens of thousands of folders mostly stays the same. A folder
//! with the same device, inode and change time has the same entries and is not listed again. What
//! remains is one system call for each folder.
//!
//! Folders are stored in walking order, parents before children, with the size of each subtree. So
//! an update reads the old list and writes the new one from front to back.

mod marks;
mod walk;

use std::path::PathBuf;
use std::time::SystemTime;

use super::safe_files::{FileStat, Root};
pub(super) use marks::is_shared_index;
use walk::Walk;

/// More unreadable folders are not named.
const MOST_NAMED: usize = 5;
/// Replaces the change time of a folder that must be listed again.
const UNSETTLED: i64 = i64::MIN;

/// The folders of a root, as of the last update.
#[derive(Debug, Default)]
pub(super) struct Folders {
    nodes: Vec<Node>,
    /// The concatenated names of all folders.
    names: Vec<u8>,
    /// A folder to skip, relative to the root.
    skipped: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    device: u64,
    inode: u64,
    /// In nanoseconds.
    changed: i64,
    /// The offset of its name in `names`.
    name: u32,
    /// How many folders the subtree has, including itself.
    span: u32,
    name_length: u16,
    flags: u8,
}

/// What to do with folders that their owner cannot list, and could before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// Leave them: the user made them so.
    Leave,
    /// Open them: a command made them so. Git and others can still find what is inside by name.
    Open,
}

/// The result of a walk. All paths are relative to the root.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct WalkResult {
    /// Git directories: `.git` folders, bare repositories, and those of submodules and worktrees.
    pub(super) repositories: Vec<PathBuf>,
    /// Folders with a `.git` entry.
    pub(super) with_git: Vec<PathBuf>,
    /// `modules` and `worktrees` of repositories, the folders in them, and other folders of a
    /// repository that contain a link.
    pub(super) nests: Vec<PathBuf>,
    /// Those of the repositories in which there is an index that others share.
    pub(super) with_shared_index: Vec<PathBuf>,
    /// Why some folders were not visited.
    pub(super) incomplete: Vec<String>,
    unreadable: usize,
}

impl Folders {
    /// An empty list; `skipped` will not be visited.
    pub(super) fn without(skipped: Option<PathBuf>) -> Folders {
        Folders { skipped, ..Folders::default() }
    }

    /// Finds out what has changed.
    pub(super) fn update(
        &mut self,
        root: &Root,
        now: SystemTime,
        unreadable: Unreadable,
    ) -> WalkResult {
        let old = std::mem::take(self);
        let mut walk = Walk::new(root, &old, now, unreadable);
        walk.run();
        let (new, found) = (walk.new, walk.found);
        *self = new;
        found
    }

    fn name(&self, at: usize) -> &[u8] {
        let node = &self.nodes[at];
        let start = node.name as usize;
        &self.names[start..start + usize::from(node.name_length)]
    }
}

impl Node {
    const UNKNOWN: Node = Node {
        device: 0,
        inode: 0,
        changed: UNSETTLED,
        name: 0,
        span: 1,
        name_length: 0,
        flags: 0,
    };

    fn of(stat: FileStat) -> Node {
        let FileStat { device, inode, .. } = stat;
        Node { device, inode, ..Node::UNKNOWN }
    }
}

impl WalkResult {
    fn add_incomplete(&mut self, reason: &str) {
        let is_new = !self.incomplete.iter().any(|known| known == reason);
        if is_new && self.incomplete.len() < 2 * MOST_NAMED {
            self.incomplete.push(reason.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::{Path, PathBuf};
    use std::time::{Duration, SystemTime};

    use super::super::safe_files::Root;
    use super::{Folders, Unreadable, WalkResult};

    fn sorted(mut found: WalkResult) -> WalkResult {
        for list in [&mut found.repositories, &mut found.with_git, &mut found.nests] {
            list.sort();
        }
        found
    }

    fn paths(paths: &[&str]) -> Vec<PathBuf> {
        paths.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn repositories_of_every_kind_are_found_at_any_depth() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["a/b/.git", "bare/objects/ab/x", "bare/objects/odd", "c/.GIT", "d"] {
            fs::create_dir_all(folder.path().join(path)).unwrap();
        }
        for path in ["a/b/.git/modules/x/y/objects", "a/b/.git/worktrees/w"] {
            fs::create_dir_all(folder.path().join(path)).unwrap();
        }
        for path in
            ["a/b/.git/modules/x/y/HEAD", "a/b/.git/worktrees/w/HEAD", "bare/HEAD", "d/.git"]
        {
            fs::write(folder.path().join(path), "").unwrap();
        }
        fs::write(folder.path().join("a/b/.git/worktrees/w/commondir"), "").unwrap();
        symlink("a", folder.path().join("link")).unwrap();
        let root = Root::open(folder.path()).unwrap();
        let found = sorted(Folders::default().update(&root, SystemTime::now(), Unreadable::Leave));
        let expected = WalkResult {
            repositories: paths(&[
                "a/b/.git",
                "a/b/.git/modules/x/y",
                "a/b/.git/worktrees/w",
                "bare",
                "c/.GIT",
            ]),
            with_git: paths(&["a/b", "c", "d"]),
            nests: paths(&["a/b/.git/modules", "a/b/.git/modules/x", "a/b/.git/worktrees"]),
            ..WalkResult::default()
        };
        assert_eq!(found, expected);
    }

    /// Root can read it anyway.
    #[test]
    fn a_root_that_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o000)).unwrap();
        let found = Folders::default().update(&root, SystemTime::now(), Unreadable::Leave);
        let name = folder.path().display();
        let expected = match rustix::process::geteuid().is_root() {
            true => Vec::new(),
            false => vec![format!("{name} cannot be read: Permission denied (os error 13)")],
        };
        assert_eq!(found.incomplete, expected);
    }

    #[test]
    fn an_update_finds_what_a_new_walk_finds() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        for one in 0..5 {
            for two in 0..5 {
                fs::create_dir_all(at(&format!("{one}/{two}/x"))).unwrap();
            }
        }
        let root = Root::open(folder.path()).unwrap();
        let mut warm = Folders::default();
        // As if all older changes had settled.
        let later = SystemTime::now() + Duration::from_secs(3600);
        let changes: [&dyn Fn(); 9] = [
            &|| (),
            &|| fs::create_dir(at("1/2/x/.git")).unwrap(),
            &|| fs::write(at("3/3/.git"), "").unwrap(),
            &|| fs::rename(at("1/2"), at("4/moved")).unwrap(),
            &|| fs::create_dir_all(at("0/0/objects")).unwrap(),
            &|| fs::write(at("0/0/HEAD"), "").unwrap(),
            &|| fs::remove_dir_all(at("3")).unwrap(),
            &|| {
                fs::rename(at("4"), at("5")).unwrap();
                symlink("5", at("4")).unwrap();
            },
            &|| fs::create_dir_all(at("5/moved/x/.git/modules/m")).unwrap(),
        ];
        let mut found_before = WalkResult::default();
        for (number, change) in changes.iter().enumerate() {
            change();
            let found = sorted(warm.update(&root, later, Unreadable::Leave));
            let cold = sorted(Folders::default().update(&root, later, Unreadable::Leave));
            assert_eq!(found, cold, "change {number}");
            assert_eq!(found == found_before, number == 0 || number == 4, "change {number}");
            found_before = found;
        }
        assert!(found_before.nests.contains(&Path::new("5/moved/x/.git/modules").to_owned()));
    }
}
