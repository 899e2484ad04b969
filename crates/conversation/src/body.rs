//! The data of a message, by its kind.

use serde::de::DeserializeOwned;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use crate::agent_id::AgentId;
use crate::error::DecodeError;
use crate::extras::Extras;
use crate::ids::{CommandId, MailId, MessageId, ResponseId, ToolCallId};
use crate::kind::Kind;
use crate::shown::{CallSummary, EffectKind, ResultSummary};

/// The kind of a message together with its `data`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "Kind says what each is, its struct what it holds")]
pub enum Body {
    System,
    User,
    Assistant(Assistant),
    ToolCall(ToolCall),
    ToolResult(ToolResult),
    Notification(Notification),
    Summary(Summary),
    Fork(Fork),
    Usage(Usage),
    Mark(Mark),
    Rewind(Rewind),
    Clear,
    Trim(Trim),
    Kill(Kill),
    Interrupted(Interrupted),
    Command(Command),
    Approval(Approval),
}

impl Body {
    /// The kind alone.
    pub fn kind(&self) -> Kind {
        match self {
            Body::System => Kind::System,
            Body::User => Kind::User,
            Body::Assistant(_) => Kind::Assistant,
            Body::ToolCall(_) => Kind::ToolCall,
            Body::ToolResult(_) => Kind::ToolResult,
            Body::Notification(_) => Kind::Notification,
            Body::Summary(_) => Kind::Summary,
            Body::Fork(_) => Kind::Fork,
            Body::Usage(_) => Kind::Usage,
            Body::Mark(_) => Kind::Mark,
            Body::Rewind(_) => Kind::Rewind,
            Body::Clear => Kind::Clear,
            Body::Trim(_) => Kind::Trim,
            Body::Kill(_) => Kind::Kill,
            Body::Interrupted(_) => Kind::Interrupted,
            Body::Command(_) => Kind::Command,
            Body::Approval(_) => Kind::Approval,
        }
    }

    /// The response that this is a text or a call of.
    pub(crate) fn response(&self) -> Option<&ResponseId> {
        match self {
            Body::Assistant(answer) => Some(&answer.response),
            Body::ToolCall(call) => Some(&call.response),
            Body::System | Body::User | Body::ToolResult(_) | Body::Notification(_) => None,
            Body::Summary(_) | Body::Fork(_) | Body::Usage(_) | Body::Mark(_) => None,
            Body::Rewind(_) | Body::Clear | Body::Trim(_) | Body::Kill(_) => None,
            Body::Interrupted(_) | Body::Command(_) | Body::Approval(_) => None,
        }
    }

    /// What the provider of a response wants to be sent back with it.
    pub(crate) fn extras(&self) -> Option<&Extras> {
        match self {
            Body::Assistant(answer) => answer.extras.as_ref(),
            Body::ToolCall(call) => call.extras.as_ref(),
            Body::System | Body::User | Body::ToolResult(_) | Body::Notification(_) => None,
            Body::Summary(_) | Body::Fork(_) | Body::Usage(_) | Body::Mark(_) => None,
            Body::Rewind(_) | Body::Clear | Body::Trim(_) | Body::Kill(_) => None,
            Body::Interrupted(_) | Body::Command(_) | Body::Approval(_) => None,
        }
    }

    /// The data as a JSON object on one line, `{}` where there is none.
    pub fn data_json(&self) -> String {
        serde_json::to_string(&Data(self)).expect("texts, numbers and lists always become JSON")
    }

    /// Decodes the two columns in which a database stores a body.
    ///
    /// Unknown fields are ignored: a later version may have written them.
    pub fn from_parts(kind: &str, data_json: &str) -> Result<Body, DecodeError> {
        let kind = Kind::parse(kind).ok_or_else(|| DecodeError::unknown_kind(kind))?;
        Ok(match kind {
            Kind::System => decode(kind, data_json).map(|Nothing {}| Body::System)?,
            Kind::User => decode(kind, data_json).map(|Nothing {}| Body::User)?,
            Kind::Assistant => Body::Assistant(decode(kind, data_json)?),
            Kind::ToolCall => Body::ToolCall(decode(kind, data_json)?),
            Kind::ToolResult => Body::ToolResult(decode(kind, data_json)?),
            Kind::Notification => Body::Notification(decode(kind, data_json)?),
            Kind::Summary => Body::Summary(decode(kind, data_json)?),
            Kind::Fork => Body::Fork(decode(kind, data_json)?),
            Kind::Usage => Body::Usage(decode(kind, data_json)?),
            Kind::Mark => Body::Mark(decode(kind, data_json)?),
            Kind::Rewind => Body::Rewind(decode(kind, data_json)?),
            Kind::Clear => decode(kind, data_json).map(|Nothing {}| Body::Clear)?,
            Kind::Trim => Body::Trim(decode(kind, data_json)?),
            Kind::Kill => Body::Kill(decode(kind, data_json)?),
            Kind::Interrupted => Body::Interrupted(decode(kind, data_json)?),
            Kind::Command => Body::Command(decode(kind, data_json)?),
            Kind::Approval => Body::Approval(decode(kind, data_json)?),
        })
    }
}

fn decode<T: DeserializeOwned>(kind: Kind, data_json: &str) -> Result<T, DecodeError> {
    // serde would also read a struct from an array of its fields.
    if !data_json.trim_ascii_start().starts_with('{') {
        return Err(DecodeError::NotAnObject(kind));
    }
    serde_json::from_str(data_json).map_err(|source| DecodeError::data(kind, data_json, source))
}

/// The data of a body, without its kind.
pub(crate) struct Data<'a>(pub(crate) &'a Body);

impl Serialize for Data<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Body::System | Body::User | Body::Clear => serializer.serialize_map(Some(0))?.end(),
            Body::Assistant(data) => data.serialize(serializer),
            Body::ToolCall(data) => data.serialize(serializer),
            Body::ToolResult(data) => data.serialize(serializer),
            Body::Notification(data) => data.serialize(serializer),
            Body::Summary(data) => data.serialize(serializer),
            Body::Fork(data) => data.serialize(serializer),
            Body::Usage(data) => data.serialize(serializer),
            Body::Mark(data) => data.serialize(serializer),
            Body::Rewind(data) => data.serialize(serializer),
            Body::Trim(data) => data.serialize(serializer),
            Body::Kill(data) => data.serialize(serializer),
            Body::Interrupted(data) => data.serialize(serializer),
            Body::Command(data) => data.serialize(serializer),
            Body::Approval(data) => data.serialize(serializer),
        }
    }
}

/// The data of a kind that has none.
#[derive(Deserialize)]
struct Nothing {}

/// Declares the data of the kinds: structs whose fields are the JSON fields, in this order. `None`
/// is omitted.
macro_rules! data {
    ($(
        $(#[$doc:meta])*
        $Name:ident { $( $(#[$field_doc:meta])* $field:ident: $Type:ty $(= $skip:literal)?, )* }
    )*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        pub struct $Name {
            $( $(#[$field_doc])* $(#[serde(default, skip_serializing_if = $skip)])? pub $field: $Type, )*
        }
    )*};
}

data! {
    /// The text of a response.
    Assistant {
        /// The response it came from.
        response: ResponseId,
        /// What the provider wants back; in the first message of a response only.
        extras: Option<Extras> = "Option::is_none",
        /// What the model thought, as far as the provider showed it; in the first message of a
        /// response only, and not sent to models.
        thinking: Option<String> = "Option::is_none",
        /// How long it thought, in milliseconds.
        thinking_ms: Option<u64> = "Option::is_none",
    }

    /// A call that a model requested.
    ToolCall {
        /// The model's ID for it.
        tool_call_id: ToolCallId,
        /// The tool.
        name: String,
        /// The arguments as the model sent them, whether they are JSON or not.
        arguments: String,
        /// The response it came from.
        response: ResponseId,
        /// What the provider wants back; in the first message of a response only.
        extras: Option<Extras> = "Option::is_none",
        /// What the model thought, as in the text of a response.
        thinking: Option<String> = "Option::is_none",
        /// How long it thought, in milliseconds.
        thinking_ms: Option<u64> = "Option::is_none",
        /// Its effects, as used to judge it; `None` for a call that could not be prepared.
        effects: Option<Vec<EffectKind>> = "Option::is_none",
        /// How it is displayed; not sent to models.
        shown: Option<CallSummary> = "Option::is_none",
    }

    /// The result of a call.
    ToolResult {
        /// The call's id.
        tool_call_id: ToolCallId,
        /// The call's tool.
        name: String,
        /// The result: a JSON object, as sent to the model.
        output: String,
        /// Whether `output` has no `error` at its root.
        success: bool,
        /// Whether the turn ended with this result: no request followed.
        ends_turn: bool = "std::ops::Not::not",
        /// How it is displayed; not sent to models.
        shown: Option<ResultSummary> = "Option::is_none",
    }

    /// What was announced.
    Notification {
        /// The new mail, in the order in which it was announced.
        mail: Vec<MailId>,
        /// The background commands that it is about.
        commands: Vec<CommandId> = "Vec::is_empty",
    }

    /// What a summary replaces, and what a model still sees of that. A view with a summary depends
    /// on nothing else, so that requests stay stable.
    Summary {
        /// The last message that it replaces.
        up_to: MessageId,
        /// The user's own messages among them that are still sent, in order.
        kept: Vec<MessageId>,
        /// How many bytes of the last kept message are sent, if not all of it.
        cut: Option<u64> = "Option::is_none",
        /// What the database knew in the commit of the summary, as text for the model.
        obligations: String,
        /// The tokens in the context before it.
        before: u64,
        /// The tokens in the context after it.
        after: u64,
        /// How long it took to write, in milliseconds.
        elapsed_ms: u64,
    }

    /// Where a fork comes from.
    Fork {
        /// The agent that forked it.
        parent: AgentId,
        /// The last message of the parent's log that it inherits; `None` for a fresh one.
        up_to: Option<MessageId> = "Option::is_none",
    }

    /// The token usage of a response.
    Usage {
        /// Tokens sent, including those read from a cache.
        input_tokens: u64,
        /// Tokens received.
        output_tokens: u64,
        /// How many of those sent were read from a cache, if the provider reports it.
        cache_read_tokens: Option<u64> = "Option::is_none",
        /// How many of those sent were written to a cache, if the provider reports it.
        cache_write_tokens: Option<u64> = "Option::is_none",
        /// How many of those received were reasoning, if the provider reports it.
        reasoning_tokens: Option<u64> = "Option::is_none",
        /// What the response cost, in micro-dollars; `None` if the price is not known.
        cost: Option<u64>,
        /// How many earlier attempts of the request were lost after the server had accepted them,
        /// and may have been billed.
        unreported: Option<u32> = "Option::is_none",
        /// The model that answered.
        model: String,
        /// The response.
        response: ResponseId,
    }

    /// A point to return to.
    Mark {
        /// Its name, if the user gave one.
        label: Option<String> = "Option::is_none",
    }

    /// A return to an earlier point.
    Rewind {
        /// The last message that remains visible; usually a mark. It belongs to the same agent.
        to: MessageId,
        /// The mark's name, if it has one.
        label: Option<String> = "Option::is_none",
    }

    /// Which outputs are shortened.
    Trim {
        /// The last message whose output a model sees only as one line.
        up_to: MessageId,
    }

    /// Which agents were killed.
    Kill {
        /// The agents, children first.
        killed: Vec<AgentId>,
    }

    /// What was interrupted.
    Interrupted {
        /// The response that was interrupted, if one had started.
        response: Option<ResponseId> = "Option::is_none",
    }

    /// A command that the user typed.
    Command {
        /// The whole line, with its slash.
        command: String,
    }

    /// The user's answer to a call that needed approval.
    Approval {
        /// The call's id.
        tool_call_id: ToolCallId,
        /// The answer.
        decision: Decision,
        /// The reason for a refusal, if the user gave one.
        reason: Option<String> = "Option::is_none",
    }
}

/// The user's decision on a call that needs approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Allow this call.
    Once,
    /// Allow it for the rest of the session.
    Always,
    /// Refuse it.
    No,
}
