//! The names and arguments of calls in a form that every API accepts.
//!
//! A model may use any name and any arguments, and the log keeps them. But some servers validate
//! the history they are sent, and would refuse every later request.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::json;

use crate::call_ids::is_word_byte;

/// The longest name that all APIs accept.
const MAX_NAME_BYTES: usize = 64;

/// How much a model sees of its own arguments that were not JSON: enough to see the mistake.
const MAX_RAW_CHARS: usize = 2_000;

/// A tool's name, with invalid characters replaced.
pub(crate) fn wire_name(name: &str) -> Cow<'_, str> {
    if name.is_empty() {
        return Cow::Borrowed("unknown");
    }
    if name.len() <= MAX_NAME_BYTES && name.bytes().all(is_word_byte) {
        return Cow::Borrowed(name);
    }
    let allowed = |c: char| u8::try_from(c).is_ok_and(is_word_byte);
    let valid = name.chars().map(|c| if allowed(c) { c } else { '_' });
    Cow::Owned(valid.take(MAX_NAME_BYTES).collect())
}

/// The arguments as a JSON object: unchanged if they are one, else an
/// object that contains their text.
///
/// llama.cpp, for example, fails if the history has a call whose arguments do not parse.
pub(crate) fn wire_arguments(raw: &str) -> Cow<'_, str> {
    if raw.trim_ascii().is_empty() {
        return Cow::Borrowed("{}");
    }
    if is_object(raw) {
        return Cow::Borrowed(raw);
    }
    let end = raw.char_indices().nth(MAX_RAW_CHARS).map_or(raw.len(), |(end, _)| end);
    Cow::Owned(json!({ "not_json": raw[..end] }).to_string())
}

fn is_object(text: &str) -> bool {
    text.trim_ascii_start().starts_with('{') && is_json(text)
}

/// Whether a text is JSON that every parser accepts.
pub(crate) fn is_json(text: &str) -> bool {
    serde_json::from_str::<Checked>(text).is_ok()
}

/// Parses a value without keeping it. Unlike `IgnoredAny` it checks strings and numbers and limits
/// the depth: few servers accept half a surrogate, `1e999` or a thousand brackets.
struct Checked;

impl<'de> Deserialize<'de> for Checked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Checked, D::Error> {
        deserializer.deserialize_any(CheckedVisitor)
    }
}

struct CheckedVisitor;

impl<'de> Visitor<'de> for CheckedVisitor {
    type Value = Checked;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E>(self) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_str<E>(self, _: &str) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Checked, A::Error> {
        while seq.next_element::<Checked>()?.is_some() {}
        Ok(Checked)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Checked, A::Error> {
        while map.next_entry::<Checked, Checked>()?.is_some() {}
        Ok(Checked)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn invalid_characters_in_a_name_are_replaced() {
        let long = "x".repeat(65);
        for (name, sent) in [
            ("file_read", "file_read"),
            ("", "unknown"),
            ("a.b c/d", "a_b_c_d"),
            ("é👩", "__"),
            (&long, &long[..64]),
        ] {
            assert_eq!(wire_name(name), sent);
        }
    }

    #[test]
    fn an_object_is_sent_back_byte_by_byte() {
        for raw in ["{}", r#" { "a" : 1.10, "b":"\u0061\n", "a":[null,true,-1] } "#, "{\n}\n"] {
            assert!(matches!(wire_arguments(raw), Cow::Borrowed(sent) if sent == raw));
        }
    }

    #[test]
    fn empty_arguments_are_an_empty_object() {
        assert_eq!((&*wire_arguments(""), &*wire_arguments(" \n")), ("{}", "{}"));
    }

    #[test]
    fn other_arguments_are_wrapped_in_an_object() {
        for (raw, sent) in [
            (r#"{"a":"#, r#"{"not_json":"{\"a\":"}"#),
            ("[1]", r#"{"not_json":"[1]"}"#),
            ("null", r#"{"not_json":"null"}"#),
            (r#"{"a":"\ud800"}"#, r#"{"not_json":"{\"a\":\"\\ud800\"}"}"#),
            (r#"{"a":1e999}"#, r#"{"not_json":"{\"a\":1e999}"}"#),
            ("{} {}", r#"{"not_json":"{} {}"}"#),
        ] {
            assert_eq!(wire_arguments(raw), sent);
        }
        let long = "é".repeat(3_000);
        let sent: Value = serde_json::from_str(&wire_arguments(&long)).unwrap();
        assert_eq!(sent["not_json"].as_str().unwrap().chars().count(), 2_000);
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(1_000), "]".repeat(1_000));
        assert!(wire_arguments(&deep).starts_with(r#"{"not_json":"#));
    }

    proptest! {
        #[test]
        fn what_is_sent_is_always_an_object(raw in r#"[{}\[\]",:\\u0-9a-fé \n]{0,30}"#) {
            let sent: Value = serde_json::from_str(&wire_arguments(&raw)).unwrap();
            prop_assert!(sent.is_object());
        }
    }
}
