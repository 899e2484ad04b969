//! The reasoning of a model, as some servers require it back.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::extras::{ChatExtras, MAX_BYTES};

/// The reasoning of one response so far. Servers name it differently, and some send it twice. The
/// fields that arrived are sent back.
#[derive(Debug, Default)]
pub(super) struct Reasoning {
    /// `reasoning_content`: DeepSeek, llama.cpp, vLLM and others.
    content: String,
    /// `reasoning`: OpenRouter, Ollama.
    plain: String,
    /// `reasoning_details`: OpenRouter.
    details: Vec<Value>,
    /// Counts everything that arrived, kept or not.
    bytes: usize,
}

impl Reasoning {
    pub(super) fn add_content(&mut self, text: &str) {
        if self.has_room(text.len()) {
            self.content.push_str(text);
        }
    }

    pub(super) fn add_plain(&mut self, text: &str) {
        if self.has_room(text.len()) {
            self.plain.push_str(text);
        }
    }

    pub(super) fn add_details(&mut self, json: &RawValue) {
        if !self.has_room(json.get().len()) {
            return;
        }
        if let Ok(Value::Array(details)) = serde_json::from_str(json.get()) {
            details.into_iter().for_each(|detail| self.add_detail(detail));
        }
    }

    /// Adds the fields to the extras.
    pub(super) fn move_into(self, kept: &mut ChatExtras) {
        if self.bytes > MAX_BYTES {
            return;
        }
        kept.reasoning_content = raw_unless(self.content.is_empty(), &self.content);
        kept.reasoning = raw_unless(self.plain.is_empty(), &self.plain);
        kept.reasoning_details = raw_unless(self.details.is_empty(), &self.details);
    }

    fn has_room(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        self.bytes <= MAX_BYTES
    }

    /// A block of details arrives in pieces, and its signature covers all of
    /// it, so it is sent back whole.
    fn add_detail(&mut self, detail: Value) {
        match self.details.last_mut() {
            Some(last) if is_next_piece(last, &detail) => grow(last, detail),
            Some(_) | None => self.details.push(detail),
        }
    }
}

fn is_next_piece(last: &Value, detail: &Value) -> bool {
    matches!(detail["type"].as_str(), Some("reasoning.text" | "reasoning.summary"))
        && last["type"] == detail["type"]
        && last["index"] == detail["index"]
        && last["signature"].is_null()
}

fn grow(last: &mut Value, detail: Value) {
    let (Value::Object(last), Value::Object(detail)) = (last, detail) else { return };
    for (name, value) in detail {
        match (last.get_mut(&name), value) {
            (Some(Value::String(text)), Value::String(more))
                if name == "text" || name == "summary" =>
            {
                text.push_str(&more);
            }
            (None | Some(Value::Null), value) => {
                last.insert(name, value);
            }
            (Some(_), _) => {}
        }
    }
}

fn raw_unless(is_empty: bool, value: &impl Serialize) -> Option<Box<RawValue>> {
    if is_empty { None } else { to_raw_value(value).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(reasoning: Reasoning) -> [Option<String>; 3] {
        let mut kept = ChatExtras::default();
        reasoning.move_into(&mut kept);
        [kept.reasoning_content, kept.reasoning, kept.reasoning_details]
            .map(|field| field.map(|json| json.get().to_owned()))
    }

    fn details(pieces: &[&str]) -> Option<String> {
        let mut reasoning = Reasoning::default();
        for piece in pieces {
            reasoning.add_details(&RawValue::from_string((*piece).to_owned()).unwrap());
        }
        let [_, _, details] = kept(reasoning);
        details
    }

    #[test]
    fn received_fields_are_kept_under_their_names() {
        let mut reasoning = Reasoning::default();
        reasoning.add_content("a\n");
        reasoning.add_content("b");
        assert_eq!(kept(reasoning), [Some(r#""a\nb""#.to_owned()), None, None]);
        let mut reasoning = Reasoning::default();
        reasoning.add_plain("x");
        assert_eq!(kept(reasoning), [None, Some(r#""x""#.to_owned()), None]);
        assert_eq!(kept(Reasoning::default()), [None, None, None]);
    }

    #[test]
    fn pieces_of_a_block_of_details_are_joined() {
        let pieces = [
            r#"[{"type":"reasoning.text","text":"a","index":0,"signature":null}]"#,
            r#"[{"type":"reasoning.text","text":"b","index":0,"format":"f"}]"#,
            r#"[{"type":"reasoning.text","text":"","index":0,"signature":"s"}]"#,
            r#"[{"type":"reasoning.text","text":"c","index":1},{"type":"reasoning.encrypted","data":"e"}]"#,
            r#"[{"type":"reasoning.encrypted","data":"f"}]"#,
        ];
        let whole = r#"[{"type":"reasoning.text","text":"ab","index":0,"signature":"s","format":"f"},{"type":"reasoning.text","text":"c","index":1},{"type":"reasoning.encrypted","data":"e"},{"type":"reasoning.encrypted","data":"f"}]"#;
        assert_eq!(details(&pieces).as_deref(), Some(whole));
    }

    #[test]
    fn malformed_details_are_ignored() {
        assert_eq!(details(&["7", "{}", "\"x\"", "[]"]), None);
        assert_eq!(details(&["[1]", "[null]"]).as_deref(), Some("[1,null]"));
    }

    #[test]
    fn long_reasoning_is_dropped_completely() {
        let mut reasoning = Reasoning::default();
        reasoning.add_plain("x");
        reasoning.add_content(&"y".repeat(MAX_BYTES));
        assert!(reasoning.content.is_empty());
        assert_eq!(kept(reasoning), [None, None, None]);
    }
}
