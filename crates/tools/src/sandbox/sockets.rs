//! Hides the Unix sockets of this machine that have a path, if the sandbox allows sockets.
//!
//! A read-only mount does not prevent connecting to a socket. So the sockets that listen when a
//! command starts are covered one by one. That is weaker than allowing no sockets: it misses those
//! that are created later, were bound by a relative path, were renamed, or belong to another
//! network namespace.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use super::access_map::{AccessMap, PathAccess};

/// More mounts would slow down every command. Desktops have about a dozen outside `/run` and
/// `/tmp`.
const LIMIT: usize = 1_000;

/// Hides all sockets in readable folders.
pub(super) fn hide(access_map: &mut AccessMap) -> io::Result<()> {
    hide_listed(BufReader::new(fs::File::open("/proc/net/unix")?), access_map)
}

fn hide_listed(listing: impl BufRead, access_map: &mut AccessMap) -> io::Result<()> {
    let mut count = 0;
    for line in listing.split(b'\n').skip(1) {
        let line = line?;
        let Some(path) = path_of(&String::from_utf8_lossy(&line)).filter(|path| is_socket(path))
        else {
            continue;
        };
        if let Ok(path) = path.canonicalize()
            && access_map.access(&path) == PathAccess::Read
        {
            access_map.hide(path);
            count += 1;
        }
        if count > LIMIT {
            return Err(io::Error::other(format!(
                "there are more than {LIMIT} Unix sockets to cover: turn off sandbox.unix_sockets"
            )));
        }
    }
    Ok(())
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
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;

    use super::{AccessMap, LIMIT, hide_listed, path_of};
    use crate::sandbox::{Root, Sandbox};

    #[test]
    fn more_sockets_than_can_be_covered_are_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let read = vec![Root::open(&folder.path().canonicalize().unwrap()).unwrap()];
        let sandbox = Sandbox { read, ..Sandbox::default() };
        let listing_of = |count: usize| {
            let lines = (0..count).map(|number| {
                let path = folder.path().join(number.to_string());
                // The file stays when nothing listens any more.
                if !path.exists() {
                    drop(UnixListener::bind(&path).unwrap());
                }
                format!("0: 00000002 00000000 00010000 0001 01 1234 {}\n", path.display())
            });
            format!("Num\n{}", lines.collect::<String>())
        };
        let hide = |count| {
            let (mut access_map, _) = AccessMap::of(&sandbox).unwrap();
            hide_listed(listing_of(count).as_bytes(), &mut access_map).map_err(|e| e.to_string())
        };
        assert_eq!(hide(LIMIT), Ok(()));
        let refused = hide(LIMIT + 1).unwrap_err();
        assert!(refused.contains("more than 1000 Unix sockets"), "{refused}");
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
