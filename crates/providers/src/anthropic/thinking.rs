//! The thinking of a response, which the API requires back unchanged.
//!
//! Some models refuse thinking from another model and others drop it, so it is only sent to the
//! model that produced it. That also keeps it from models without thinking.

use ikigai_conversation::Extras;
use serde::{Deserialize, Serialize};

use crate::entries::is_blank;
use crate::stored_blocks::{PlacedBlock, StoredBlocks};

/// The key of this format in the extras.
pub(super) const FORMAT: &str = "anthropic";

/// The two kinds of blocks, with the fields that are sent back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ThinkingBlock {
    /// The text may be empty: some models only show the signature.
    Thinking {
        thinking: String,
        signature: String,
    },
    RedactedThinking {
        data: String,
    },
}

impl ThinkingBlock {
    /// Whether the API accepts it. A block without a signature would be
    /// refused in every later request.
    pub(super) fn is_complete(&self) -> bool {
        match self {
            ThinkingBlock::Thinking { signature, .. } => !is_blank(signature),
            ThinkingBlock::RedactedThinking { data } => !is_blank(data),
        }
    }
}

/// The blocks in a response's extras that can be sent to `model`.
pub(super) fn thinking(
    extras: Option<&Extras>,
    model: &str,
) -> Option<Vec<PlacedBlock<ThinkingBlock>>> {
    let kept = StoredBlocks::<ThinkingBlock>::from_extras(extras, FORMAT)?;
    let is_taken = kept.is_of(model) && kept.blocks.iter().all(|placed| placed.block.is_complete());
    is_taken.then_some(kept.blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(block: &str, is_sent: bool) {
        let json = format!(
            r#"{{"anthropic":{{"model":"m","blocks":[{{"text":0,"calls":0,"block":{block}}}]}}}}"#
        );
        let extras = Extras::parse(&json).unwrap();
        assert_eq!(thinking(Some(&extras), "m").is_some(), is_sent, "{block}");
        assert_eq!(thinking(Some(&extras), "another"), None);
    }

    #[test]
    fn thinking_that_the_api_refuses_is_not_sent() {
        check(r#"{"type":"thinking","thinking":"hm","signature":"s"}"#, true);
        check(r#"{"type":"thinking","thinking":"","signature":"s"}"#, true);
        check(r#"{"type":"redacted_thinking","data":"d"}"#, true);
        check(r#"{"type":"thinking","thinking":"hm","signature":""}"#, false);
        check(r#"{"type":"thinking","thinking":"hm"}"#, false);
        check(r#"{"type":"redacted_thinking","data":""}"#, false);
        check(r#"{"type":"text","text":"x"}"#, false);
    }
}
