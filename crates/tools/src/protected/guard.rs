//! The state of protected paths before, beside and after commands.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::beneath::{Content, Look, Root, TO_LIST};
use super::finding::{Current, Finding, Roots};
use super::folders::{Closed, Folders};
use super::quarantine::{Quarantine, Restore};
use super::record::{Record, Restored};
use super::snapshot::{Entry, Role, Snapshot};
use crate::looks::ContentHash;

/// Roots of one command. A session has a handful.
const MOST_ROOTS: usize = 64;
/// What one check reports; the next check finds what is left.
const MOST_FINDINGS: usize = 200;

/// What is known about the protected paths of all roots of a process. Kept between commands, it makes the next guard
/// cheap: only folders that have changed are listed again.
#[derive(Debug, Clone, Default)]
pub struct ProtectedPaths(Arc<Mutex<BTreeMap<RootId, Watched>>>);

/// A path and the device and inode that were found there.
type RootId = (PathBuf, (u64, u64));

#[derive(Debug)]
struct Watched {
    root: Root,
    folders: Folders,
    /// What the changes are judged by: the state when no command was running yet.
    before: Snapshot,
    /// What is restored: the same with all later changes that were harmless or approved.
    good: Snapshot,
    /// What protected links led to before.
    linked: BTreeMap<PathBuf, Role>,
    guards: usize,
    /// The root, locked while there are guards, so that other processes know of them.
    lock: Option<OwnedFd>,
    /// Whether commands of another process were running when the state before was taken: what was there may be theirs.
    is_doubtful: bool,
}

/// Guards the protected paths of some roots while a command runs; dropped when the command has ended.
///
/// Guards of commands that run at the same time share one state, that from before the first of them. Otherwise the
/// second would take for the user's what the first has planted and is about to lose.
#[derive(Debug)]
pub struct Guard {
    paths: ProtectedPaths,
    roots: Vec<RootId>,
}

/// The result of [`Guard::check`].
#[derive(Debug, Default)]
pub struct Check {
    /// What needs approval, at most 200 at once; with so many, quarantine them and check again.
    pub findings: Vec<Finding>,
    /// Why not everything could be checked, as clauses for the user. At most 20 per root.
    pub incomplete: Vec<String>,
}

impl ProtectedPaths {
    /// Knows nothing yet.
    #[must_use]
    pub fn new() -> ProtectedPaths {
        ProtectedPaths::default()
    }

    /// Records how the protected paths beneath the roots are now. To be called before the command starts; the
    /// session's temporary folder is exempt and not among the roots. No command can write to the quarantine, so what is
    /// in that is left alone, should it lie in a root.
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
            let id = (root.path.clone(), Look::of_open(&root.folder)?.id());
            opened.insert(id, root);
        }
        let mut watched = self.lock();
        // Roots that no command uses are only kept while there is room.
        let is_full = watched.len() + opened.len() > MOST_ROOTS;
        watched.retain(|id, watched| !is_full || watched.guards > 0 || opened.contains_key(id));
        let ids: Vec<RootId> = opened.keys().cloned().collect();
        for (id, root) in opened {
            let skipped = quarantine.strip_prefix(&root.path).ok().map(Path::to_owned);
            watched.entry(id).or_insert_with(|| Watched::new(root, skipped)).start();
        }
        drop(watched);
        Ok(Guard { paths: self.clone(), roots: ids })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<RootId, Watched>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guard {
    /// Looks for changes since the guard was made that need approval: of git's settings only those that make git run
    /// or trust something, of what is at the top of a root any. Can be called as often as needed, also while the
    /// command runs.
    #[must_use]
    pub fn check(&self) -> Check {
        let mut watched = self.paths.lock();
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
                // Another process may have undone what its own command did: that is not to be brought back.
                let none = Snapshot::default();
                let planted = roots.compare(at, &none, usize::MAX);
                findings.retain(|finding| planted.iter().any(|known| known.path == finding.path));
            }
            check.incomplete.extend(now[at].incomplete.iter().cloned());
            if let Some(watched_root) = watched.get_mut(id) {
                // Of what there was no room for, nothing is known to be harmless.
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

    /// Whether something has, or had, a second name, by which it may have been changed.
    #[must_use]
    pub fn has_other_names(&self, finding: &Finding) -> bool {
        let watched = self.paths.lock();
        let id = self.roots.iter().find(|(root, _)| *root == finding.root);
        let Some(watched) = id.and_then(|id| watched.get(id)) else { return true };
        let Ok(inside) = finding.path.strip_prefix(&watched.root.path) else { return true };
        let mut entries = watched.before.beneath(inside).chain(watched.good.beneath(inside));
        let had = entries.any(|(_, entry)| entry.version.is_shared());
        had || watched.root.read(inside).is_ok_and(|version| version.is_shared())
    }

    /// Makes files of their own of protected files that were given a second name, by which a later command could change
    /// them. Whether there were any.
    fn part_names(&self, watched: &BTreeMap<RootId, Watched>, now: &[Snapshot]) -> bool {
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

    /// Moves what was found into the folder `into`, which no command can write and is for nothing else, and
    /// restores the version from before the command. Each record says in one sentence what was done, and can be
    /// handed to [`put_back`](super::put_back) later, also by another process.
    ///
    /// What cannot be moved there is renamed in its root, so that no program finds it. What cannot be renamed either stays
    /// and is found again; its record has no id.
    pub fn quarantine(&self, findings: &[Finding], into: &Path) -> Vec<Record> {
        let quarantine = Quarantine::open(into);
        let mut watched = self.paths.lock();
        let mut records = Vec::new();
        for finding in findings.iter().take(MOST_FINDINGS) {
            let id = self.roots.iter().find(|(root, _)| *root == finding.root);
            let Some(watched) = id.and_then(|id| watched.get_mut(id)) else { continue };
            let restore = Restore { root: &watched.root, good: &watched.good };
            let Some(record) = quarantine.take_in(&restore, finding) else { continue };
            if matches!(record.restored, Restored::Not(_)) {
                watched.forget_if_lost(&finding.path);
            }
            records.push(record);
        }
        records
    }

    /// Records the current state of a path, and of all in it, as approved: after [`put_back`](super::put_back).
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
        let mut watched = self.paths.lock();
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

    fn look(&self, watched: &mut BTreeMap<RootId, Watched>) -> Vec<Snapshot> {
        let look =
            |id| watched.get_mut(id).map(|root| root.look(Closed::Opened)).unwrap_or_default();
        self.roots.iter().map(look).collect()
    }

    fn current<'a>(
        &self,
        watched: &'a BTreeMap<RootId, Watched>,
        now: &'a [Snapshot],
    ) -> Roots<'a> {
        let current = |(id, now)| Some(Current { root: &watched.get(id)?.root, now });
        Roots(self.roots.iter().zip(now).filter_map(current).collect())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut watched = self.paths.lock();
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

impl Watched {
    fn new(root: Root, skipped: Option<PathBuf>) -> Watched {
        Watched {
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
            self.before = self.look(Closed::Left);
            self.linked = self.before.linked(&self.root);
            if !self.linked.is_empty() {
                self.before.add_linked(&self.root, &self.linked);
            }
            // What another process is about to undo is not to be brought back.
            self.good = if self.is_doubtful { Snapshot::default() } else { self.before.clone() };
        }
        self.guards += 1;
    }

    /// Finds out whether another process has guards on the same root. Without a lock that is not known.
    fn take_lock(&mut self) {
        self.lock = self.root.folder(Path::new(""), TO_LIST).ok();
        let lock = |how| self.lock.as_ref().is_some_and(|root| flock(root, how).is_ok());
        self.is_doubtful = !lock(FlockOperation::NonBlockingLockExclusive);
        lock(FlockOperation::NonBlockingLockShared);
    }

    fn look(&mut self, closed: Closed) -> Snapshot {
        let found = self.folders.update(&self.root, SystemTime::now(), closed);
        let mut snapshot = Snapshot::take(&self.root, found, &self.before);
        snapshot.add_linked(&self.root, &self.linked);
        snapshot
    }

    /// What is gone and was too large to be restored is not found again at every check.
    fn forget_if_lost(&mut self, path: &Path) {
        let Ok(inside) = path.strip_prefix(&self.root.path) else { return };
        let good = self.good.entries.get(inside);
        let is_unknown = good.is_some_and(|good| good.version.content == Content::Unknown);
        if is_unknown && self.root.read(inside).is_err_and(|error| error == Errno::NOENT) {
            self.before.entries.remove(inside);
            self.good.entries.remove(inside);
        }
    }

    /// What has changed and is no finding is what is restored next time.
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
