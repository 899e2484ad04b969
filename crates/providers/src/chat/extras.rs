//! What is sent back to a server with a response that has calls, kept as the extras
//! `{"chat_completions":{"reasoning_content":"…","calls":{"call_1":{"extra_content":{…}}}}}`.
//!
//! DeepSeek and OpenRouter require their reasoning back during tool use, and Google the signature
//! inside a call. Nothing is sent back with responses without calls: it would be useless there, and
//! some servers refuse it.

use std::collections::BTreeMap;

use ikigai_conversation::{Extras, ToolCallId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The limit for one response, since extras are sent with every later request. Longer ones are
/// dropped: a server that requires them will say so.
pub(super) const MAX_BYTES: usize = 1024 * 1024;

/// The fields of a response's message, unchanged.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ChatExtras {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_content: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_details: Option<Box<RawValue>>,
    /// By the ids in the log.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) calls: BTreeMap<String, WantedCall>,
}

/// The fields of a call.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct WantedCall {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) extra_content: Option<Box<RawValue>>,
}

/// The extras of a response whose calls got new ids. `renamed` maps the old ids to the new ones.
/// Extras of another format contain no ids.
pub(crate) fn rename_calls(extras: Extras, renamed: &BTreeMap<String, String>) -> Extras {
    let mut kept = ChatExtras::read(&extras);
    let calls = std::mem::take(&mut kept.calls).into_iter();
    let rename = |id: String| renamed.get(&id).cloned().unwrap_or(id);
    kept.calls = calls.map(|(id, call)| (rename(id), call)).collect();
    kept.into_extras().unwrap_or(extras)
}

#[derive(Serialize, Deserialize)]
struct Envelope {
    chat_completions: ChatExtras,
}

impl ChatExtras {
    /// The extras for the log, if there are any.
    pub(super) fn into_extras(self) -> Option<Extras> {
        let is_empty = self.message_fields().next().is_none() && self.calls.is_empty();
        if is_empty {
            return None;
        }
        let json = serde_json::to_string(&Envelope { chat_completions: self }).ok()?;
        if json.len() > MAX_BYTES { None } else { Extras::parse(&json).ok() }
    }

    /// Empty for extras of another format.
    pub(super) fn read(extras: &Extras) -> ChatExtras {
        let envelope = serde_json::from_str::<Envelope>(extras.as_json());
        envelope.map(|envelope| envelope.chat_completions).unwrap_or_default()
    }

    /// The names and the JSON of the message's own fields.
    pub(super) fn message_fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let fields = [
            ("reasoning_content", &self.reasoning_content),
            ("reasoning", &self.reasoning),
            ("reasoning_details", &self.reasoning_details),
        ];
        fields.into_iter().filter_map(|(name, json)| Some((name, json.as_deref()?.get())))
    }

    /// The names and the JSON of the fields of a call.
    pub(super) fn call_fields(
        &self,
        id: &ToolCallId,
    ) -> impl Iterator<Item = (&'static str, &str)> {
        let call = self.calls.get(id.as_str());
        let extra_content = call.and_then(|call| call.extra_content.as_deref());
        extra_content.map(|json| ("extra_content", json.get())).into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::extras;

    #[test]
    fn extras_are_sent_back_byte_by_byte() {
        let json = r#"{"chat_completions":{"reasoning_content":"\u0061","calls":{"c":{"extra_content":{"n":1.10}}}}}"#;
        let kept = ChatExtras::read(&extras(json));
        assert_eq!(
            kept.message_fields().collect::<Vec<_>>(),
            [("reasoning_content", r#""\u0061""#)]
        );
        let fields = kept.call_fields(&ToolCallId::new("c")).collect::<Vec<_>>();
        assert_eq!(fields, [("extra_content", r#"{"n":1.10}"#)]);
        assert_eq!(kept.call_fields(&ToolCallId::new("d")).count(), 0);
        assert_eq!(kept.into_extras(), Some(extras(json)));
    }

    #[test]
    fn malformed_extras_are_ignored() {
        for json in [
            "null",
            "7",
            "{}",
            r#"{"anthropic":{"thinking":[]}}"#,
            r#"{"chat_completions":[]}"#,
            r#"{"chat_completions":{"calls":7}}"#,
            r#"{"chat_completions":{"reasoning":null}}"#,
        ] {
            assert_eq!(ChatExtras::read(&extras(json)).into_extras(), None, "{json}");
        }
    }

    #[test]
    fn long_extras_are_not_kept() {
        let json = serde_json::to_string(&"x".repeat(MAX_BYTES)).unwrap();
        let reasoning = RawValue::from_string(json).ok();
        assert_eq!(ChatExtras { reasoning, ..ChatExtras::default() }.into_extras(), None);
    }
}
