//! Detects whether a path or folder has changed since it was recorded.

use std::fs::{self, File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{Mode, OFlags};

use crate::change_time::{is_exact, is_settled};

/// The recorded state of a path.
#[derive(Debug)]
pub(super) struct PathState {
    path: PathBuf,
    seen: Metadata,
    /// Whether the folder's entries matter, not only its identity.
    is_listed: bool,
    /// Kept open so that the inode number cannot be reused.
    open: File,
}

impl PathState {
    /// Records a folder whose entries matter.
    pub(super) fn of_contents(path: &Path) -> Option<PathState> {
        PathState::find(path, true)
    }

    /// Records a path of which only the identity matters.
    pub(super) fn of_path(path: &Path) -> Option<PathState> {
        PathState::find(path, false)
    }

    /// `None` if it cannot be inspected.
    fn find(path: &Path, is_listed: bool) -> Option<PathState> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
        let seen = open.metadata().ok()?;
        Some(PathState { path: path.to_owned(), seen, is_listed, open })
    }

    /// Whether every later change that matters will be detected.
    pub(super) fn will_show_changes(&self, now: SystemTime) -> bool {
        !self.is_listed || (is_settled(self.changed(), now) && is_exact(&self.open))
    }

    pub(super) fn is_unchanged(&self) -> bool {
        let Ok(now) = fs::symlink_metadata(&self.path) else { return false };
        let is_same = (now.dev(), now.ino()) == (self.seen.dev(), self.seen.ino());
        is_same && (!self.is_listed || (now.ctime(), now.ctime_nsec()) == self.changed())
    }

    /// The change time, in seconds and nanoseconds. Every entry added or removed updates it.
    fn changed(&self) -> (i64, i64) {
        (self.seen.ctime(), self.seen.ctime_nsec())
    }
}
