//! The paths of a sandbox, resolved and ordered: which parts of the file system are writable,
//! readable or hidden.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::Sandbox;

/// Where services keep their sockets.
const COVERED: [&str; 1] = ["/run"];
/// Where the user's programs keep theirs. Hidden only if sockets are allowed, since nothing else
/// there is secret.
const COVERED_WITH_SOCKETS: [&str; 2] = ["/tmp", "/var/tmp"];
/// What ordinary programs need from hidden folders: the DNS configuration, and the programs of
/// NixOS.
const KEPT: [&str; 3] = ["/etc/resolv.conf", "/run/current-system", "/run/opengl-driver"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Write,
    Read,
    Hidden,
}

/// A path whose access is enforced by a mount on top of it.
#[derive(Debug)]
pub(crate) struct Cover {
    pub(crate) path: PathBuf,
    pub(crate) place: Place,
}

/// Paths whose access differs from their surroundings, and all roots. Everything else is readable.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Places(BTreeMap<PathBuf, Place>);

/// The open file descriptors of verified roots, by path.
pub(super) type Opened = BTreeMap<PathBuf, OwnedFd>;

impl Places {
    /// # Errors
    /// If a root is not the folder that it was when the session started.
    pub(super) fn of(sandbox: &Sandbox) -> io::Result<(Places, Opened)> {
        let mut places = BTreeMap::new();
        let mut opened = Opened::new();
        let with_sockets = COVERED_WITH_SOCKETS.iter().filter(|_| sandbox.unix_sockets);
        let covered = COVERED.iter().chain(with_sockets).map(Path::new);
        let hidden = covered.chain(sandbox.hidden.iter().map(PathBuf::as_path));
        // For equal paths the last insertion wins, so what was requested overrides what is hidden.
        places.extend(hidden.filter_map(real).map(|path| (path, Place::Hidden)));
        places.extend(KEPT.iter().map(Path::new).filter_map(real).map(|path| (path, Place::Read)));
        let read = sandbox.read.iter().map(|root| (root, Place::Read));
        for (root, place) in read.chain(sandbox.write.iter().map(|root| (root, Place::Write))) {
            opened.insert(root.path().to_owned(), root.reopen()?);
            places.insert(root.path().to_owned(), place);
        }
        Ok((Places(places).without_repetition(), opened))
    }

    /// Drops redundant entries. A readable path only widens access, so it means nothing inside a
    /// writable one. A root inside another root stays, since a mount point cannot be renamed.
    fn without_repetition(self) -> Places {
        let mut kept = Places(BTreeMap::new());
        // Parents come before their children in this order.
        for (path, place) in self.0 {
            let around = kept.at(&path);
            let changes = match place {
                Place::Read => around == Place::Hidden,
                Place::Hidden => around != place,
                Place::Write => true,
            };
            if changes {
                kept.0.insert(path, place);
            }
        }
        kept
    }

    /// The access to an absolute path without links.
    pub(super) fn at(&self, path: &Path) -> Place {
        let nearest = path.ancestors().find_map(|around| self.0.get(around));
        nearest.copied().unwrap_or(Place::Read)
    }

    /// Hides a path unless it is hidden already.
    pub(super) fn hide(&mut self, path: PathBuf) {
        if self.at(&path) != Place::Hidden {
            self.0.insert(path, Place::Hidden);
        }
    }

    /// Makes part of a writable folder read-only. Roots stay as they are.
    pub(super) fn guard(&mut self, path: PathBuf) {
        if self.at(&path) == Place::Write && !self.0.contains_key(&path) {
            self.0.insert(path, Place::Read);
        }
    }

    /// Gives a writable folder its own mount, so that it cannot be renamed.
    pub(super) fn pin(&mut self, path: PathBuf) {
        if self.at(&path) == Place::Write {
            self.0.insert(path, Place::Write);
        }
    }

    /// Gives a mount to each folder between a root and a path inside it, so that none can be
    /// renamed. Otherwise one command could move a parent folder, and the next would find something
    /// else at the path.
    pub(super) fn pin_around(&mut self) {
        let around = self.0.keys().flat_map(|path| path.ancestors().skip(1));
        let pinned = around.filter(|path| self.at(path) == Place::Write);
        let pinned: Vec<PathBuf> = pinned.map(Path::to_owned).collect();
        self.0.extend(pinned.into_iter().map(|path| (path, Place::Write)));
    }

    /// All entries, and paths to be hidden as soon as they exist.
    pub(super) fn covers(&self, sandbox: &Sandbox) -> Vec<Cover> {
        let covers = self.0.iter().map(|(path, place)| Cover { path: path.clone(), place: *place });
        let is_bare =
            |path: &&PathBuf| self.at(path) != Place::Hidden && !self.0.contains_key(*path);
        let missing = sandbox.hidden.iter().filter(is_bare);
        let missing = missing.map(|path| Cover { path: path.clone(), place: Place::Hidden });
        covers.chain(missing).collect()
    }

    /// All entries, parents first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Path, Place)> {
        self.0.iter().map(|(path, place)| (path.as_path(), *place))
    }

    /// The names in `folder` that lead to entries.
    pub(super) fn names_in(&self, folder: &Path) -> BTreeSet<&OsStr> {
        let below = self.0.keys().filter_map(|path| path.strip_prefix(folder).ok());
        below.filter_map(|rest| rest.iter().next()).collect()
    }

    /// A hidden path inside `folder`, which itself is not hidden.
    pub(super) fn hidden_below(&self, folder: &Path) -> Option<&Path> {
        let below = self.iter().filter(|(path, _)| path.starts_with(folder));
        below.filter(|(_, place)| *place == Place::Hidden).map(|(path, _)| path).next()
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

    use super::{Place, Places, Sandbox};
    use crate::sandbox::Root;

    #[test]
    fn the_deeper_place_counts_and_what_is_asked_for_goes_first() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["home/.ssh/tree", "home/.aws/sso", "home/work/.git", "home/.kube"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(root.join("home/.kube"), root.join("home/link")).unwrap();
        let at = |name: &str| root.join(name);
        let roots =
            |names: &[&str]| names.iter().map(|name| Root::open(&at(name)).unwrap()).collect();
        let sandbox = Sandbox {
            write: roots(&["home/work", "home/.ssh/tree"]),
            read: roots(&["home", "home/.aws/sso", "home/work/.git"]),
            hidden: vec![at("home/.ssh"), at("home/.aws"), at("home/link"), at("home/.netrc")],
            ..Sandbox::default()
        };
        let (places, _) = Places::of(&sandbox).unwrap();
        for (name, expected) in [
            ("home", Place::Read),
            ("home/other", Place::Read),
            ("home/.ssh", Place::Hidden),
            ("home/.ssh/id", Place::Hidden),
            ("home/.ssh/tree/a", Place::Write),
            ("home/.aws/credentials", Place::Hidden),
            ("home/.aws/sso/x", Place::Read),
            ("home/work/.git", Place::Write),
            ("home/.kube/config", Place::Hidden),
        ] {
            assert_eq!(places.at(&at(name)), expected, "{name}");
        }
        assert_eq!(places.hidden_below(&at("home/work")), None);
        assert_eq!(places.hidden_below(&at("home")), Some(at("home/.aws").as_path()));
    }

    #[test]
    fn a_root_in_another_one_and_the_folders_between_are_places_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("tree/a/b/sub")).unwrap();
        let roots = ["tree", "tree/a/b/sub"].map(|name| Root::open(&root.join(name)).unwrap());
        let sandbox = Sandbox { write: roots.to_vec(), ..Sandbox::default() };
        let (mut places, opened) = Places::of(&sandbox).unwrap();
        places.pin_around();
        let inside = places.iter().filter(|(path, _)| path.starts_with(&root));
        let inside: Vec<_> = inside.map(|(path, place)| (path.to_owned(), place)).collect();
        let names = ["tree", "tree/a", "tree/a/b", "tree/a/b/sub"];
        assert_eq!(inside, names.map(|name| (root.join(name), Place::Write)));
        assert_eq!(opened.len(), 2);
    }
}
