//! Git's index lists the files that git writes, compares and adds without checking their names
//! again. Git never adds names that lead outside the working tree or into a `.git`, but a forged
//! index can contain them.

use super::names::folded;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The size of an entry up to its hash.
const STAT: usize = 40;
/// The bits of the flags with the length of the name; all set for a longer one.
const LENGTH: u16 = 0xfff;
const EXTENDED: u16 = 0x4000;

/// Whether an index contains a name that git would refuse. `hash` is the length of its hashes. Git
/// refuses a malformed index.
pub(super) fn leads_astray(index: &[u8], hash: usize) -> bool {
    let Some(header) = index.strip_prefix(b"DIRC") else { return false };
    let (Some(version), Some(count)) = (number(header, 0), number(header, 4)) else { return false };
    let entries = Entries { index, version, hash };
    // Threads of git start at the offsets in this table, not where the previous entry ends.
    let tables = memchr::memmem::find_iter(index, b"IEOT").flat_map(|at| blocks(index, at));
    let mut blocks = [(12, count)].into_iter().chain(tables);
    blocks.any(|(start, count)| entries.lead_astray(start as usize, count).unwrap_or(false))
}

/// The names of shared index files that an index refers to.
pub(super) fn shared_indexes(index: &[u8], hash: usize) -> Vec<String> {
    let name = |at: usize| {
        let bytes = index.get(at + 8..at + 8 + hash)?;
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Some(format!("sharedindex.{digits}"))
    };
    memchr::memmem::find_iter(index, b"link").filter_map(name).take(MOST_SHARED).collect()
}

/// An index has at most one.
const MOST_SHARED: usize = 100;

struct Entries<'a> {
    index: &'a [u8],
    version: u32,
    hash: usize,
}

impl Entries<'_> {
    /// `None` if an entry is malformed: git then rejects them all.
    fn lead_astray(&self, start: usize, count: u32) -> Option<bool> {
        let mut at = start;
        let mut name: Vec<u8> = Vec::new();
        let mut is_astray = false;
        for _ in 0..count {
            at = self.read(at, &mut name)?;
            is_astray |= is_refused(&name);
        }
        Some(is_astray)
    }

    /// Reads the name of an entry, and returns the offset of the next one.
    fn read(&self, start: usize, name: &mut Vec<u8>) -> Option<usize> {
        let mut at = start.checked_add(STAT + self.hash)?;
        let flags = u16::from_be_bytes(self.index.get(at..at + 2)?.try_into().ok()?);
        at += 2;
        if flags & EXTENDED != 0 && self.version >= 3 {
            at += 2;
        }
        let mut kept = 0;
        if self.version == 4 {
            let (stripped, behind) = variable(self.index, at)?;
            kept = name.len().checked_sub(stripped)?;
            at = behind;
        }
        let rest = self.index.get(at..)?;
        let length = match flags & LENGTH {
            LENGTH => memchr::memchr(0, rest)?,
            length => usize::from(length).checked_sub(kept)?,
        };
        name.truncate(kept);
        name.extend_from_slice(rest.get(..length)?);
        match self.version {
            4 => Some(at + length + 1),
            // Padded with one to eight NUL bytes to a multiple of eight.
            _ => Some(start + (at - start + length + 8) / 8 * 8),
        }
    }
}

/// Whether git's own check refuses a name. One that is empty stands for a name in a shared index.
fn is_refused(name: &[u8]) -> bool {
    if name.is_empty() {
        return false;
    }
    // The entry of a sparse directory ends with a slash.
    let name = name.strip_suffix(b"/").unwrap_or(name);
    name.split(|byte| *byte == b'/').any(|part| {
        matches!(part, b"" | b"." | b"..")
            || matches!(&*folded(OsStr::from_bytes(part)), ".git" | "git~1")
    })
}

/// The offsets of blocks of entries, and their sizes.
fn blocks(index: &[u8], at: usize) -> Vec<(u32, u32)> {
    let Some(table) = index.get(at + 4..) else { return Vec::new() };
    let size = number(table, 0).unwrap_or(0) as usize;
    let table = table.get(8..4 + size.max(4)).unwrap_or_default();
    let block = |block: &[u8]| Some((number(block, 0)?, number(block, 4)?));
    table.chunks_exact(8).filter_map(block).collect()
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Decodes git's variable-length integer; returns it with the offset after it.
fn variable(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut byte = *bytes.get(at)?;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        at += 1;
        byte = *bytes.get(at)?;
        value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
    }
    Some((value, at + 1))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the real git writes an index")]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use super::{leads_astray, shared_indexes};

    fn git(folder: &Path, arguments: &[&str]) {
        let git = Command::new("git").args(arguments).current_dir(folder).output().unwrap();
        assert!(git.status.success(), "{}", String::from_utf8_lossy(&git.stderr));
    }

    /// Names of equal length, so that one can be patched.
    fn forged(version: &str, format: &str, name: &str, by: &str) -> (bool, bool) {
        let folder = tempfile::tempdir().unwrap();
        git(folder.path(), &["init", "-q", "--object-format", format]);
        for name in ["a/b/c", name, "some/longer/name"] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        git(folder.path(), &["add", "."]);
        git(folder.path(), &["update-index", "--index-version", version]);
        let index = fs::read(folder.path().join(".git/index")).unwrap();
        let hash = if format == "sha1" { 20 } else { 32 };
        let at = memchr::memmem::rfind(&index, name.as_bytes()).expect("the name stands there");
        let mut changed = index.clone();
        changed[at..at + by.len()].copy_from_slice(by.as_bytes());
        (leads_astray(&index, hash), leads_astray(&changed, hash))
    }

    #[test]
    fn a_name_that_git_refuses_is_found_in_every_version() {
        for version in ["2", "4"] {
            for format in ["sha1", "sha256"] {
                for (name, by) in [
                    ("XX/home", "../home"),
                    ("k/XX/out", "k/../out"),
                    ("Xgit/hooks/h", ".git/hooks/h"),
                    ("XGit/hooks/h", ".GIT/hooks/h"),
                    ("Xtmp/e", "/tmp/e"),
                ] {
                    assert_eq!(forged(version, format, name, by), (false, true), "{version} {by}");
                }
            }
        }
    }

    #[test]
    fn what_only_looks_like_it_is_fine_and_what_cannot_be_read_is_gits_business() {
        assert!(!forged("2", "sha1", "XXa/.gitx", "..a/.gitx").1);
        for index in [&b""[..], b"DIRC", b"DIRC\0\0\0\x02\0\0\0\x05short"] {
            assert!(!leads_astray(index, 20));
        }
    }

    #[test]
    fn the_file_of_a_shared_index_is_known() {
        let folder = tempfile::tempdir().unwrap();
        git(folder.path(), &["init", "-q"]);
        fs::write(folder.path().join("a"), "").unwrap();
        git(folder.path(), &["add", "."]);
        git(folder.path(), &["update-index", "--split-index"]);
        let index = fs::read(folder.path().join(".git/index")).unwrap();
        let names = shared_indexes(&index, 20);
        assert!(
            names.iter().any(|name| folder.path().join(".git").join(name).exists()),
            "{names:?}"
        );
    }
}
