//! Tracks protected paths before, during and after commands.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::finding::{CurrentRoot, Finding, Roots};
use super::folders::{Folders, Unreadable};
use super::quarantine::{Quarantine, Restore};
use super::record::{Record, RestoreOutcome};
use super::safe_files::{Content, FileStat, Root, TO_LIST};
use super::snapshot::{Entry, Role, Snapshot};
use crate::lock::lock;
use crate::looks::ContentHash;

/// The maximum number of roots per command. A session has a handful.
const MOST_ROOTS: usize = 64;
/// The maximum per check; the next check finds the rest.
const MOST_FINDINGS: usize = 200;

/// The known state of protected paths in all roots of a process. Keeping it between commands makes
/// guards cheap, since only changed folders are listed again.
#[derive(Debug, Clone, Default)]
pub struct ProtectedPaths(Arc<Mutex<BTreeMap<RootId, RootState>>>);

/// A path, and the device and inode found there.
type RootId = (PathBuf, (u64, u64));

#[derive(Debug)]
struct RootState {
    root: Root,
    folders: Folders,
    /// The baseline for findings: the state when no command was running.
    before: Snapshot,
    /// What is restored: the baseline with all later changes that were harmless or approved.
    good: Snapshot,
    /// The earlier targets of protected links.
    linked: BTreeMap<PathBuf, Role>,
    guards: usize,
    /// The root, locked while there are guards so that other processes can see that.
    lock: Option<OwnedFd>,
    /// Whether another process had commands running when the baseline was taken, which may have
    /// changed it.
    is_doubtful: bool,
}

/// Guards the protected paths of some roots while a command runs. Drop it when the command has
/// ended.
///
/// Guards of concurrent commands share one baseline, from before the first of them. Otherwise the
/// second would attribute to the user what the first command has planted and is about to lose.
#[derive(Debug)]
pub struct Guard {
    paths: ProtectedPaths,
    roots: Vec<RootId>,
}

/// The result of [`Guard::check`].
#[derive(Debug, Default)]
pub struct Check {
    /// Changes that need approval, at most 200; if there are that many, quarantine them and check
    /// again.
    pub findings: Vec<Finding>,
    /// Why the check was incomplete, as clauses for the user; at most 20 per root.
    pub incomplete: Vec<String>,
}

impl ProtectedPaths {
    /// Starts without any known state.
    #[must_use]
    pub fn new() -> ProtectedPaths {
        ProtectedPaths::default()
    }

    /// Records the current protected paths of the roots, before a command starts. The session's
    /// temporary folder is exempt and must not be among the roots. The quarantine is skipped if it
    /// is inside a root, since commands cannot write to it.
    ///
    /// # Errors
    ///
    /// If a root cannot be opened, or there are more than 64.
    pub fn guard(&self, roots: &[PathBuf], quarantine: &Path) -> io::Result<Guard> {
        if roots.len() > MOST_ROOTS {
            let reason = format!("more than {MOST_ROOTS} roots");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        let mut opened = BTreeMap::new();
        for path in roots {
            let root = Root::open(&path.canonicalize()?)?;
            let id = (root.path.clone(), FileStat::of_open(&root.folder)?.id());
            opened.insert(id, root);
        }
        let mut watched = lock(&self.0);
        // Roots without guards are only kept while there is room.
        let is_full = watched.len() + opened.len() > MOST_ROOTS;
        watched.retain(|id, watched| !is_full || watched.guards > 0 || opened.contains_key(id));
        let ids: Vec<RootId> = opened.keys().cloned().collect();
        for (id, root) in opened {
            let skipped = quarantine.strip_prefix(&root.path).ok().map(Path::to_owned);
            watched.entry(id).or_insert_with(|| RootState::new(root, skipped)).start();
        }
        drop(watched);
        Ok(Guard { paths: self.clone(), roots: ids })
    }
}

impl Guard {
    /// Finds changes since the guard was created that need approval: for git's settings those that
    /// make git run or trust something, at the top of a root all. Can be called any number of
    /// times, also while the command runs.
    #[must_use]
    pub fn check(&self) -> Check {
        let mut watched = lock(&self.paths.0);
        let mut now = self.look(&mut watched);
        if self.part_names(&watched, &now) {
            now = self.look(&mut watched);
        }
        let mut check = Check::default();
        for (at, id) in self.roots.iter().enumerate() {
            let Some(watched_root) = watched.get(id) else { continue };
            let room = MOST_FINDINGS - check.findings.len();
            let roots = self.current(&watched, &now);
            let mut findings = roots.compare(at, &watched_root.before, room);
            if watched_root.is_doubtful {
                // Another process may have reverted a change by its own command, which must not be
                // restored.
                let none = Snapshot::default();
                let planted = roots.compare(at, &none, usize::MAX);
                findings.retain(|finding| planted.iter().any(|known| known.path == finding.path));
            }
            check.incomplete.extend(now[at].incomplete.iter().cloned());
            if let Some(watched_root) = watched.get_mut(id) {
                // Changes beyond the limit are not known to be harmless.
                if findings.len() < room {
                    watched_root.keep_harmless(&now[at], &findings);
                }
            }
            let is_new = |finding: &Finding| {
                !check.findings.iter().any(|known: &Finding| known.path == finding.path)
            };
            let findings: Vec<Finding> = findings.into_iter().filter(is_new).collect();
            check.findings.extend(findings);
        }
        check
    }

    /// Whether a file has or had other hard links, through which it may have been changed.
    #[must_use]
    pub fn has_other_names(&self, finding: &Finding) -> bool {
        let watched = lock(&self.paths.0);
        let id = self.roots.iter().find(|(root, _)| *root == finding.root);
        let Some(watched) = id.and_then(|id| watched.get(id)) else { return true };
        let Ok(inside) = finding.path.strip_prefix(&watched.root.path) else { return true };
        let mut entries =
            watched.before.entries_under(inside).chain(watched.good.entries_under(inside));
        let had = entries.any(|(_, entry)| entry.version.is_shared());
        had || watched.root.read(inside).is_ok_and(|version| version.is_shared())
    }

    /// Breaks hard links to protected files that were created since, so that later commands cannot
    /// write through them. Returns whether there were any.
    fn part_names(&self, watched: &BTreeMap<RootId, RootState>, now: &[Snapshot]) -> bool {
        let mut is_parted = false;
        for (id, now) in self.roots.iter().zip(now) {
            let Some(watched) = watched.get(id) else { continue };
            let restore = Restore { root: &watched.root, good: now };
            let shared = now.entries.iter().filter(|(_, entry)| entry.version.is_shared());
            for (path, entry) in shared {
                let before = watched.before.entries.get(path);
                let is_old = before.is_some_and(|before| before.version.is_shared());
                is_parted |= !is_old && restore.write_anew(path, &entry.version);
            }
        }
        is_parted
    }

    /// Moves findings into the folder `into`, which must be reserved for this and not writable for
    /// commands, and restores the earlier versions. Each record describes in one sentence what was
    /// done, and can be passed to [`put_back`](super::put_back) later, even by another process.
    ///
    /// What cannot be moved there is renamed inside its root, so that no program finds it. What
    /// cannot be renamed stays and is found again; its record has no id.
    pub fn quarantine(&self, findings: &[Finding], into: &Path) -> Vec<Record> {
        let quarantine = Quarantine::open(into);
        let mut watched = lock(&self.paths.0);
        let mut records = Vec::new();
        for finding in findings.iter().take(MOST_FINDINGS) {
            let id = self.roots.iter().find(|(root, _)| *root == finding.root);
            let Some(watched) = id.and_then(|id| watched.get_mut(id)) else { continue };
            let restore = Restore { root: &watched.root, good: &watched.good };
            let Some(record) = quarantine.take_in(&restore, finding) else { continue };
            if matches!(record.restored, RestoreOutcome::Not(_)) {
                watched.forget_if_lost(&finding.path);
            }
            records.push(record);
        }
        records
    }

    /// Records the current state of a path and its contents as approved, after
    /// [`put_back`](super::put_back).
    pub fn accept(&self, path: &Path) {
        self.accept_if(path, |_| true);
    }

    /// Records a file as approved if it has this content: after an approved write of a file tool. A command that writes
    /// there at the same moment may have replaced what was approved.
    pub fn accept_content(&self, path: &Path, hash: &ContentHash) {
        self.accept_if(path, |found| match found.map(|entry| &entry.version.content) {
            Some(Content::Bytes(bytes)) => ContentHash::of(bytes) == *hash,
            Some(Content::Link(_) | Content::Folder | Content::Unknown) | None => false,
        });
    }

    fn accept_if(&self, path: &Path, is_approved: impl Fn(Option<&Entry>) -> bool) {
        let mut watched = lock(&self.paths.0);
        let now = self.look(&mut watched);
        for (id, now) in self.roots.iter().zip(&now) {
            let Some(watched) = watched.get_mut(id) else { continue };
            let Ok(inside) = path.strip_prefix(&watched.root.path) else { continue };
            if is_approved(now.entries.get(inside)) {
                watched.before.copy_from(now, inside);
                watched.good.copy_from(now, inside);
            }
        }
    }

    fn look(&self, watched: &mut BTreeMap<RootId, RootState>) -> Vec<Snapshot> {
        let look =
            |id| watched.get_mut(id).map(|root| root.look(Unreadable::Open)).unwrap_or_default();
        self.roots.iter().map(look).collect()
    }

    fn current<'a>(
        &self,
        watched: &'a BTreeMap<RootId, RootState>,
        now: &'a [Snapshot],
    ) -> Roots<'a> {
        let current = |(id, now)| Some(CurrentRoot { root: &watched.get(id)?.root, now });
        Roots(self.roots.iter().zip(now).filter_map(current).collect())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut watched = lock(&self.paths.0);
        for id in &self.roots {
            if let Some(watched) = watched.get_mut(id) {
                watched.guards = watched.guards.saturating_sub(1);
                if watched.guards == 0 {
                    watched.lock = None;
                }
            }
        }
    }
}

impl RootState {
    fn new(root: Root, skipped: Option<PathBuf>) -> RootState {
        RootState {
            root,
            folders: Folders::without(skipped),
            before: Snapshot::default(),
            good: Snapshot::default(),
            linked: BTreeMap::new(),
            guards: 0,
            lock: None,
            is_doubtful: false,
        }
    }

    fn start(&mut self) {
        if self.guards == 0 {
            self.take_lock();
            self.linked.clear();
            self.before = self.look(Unreadable::Leave);
            self.linked = self.before.linked(&self.root);
            if !self.linked.is_empty() {
                self.before.add_linked(&self.root, &self.linked);
            }
            // Another process may be about to revert this state, so it must not be restored.
            self.good = if self.is_doubtful { Snapshot::default() } else { self.before.clone() };
        }
        self.guards += 1;
    }

    /// Finds out whether another process has guards on the same root. Unknown if locking fails.
    fn take_lock(&mut self) {
        self.lock = self.root.folder(Path::new(""), TO_LIST).ok();
        let lock = |how| self.lock.as_ref().is_some_and(|root| flock(root, how).is_ok());
        self.is_doubtful = !lock(FlockOperation::NonBlockingLockExclusive);
        lock(FlockOperation::NonBlockingLockShared);
    }

    fn look(&mut self, unreadable: Unreadable) -> Snapshot {
        let found = self.folders.update(&self.root, SystemTime::now(), unreadable);
        let mut snapshot = Snapshot::take(&self.root, found, &self.before);
        snapshot.add_linked(&self.root, &self.linked);
        snapshot
    }

    /// Drops what is gone and was too large to restore, so that it is not found again.
    fn forget_if_lost(&mut self, path: &Path) {
        let Ok(inside) = path.strip_prefix(&self.root.path) else { return };
        let good = self.good.entries.get(inside);
        let is_unknown = good.is_some_and(|good| good.version.content == Content::Unknown);
        if is_unknown && self.root.read(inside).is_err_and(|error| error == Errno::NOENT) {
            self.before.entries.remove(inside);
            self.good.entries.remove(inside);
        }
    }

    /// Accepts changes that are not findings as the version to restore.
    fn keep_harmless(&mut self, now: &Snapshot, findings: &[Finding]) {
        if self.is_doubtful {
            return;
        }
        let is_found = |path: &Path| {
            let path = self.root.path.join(path);
            findings.iter().any(|finding| path.starts_with(&finding.path))
        };
        if findings.is_empty() {
            self.good = now.clone();
            return;
        }
        self.good.entries.retain(|path, _| now.entries.contains_key(path) || is_found(path));
        for (path, entry) in now.entries.iter().filter(|(path, _)| !is_found(path)) {
            self.good.entries.insert(path.clone(), entry.clone());
        }
    }
}
