//! The paths of a sandbox, resolved and ordered: which parts of the file system are writable,
//! readable or hidden.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::Sandbox;
use crate::place::real_paths;

/// Where services keep their sockets.
const COVERED: [&str; 1] = ["/run"];
/// Where the user's programs keep theirs. Hidden only if sockets are allowed, since nothing else
/// there is secret.
const COVERED_WITH_SOCKETS: [&str; 2] = ["/tmp", "/var/tmp"];
/// What ordinary programs need from hidden folders: the DNS configuration, and the programs of
/// NixOS.
const KEPT: [&str; 3] = ["/etc/resolv.conf", "/run/current-system", "/run/opengl-driver"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathAccess {
    Write,
    Read,
    Hidden,
}

/// A path whose access is enforced by a mount on top of it.
#[derive(Debug)]
pub(crate) struct Cover {
    pub(crate) path: PathBuf,
    pub(crate) access: PathAccess,
}

/// Paths whose access differs from their surroundings, and all roots. Everything else is readable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AccessMap(BTreeMap<PathBuf, PathAccess>);

/// The open file descriptors of verified roots, by path.
pub(super) type OpenRoots = BTreeMap<PathBuf, OwnedFd>;

impl AccessMap {
    /// # Errors
    /// If a root is not the folder that it was when the session started.
    pub(super) fn of(sandbox: &Sandbox) -> io::Result<(AccessMap, OpenRoots)> {
        let mut access_map = BTreeMap::new();
        let mut opened = OpenRoots::new();
        let with_sockets = COVERED_WITH_SOCKETS.iter().filter(|_| sandbox.unix_sockets);
        let covered = COVERED.iter().chain(with_sockets).map(Path::new);
        let hidden = covered.chain(sandbox.hidden.iter().map(PathBuf::as_path));
        // For equal paths the last insertion wins, so what was requested overrides what is hidden.
        access_map.extend(hidden.filter_map(real).map(|path| (path, PathAccess::Hidden)));
        access_map.extend(
            KEPT.iter().map(Path::new).filter_map(real).map(|path| (path, PathAccess::Read)),
        );
        let read = sandbox.read.iter().map(|root| (root, PathAccess::Read));
        for (root, access) in read.chain(sandbox.write.iter().map(|root| (root, PathAccess::Write)))
        {
            opened.insert(root.path().to_owned(), root.reopen()?);
            access_map.insert(root.path().to_owned(), access);
        }
        Ok((AccessMap(access_map).without_redundant(), opened))
    }

    /// Drops redundant entries. A readable path only widens access, so it means nothing inside a
    /// writable one. A root inside another root stays, since a mount point cannot be renamed.
    fn without_redundant(self) -> AccessMap {
        let mut kept = AccessMap(BTreeMap::new());
        // Parents come before their children in this order.
        for (path, access) in self.0 {
            let around = kept.access(&path);
            let changes = match access {
                PathAccess::Read => around == PathAccess::Hidden,
                PathAccess::Hidden => around != access,
                PathAccess::Write => true,
            };
            if changes {
                kept.0.insert(path, access);
            }
        }
        kept
    }

    /// The access to an absolute path without links.
    pub(super) fn access(&self, path: &Path) -> PathAccess {
        let nearest = path.ancestors().find_map(|around| self.0.get(around));
        nearest.copied().unwrap_or(PathAccess::Read)
    }

    /// Hides a path unless it is hidden already.
    pub(super) fn hide(&mut self, path: PathBuf) {
        if self.access(&path) != PathAccess::Hidden {
            self.0.insert(path, PathAccess::Hidden);
        }
    }

    /// Hides paths that do not exist yet, except in writable folders. Rules that cannot change while
    /// a command runs must take them into account.
    pub(super) fn hide_missing(&mut self, hidden: &[PathBuf]) {
        let missing = hidden.iter().filter(|path| path.symlink_metadata().is_err());
        for path in real_paths(missing.cloned()) {
            if self.access(&path) == PathAccess::Read {
                self.0.insert(path, PathAccess::Hidden);
            }
        }
    }

    /// Makes part of a writable folder read-only. Roots stay as they are.
    pub(super) fn make_read_only(&mut self, path: PathBuf) {
        if self.access(&path) == PathAccess::Write && !self.0.contains_key(&path) {
            self.0.insert(path, PathAccess::Read);
        }
    }

    /// Gives a writable folder its own mount, so that it cannot be renamed.
    pub(super) fn pin(&mut self, path: PathBuf) {
        if self.access(&path) == PathAccess::Write {
            self.0.insert(path, PathAccess::Write);
        }
    }

    /// Gives a mount to each folder between a root and a path inside it, so that none can be
    /// renamed. Otherwise one command could move a parent folder, and the next would find something
    /// else at the path.
    pub(super) fn pin_parents(&mut self) {
        let around = self.0.keys().flat_map(|path| path.ancestors().skip(1));
        let pinned = around.filter(|path| self.access(path) == PathAccess::Write);
        let pinned: Vec<PathBuf> = pinned.map(Path::to_owned).collect();
        self.0.extend(pinned.into_iter().map(|path| (path, PathAccess::Write)));
    }

    /// All entries, and paths to be hidden as soon as they exist.
    pub(super) fn covers(&self, sandbox: &Sandbox) -> Vec<Cover> {
        let covers =
            self.0.iter().map(|(path, access)| Cover { path: path.clone(), access: *access });
        let is_bare = |path: &&PathBuf| {
            self.access(path) != PathAccess::Hidden && !self.0.contains_key(*path)
        };
        let missing = sandbox.hidden.iter().filter(is_bare);
        let missing = missing.map(|path| Cover { path: path.clone(), access: PathAccess::Hidden });
        covers.chain(missing).collect()
    }

    /// All entries, parents first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Path, PathAccess)> {
        self.0.iter().map(|(path, access)| (path.as_path(), *access))
    }

    /// The names in `folder` that lead to entries.
    pub(super) fn names_in(&self, folder: &Path) -> BTreeSet<&OsStr> {
        let below = self.0.keys().filter_map(|path| path.strip_prefix(folder).ok());
        below.filter_map(|rest| rest.iter().next()).collect()
    }

    /// A hidden path inside `folder`, which itself is not hidden.
    pub(super) fn hidden_inside(&self, folder: &Path) -> Option<&Path> {
        let below = self.iter().filter(|(path, _)| path.starts_with(folder));
        below.filter(|(_, access)| *access == PathAccess::Hidden).map(|(path, _)| path).next()
    }
}

/// The path without links: mounts and rules apply to the target.
fn real(path: &Path) -> Option<PathBuf> {
    // On most machines, few hidden paths exist; this check takes one system call.
    path.symlink_metadata().ok()?;
    path.canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{AccessMap, PathAccess, Sandbox};
    use crate::sandbox::Root;

    #[test]
    fn the_deeper_path_counts_and_requests_override_hiding() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["home/.ssh/tree", "home/.aws/sso", "home/code/.git", "home/.kube"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(root.join("home/.kube"), root.join("home/link")).unwrap();
        let at = |name: &str| root.join(name);
        let roots =
            |names: &[&str]| names.iter().map(|name| Root::open(&at(name)).unwrap()).collect();
        let sandbox = Sandbox {
            write: roots(&["home/code", "home/.ssh/tree"]),
            read: roots(&["home", "home/.aws/sso", "home/code/.git"]),
            hidden: vec![at("home/.ssh"), at("home/.aws"), at("home/link"), at("home/.netrc")],
            ..Sandbox::default()
        };
        let (access_map, _) = AccessMap::of(&sandbox).unwrap();
        for (name, expected) in [
            ("home", PathAccess::Read),
            ("home/other", PathAccess::Read),
            ("home/.ssh", PathAccess::Hidden),
            ("home/.ssh/id", PathAccess::Hidden),
            ("home/.ssh/tree/a", PathAccess::Write),
            ("home/.aws/credentials", PathAccess::Hidden),
            ("home/.aws/sso/x", PathAccess::Read),
            ("home/code/.git", PathAccess::Write),
            ("home/.kube/config", PathAccess::Hidden),
        ] {
            assert_eq!(access_map.access(&at(name)), expected, "{name}");
        }
        assert_eq!(access_map.hidden_inside(&at("home/code")), None);
        assert_eq!(access_map.hidden_inside(&at("home")), Some(at("home/.aws").as_path()));
    }

    #[test]
    fn a_nested_root_and_the_folders_between_get_mounts() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("tree/a/b/sub")).unwrap();
        let roots = ["tree", "tree/a/b/sub"].map(|name| Root::open(&root.join(name)).unwrap());
        let sandbox = Sandbox { write: roots.to_vec(), ..Sandbox::default() };
        let (mut access_map, opened) = AccessMap::of(&sandbox).unwrap();
        access_map.pin_parents();
        let inside = access_map.iter().filter(|(path, _)| path.starts_with(&root));
        let inside: Vec<_> = inside.map(|(path, access)| (path.to_owned(), access)).collect();
        let names = ["tree", "tree/a", "tree/a/b", "tree/a/b/sub"];
        assert_eq!(inside, names.map(|name| (root.join(name), PathAccess::Write)));
        assert_eq!(opened.len(), 2);
    }
}
