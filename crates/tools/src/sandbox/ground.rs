//! Whether a folder has changed since it was looked at.

use std::fs::{self, File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{Mode, OFlags};

use crate::change_time::{is_exact, is_settled};

/// A place or folder as it was when it was looked at.
#[derive(Debug)]
pub(super) struct Ground {
    path: PathBuf,
    seen: Metadata,
    /// Whether it matters what is in it.
    is_listed: bool,
    /// While it is open no other file gets its number.
    open: File,
}

impl Ground {
    /// A folder of which it matters what is in it.
    pub(super) fn listed(path: &Path) -> Option<Ground> {
        Ground::find(path, true)
    }

    /// A place of which it matters that it is the same one.
    pub(super) fn itself(path: &Path) -> Option<Ground> {
        Ground::find(path, false)
    }

    /// `None` when it cannot be looked at.
    fn find(path: &Path, is_listed: bool) -> Option<Ground> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
        let seen = open.metadata().ok()?;
        Some(Ground { path: path.to_owned(), seen, is_listed, open })
    }

    /// Whether every later change that matters will be seen.
    pub(super) fn will_show_changes(&self, now: SystemTime) -> bool {
        !self.is_listed || (is_settled(self.changed(), now) && is_exact(&self.open))
    }

    pub(super) fn is_unchanged(&self) -> bool {
        let Ok(now) = fs::symlink_metadata(&self.path) else { return false };
        let is_same = (now.dev(), now.ino()) == (self.seen.dev(), self.seen.ino());
        is_same && (!self.is_listed || (now.ctime(), now.ctime_nsec()) == self.changed())
    }

    /// When it was last changed, as it is by every entry that comes or goes; in seconds and nanoseconds.
    fn changed(&self) -> (i64, i64) {
        (self.seen.ctime(), self.seen.ctime_nsec())
    }
}
