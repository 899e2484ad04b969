//! Rewinding: the points that the user can return to, and what a rewind did.

use ikigai_conversation::MessageId;
use serde::{Deserialize, Serialize};

use crate::undo::UndoReport;

/// A message of the user, or a mark, that the conversation can return to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RewindPoint {
    /// Its message in the log.
    pub id: MessageId,
    /// The start of the message, or the name of the mark.
    pub text: String,
    /// Whether it is a mark.
    pub is_mark: bool,
    /// How long ago it was: `2 minutes ago`.
    pub age: String,
    /// How many files have changed since, as far as that can be undone.
    pub files: usize,
}

/// What returns to a point.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RewindPart {
    /// The conversation and the files.
    #[default]
    Everything,
    /// The conversation. Files stay as they are.
    Conversation,
    /// The files. The conversation stays as it is.
    Files,
}

impl RewindPart {
    /// Whether it includes the conversation.
    pub fn has_conversation(self) -> bool {
        matches!(self, RewindPart::Everything | RewindPart::Conversation)
    }

    /// Whether it includes the files.
    pub fn has_files(self) -> bool {
        matches!(self, RewindPart::Everything | RewindPart::Files)
    }
}

/// What a rewind to a point did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RewindReport {
    /// What returned to the point.
    pub part: RewindPart,
    /// The message of the user that the conversation returned to, which can be sent again.
    pub text: Option<String>,
    /// The file changes that were undone, by the message that caused them, the latest first.
    pub files: Vec<UndoReport>,
}
