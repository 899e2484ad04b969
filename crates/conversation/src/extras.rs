//! Opaque data that a provider wants back.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// A JSON value from a provider, such as a reasoning signature, that must be sent back unchanged.
///
/// It is stored as text, so numbers, escapes and the order of keys are preserved exactly. Only
/// white space between tokens is removed, so that a message stays one line.
///
/// ```
/// use ikigai_conversation::Extras;
///
/// let extras = Extras::parse("{ \"n\": 1.10,\n \"s\": \"\\u0061 b\" }")?;
/// assert_eq!(extras.as_json(), r#"{"n":1.10,"s":"\u0061 b"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Serialize)]
#[serde(transparent)]
pub struct Extras(Box<RawValue>);

impl Extras {
    /// Parses any JSON value.
    pub fn parse(json: &str) -> Result<Extras, serde_json::Error> {
        let value: Box<RawValue> = serde_json::from_str(json)?;
        Ok(Extras(compact(value)))
    }

    /// The value, on one line.
    pub fn as_json(&self) -> &str {
        self.0.get()
    }
}

/// Removes the white space between the tokens of a value.
fn compact(value: Box<RawValue>) -> Box<RawValue> {
    let is_space = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r');
    if !value.get().contains(is_space) {
        return value;
    }
    let mut in_string = false;
    let mut escaped = false;
    let mut text = value.get().to_owned();
    text.retain(|c| {
        let keep = in_string || !is_space(c);
        in_string ^= c == '"' && !escaped;
        escaped = in_string && c == '\\' && !escaped;
        keep
    });
    RawValue::from_string(text).unwrap_or(value)
}

impl PartialEq for Extras {
    fn eq(&self, other: &Extras) -> bool {
        self.as_json() == other.as_json()
    }
}

impl Eq for Extras {}

impl fmt::Debug for Extras {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_json())
    }
}

impl<'de> Deserialize<'de> for Extras {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Extras, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(|value| Extras(compact(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_white_space_between_tokens_is_removed() {
        for (json, kept) in [
            (" [ 1 , 2 ]\n", "[1,2]"),
            (r#"{"a b" : "c \" d \\" , "e":" "}"#, r#"{"a b":"c \" d \\","e":" "}"#),
            (r#""\\\" ""#, r#""\\\" ""#),
            ("1e400", "1e400"),
            ("0.10000000000000000000001", "0.10000000000000000000001"),
        ] {
            assert_eq!(Extras::parse(json).unwrap().as_json(), kept);
        }
        for json in ["", "{", "nul", "1 2"] {
            assert!(Extras::parse(json).is_err(), "{json}");
        }
    }
}
