//! The thinking of a response, which the API wants back as it came: as the extras
//! `{"anthropic":{"model":"…","thinking":[{"text":0,"calls":0,"block":{…}}]}}`.
//!
//! A block is signed together with all that stood before it, so it goes back to where it was: behind so many
//! bytes of the response's text and so many of its calls. A block that another model made is refused by some
//! models and dropped by others, so only the model that made it gets it back.

use ikigai_conversation::Extras;
use serde::{Deserialize, Serialize};

/// The thinking of one response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Thinking {
    /// Who thought, if the server said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    /// The blocks, in order.
    pub(super) thinking: Vec<Thought>,
}

/// A block and its place in the response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Thought {
    /// Bytes of text before it.
    pub(super) text: usize,
    /// Calls before it.
    pub(super) calls: usize,
    pub(super) block: ThinkingBlock,
}

/// The two sorts of blocks, with the fields that the API takes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ThinkingBlock {
    Thinking { thinking: String, signature: String },
    RedactedThinking { data: String },
}

impl ThinkingBlock {
    /// Whether the API would take it. One without a signature is refused with every later request.
    pub(super) fn is_complete(&self) -> bool {
        match self {
            ThinkingBlock::Thinking { signature, .. } => !signature.is_empty(),
            ThinkingBlock::RedactedThinking { data } => !data.is_empty(),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Envelope {
    anthropic: Thinking,
}

impl Thinking {
    /// What goes into the log; nothing without a block.
    pub(super) fn into_extras(self) -> Option<Extras> {
        if self.thinking.is_empty() {
            return None;
        }
        let json = serde_json::to_string(&Envelope { anthropic: self }).ok()?;
        Extras::parse(&json).ok()
    }

    /// What can be sent to `model` of a response's extras: nothing of another format's, of another model's, or
    /// of what is no such thinking.
    pub(super) fn from_extras(extras: Option<&Extras>, model: &str) -> Vec<Thought> {
        let thinking = extras
            .and_then(|extras| serde_json::from_str::<Envelope>(extras.as_json()).ok())
            .map(|envelope| envelope.anthropic)
            .filter(|thinking| thinking.is_of(model) && thinking.is_well_formed());
        thinking.map(|thinking| thinking.thinking).unwrap_or_default()
    }

    fn is_of(&self, model: &str) -> bool {
        self.model.as_deref().is_none_or(|maker| without_date(maker) == without_date(model))
    }

    fn is_well_formed(&self) -> bool {
        self.thinking.iter().all(|thought| thought.block.is_complete())
            && self.thinking.is_sorted_by(|a, b| a.text <= b.text && a.calls <= b.calls)
    }
}

/// A request may name a model without the date that the response has in its name.
fn without_date(model: &str) -> &str {
    let is_date = |end: &str| end.len() == 8 && end.bytes().all(|byte| byte.is_ascii_digit());
    match model.rsplit_once('-') {
        Some((name, end)) if is_date(end) || end == "latest" => name,
        Some(_) | None => model,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thought(text: usize, calls: usize, signature: &str) -> Thought {
        let (thinking, signature) = ("hm".to_owned(), signature.to_owned());
        Thought { text, calls, block: ThinkingBlock::Thinking { thinking, signature } }
    }

    fn back(model: Option<&str>, thinking: Vec<Thought>, asked: &str) -> Vec<Thought> {
        let extras = Thinking { model: model.map(str::to_owned), thinking }.into_extras();
        Thinking::from_extras(extras.as_ref(), asked)
    }

    #[test]
    fn only_the_model_that_thought_gets_it_back() {
        let kept = vec![thought(0, 0, "s")];
        for (maker, asked, is_kept) in [
            (Some("claude-opus-5-5"), "claude-opus-5-5", true),
            (Some("claude-sonnet-4-5-20250929"), "claude-sonnet-4-5", true),
            (Some("claude-3-7-sonnet-20250219"), "claude-3-7-sonnet-latest", true),
            (Some("claude-opus-5-5"), "claude-opus-5", false),
            (Some("claude-opus-5"), "claude-opus-5-5", false),
            (None, "claude-opus-5", true),
        ] {
            let expected = if is_kept { kept.clone() } else { Vec::new() };
            assert_eq!(back(maker, kept.clone(), asked), expected, "{maker:?} {asked}");
        }
    }

    #[test]
    fn thinking_that_the_api_would_refuse_is_not_sent() {
        assert_eq!(back(None, vec![thought(0, 0, "")], "m"), []);
        assert_eq!(back(None, vec![thought(5, 0, "s"), thought(4, 1, "s")], "m"), []);
        let parse = |json: &str| Extras::parse(json).unwrap();
        for json in [
            "null",
            "7",
            r#"{"google":{"parts":[]}}"#,
            r#"{"anthropic":{"thinking":[{"type":"thinking"}]}}"#,
            r#"{"anthropic":{"thinking":[{"text":-1,"calls":0,"block":{"type":"redacted_thinking","data":"x"}}]}}"#,
            r#"{"anthropic":{"thinking":[{"text":0,"calls":0,"block":{"type":"text","text":"x"}}]}}"#,
        ] {
            assert_eq!(Thinking::from_extras(Some(&parse(json)), "m"), [], "{json}");
        }
    }

    #[test]
    fn the_log_has_the_blocks_as_they_came() {
        let redacted = ThinkingBlock::RedactedThinking { data: "EmwK".to_owned() };
        let redacted = Thought { text: 2, calls: 1, block: redacted };
        let thinking = Thinking {
            model: Some("m".to_owned()),
            thinking: vec![thought(0, 0, "sig=="), redacted],
        };
        assert_eq!(
            thinking.into_extras().unwrap().as_json(),
            r#"{"anthropic":{"model":"m","thinking":[{"text":0,"calls":0,"block":{"type":"thinking","thinking":"hm","signature":"sig=="}},{"text":2,"calls":1,"block":{"type":"redacted_thinking","data":"EmwK"}}]}}"#
        );
        assert_eq!(Thinking { model: None, thinking: Vec::new() }.into_extras(), None);
    }
}
