//! What goes back to a server with a response that has calls: as the extras
//! `{"chat_completions":{"reasoning_content":"…","calls":{"call_1":{"extra_content":{…}}}}}`.
//!
//! DeepSeek and OpenRouter want their reasoning back while calls are being made, Google the signature that
//! stands in a call. Responses without calls go back without any of it: there it is only dead weight, and
//! some servers refuse it.

use std::collections::BTreeMap;

use ikigai_conversation::{Extras, ToolCallId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The most that is kept of one response, since it is sent with every later request. What is longer is
/// dropped: a server that insists on it will say so.
pub(super) const MAX_BYTES: usize = 1024 * 1024;

/// The fields of a response's message, as they came.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Wanted {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_content: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_details: Option<Box<RawValue>>,
    /// By the ids that the log has.
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

/// The extras of a response whose calls have got other ids: `renamed` has the new ones by the old. Extras of another
/// format know no ids.
pub(crate) fn rename_calls(extras: Extras, renamed: &BTreeMap<String, String>) -> Extras {
    let mut wanted = Wanted::read(&extras);
    let calls = std::mem::take(&mut wanted.calls).into_iter();
    let rename = |id: String| renamed.get(&id).cloned().unwrap_or(id);
    wanted.calls = calls.map(|(id, call)| (rename(id), call)).collect();
    wanted.into_extras().unwrap_or(extras)
}

#[derive(Serialize, Deserialize)]
struct Envelope {
    chat_completions: Wanted,
}

impl Wanted {
    /// What goes into the log, if there is anything.
    pub(super) fn into_extras(self) -> Option<Extras> {
        let is_empty = self.message_fields().next().is_none() && self.calls.is_empty();
        if is_empty {
            return None;
        }
        let json = serde_json::to_string(&Envelope { chat_completions: self }).ok()?;
        if json.len() > MAX_BYTES { None } else { Extras::parse(&json).ok() }
    }

    /// Nothing of extras that are another format's.
    pub(super) fn read(extras: &Extras) -> Wanted {
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
    fn what_is_kept_goes_back_to_the_letter() {
        let json = r#"{"chat_completions":{"reasoning_content":"\u0061","calls":{"c":{"extra_content":{"n":1.10}}}}}"#;
        let kept = Wanted::read(&extras(json));
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
    fn extras_of_another_form_are_nothing() {
        for json in [
            "null",
            "7",
            "{}",
            r#"{"anthropic":{"thinking":[]}}"#,
            r#"{"chat_completions":[]}"#,
            r#"{"chat_completions":{"calls":7}}"#,
            r#"{"chat_completions":{"reasoning":null}}"#,
        ] {
            assert_eq!(Wanted::read(&extras(json)).into_extras(), None, "{json}");
        }
    }

    #[test]
    fn too_much_is_not_kept() {
        let json = serde_json::to_string(&"x".repeat(MAX_BYTES)).unwrap();
        let reasoning = RawValue::from_string(json).ok();
        assert_eq!(Wanted { reasoning, ..Wanted::default() }.into_extras(), None);
    }
}
