//! Which part of the file system is what: the paths of a sandbox, resolved and put in order.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::Sandbox;

/// Where services have their sockets.
const COVERED: [&str; 1] = ["/run"];
/// Where programs of the user have theirs. Covered only where sockets are allowed: nothing else is secret there.
const COVERED_WITH_SOCKETS: [&str; 2] = ["/tmp", "/var/tmp"];
/// What everyday programs need of them: the way to name servers, and the programs of NixOS.
const KEPT: [&str; 3] = ["/etc/resolv.conf", "/run/current-system", "/run/opengl-driver"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Write,
    Read,
    Hidden,
}

/// A place that is kept by a mount on it.
#[derive(Debug)]
pub(crate) struct Cover {
    pub(crate) path: PathBuf,
    pub(crate) place: Place,
}

/// Places that differ from what they lie in, or that are roots. What lies in none of them can be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Places(BTreeMap<PathBuf, Place>);

/// What was opened to make sure that it is what it was, by its path.
pub(super) type Opened = BTreeMap<PathBuf, OwnedFd>;

impl Places {
    /// # Errors
    /// A root that is not what it was when the session opened.
    pub(super) fn of(sandbox: &Sandbox) -> io::Result<(Places, Opened)> {
        let mut places = BTreeMap::new();
        let mut opened = Opened::new();
        let with_sockets = COVERED_WITH_SOCKETS.iter().filter(|_| sandbox.unix_sockets);
        let covered = COVERED.iter().chain(with_sockets).map(Path::new);
        let hidden = covered.chain(sandbox.hidden.iter().map(PathBuf::as_path));
        // At one and the same path the last one counts: what is asked for goes before what is hidden.
        places.extend(hidden.filter_map(real).map(|path| (path, Place::Hidden)));
        places.extend(KEPT.iter().map(Path::new).filter_map(real).map(|path| (path, Place::Read)));
        let read = sandbox.read.iter().map(|root| (root, Place::Read));
        for (root, place) in read.chain(sandbox.write.iter().map(|root| (root, Place::Write))) {
            opened.insert(root.path().to_owned(), root.reopen()?);
            places.insert(root.path().to_owned(), place);
        }
        Ok((Places(places).without_repetition(), opened))
    }

    /// Drops what changes nothing. To make readable widens, so it has no meaning in what can be written. A root in
    /// another one stays: as a mount of its own it cannot be renamed.
    fn without_repetition(self) -> Places {
        let mut kept = Places(BTreeMap::new());
        // In the order of their components, so that what lies around a place was seen before it.
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

    /// What holds at an absolute path without links.
    pub(super) fn at(&self, path: &Path) -> Place {
        let nearest = path.ancestors().find_map(|around| self.0.get(around));
        nearest.copied().unwrap_or(Place::Read)
    }

    /// Hides one more, unless that changes nothing.
    pub(super) fn hide(&mut self, path: PathBuf) {
        if self.at(&path) != Place::Hidden {
            self.0.insert(path, Place::Hidden);
        }
    }

    /// Lets a part of what can be written only be read. A root stays as it is.
    pub(super) fn guard(&mut self, path: PathBuf) {
        if self.at(&path) == Place::Write && !self.0.contains_key(&path) {
            self.0.insert(path, Place::Read);
        }
    }

    /// Makes a place of its own of a folder that can be written: as a mount it cannot be renamed.
    pub(super) fn pin(&mut self, path: PathBuf) {
        if self.at(&path) == Place::Write {
            self.0.insert(path, Place::Write);
        }
    }

    /// Makes places of their own of all folders between what can be written and a place in it. As mounts they cannot be
    /// renamed; else one command could move the folder around a place, and the next one would find another thing at its
    /// path.
    pub(super) fn pin_around(&mut self) {
        let around = self.0.keys().flat_map(|path| path.ancestors().skip(1));
        let pinned = around.filter(|path| self.at(path) == Place::Write);
        let pinned: Vec<PathBuf> = pinned.map(Path::to_owned).collect();
        self.0.extend(pinned.into_iter().map(|path| (path, Place::Write)));
    }

    /// All of them, and what is to be hidden once it is there.
    pub(super) fn covers(&self, sandbox: &Sandbox) -> Vec<Cover> {
        let covers = self.0.iter().map(|(path, place)| Cover { path: path.clone(), place: *place });
        let is_bare =
            |path: &&PathBuf| self.at(path) != Place::Hidden && !self.0.contains_key(*path);
        let missing = sandbox.hidden.iter().filter(is_bare);
        let missing = missing.map(|path| Cover { path: path.clone(), place: Place::Hidden });
        covers.chain(missing).collect()
    }

    /// From the outside in.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Path, Place)> {
        self.0.iter().map(|(path, place)| (path.as_path(), *place))
    }

    /// The names in `folder` that lead to places.
    pub(super) fn names_in(&self, folder: &Path) -> BTreeSet<&OsStr> {
        let below = self.0.keys().filter_map(|path| path.strip_prefix(folder).ok());
        below.filter_map(|rest| rest.iter().next()).collect()
    }

    /// A hidden place inside of `folder`, which is not hidden itself.
    pub(super) fn hidden_below(&self, folder: &Path) -> Option<&Path> {
        let below = self.iter().filter(|(path, _)| path.starts_with(folder));
        below.filter(|(_, place)| *place == Place::Hidden).map(|(path, _)| path).next()
    }
}

/// The path of what is there, without links: a mount or a rule is about what they lead to.
fn real(path: &Path) -> Option<PathBuf> {
    // Most of what is hidden does not exist on a given machine, and to see that is one call.
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
