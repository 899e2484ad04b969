//! The content of an item in a response's output.

use serde_json::Value;

use super::items::{Reasoning, Summary};

/// The content of an item, by its type.
#[derive(Debug)]
pub(super) enum Content {
    Message {
        phase: Option<String>,
        text: String,
    },
    Call {
        call_id: Option<String>,
        name: String,
        arguments: String,
    },
    Reasoning(Reasoning),
    /// For a tool that runs on the server, or from a later version of the API.
    Ignored,
}

impl Content {
    pub(super) fn of(item: &Value) -> Content {
        let string = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
        match item["type"].as_str() {
            Some("message") => Content::Message {
                phase: item["phase"].as_str().map(str::to_owned),
                text: texts(&item["content"]).collect(),
            },
            Some("function_call") => Content::Call {
                call_id: item["call_id"].as_str().map(str::to_owned),
                name: string("name"),
                arguments: written(&item["arguments"]),
            },
            Some("reasoning") => Content::Reasoning(Reasoning {
                id: string("id"),
                summary: texts(&item["summary"])
                    .map(|text| Summary { text: text.to_owned() })
                    .collect(),
                encrypted_content: string("encrypted_content"),
            }),
            _ => Content::Ignored,
        }
    }

    pub(super) fn is_message(&self) -> bool {
        matches!(self, Content::Message { .. })
    }

    pub(super) fn is_call(&self) -> bool {
        matches!(self, Content::Call { .. })
    }

    /// A function that tells whether another content has the same type.
    pub(super) fn sort(&self) -> fn(&Content) -> bool {
        match self {
            Content::Message { .. } => Content::is_message,
            Content::Call { .. } => Content::is_call,
            Content::Reasoning(_) => |other| matches!(other, Content::Reasoning(_)),
            Content::Ignored => |other| matches!(other, Content::Ignored),
        }
    }

    /// Completes the content from the item's final state, which contains more than its pieces.
    /// Returns the text that is new.
    pub(super) fn complete(&mut self, done: Content) -> Option<&str> {
        match (self, done) {
            (Content::Message { phase, text }, Content::Message { phase: last, text: whole }) => {
                *phase = last.or(phase.take());
                if text.is_empty() && !whole.is_empty() {
                    *text = whole;
                    return Some(text);
                }
            }
            (
                Content::Call { call_id, name, arguments },
                Content::Call { call_id: last, name: whole_name, arguments: whole },
            ) => {
                *call_id = last.or(call_id.take());
                if !whole_name.is_empty() {
                    *name = whole_name;
                }
                if !whole.is_empty() {
                    *arguments = whole;
                }
            }
            (Content::Reasoning(so_far), Content::Reasoning(whole)) => *so_far = whole,
            _ => {}
        }
        None
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Content::Message { text, .. } => text.len(),
            Content::Call { name, arguments, .. } => name.len() + arguments.len(),
            Content::Reasoning(reasoning) => {
                let summary = reasoning.summary.iter().map(|part| part.text.len()).sum::<usize>();
                summary + reasoning.encrypted_content.len()
            }
            Content::Ignored => 0,
        }
    }
}

/// The text of a list of parts: of a message's content, including refusals, or of a summary.
fn texts(parts: &Value) -> impl Iterator<Item = &str> {
    let parts = parts.as_array().map(Vec::as_slice).unwrap_or_default();
    parts.iter().filter_map(|part| part["text"].as_str().or(part["refusal"].as_str()))
}

/// Arguments as received. Some servers send an object instead of its text.
pub(super) fn written(arguments: &Value) -> String {
    match arguments {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
