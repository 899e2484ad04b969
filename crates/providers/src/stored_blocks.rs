//! Blocks that a provider requires back with a response, as the log keeps them:
//! `{"FORMAT":{"model":"…","blocks":[{"text":0,"calls":0,"block":{…}}]}}`.
//!
//! A block's signature also covers what precedes it, so each block is sent back in its position:
//! after so many bytes of the response's text and so many of its calls.

use std::collections::HashMap;

use ikigai_conversation::{Extras, ToolCall};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The blocks of one response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredBlocks<B> {
    /// The model that made them, if the server named it.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// In their original order.
    pub(crate) blocks: Vec<PlacedBlock<B>>,
}

/// A block and its position in the response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlacedBlock<B> {
    /// Bytes of text before it.
    pub(crate) text: usize,
    /// Calls before it.
    pub(crate) calls: usize,
    pub(crate) block: B,
}

/// A part of a response, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece<'a, B> {
    /// Never empty.
    Text(&'a str),
    Call(&'a ToolCall),
    Block(B),
}

impl<B: Serialize + DeserializeOwned> StoredBlocks<B> {
    /// The extras for the log; `None` without a block.
    pub(crate) fn into_extras(self, format: &str) -> Option<Extras> {
        if self.blocks.is_empty() {
            return None;
        }
        let json = serde_json::to_string(&HashMap::from([(format, self)])).ok()?;
        Extras::parse(&json).ok()
    }

    /// The blocks of a format in the extras of a log.
    pub(crate) fn from_extras(extras: Option<&Extras>, format: &str) -> Option<StoredBlocks<B>> {
        let formats: HashMap<String, &RawValue> = serde_json::from_str(extras?.as_json()).ok()?;
        serde_json::from_str(formats.get(format)?.get()).ok()
    }

    /// Whether `model` made them. If the model is unknown, it may have.
    pub(crate) fn is_of(&self, model: &str) -> bool {
        self.model.as_deref().is_none_or(|maker| without_date(maker) == without_date(model))
    }
}

/// A request may name a model without the date that the response includes.
fn without_date(model: &str) -> &str {
    // A zero stands for any digit.
    let is_of_shape = |end: &str, shape: &str| {
        let same = |(a, b): (u8, u8)| a == b || (b == b'0' && a.is_ascii_digit());
        end.bytes().zip(shape.bytes()).all(same)
    };
    let name_before = |shape: &str| {
        let (name, end) = model.split_at_checked(model.len().checked_sub(shape.len())?)?;
        is_of_shape(end, shape).then_some(name)
    };
    ["-latest", "-00000000", "-0000-00-00"].into_iter().find_map(name_before).unwrap_or(model)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Blocks = StoredBlocks<String>;

    fn kept(model: Option<&str>) -> Blocks {
        let blocks = vec![PlacedBlock { text: 2, calls: 1, block: "x".to_owned() }];
        StoredBlocks { model: model.map(str::to_owned), blocks }
    }

    #[test]
    fn blocks_are_found_only_by_their_own_format() {
        let extras = kept(Some("m")).into_extras("anthropic").unwrap();
        assert_eq!(
            extras.as_json(),
            r#"{"anthropic":{"model":"m","blocks":[{"text":2,"calls":1,"block":"x"}]}}"#
        );
        let found = Blocks::from_extras(Some(&extras), "anthropic");
        assert_eq!(found, Some(kept(Some("m"))));
        assert_eq!(Blocks::from_extras(Some(&extras), "google"), None);
        assert_eq!(Blocks::from_extras(None, "google"), None);
        assert_eq!(
            StoredBlocks::<String> { model: None, blocks: Vec::new() }.into_extras("x"),
            None
        );
    }

    #[test]
    fn other_extras_are_ignored() {
        for json in ["null", "7", "[]", r#"{"x":7}"#, r#"{"x":{"blocks":[{"text":-1}]}}"#] {
            let extras = Extras::parse(json).unwrap();
            assert_eq!(Blocks::from_extras(Some(&extras), "x"), None, "{json}");
        }
    }

    #[test]
    fn models_match_with_and_without_a_date() {
        for (maker, asked, same) in [
            (Some("claude-opus-5-5"), "claude-opus-5-5", true),
            (Some("claude-sonnet-4-5-20250929"), "claude-sonnet-4-5", true),
            (Some("claude-3-7-sonnet-20250219"), "claude-3-7-sonnet-latest", true),
            (Some("gpt-5-2025-08-07"), "gpt-5", true),
            (Some("gpt-5-mini-2025-08-07"), "gpt-5", false),
            (Some("claude-opus-5-5"), "claude-opus-5", false),
            (Some("claude-opus-5"), "claude-opus-5-5", false),
            (Some("é-12345678"), "é", true),
            (Some("12345678"), "", false),
            (Some("-12345678"), "", true),
            (None, "claude-opus-5", true),
        ] {
            assert_eq!(kept(maker).is_of(asked), same, "{maker:?} {asked}");
        }
    }
}
