//! The quarantine: the folder that unapproved changes are moved to, and the way back.
//!
//! Each has its own folder there, named by its id: `record` describes it, `content` is the moved
//! file, and `replaced` is what was in its place when it was put back.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::AtFlags;
use rustix::fs::{CWD, Mode, OFlags, chmodat, mkdirat, openat, renameat, symlinkat, unlinkat};
use rustix::io::Errno;

use super::finding::Finding;
use super::moving::{copy, plain_mode, relocate, remove, rename_free, write};
use super::record::{MoveOutcome, Record, RestoreOutcome};
use super::safe_files::{Content, FileStat, Root, TO_ENTER, Version};
use super::snapshot::{Role, Snapshot};
use crate::place::{Links, open_folder};

/// A record consists of a path, a reason and little else.
const LARGEST_RECORD: u64 = 64 * 1024;
/// The maximum number of records listed.
const MOST_RECORDS: usize = 1_000;
/// How many ids are tried; a collision needs another process in the same nanosecond.
const MOST_IDS: u32 = 1_000;

/// Lists what is in the quarantine folder `from` and was not put back, oldest first, at most 1,000.
///
/// # Errors
///
/// If the folder cannot be listed. Invalid records are skipped.
pub fn quarantined(from: &Path) -> io::Result<Vec<Record>> {
    if !from.try_exists()? {
        return Ok(Vec::new());
    }
    let quarantine = Quarantine::open(from);
    let mut ids: Vec<String> = Vec::new();
    for entry in fs::read_dir(from)? {
        ids.extend(entry?.file_name().into_string().ok().filter(|id| is_id(id)));
    }
    ids.sort();
    let records = ids.iter().filter_map(|id| quarantine.slot(id).ok()?.read_record());
    Ok(records.take(MOST_RECORDS).collect())
}

/// Puts a file back in its place after the user has approved it, and returns its path. What is
/// there now is moved into the quarantine. Guards of running commands must then
/// [`accept`](super::Guard::accept) the path.
///
/// # Errors
///
/// If there is no such record, or the file cannot be moved; it stays where it is then.
pub fn put_back(from: &Path, id: &str) -> io::Result<PathBuf> {
    let not_found = || io::Error::new(io::ErrorKind::NotFound, format!("no quarantined file {id}"));
    if !is_id(id) {
        return Err(not_found());
    }
    let slot = Quarantine::open(from).slot(id).map_err(|_| not_found())?;
    let record = slot.read_record().ok_or_else(not_found)?;
    slot.put_back(&record)?;
    renameat(&slot.folder, "record", &slot.folder, "record.done")?;
    Ok(record.finding.path)
}

/// The path of what was replaced when the file with this id was put back; `None` if nothing was.
pub fn replaced(from: &Path, id: &str) -> Option<PathBuf> {
    let path = from.join(id).join("replaced");
    (is_id(id) && path.symlink_metadata().is_ok()).then_some(path)
}

fn is_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= 40 && id.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

/// The open quarantine folder.
pub(super) struct Quarantine {
    folder: io::Result<OwnedFd>,
}

/// The folder of one record.
struct Slot {
    id: String,
    folder: OwnedFd,
}

/// Restores earlier versions of paths.
pub(super) struct Restore<'a> {
    pub(super) root: &'a Root,
    pub(super) good: &'a Snapshot,
}

impl Quarantine {
    /// Opens the folder, creating it if needed. An error is reported for each file to be moved.
    pub(super) fn open(path: &Path) -> Quarantine {
        let open = || {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
            Ok(open_folder(CWD, &path.canonicalize()?, Links::Refuse)?)
        };
        Quarantine { folder: open() }
    }

    fn folder(&self) -> io::Result<&OwnedFd> {
        self.folder.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))
    }

    /// Moves a finding in and restores the earlier version. `None` if nothing is left to do.
    pub(super) fn take_in(&self, restore: &Restore<'_>, finding: &Finding) -> Option<Record> {
        let path = finding.path.strip_prefix(&restore.root.path).ok()?;
        if restore.is_good(path) {
            return None;
        }
        let mut record = Record {
            id: String::new(),
            finding: finding.clone(),
            moved: MoveOutcome::ToQuarantine,
            restored: RestoreOutcome::NoPrevious,
        };
        let slot = match self.new_slot() {
            Ok(slot) => slot,
            // Without access to the quarantine it is renamed, so that no program finds it.
            Err(error) => {
                let aside = format!(".quarantined-{}", new_id(0));
                record.moved = set_aside(restore.root, path, &aside, error.to_string());
                if matches!(record.moved, MoveOutcome::Aside(_)) {
                    record.restored = restore.restore(path, &new_id(0));
                }
                return Some(record);
            }
        };
        record.id.clone_from(&slot.id);
        // The record is written before and after, so that nothing is quarantined without one.
        let _ = slot.write_record(&record);
        record.moved = slot.take_in(restore.root, path);
        if !matches!(record.moved, MoveOutcome::Not(_)) {
            record.restored = restore.restore(path, &slot.id);
        }
        if !record.can_be_put_back() {
            let _ = self.folder().map(|folder| remove(folder, OsStr::new(&slot.id)));
            record.id.clear();
            return Some(record);
        }
        if let Err(error) = slot.write_record(&record) {
            record.restored = RestoreOutcome::Not(error.to_string());
        }
        Some(record)
    }

    fn new_slot(&self) -> io::Result<Slot> {
        let folder = self.folder()?;
        for number in 0..MOST_IDS {
            let id = new_id(number);
            match mkdirat(folder, &id, Mode::RWXU) {
                Ok(()) => return self.slot(&id),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::EXIST.into())
    }

    fn slot(&self, id: &str) -> io::Result<Slot> {
        let folder = openat(self.folder()?, id, TO_ENTER, Mode::empty())?;
        Ok(Slot { id: id.to_owned(), folder })
    }
}

/// Based on the time, so ids sort by age.
fn new_id(number: u32) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}-{:09}", now.as_secs(), now.subsec_nanos().saturating_add(number))
}

/// Renames a file in place, which needs no disk space.
fn set_aside(root: &Root, path: &Path, name: &str, error: String) -> MoveOutcome {
    let renamed = root.parent(path).and_then(|(parent, old)| {
        rename_free(&parent, old, &parent, OsStr::new(name)).map(|()| path.with_file_name(name))
    });
    match renamed {
        Ok(path) => MoveOutcome::Aside(root.path.join(path)),
        Err(Errno::NOENT) => MoveOutcome::Gone,
        Err(_) => MoveOutcome::Not(error),
    }
}

impl Slot {
    /// Takes in a copy, since processes that have the file open, are inside the folder, or know
    /// another hard link could still change the original. The original is renamed first, so that no
    /// program finds it: that is atomic whatever its size.
    fn take_in(&self, root: &Root, path: &Path) -> MoveOutcome {
        let (parent, name) = match root.parent(path) {
            Ok(found) => found,
            Err(Errno::NOENT) => return MoveOutcome::Gone,
            Err(error) => return MoveOutcome::Not(error.to_string()),
        };
        let aside = format!(".quarantined-{}", self.id);
        let aside = OsStr::new(&aside);
        let mut renamed = rename_free(&parent, name, &root.folder, aside);
        if renamed == Err(Errno::ACCESS) && allow_writing(&parent).is_ok() {
            renamed = rename_free(&parent, name, &root.folder, aside);
        }
        let (folder, around) = match renamed {
            Ok(()) => (&root.folder, Path::new("")),
            Err(Errno::NOENT) => return MoveOutcome::Gone,
            Err(_) => match rename_free(&parent, name, &parent, aside) {
                Ok(()) => (&parent, path.parent().unwrap_or(Path::new(""))),
                Err(error) => return MoveOutcome::Not(error.to_string()),
            },
        };
        if copy(folder, aside, &self.folder, OsStr::new("content")).is_err() {
            return MoveOutcome::Aside(root.path.join(around).join(aside));
        }
        // No program finds what may be left of it.
        let _ = remove(folder, aside);
        MoveOutcome::ToQuarantine
    }

    fn put_back(&self, record: &Record) -> io::Result<()> {
        let Finding { root, path, .. } = &record.finding;
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        let root = Root::open(root)?;
        let inside = path.strip_prefix(&root.path).map_err(|_| invalid())?;
        let name = inside.file_name().ok_or_else(invalid)?;
        let parent = create_parent(&root, inside)?;
        let replaced = OsStr::new("replaced");
        let is_replaced = match relocate(&parent, name, &self.folder, replaced) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        let moved = match &record.moved {
            MoveOutcome::ToQuarantine => {
                relocate(&self.folder, OsStr::new("content"), &parent, name)
            }
            MoveOutcome::Gone if record.can_be_put_back() => Ok(()),
            MoveOutcome::Gone | MoveOutcome::Aside(_) | MoveOutcome::Not(_) => {
                Err(io::ErrorKind::NotFound.into())
            }
        };
        if moved.is_err() && is_replaced {
            relocate(&self.folder, replaced, &parent, name)?;
        }
        moved
    }

    fn write_record(&self, record: &Record) -> io::Result<()> {
        let (new, name) = (OsStr::new("record.new"), OsStr::new("record"));
        write(&self.folder, new, record.encode().as_bytes(), 0o600)?;
        Ok(renameat(&self.folder, new, &self.folder, name)?)
    }

    fn read_record(&self) -> Option<Record> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.folder, "record", flags, Mode::empty()).ok()?;
        let mut text = String::new();
        fs::File::from(file).take(LARGEST_RECORD).read_to_string(&mut text).ok()?;
        Record::decode(&self.id, &text)
    }
}

impl Restore<'_> {
    /// Whether the path is in its expected state, for example because another guard has restored
    /// it.
    fn is_good(&self, path: &Path) -> bool {
        match (self.root.read(path), self.good.entries.get(path)) {
            (Ok(now), Some(good)) => !now.is_folder() && now.is_same(&good.version),
            (Err(Errno::NOENT), None) => true,
            (Ok(_) | Err(_), _) => false,
        }
    }

    /// Restores what was at a path and inside it.
    fn restore(&self, path: &Path, id: &str) -> RestoreOutcome {
        let mut restored = RestoreOutcome::NoPrevious;
        for (path, entry) in self.good.entries_under(path) {
            let is_repository = entry.role == Role::DotGit && entry.version.is_folder();
            let written = match is_repository {
                true => Err(io::Error::other("its repository was moved or deleted")),
                false => self.write(path, &entry.version, id),
            };
            match written {
                Ok(()) => restored = RestoreOutcome::Yes,
                Err(error) => return RestoreOutcome::Not(error.to_string()),
            }
        }
        restored
    }

    /// Replaces a file with a copy of itself. Returns whether that worked.
    pub(super) fn write_anew(&self, path: &Path, version: &Version) -> bool {
        self.write(path, version, &new_id(0)).is_ok()
    }

    fn write(&self, path: &Path, version: &Version, id: &str) -> io::Result<()> {
        let parent = create_parent(self.root, path)?;
        let name = path.file_name().ok_or(Errno::INVAL)?;
        let new = format!(".restored-{id}");
        let new = OsStr::new(&new);
        let written = match &version.content {
            Content::Bytes(bytes) => write(&parent, new, bytes, version.stat.mode),
            Content::Link(target) => Ok(symlinkat(&target[..], &parent, new)?),
            Content::Folder => {
                return match mkdirat(&parent, name, plain_mode(version.stat.mode)) {
                    Err(Errno::EXIST) => Ok(()),
                    made => Ok(made?),
                };
            }
            Content::Unknown => return Err(io::Error::other("it was not kept")),
        };
        let placed = written.and_then(|()| Ok(renameat(&parent, new, &parent, name)?));
        if placed.is_err() {
            let _ = unlinkat(&parent, new, AtFlags::empty());
        }
        placed
    }
}

/// Opens the parent folder of a path, creating missing ones.
fn create_parent(root: &Root, path: &Path) -> Result<OwnedFd, Errno> {
    let mut folder = openat(&root.folder, ".", TO_ENTER, Mode::empty())?;
    for name in path.parent().unwrap_or(Path::new("")) {
        match mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
        folder = openat(&folder, name, TO_ENTER, Mode::empty())?;
    }
    Ok(folder)
}

/// Makes a folder writable again: a command can prevent removing its entries.
fn allow_writing(folder: &OwnedFd) -> Result<(), Errno> {
    let mode = FileStat::of_open(folder)?.mode;
    chmodat(folder, ".", plain_mode(mode) | Mode::RWXU, AtFlags::empty())
}
