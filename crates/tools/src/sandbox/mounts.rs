//! Aliases of a path: what is mounted a second time is readable through another path.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// An entry of `mountinfo`.
struct Mount {
    device: String,
    /// Which part of the file system is mounted.
    root: PathBuf,
    /// The mount point.
    point: PathBuf,
}

/// All paths by which the same files, or some of them, can be reached through other mounts.
pub fn other_names(places: &[PathBuf]) -> Vec<PathBuf> {
    // Only Linux has this file.
    names_in(&fs::read("/proc/self/mountinfo").unwrap_or_default(), places)
}

fn names_in(list: &[u8], places: &[PathBuf]) -> Vec<PathBuf> {
    let mounts: Vec<Mount> = list.split(|byte| *byte == b'\n').filter_map(Mount::parse).collect();
    let mut names: Vec<PathBuf> = Vec::new();
    for place in places {
        // If several mounts share a mount point, the last one is visible.
        let around = mounts.iter().filter(|mount| place.starts_with(&mount.point));
        let Some(own) = around.max_by_key(|mount| mount.point.components().count()) else {
            continue;
        };
        let Ok(inside) = place.strip_prefix(&own.point) else { continue };
        let real = own.root.join(inside);
        let others = mounts.iter().filter(|mount| mount.device == own.device);
        names.extend(others.filter_map(|mount| mount.name_of(&real)).filter(|name| name != place));
    }
    names.sort();
    names.dedup();
    names
}

impl Mount {
    /// Parses `36 35 98:0 /root /point rw - ext4 …`.
    fn parse(line: &[u8]) -> Option<Mount> {
        let mut fields = line.split(|byte| *byte == b' ').skip(2);
        let device = String::from_utf8(fields.next()?.to_vec()).ok()?;
        let mut path = || Some(PathBuf::from(OsString::from_vec(unescaped(fields.next()?))));
        Some(Mount { device, root: path()?, point: path()? })
    }

    /// The path by which a file of the mounted file system, or a part of it, can be reached through
    /// this mount.
    fn name_of(&self, real: &Path) -> Option<PathBuf> {
        match real.strip_prefix(&self.root) {
            Ok(inside) if inside.as_os_str().is_empty() => Some(self.point.clone()),
            Ok(inside) => Some(self.point.join(inside)),
            Err(_) => self.root.starts_with(real).then(|| self.point.clone()),
        }
    }
}

/// Spaces and similar characters are escaped as three octal digits.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, behind)) = rest.split_first() {
        let code = behind.get(..3).and_then(|digits| str::from_utf8(digits).ok());
        let code = code.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match (first, code) {
            (b'\\', Some(byte)) => {
                bytes.push(byte);
                rest = &behind[3..];
            }
            (byte, _) => {
                bytes.push(*byte);
                rest = behind;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::names_in;

    const LIST: &str = "1 0 8:1 / / rw - ext4 /dev/a rw\n\
        2 1 8:2 /@home /home rw - btrfs /dev/b rw\n\
        3 1 8:2 / /mnt/whole\\040disk rw - btrfs /dev/b rw\n\
        4 1 8:2 /@home/me/.ssh /srv/keys rw - btrfs /dev/b rw\n\
        5 1 8:1 /var/lib /data rw - ext4 /dev/a rw\n\
        6 1 0:5 / /proc rw - proc proc rw\nbroken\n";

    #[test]
    fn a_place_is_found_by_all_its_names() {
        for (place, expected) in [
            ("/home/me/.ssh", &["/mnt/whole disk/@home/me/.ssh", "/srv/keys"][..]),
            ("/home/me", &["/mnt/whole disk/@home/me", "/srv/keys"]),
            ("/var/lib/secret", &["/data/secret"]),
            ("/etc/shadow", &[]),
        ] {
            let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(names_in(LIST.as_bytes(), &[place.into()]), expected, "{place}");
        }
        assert!(names_in(b"", &["/x".into()]).is_empty());
    }
}
