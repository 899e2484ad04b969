//! The Unix sockets of this machine that have a path.
//!
//! A file system that is mounted read-only does not keep anybody from connecting to a socket in it. So
//! those that are there when a command starts are covered one by one. One that comes up later in a place
//! that can be read is not; the folders where services are known to keep theirs are hidden as a whole. To find
//! those takes long where much lies beside them, so it is done once, and again when something came or went there.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use super::ground::Ground;
use super::places::{Place, Places};

/// More mounts than this would make every command slow. Desktops have a dozen outside of `/run`.
const LIMIT: usize = 1_000;

/// How folders begin in which programs keep the sockets of a login or a session.
const FOLDERS: [&str; 13] = [
    ".X11-unix",
    ".ICE-unix",
    ".XIM-unix",
    ".font-unix",
    "ssh-",
    "tmux-",
    "screen",
    "dbus-",
    "gpg-",
    "keyring-",
    "pulse-",
    "systemd-private-",
    "vscode-",
];

/// Where they lie.
const AROUND: [&str; 2] = ["/tmp", "/var/tmp"];

/// Hides all sockets that lie in what can only be read.
pub(super) fn hide(places: &mut Places, folders: &Mutex<SocketFolders>) -> io::Result<()> {
    // Whatever panicked while it held them, they are looked over before they are used.
    let found = folders.lock().unwrap_or_else(PoisonError::into_inner).find();
    for folder in found {
        // What can be written there was asked for.
        if places.at(&folder) == Place::Read {
            places.hide(folder);
        }
    }
    let mut count = 0;
    for line in BufReader::new(fs::File::open("/proc/net/unix")?).split(b'\n').skip(1) {
        let line = line?;
        let Some(path) = path_of(&String::from_utf8_lossy(&line)).filter(|path| is_socket(path))
        else {
            continue;
        };
        if let Ok(path) = path.canonicalize()
            && places.at(&path) == Place::Read
        {
            places.hide(path);
            count += 1;
        }
        if count > LIMIT {
            return Err(io::Error::other(format!("more than {LIMIT} Unix sockets to cover")));
        }
    }
    Ok(())
}

/// The folders in which programs keep sockets, as they were found last.
#[derive(Debug, Default)]
pub(crate) struct SocketFolders([Option<Listed>; AROUND.len()]);

/// What was found in one folder.
#[derive(Debug)]
struct Listed {
    found: Vec<PathBuf>,
    /// The folder; `None` when nobody would see that it changes.
    ground: Option<Ground>,
}

impl SocketFolders {
    fn find(&mut self) -> Vec<PathBuf> {
        for (listed, around) in self.0.iter_mut().zip(AROUND) {
            let around = Path::new(around).canonicalize().ok();
            if !listed.as_ref().is_some_and(|listed| listed.is_good(around.as_deref())) {
                *listed = around.and_then(|around| Listed::of(&around, SystemTime::now()));
            }
        }
        self.0.iter().flatten().flat_map(|listed| listed.found.clone()).collect()
    }
}

impl Listed {
    /// One that cannot be listed has nothing that a command could reach.
    fn of(around: &Path, now: SystemTime) -> Option<Listed> {
        let ground = Ground::listed(around).filter(|ground| ground.will_show_changes(now));
        let entries = fs::read_dir(around).ok()?.flatten();
        // Not a link: nothing can be mounted on it, and what it leads to may come and go unseen.
        let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        let found = entries.filter(|entry| is_known(&entry.file_name()) && is_folder(entry));
        Some(Listed { found: found.map(|entry| entry.path()).collect(), ground })
    }

    /// Whether the same would be found now.
    fn is_good(&self, around: Option<&Path>) -> bool {
        let ground = self.ground.as_ref();
        ground.is_some_and(|ground| Some(ground.path()) == around && ground.is_unchanged())
    }
}

fn is_known(name: &OsStr) -> bool {
    FOLDERS.iter().any(|known| name.as_bytes().starts_with(known.as_bytes()))
}

/// The eighth column, if it is a path.
fn path_of(line: &str) -> Option<PathBuf> {
    let mut rest = line;
    for _ in 0..7 {
        rest = rest.trim_start_matches(' ').split_once(' ')?.1;
    }
    rest.starts_with('/').then(|| PathBuf::from(rest))
}

fn is_socket(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::time::{Duration, SystemTime};

    use super::{Listed, path_of};

    #[test]
    fn folders_are_found_again_when_something_came_or_went_beside_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        fs::create_dir_all(path.join("tmux-0/deep")).unwrap();
        fs::write(path.join("ssh-file"), "").unwrap();
        std::os::unix::fs::symlink(path.join("tmux-0"), path.join("ssh-link")).unwrap();
        let later = SystemTime::now() + Duration::from_secs(1);
        let listed = Listed::of(&path, later).unwrap();
        assert_eq!(listed.found, [path.join("tmux-0")]);
        fs::write(path.join("tmux-0/deep/new"), "").unwrap();
        assert!(listed.is_good(Some(&path)));
        assert!(!listed.is_good(Some(Path::new("/"))) && !listed.is_good(None));
        // The clock makes steps, and only a change in a later one can be told from the last.
        while listed.is_good(Some(&path)) {
            fs::create_dir_all(path.join("ssh-1")).unwrap();
            fs::remove_dir(path.join("tmux-0")).unwrap_or_default();
            fs::remove_dir(path.join("ssh-1")).unwrap();
        }
        let just_changed = Listed::of(&path, SystemTime::now() - Duration::from_secs(1)).unwrap();
        assert!(!just_changed.is_good(Some(&path)), "nobody would see another change at once");
    }

    #[test]
    fn the_path_of_a_socket_is_read_as_the_system_lists_it() {
        let columns = "0000000000000000: 00000002 00000000 00010000 0001 01";
        for (rest, expected) in [
            ("  1234 /var/lib/x.sock", Some("/var/lib/x.sock")),
            (" 1234567 /with a space", Some("/with a space")),
            (" 1234 @abstract", None),
            (" 1234", None),
            ("", None),
        ] {
            let path = path_of(&format!("{columns}{rest}"));
            assert_eq!(path, expected.map(PathBuf::from), "{rest}");
        }
    }
}
