//! The signatures on parts of a response, which the API requires back on the same parts.
//!
//! They are sent to every Gemini, whichever one made them: the API requires parts unchanged, and
//! the name of a model in a request often differs from the one in the response.

use ikigai_conversation::Extras;
use serde::{Deserialize, Serialize};

use crate::stored_blocks::{PlacedBlock, StoredBlocks};

/// The key of this format in the extras.
pub(super) const FORMAT: &str = "google";

/// A mark at a position in a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "on", rename_all = "snake_case")]
pub(super) enum Mark {
    /// The next call is signed.
    Call { signature: String },
    /// The start of a signed text, which may be empty. It must not be joined with unsigned text.
    Text { signature: String },
    /// The end of a signed text.
    End,
}

pub(super) fn marks(extras: Option<&Extras>) -> Option<Vec<PlacedBlock<Mark>>> {
    StoredBlocks::from_extras(extras, FORMAT).map(|kept| kept.blocks)
}
