//! What a call has read or changed, beside its result: needed to undo the change, and to notice
//! later changes by others.

use std::path::PathBuf;

use crate::looks::{ContentHash, Fingerprint};

/// Larger contents are not recorded: undo would not be worth the space.
pub(crate) const KEPT_BYTES: u64 = 10 * 1024 * 1024;

/// What a call did with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileUse {
    /// It read all or part of it.
    Read(Sight),
    /// It created or changed it.
    Changed(Change),
    /// It refused to write, since the file has changed after the agent had read it.
    Stale(Stale),
}

/// A file as an agent last saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// Absolute, without links.
    pub path: PathBuf,
    /// Its fingerprint.
    pub looks: Fingerprint,
}

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Absolute, without links.
    pub path: PathBuf,
    /// What was there before.
    pub before: Before,
    /// The fingerprint right after the change.
    pub looks: Fingerprint,
    /// The hash of the content right after the change.
    pub hash: ContentHash,
    /// How many folders directly above the file were created for it.
    pub new_folders: u32,
}

/// What was there before a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Before {
    /// No file.
    Absent,
    /// A file.
    Content(Content),
    /// A file of more than 10 MB, or one that is writable but not readable.
    NotKept,
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// All of its bytes.
    pub bytes: Vec<u8>,
    /// Its permissions.
    pub mode: u32,
}

/// A refused write to a file that changed meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stale {
    /// The path as the model named it.
    pub named: String,
    /// The file as it is now.
    pub now: Sight,
}
