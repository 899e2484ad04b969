//! Whether a folder has changed since it was looked at.

use std::fs::{self, File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{Mode, OFlags};

/// A change of a folder may carry the same time as one just before it, since the clock of the kernel makes steps.
/// What changed within twice the longest of them is looked at again.
pub(super) const STEP: Duration = Duration::from_millis(20);

/// File systems that note every change of a folder by the clock of this kernel: ext4 and its elders, XFS, Btrfs, F2FS,
/// bcachefs, ZFS, and what lies in memory or over others.
const EXACT: [u32; 9] = [
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0xf2f5_2010,
    0xca45_1a4e,
    0x2fc1_2fc1,
    0x0102_1994,
    0x8584_58f6,
    0x794c_7630,
];

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
        let settled = now.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(STEP);
        let settled = (settled.as_secs().cast_signed(), settled.subsec_nanos().into());
        let is_exact = || {
            let system = rustix::fs::fstatfs(&self.open).map(|system| system.f_type as u32);
            system.is_ok_and(|system| EXACT.contains(&system))
        };
        !self.is_listed || (self.changed() < settled && is_exact())
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
