//! One entry of an agent's log.

use std::borrow::Cow;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::agent_id::AgentId;
use crate::body::{Body, Data};
use crate::error::DecodeError;
use crate::ids::MessageId;
use crate::kind::Kind;
use crate::time::Time;

/// A message as it stands in a log. It is never changed.
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
    /// Higher than that of every message before it in the log.
    pub id: MessageId,
    /// Whose log it was written to.
    pub agent: AgentId,
    /// Text that a person can read.
    pub content: String,
    /// The kind and the exact facts.
    pub body: Body,
    /// When it was written.
    pub created_at: Time,
}

impl Message {
    /// What it is.
    pub fn kind(&self) -> Kind {
        self.body.kind()
    }

    /// The message as one line of JSON, without a line break at its end.
    pub fn encode(&self) -> String {
        serde_json::to_string(self).expect("texts, numbers and lists always become JSON")
    }

    /// Reads what [`encode`](Message::encode) wrote; what it cannot read it names.
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

/// A message before it is in a log: the log gives it an id and a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// Text that a person can read.
    pub content: String,
    /// The kind and the exact facts.
    pub body: Body,
}

impl NewMessage {
    /// The message that it becomes.
    pub fn into_message(self, id: MessageId, agent: AgentId, created_at: Time) -> Message {
        Message { id, agent, content: self.content, body: self.body, created_at }
    }
}

/// What is written; the order of the fields is that of the JSON.
#[derive(Serialize)]
struct Line<'a> {
    id: MessageId,
    agent: &'a AgentId,
    kind: &'static str,
    content: &'a str,
    data: Data<'a>,
    created_at: Time,
}

/// What is read. `data` is read once the kind is known.
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
