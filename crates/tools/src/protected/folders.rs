//! Where repositories are beneath a root, found by looking only at what has changed since the last time.
//!
//! Between two commands a tree of ten thousands of folders stays mostly as it is. Each folder is known by its device,
//! inode and change time; while these are the same, so are its entries, and it is not listed again. What is left is one
//! call of the system for each folder.
//!
//! Folders lie in the order of a walk, each before those in it, with the size of what is beneath it. So an update reads
//! the old list from front to back, and writes the new one the same way.

mod marks;
mod walk;

use std::path::PathBuf;
use std::time::SystemTime;

use super::beneath::{Look, Root};
pub(super) use marks::is_shared_index;
use walk::Walk;

/// As many unreadable folders are named.
const MOST_NAMED: usize = 5;
/// In the place of a change time: the folder has to be listed again.
const UNSETTLED: i64 = i64::MIN;

/// The folders beneath one root, as they were when they were last looked at.
#[derive(Debug, Default)]
pub(super) struct Folders {
    nodes: Vec<Node>,
    /// The names of all of them, one behind the other.
    names: Vec<u8>,
    /// A folder that is not looked into, relative to the root.
    skipped: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    device: u64,
    inode: u64,
    /// Nanoseconds.
    changed: i64,
    /// Where its name begins in `names`.
    name: u32,
    /// How many folders are beneath it, with itself.
    span: u32,
    name_length: u16,
    flags: u8,
}

/// What is done about a folder that its owner may not list, and that was not so before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closed {
    /// It is left as it is: the user has made it so.
    Left,
    /// It is opened: a command has made it so. Git finds what is in it by its name, and so do others.
    Opened,
}

/// What a walk has found. All paths are relative to the root.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Folders of repositories: `.git` folders, bare repositories, those of submodules and worktrees.
    pub(super) repositories: Vec<PathBuf>,
    /// Folders with an entry `.git`.
    pub(super) with_git: Vec<PathBuf>,
    /// `modules` and `worktrees` of repositories, folders in these, and all others in a repository that have a link in them.
    pub(super) nests: Vec<PathBuf>,
    /// Those of the repositories in which there is an index that others share.
    pub(super) with_shared_index: Vec<PathBuf>,
    /// Why not everything was looked at.
    pub(super) incomplete: Vec<String>,
    unreadable: usize,
}

impl Folders {
    /// Nothing yet; `skipped` is not looked into.
    pub(super) fn without(skipped: Option<PathBuf>) -> Folders {
        Folders { skipped, ..Folders::default() }
    }

    /// Looks what has changed.
    pub(super) fn update(&mut self, root: &Root, now: SystemTime, closed: Closed) -> Found {
        let old = std::mem::take(self);
        let mut walk = Walk::new(root, &old, now, closed);
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

    fn of(look: Look) -> Node {
        let Look { device, inode, .. } = look;
        Node { device, inode, ..Node::UNKNOWN }
    }
}

impl Found {
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

    use super::super::beneath::Root;
    use super::{Closed, Folders, Found};

    fn sorted(mut found: Found) -> Found {
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
        let found = sorted(Folders::default().update(&root, SystemTime::now(), Closed::Left));
        let expected = Found {
            repositories: paths(&[
                "a/b/.git",
                "a/b/.git/modules/x/y",
                "a/b/.git/worktrees/w",
                "bare",
                "c/.GIT",
            ]),
            with_git: paths(&["a/b", "c", "d"]),
            nests: paths(&["a/b/.git/modules", "a/b/.git/modules/x", "a/b/.git/worktrees"]),
            ..Found::default()
        };
        assert_eq!(found, expected);
    }

    /// Root reads it all the same.
    #[test]
    fn a_root_that_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o000)).unwrap();
        let found = Folders::default().update(&root, SystemTime::now(), Closed::Left);
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
        // As if all that is older had settled.
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
        let mut found_before = Found::default();
        for (number, change) in changes.iter().enumerate() {
            change();
            let found = sorted(warm.update(&root, later, Closed::Left));
            let cold = sorted(Folders::default().update(&root, later, Closed::Left));
            assert_eq!(found, cold, "change {number}");
            assert_eq!(found == found_before, number == 0 || number == 4, "change {number}");
            found_before = found;
        }
        assert!(found_before.nests.contains(&Path::new("5/moved/x/.git/modules").to_owned()));
    }
}
