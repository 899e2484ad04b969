//! Captured requests, and methods that work for all formats.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::answer::Format;

/// A captured request.
#[derive(Debug, Clone)]
pub struct CapturedRequest {
    /// Such as `POST`.
    pub method: String,
    /// With its query, such as `/v1/chat/completions`.
    pub path: String,
    /// Names are in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, without its transfer encoding.
    pub body: Vec<u8>,
}

impl CapturedRequest {
    /// The first header with this name, which must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(header, _)| header == name)?;
        Some(value)
    }

    /// The body as JSON; null if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The messages, in the request's format.
    pub fn messages(&self) -> Vec<Value> {
        let field = match Format::of_path(&self.path) {
            Format::Chat | Format::Anthropic => "messages",
            Format::Responses => "input",
            Format::Google => "contents",
        };
        match self.json()[field].take() {
            Value::Array(messages) => messages,
            _ => Vec::new(),
        }
    }

    /// The result of this call; a string if it is not JSON.
    #[track_caller]
    pub fn tool_output(&self, id: &str) -> Value {
        let messages = self.messages();
        let output = messages.iter().flat_map(outputs).find(|(call, _)| call == id);
        let (_, output) = output.unwrap_or_else(|| panic!("no result for {id} in {}", self.text()));
        serde_json::from_str(&output).unwrap_or(Value::String(output))
    }

    /// The number of results since the last user message.
    pub fn results_since_user(&self) -> usize {
        let messages = self.messages();
        let last_said = messages.iter().rposition(|message| user_text(message).is_some());
        messages.iter().skip(last_said.map_or(0, |place| place + 1)).flat_map(outputs).count()
    }

    /// The offered tools, in order.
    pub fn tool_names(&self) -> Vec<String> {
        let body = self.json();
        let tools = match Format::of_path(&self.path) {
            Format::Google => &body["tools"][0]["functionDeclarations"],
            Format::Chat | Format::Anthropic | Format::Responses => &body["tools"],
        };
        let tools = tools.as_array().into_iter().flatten();
        let name = |tool: &Value| match Format::of_path(&self.path) {
            Format::Chat => tool["function"]["name"].as_str().map(str::to_owned),
            Format::Anthropic | Format::Responses | Format::Google => {
                tool["name"].as_str().map(str::to_owned)
            }
        };
        tools.filter_map(name).collect()
    }

    /// The system prompt.
    pub fn system(&self) -> Option<String> {
        match Format::of_path(&self.path) {
            Format::Anthropic => text_of(&self.json()["system"]),
            Format::Responses => text_of(&self.json()["instructions"]),
            Format::Google => text_of(&self.json()["systemInstruction"]["parts"]),
            Format::Chat => {
                let messages = self.messages();
                let is_system = |message: &&Value| message["role"] == "system";
                text_of(&messages.iter().find(is_system)?["content"])
            }
        }
    }

    /// The last user message.
    pub fn last_user_text(&self) -> Option<String> {
        self.messages().iter().rev().find_map(user_text)
    }

    /// The agent: the last identity in the conversation. The request of a full fork also contains
    /// its parent's.
    pub fn agent(&self) -> Option<String> {
        let texts = self.messages();
        let lines = texts.iter().filter_map(user_text).flat_map(|text| {
            let line = |line: &str| line.strip_prefix("[You are agent ").map(str::to_owned);
            text.lines().filter_map(line).collect::<Vec<_>>()
        });
        let identity = lines.last()?;
        identity.split([',', ']']).next().map(str::to_owned)
    }

    /// The field `tool_choice`, in the request's format; null if it is missing.
    pub fn tool_choice(&self) -> Value {
        self.json()["tool_choice"].take()
    }

    /// The body as text.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// The body up to the end of its last message.
    #[track_caller]
    fn up_to_last_message(&self) -> &[u8] {
        let fields: BTreeMap<String, &RawValue> = serde_json::from_slice(&self.body).unwrap();
        let messages: Vec<&RawValue> = serde_json::from_str(fields["messages"].get()).unwrap();
        let last = messages.last().expect("a request has messages").get();
        // The last message borrows from the body, so its address gives its position.
        let start = last.as_ptr().addr() - self.body.as_ptr().addr();
        &self.body[..start + last.len()]
    }
}

/// Fails unless the newer request starts with the older one up to the end of its last message, byte
/// by byte, as a provider's cache requires. Anthropic's messages may get more blocks of the same
/// role, so there it is the end of the last block.
#[track_caller]
pub fn assert_prefix(older: &CapturedRequest, newer: &CapturedRequest) {
    let mut prefix = older.up_to_last_message();
    if Format::of_path(&older.path) == Format::Anthropic {
        prefix = prefix.strip_suffix(b"]}").unwrap_or(prefix);
    }
    if newer.body.starts_with(prefix) {
        return;
    }
    let same = prefix.iter().zip(&newer.body).take_while(|(old, new)| old == new).count();
    let around = |body: &[u8]| {
        let start = same.saturating_sub(60).min(body.len());
        String::from_utf8_lossy(&body[start..(same + 60).min(body.len())]).into_owned()
    };
    panic!(
        "the requests differ at byte {same}:\n older: …{}\n newer: …{}",
        around(&older.body),
        around(&newer.body)
    );
}

/// The calls that a message answers, with their results.
fn outputs(message: &Value) -> Vec<(String, String)> {
    if message["role"] == "tool" {
        return output(message, "tool_call_id").into_iter().collect();
    }
    let blocks = message["content"].as_array().into_iter().flatten();
    let results = blocks.filter(|block| block["type"] == "tool_result");
    results.filter_map(|block| output(block, "tool_use_id")).collect()
}

fn output(result: &Value, id: &str) -> Option<(String, String)> {
    Some((result[id].as_str()?.to_owned(), text_of(&result["content"])?))
}

fn user_text(message: &Value) -> Option<String> {
    let text = || text_of(&message["content"]).or_else(|| text_of(&message["parts"]));
    (message["role"] == "user").then(text).flatten()
}

/// The text of a content, which is a string or a list of parts.
fn text_of(content: &Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            (!texts.is_empty()).then(|| texts.join("\n"))
        }
        _ => None,
    }
}
