//! Errors of IDs and stored messages.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::kind::Kind;

/// An invalid ID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Not a path of numbers that each end in a slash.
    #[error("Invalid agent id: {0}")]
    Agent(String),
    /// A path with more than [`AgentId::MAX_DEPTH`](crate::AgentId::MAX_DEPTH) numbers.
    #[error("An agent id has at most 64 levels")]
    TooDeep,
    /// Not a UUID.
    #[error("Invalid session id: {0}")]
    Session(String),
    /// The IDs of messages and mail start at 1.
    #[error("Invalid id: {0} is not positive")]
    NotPositive(i64),
}

impl IdError {
    pub(crate) fn agent(text: &str) -> IdError {
        IdError::Agent(shorten(text))
    }

    pub(crate) fn session(text: &str) -> IdError {
        IdError::Session(shorten(text))
    }
}

/// A stored message that cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The line or one of its fields is invalid.
    #[error("Invalid message{}: {source}", in_field(field))]
    Line {
        /// The field at fault, where one is.
        field: Option<String>,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A kind that this version does not know.
    #[error("Unknown message kind: {0}")]
    UnknownKind(String),
    /// Data that is not a JSON object.
    #[error("Invalid data of kind {0}: not a JSON object")]
    NotAnObject(Kind),
    /// The data or one of its fields is invalid.
    #[error("Invalid data of kind {kind}{}: {source}", in_field(field))]
    Data {
        /// The kind of the message.
        kind: Kind,
        /// The field at fault, where one is.
        field: Option<String>,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

fn in_field(field: &Option<String>) -> String {
    field.as_ref().map(|field| format!(", field {field}")).unwrap_or_default()
}

impl DecodeError {
    pub(crate) fn unknown_kind(name: &str) -> DecodeError {
        DecodeError::UnknownKind(shorten(name))
    }

    pub(crate) fn line(json: &str, source: serde_json::Error) -> DecodeError {
        DecodeError::Line { field: field_at_fault(json, &source), source }
    }

    pub(crate) fn data(kind: Kind, json: &str, source: serde_json::Error) -> DecodeError {
        DecodeError::Data { kind, field: field_at_fault(json, &source), source }
    }
}

/// The field of the object `json` whose value `error` is about.
///
/// serde names a missing or duplicate field, but for a wrong value it only has the column. The
/// parser has read at least one byte of that value by then, so it is the last one that starts
/// before.
fn field_at_fault(json: &str, error: &serde_json::Error) -> Option<String> {
    let named = ["missing field", "duplicate field"];
    let text = error.to_string();
    if !error.is_data() || error.line() != 1 || named.iter().any(|start| text.starts_with(start)) {
        return None;
    }
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(json).ok()?;
    let offset = |value: &RawValue| value.get().as_ptr().addr() - json.as_ptr().addr();
    fields
        .into_iter()
        .map(|(name, value)| (offset(value), name))
        .filter(|(start, _)| *start < error.column())
        .max()
        .map(|(_, name)| name)
}

/// Untrusted text, cut to a length that is enough to recognise it.
fn shorten(text: &str) -> String {
    text.chars().take(64).collect()
}
