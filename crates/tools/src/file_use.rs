//! What a call has seen of a file or done to it, beside its result: what is needed to take the change back,
//! and to notice later that somebody else has changed the file since.

use std::path::PathBuf;

use crate::looks::{ContentHash, Fingerprint};

/// A larger content is not kept: taking it back would cost more room than it is worth.
pub(crate) const KEPT_BYTES: u64 = 10 * 1024 * 1024;

/// What a call did to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileUse {
    /// It has read it, or a part of it.
    Read(Sight),
    /// It has created or changed it.
    Changed(Change),
    /// It was refused, since the file has changed after the agent had seen it.
    Stale(Stale),
}

/// A file as an agent has last seen it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// Absolute and without links.
    pub path: PathBuf,
    /// How it looked.
    pub looks: Fingerprint,
}

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Absolute and without links.
    pub path: PathBuf,
    /// What the change has replaced.
    pub before: Before,
    /// How the file looked right after it.
    pub looks: Fingerprint,
    /// The content right after it.
    pub hash: ContentHash,
    /// How many of the folders above the file were made for it, counted from the file.
    pub new_folders: u32,
}

/// What was there before a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Before {
    /// No file.
    Absent,
    /// A file.
    Content(Content),
    /// A file of more than 10 MB, or one that may be written but not read.
    NotKept,
}

/// What a file held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// All of it.
    pub bytes: Vec<u8>,
    /// Its permissions.
    pub mode: u32,
}

/// A write that came too late.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stale {
    /// As the model named it.
    pub named: String,
    /// The file, as it is now.
    pub now: Sight,
}
