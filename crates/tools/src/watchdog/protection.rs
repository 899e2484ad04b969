//! Checks protected paths while commands run in the sandbox.
//!
//! This is done by the watchdog, so that the last command is checked even if the program is killed.

use std::cell::{Cell, RefCell};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use rustix::process::Pid;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::groups::{Group, strays};
use super::wire::{Approved, Request};
use crate::lock::lock;
use crate::notes::Note;
use crate::protected::{Change, Finding, Guard, ProtectedPaths, Record};
use crate::sandbox::{Kind, Root, Sandbox};

/// How often a check with the maximum number of findings is repeated: a command could hide one
/// change behind many others.
const ROUNDS: usize = 500;
/// How many checks in a row must find no strays.
const LOOKS_AT_STRAYS: usize = 3;
/// How long a start waits for a check and vice versa, so that a hanging file system cannot block
/// both.
const PATIENCE: Duration = Duration::from_secs(2);
/// More notes would not be read.
const MOST_NOTES: usize = 20;

/// The protected paths of all roots.
#[derive(Debug, Default)]
pub(super) struct Protection {
    paths: ProtectedPaths,
    /// The guards of running commands.
    guards: RefCell<Vec<Weak<Guard>>>,
    /// Paths that file tools are writing with approval.
    expected: Arc<Mutex<Vec<PathBuf>>>,
    /// Held for reading while a command starts, and for writing during a check: a protected path
    /// that is just being restored could not be covered.
    turn: RwLock<()>,
    /// The groups of all running commands.
    running: RefCell<Vec<Group>>,
    /// Whether a finished command already watches the strays of all.
    has_keeper: Cell<bool>,
}

impl Protection {
    /// Waits until no path is being restored, and prevents it as long as the result is held.
    pub(super) async fn starting(&self) -> Option<RwLockReadGuard<'_, ()>> {
        timeout(PATIENCE, self.turn.read()).await.ok()
    }

    /// Waits until no command is being started.
    pub(super) async fn checking(&self) -> Option<RwLockWriteGuard<'_, ()>> {
        timeout(PATIENCE, self.turn.write()).await.ok()
    }

    /// Registers a running command until the result is dropped.
    pub(super) fn note_running(self: &Rc<Self>, group: Group) -> RunningEntry {
        self.running.borrow_mut().push(group);
        RunningEntry { protection: Rc::clone(self), group }
    }

    /// Starts watching strays, if there are any and no one else watches them.
    pub(super) fn keep(self: &Rc<Self>) -> Option<StrayWatch> {
        if self.has_keeper.get() || strays(&self.running.borrow()).is_empty() {
            return None;
        }
        self.has_keeper.set(true);
        Some(StrayWatch(Rc::clone(self)))
    }

    /// Records the protected paths before a command starts. `None` for a command outside the
    /// sandbox, which the user has approved.
    pub(super) async fn guard_command(
        &self,
        request: &Request,
    ) -> io::Result<Option<CommandProtection>> {
        let Some(resolved) = request.sandbox.as_ref().filter(|_| !request.quarantine.is_empty())
        else {
            return Ok(None);
        };
        let (sandbox, into) = (&resolved.sandbox, PathBuf::from(&request.quarantine));
        let is_protected =
            |root: &&Root| root.is_folder() && !sandbox.unprotected.contains(&root.path().into());
        let roots: Vec<Root> = sandbox.write.iter().filter(is_protected).cloned().collect();
        if let Some(root) = roots.iter().find(|root| can_write(root.path(), &into, sandbox)) {
            let (into, root) = (into.display(), root.path().display());
            return Err(io::Error::other(format!("the quarantine {into} is in {root}")));
        }
        let (paths, skipped) = (self.paths.clone(), into.clone());
        let guard = in_background(move || {
            // The error names the root that was replaced.
            roots.iter().try_for_each(|root| root.reopen().map(drop))?;
            let roots: Vec<PathBuf> = roots.iter().map(|root| root.path().to_owned()).collect();
            paths.guard(&roots, &skipped)
        });
        let guard = Arc::new(guard.await??);
        let mut guards = self.guards.borrow_mut();
        guards.retain(|guard| guard.strong_count() > 0);
        guards.push(Arc::downgrade(&guard));
        let expected = Arc::clone(&self.expected);
        Ok(Some(CommandProtection { guard, into, kind: resolved.kind, expected }))
    }

    /// Allows writing to a path until `writing` completes, then accepts what was written as approved.
    pub(super) async fn expect(
        &self,
        path: PathBuf,
        writing: impl Future<Output = Option<Approved>>,
    ) {
        lock(&self.expected).push(path.clone());
        if let Some(approved) = writing.await {
            let guards: Vec<Arc<Guard>> =
                self.guards.borrow().iter().filter_map(Weak::upgrade).collect();
            let written = path.clone();
            let accept = move || {
                guards.iter().for_each(|guard| match &approved {
                    Approved::Content(hash) => guard.accept_content(&written, hash),
                    Approved::Anything => guard.accept(&written),
                });
            };
            // An error cannot be reported to anyone.
            let _ = in_background(accept).await;
        }
        let mut expected = lock(&self.expected);
        if let Some(at) = expected.iter().position(|expected| *expected == path) {
            expected.swap_remove(at);
        }
    }
}

/// The registration of a running command.
pub(super) struct RunningEntry {
    protection: Rc<Protection>,
    group: Group,
}

impl Drop for RunningEntry {
    fn drop(&mut self) {
        self.protection.running.borrow_mut().retain(|group| group.0 != self.group.0);
    }
}

/// Watches strays: protected paths are checked as long as there are any.
pub(super) struct StrayWatch(Rc<Protection>);

impl StrayWatch {
    pub(super) fn strays(&self) -> Vec<Pid> {
        strays(&self.0.running.borrow())
    }

    /// Whether there are none. A chain of processes that only fork and exit may be missed once.
    pub(super) fn has_none(&self) -> bool {
        (0..LOOKS_AT_STRAYS).all(|_| self.strays().is_empty())
    }
}

impl Drop for StrayWatch {
    fn drop(&mut self) {
        self.0.has_keeper.set(false);
    }
}

/// The protected paths as guarded for one command.
#[derive(Debug)]
pub(super) struct CommandProtection {
    guard: Arc<Guard>,
    into: PathBuf,
    kind: Kind,
    expected: Arc<Mutex<Vec<PathBuf>>>,
}

impl CommandProtection {
    /// Whether processes can leave the command's group: bubblewrap has a PID namespace instead.
    pub(super) fn can_be_left(&self) -> bool {
        self.kind == Kind::Landlock
    }

    /// Moves the command's changes of protected paths to the quarantine, and reports them. A path
    /// that was read-only for the command was changed by the user.
    pub(super) async fn check(
        &self,
        was_read_only: impl Fn(&Path) -> bool + Send + 'static,
    ) -> Vec<Note> {
        let (guard, into) = (Arc::clone(&self.guard), self.into.clone());
        let (expected, guarding) = (Arc::clone(&self.expected), Arc::clone(&self.guard));
        let origin = move |finding: &Finding| {
            let is_users = finding.change != Change::New
                && was_read_only(&finding.path)
                && !guarding.has_other_names(finding);
            match is_users {
                true => Origin::User,
                false if lock(&expected).iter().any(|path| finding.path.starts_with(path)) => {
                    Origin::Pending
                }
                false => Origin::Command,
            }
        };
        let checked = in_background(move || check(&guard, &into, origin)).await;
        checked.unwrap_or_else(|error| {
            vec![plain(format!("Could not check protected paths: {error}"))]
        })
    }
}

/// Where a change of a protected path comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// No command could write there.
    User,
    /// It is written with approval at this moment. What was approved is known when that is done.
    Pending,
    Command,
}

fn check(guard: &Guard, into: &Path, origin: impl Fn(&Finding) -> Origin) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut is_done = false;
    for _ in 0..ROUNDS {
        let check = guard.check();
        let incomplete = check.incomplete.into_iter();
        notes.extend(
            incomplete.map(|why| plain(format!("Not all protected paths could be checked: {why}"))),
        );
        let mut findings = check.findings;
        findings.retain(|finding| match origin(finding) {
            Origin::User => {
                guard.accept(&finding.path);
                false
            }
            Origin::Pending => false,
            Origin::Command => true,
        });
        is_done = findings.is_empty();
        if is_done {
            break;
        }
        notes.extend(guard.quarantine(&findings, into).iter().map(note_of));
    }
    notes.dedup();
    if !is_done {
        let text = "Not all changes of protected paths were undone: there are too many, or they cannot be moved";
        notes.insert(0, plain(text.to_owned()));
    }
    let left_out = notes.len().saturating_sub(MOST_NOTES);
    notes.truncate(MOST_NOTES);
    if left_out > 0 {
        notes.push(plain(format!("{left_out} more changes of protected paths")));
    }
    notes
}

/// Whether a path is in a root, with no hidden folder in between.
fn can_write(root: &Path, path: &Path, sandbox: &Sandbox) -> bool {
    let between = |hidden: &&PathBuf| path.starts_with(hidden) && hidden.starts_with(root);
    let is_hidden = sandbox.hidden.iter().filter(between).any(|hidden| hidden != root);
    path.starts_with(root) && !is_hidden
}

fn note_of(record: &Record) -> Note {
    let id = Some(&record.id).filter(|id| !id.is_empty());
    Note { id: id.cloned(), text: record.to_string() }
}

/// A note about something that cannot be put back.
fn plain(text: String) -> Note {
    Note { id: None, text }
}

/// Walking the tree takes as long as its file system needs.
async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    spawn_blocking(work).await.map_err(io::Error::other)
}
