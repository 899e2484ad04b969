//! Items of a response that are neither text nor calls, and are sent back with them.
//!
//! Nothing is stored on the server, so a reasoning item is useless without
//! its encrypted content, and refused then. It is only sent back to the
//! model that made it: others may not be able to read it.

use ikigai_conversation::Extras;
use serde::{Deserialize, Serialize};

use crate::entries::is_blank;
use crate::stored_blocks::{PlacedBlock, StoredBlocks};

/// The key of this format in the extras.
pub(super) const FORMAT: &str = "responses";

/// A mark at a position in a response.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Mark {
    /// A reasoning item.
    Reasoning(Reasoning),
    /// The start of a message that was a comment or the final answer. Models that distinguish them
    /// require this back.
    Message { phase: String },
}

/// A reasoning item, with the fields that are sent back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Reasoning {
    pub(super) id: String,
    pub(super) summary: Vec<Summary>,
    pub(super) encrypted_content: String,
}

/// A part of the reasoning's summary.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename = "summary_text")]
pub(super) struct Summary {
    pub(super) text: String,
}

impl Mark {
    /// Whether the API accepts it.
    pub(super) fn is_complete(&self) -> bool {
        match self {
            Mark::Reasoning(reasoning) => {
                !is_blank(&reasoning.id) && !is_blank(&reasoning.encrypted_content)
            }
            Mark::Message { phase } => matches!(phase.as_str(), "commentary" | "final_answer"),
        }
    }
}

/// The blocks in a response's extras that can be sent to `model`.
pub(super) fn marks(extras: Option<&Extras>, model: &str) -> Option<Vec<PlacedBlock<Mark>>> {
    let kept = StoredBlocks::<Mark>::from_extras(extras, FORMAT)?;
    let is_taken = kept.is_of(model) && kept.blocks.iter().all(|placed| placed.block.is_complete());
    is_taken.then_some(kept.blocks)
}
