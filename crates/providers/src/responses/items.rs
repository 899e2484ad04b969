//! What of a response's items is neither text nor call, and goes back with them.
//!
//! Nothing is stored at the server, so a reasoning item is worth nothing without its encrypted content, and is
//! then refused. Only the model that made it gets it back: another one may not be able to read it.

use ikigai_conversation::Extras;
use serde::{Deserialize, Serialize};

use crate::entries::is_blank;
use crate::kept::{Kept, Placed};

/// What this format's extras are called.
pub(super) const FORMAT: &str = "responses";

/// What stands at a place of a response.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Mark {
    /// A reasoning item stood here.
    Reasoning(Reasoning),
    /// A message began here that was a remark on the way, or the answer. Models that make the difference want
    /// it back.
    Message { phase: String },
}

/// A reasoning item, with the fields that the API takes back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Reasoning {
    pub(super) id: String,
    pub(super) summary: Vec<Summary>,
    pub(super) encrypted_content: String,
}

/// A part of what a person may read of the reasoning.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename = "summary_text")]
pub(super) struct Summary {
    pub(super) text: String,
}

impl Mark {
    /// Whether the API would take it.
    pub(super) fn is_complete(&self) -> bool {
        match self {
            Mark::Reasoning(reasoning) => {
                !is_blank(&reasoning.id) && !is_blank(&reasoning.encrypted_content)
            }
            Mark::Message { phase } => matches!(phase.as_str(), "commentary" | "final_answer"),
        }
    }
}

/// What can be sent to `model` of a response's extras.
pub(super) fn marks(extras: Option<&Extras>, model: &str) -> Option<Vec<Placed<Mark>>> {
    let kept = Kept::<Mark>::from_extras(extras, FORMAT)?;
    let is_taken = kept.is_of(model) && kept.blocks.iter().all(|placed| placed.block.is_complete());
    is_taken.then_some(kept.blocks)
}
