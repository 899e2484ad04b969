//! Messages: the entries of a log.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::agent_id::AgentId;
use crate::body::{Body, Data};
use crate::error::DecodeError;
use crate::ids::MessageId;
use crate::kind::Kind;
use crate::time::Time;

/// A message in a log. It never changes.
///
/// ```
/// use ikigai_conversation::Message;
///
/// let line = r#"{"id":2,"agent":"0/","kind":"user","content":"hi","data":{},"created_at":"2024-01-15T10:30:00.123Z"}"#;
/// assert_eq!(Message::decode(line)?.encode(), line);
/// # Ok::<(), ikigai_conversation::DecodeError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its ID, higher than those of all messages before it in the log.
    pub id: MessageId,
    /// The agent whose log it was written to.
    pub agent: AgentId,
    /// Readable text.
    pub content: String,
    /// The kind and its data.
    pub body: Body,
    /// When it was written.
    pub created_at: Time,
}

impl Message {
    /// The kind.
    pub fn kind(&self) -> Kind {
        self.body.kind()
    }

    /// What the model thought before the response that starts with this message, and for how long,
    /// if it did.
    pub fn thought(&self) -> Option<(&str, Duration)> {
        let (text, millis) = match &self.body {
            Body::Assistant(answer) => (&answer.thinking, answer.thinking_ms),
            Body::ToolCall(call) => (&call.thinking, call.thinking_ms),
            _ => return None,
        };
        Some((text.as_deref()?, Duration::from_millis(millis.unwrap_or(0))))
    }

    /// Whether the turn ended with this message, a result.
    pub fn ends_turn(&self) -> bool {
        matches!(&self.body, Body::ToolResult(result) if result.ends_turn)
    }

    /// Encodes the message as one line of JSON, without a line break at the end.
    pub fn encode(&self) -> String {
        serde_json::to_string(self).expect("texts, numbers and lists always become JSON")
    }

    /// Decodes a line written by [`encode`](Message::encode). An error names the invalid field.
    pub fn decode(line: &str) -> Result<Message, DecodeError> {
        let parts: Parts<'_> =
            serde_json::from_str(line).map_err(|source| DecodeError::line(line, source))?;
        Ok(Message {
            id: parts.id,
            agent: parts.agent,
            content: parts.content.into_owned(),
            body: Body::from_parts(&parts.kind, parts.data.get())?,
            created_at: parts.created_at,
        })
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let line = Line {
            id: self.id,
            agent: &self.agent,
            kind: self.kind().name(),
            content: &self.content,
            data: Data(&self.body),
            created_at: self.created_at,
        };
        line.serialize(serializer)
    }
}

/// A message that is not in a log yet: the log assigns its ID and time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// Readable text.
    pub content: String,
    /// The kind and its data.
    pub body: Body,
}

impl NewMessage {
    /// The message with this ID, agent and time.
    pub fn into_message(self, id: MessageId, agent: AgentId, created_at: Time) -> Message {
        Message { id, agent, content: self.content, body: self.body, created_at }
    }
}

/// A line to write. The fields are in the order of the JSON.
#[derive(Serialize)]
struct Line<'a> {
    id: MessageId,
    agent: &'a AgentId,
    kind: &'static str,
    content: &'a str,
    data: Data<'a>,
    created_at: Time,
}

/// A line that was read. `data` is decoded once the kind is known.
#[derive(Deserialize)]
struct Parts<'a> {
    id: MessageId,
    agent: AgentId,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    content: Cow<'a, str>,
    #[serde(borrow)]
    data: &'a RawValue,
    created_at: Time,
}
