//! The structure of a server's events. Servers agree on the structure, but not on the types of
//! values. So values are raw JSON, and parsed leniently.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::fault::Fault;
use crate::json::not_json;
use crate::stream::wrong_format;

/// One event of a stream, or a whole response.
#[derive(Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    /// The type of the event; `error` on some servers.
    #[serde(borrow)]
    object: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(borrow)]
    delta: Option<Part<'a>>,
    /// Instead of `delta` in a whole response.
    #[serde(borrow)]
    message: Option<Part<'a>>,
    #[serde(borrow)]
    pub(super) finish_reason: Option<&'a RawValue>,
    /// Moonshot sends the usage here.
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// A part of the assistant's message, or all of it.
#[derive(Deserialize)]
pub(super) struct Part<'a> {
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    /// Replaces the content when a model of OpenAI refuses to answer.
    #[serde(borrow)]
    pub(super) refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) reasoning_content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) reasoning: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) reasoning_details: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Vec<CallPart<'a>>>,
    /// The predecessor of `tool_calls`.
    #[serde(borrow)]
    function_call: Option<&'a RawValue>,
}

/// A part of a call, or all of it.
#[derive(Deserialize)]
pub(super) struct CallPart<'a> {
    #[serde(borrow)]
    pub(super) index: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) function: Option<Function<'a>>,
    #[serde(borrow)]
    pub(super) extra_content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Function<'a> {
    #[serde(borrow)]
    pub(super) name: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
}

impl<'a> Chunk<'a> {
    pub(super) fn parse(json: &'a str) -> Result<Chunk<'a>, Fault> {
        // serde's error about other data would repeat what the server sent.
        serde_json::from_str(json)
            .map_err(|error| if error.is_data() { no_chat() } else { not_json(&error) })
    }

    /// Whether the event is an error.
    pub(super) fn is_error(&self) -> bool {
        self.error.is_some() || self.object.is_some_and(|object| object.get() == r#""error""#)
    }
}

/// The fault for JSON without an answer.
pub(super) fn no_chat() -> Fault {
    wrong_format("the Chat Completions format")
}

impl<'a> Choice<'a> {
    pub(super) fn part(&self) -> Option<&Part<'a>> {
        self.delta.as_ref().or(self.message.as_ref())
    }
}

impl<'a> Part<'a> {
    /// The older form of a call. If it is malformed, it is ignored: no request asks for it.
    pub(super) fn function_call(&self) -> Option<Function<'a>> {
        serde_json::from_str(self.function_call?.get()).ok()
    }

    /// What the model thinks. Servers that send several of these fields repeat the same text.
    pub(super) fn thinking(&self) -> Option<Cow<'a, str>> {
        let plain = [self.reasoning_content, self.reasoning].into_iter().flatten();
        let plain = plain.filter_map(text_of).find(|text| !text.is_empty());
        plain
            .or_else(|| self.reasoning_details.and_then(details_of))
            .or_else(|| self.content.and_then(thinking_of))
    }
}

/// The text of a string, or of a number: some servers use numbers as ids.
pub(super) fn text_of<'a>(json: &'a RawValue) -> Option<Cow<'a, str>> {
    let json = json.get();
    match json.as_bytes().first()? {
        b'"' => serde_json::from_str::<Text<'a>>(json).ok().map(|text| text.0),
        b'-' | b'0'..=b'9' => Some(Cow::Borrowed(json)),
        _ => None,
    }
}

/// The text of a message's content: a string, or a list of parts, some of which are text. Other
/// parts are thinking, as Mistral sends it.
pub(super) fn content_of(json: &RawValue) -> Option<Cow<'_, str>> {
    if !json.get().starts_with('[') {
        return text_of(json);
    }
    let parts: Vec<Value> = serde_json::from_str(json.get()).ok()?;
    let is_text = |part: &&Value| matches!(part["type"].as_str(), Some("text") | None);
    let texts = parts.iter().filter(is_text).filter_map(|part| part["text"].as_str());
    Some(texts.collect::<String>().into())
}

/// The text of OpenRouter's `reasoning_details`.
fn details_of<'a>(json: &RawValue) -> Option<Cow<'a, str>> {
    let details: Vec<Value> = serde_json::from_str(json.get()).ok()?;
    let text =
        |detail: &Value| detail["text"].as_str().or(detail["summary"].as_str()).map(str::to_owned);
    joined(details.iter().filter_map(text))
}

/// The thinking in a list of parts, as Mistral sends it.
fn thinking_of<'a>(json: &RawValue) -> Option<Cow<'a, str>> {
    if !json.get().starts_with('[') {
        return None;
    }
    let parts: Vec<Value> = serde_json::from_str(json.get()).ok()?;
    let thinking = parts.iter().filter_map(|part| part["thinking"].as_array()).flatten();
    joined(thinking.filter_map(|part| part["text"].as_str().map(str::to_owned)))
}

fn joined<'a>(texts: impl Iterator<Item = String>) -> Option<Cow<'a, str>> {
    Some(texts.collect::<String>()).filter(|text| !text.is_empty()).map(Cow::Owned)
}

/// The JSON of a call's arguments: most servers send it as a string, some as an object.
pub(super) fn arguments_of(json: &RawValue) -> Cow<'_, str> {
    text_of(json).unwrap_or(Cow::Borrowed(json.get()))
}

/// A string in which half a surrogate pair is accepted: servers that count in UTF-16 split pairs.
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text<'a>, D::Error> {
        deserializer.deserialize_bytes(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Text<'de>, E> {
        Ok(Text(String::from_utf8_lossy(bytes)))
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Text<'de>, E> {
        Ok(Text(String::from_utf8_lossy(bytes).into_owned().into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn values_are_parsed_by_their_type() {
        for (json, text) in [
            (r#""a""#, Some("a")),
            (r#""a\n\u00e9\ud83d\ude00""#, Some("a\né😀")),
            (r#""a\ud83d!""#, Some("a\u{fffd}\u{fffd}\u{fffd}!")),
            ("17", Some("17")),
            ("-1.50", Some("-1.50")),
            ("true", None),
            ("{}", None),
            ("[]", None),
        ] {
            assert_eq!(text_of(&raw(json)).as_deref(), text, "{json}");
        }
    }

    #[test]
    fn content_may_be_a_list_of_parts() {
        for (json, text) in [
            (r#""a""#, Some("a")),
            (r#"[{"type":"text","text":"a"},{"text":"b"}]"#, Some("ab")),
            (r#"[{"type":"thinking","thinking":[{"type":"text","text":"a"}]}]"#, Some("")),
            (r#"[7,null,"x",{"type":"text"}]"#, Some("")),
            (r#"{"text":"a"}"#, None),
        ] {
            assert_eq!(content_of(&raw(json)).as_deref(), text, "{json}");
        }
    }

    #[test]
    fn an_object_of_arguments_is_kept_byte_by_byte() {
        assert_eq!(arguments_of(&raw(r#""{\"a\":1}""#)), r#"{"a":1}"#);
        assert_eq!(
            arguments_of(&raw(r#"{"a": 12345678901234567890123}"#)),
            r#"{"a": 12345678901234567890123}"#
        );
    }
}
