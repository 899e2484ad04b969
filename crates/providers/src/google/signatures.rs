//! The signatures on a response's parts, which the API wants back on the same parts.
//!
//! They go back to every Gemini, whichever made them: the API asks for what it sent as it sent it, and a request
//! often names a model otherwise than the response does.

use ikigai_conversation::Extras;
use serde::{Deserialize, Serialize};

use crate::kept::{Kept, Placed};

/// What this format's extras are called.
pub(super) const FORMAT: &str = "google";

/// What stands at a place of a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "on", rename_all = "snake_case")]
pub(super) enum Mark {
    /// The call behind it is signed.
    Call { signature: String },
    /// A signed text begins, which may be empty. It must not be joined with one that is not.
    Text { signature: String },
    /// A signed text ends.
    End,
}

pub(super) fn marks(extras: Option<&Extras>) -> Option<Vec<Placed<Mark>>> {
    Kept::from_extras(extras, FORMAT).map(|kept| kept.blocks)
}
