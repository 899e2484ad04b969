//! Which part of the file system is what: the paths of a sandbox, resolved and put in order.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::Sandbox;

/// Where services have their sockets.
const COVERED: [&str; 1] = ["/run"];
/// What everyday programs need of them: the way to name servers, and the programs of NixOS.
const KEPT: [&str; 3] = ["/etc/resolv.conf", "/run/current-system", "/run/opengl-driver"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Write,
    Read,
    Hidden,
}

/// Places that differ from what they lie in. What lies in none of them can be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Places(BTreeMap<PathBuf, Place>);

impl Places {
    pub(super) fn of(sandbox: &Sandbox) -> Places {
        let mut places = BTreeMap::new();
        let covered = COVERED.iter().map(Path::new);
        let kept = KEPT.iter().map(Path::new);
        // At one and the same path the last one counts: what is asked for goes before what is hidden.
        let hidden = covered.chain(paths(&sandbox.hidden)).map(|path| (path, Place::Hidden));
        let read = kept.chain(paths(&sandbox.read)).map(|path| (path, Place::Read));
        let write = paths(&sandbox.write).map(|path| (path, Place::Write));
        for (path, place) in hidden.chain(read).chain(write) {
            // Most of what is hidden does not exist on a given machine, and to see that is one call.
            let exists = path.symlink_metadata().is_ok();
            // Links are followed: a mount or a rule is about what they lead to.
            if exists && let Ok(path) = path.canonicalize() {
                places.insert(path, place);
            }
        }
        Places(places).without_repetition()
    }

    /// Drops what changes nothing. To make readable widens, so it has no meaning in what can be written.
    fn without_repetition(self) -> Places {
        let mut kept = Places(BTreeMap::new());
        // In the order of their components, so that what lies around a place was seen before it.
        for (path, place) in self.0 {
            let around = kept.at(&path);
            let changes = match place {
                Place::Read => around == Place::Hidden,
                Place::Write | Place::Hidden => around != place,
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

    /// Makes a place of its own of a folder that can be written: as a mount it cannot be renamed.
    pub(super) fn pin(&mut self, path: PathBuf) {
        if self.at(&path) == Place::Write {
            self.0.insert(path, Place::Write);
        }
    }

    /// Lets a part of what can be written only be read.
    pub(super) fn guard(&mut self, path: PathBuf) {
        if self.at(&path) == Place::Write {
            self.0.insert(path, Place::Read);
        }
    }

    /// Makes places of their own of all folders between what can be written and what is hidden in it. As
    /// mounts they cannot be renamed; else one command could move the folder around a secret, and the next
    /// one would find the secret where nobody hides it.
    pub(super) fn pin_around_hidden(&mut self) {
        let hidden = self.iter().filter(|(_, place)| *place == Place::Hidden);
        let around = hidden.flat_map(|(path, _)| path.ancestors().skip(1));
        let pinned = around.filter(|path| self.at(path) == Place::Write);
        let pinned: Vec<PathBuf> = pinned.map(Path::to_owned).collect();
        self.0.extend(pinned.into_iter().map(|path| (path, Place::Write)));
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

fn paths(paths: &[PathBuf]) -> impl Iterator<Item = &Path> {
    paths.iter().map(PathBuf::as_path)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Place, Places, Sandbox};

    #[test]
    fn the_deeper_place_counts_and_what_is_asked_for_goes_first() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["home/.ssh/tree", "home/.aws/sso", "home/work/.git", "home/.kube"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(root.join("home/.kube"), root.join("home/link")).unwrap();
        let at = |name: &str| root.join(name);
        let sandbox = Sandbox {
            write: vec![at("home/work"), at("home/.ssh/tree"), at("home/none")],
            read: vec![at("home"), at("home/.aws/sso"), at("home/work/.git")],
            hidden: vec![at("home/.ssh"), at("home/.aws"), at("home/link"), at("home/.netrc")],
            ..Sandbox::default()
        };
        let places = Places::of(&sandbox);
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
}
