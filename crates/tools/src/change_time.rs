//! Whether the change time of a file or folder reveals every change. Unlike other times it cannot
//! be set.

use std::os::fd::AsFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Two changes within one tick of the kernel's clock have the same time. What changed within twice
/// the longest tick is read again.
pub(crate) const STEP: Duration = Duration::from_millis(20);

/// File systems that timestamp every change of a folder with this kernel's clock: ext4 and its
/// predecessors, XFS, Btrfs, F2FS, bcachefs, ZFS, in-memory and overlay file systems.
#[cfg(target_os = "linux")]
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

/// Whether any later change will have a time other than `changed`, in seconds and nanoseconds.
pub(crate) fn is_settled(changed: (i64, i64), now: SystemTime) -> bool {
    let settled = now.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(STEP);
    changed < (settled.as_secs().cast_signed(), settled.subsec_nanos().into())
}

/// Whether the file system of an open file keeps exact change times.
pub(crate) fn is_exact(open: impl AsFd) -> bool {
    #[cfg(target_os = "linux")]
    {
        let system = rustix::fs::fstatfs(open).map(|system| system.f_type as u32);
        system.is_ok_and(|system| EXACT.contains(&system))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = open;
        false
    }
}
