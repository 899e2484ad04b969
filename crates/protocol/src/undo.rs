//! The report of an undo or a redo, file by file.

use std::path::PathBuf;

use ikigai_conversation::Time;
use serde::Serialize;

/// What an undo or a redo did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UndoReport {
    /// The first line of the message whose changes it concerns.
    pub title: String,
    /// When that message was sent.
    pub said_at: Time,
    /// The same as text: `2 minutes ago`.
    pub age: String,
    /// Every file and what happened to it.
    pub files: Vec<(PathBuf, FileOutcome)>,
}

/// What happened to a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", content = "reason", rename_all = "snake_case")]
pub enum FileOutcome {
    /// It has its other content again.
    Restored,
    /// It was removed.
    Removed,
    /// Some of the changes were undone; the rest were left alone, for this reason.
    Partial(LeftReason),
    /// It was left alone, for this reason.
    Left(LeftReason),
    /// It could not be changed. The same command tries again.
    Failed(String),
}

/// Why a file was left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftReason {
    /// It was changed since.
    ChangedSince,
    /// It was removed since.
    Gone,
    /// The content to restore was too large to keep.
    NotKept,
    /// It has become one of Git's settings.
    GitSetting,
}
