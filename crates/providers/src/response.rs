//! The response of a model, in no provider's format.

use ikigai_conversation::{Extras, ToolCallId};

/// A complete response. A truncated one is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// All its text, in order. May be empty.
    pub text: String,
    /// The calls, in order.
    pub calls: Vec<Call>,
    /// What the provider requires back with this response.
    pub extras: Option<Extras>,
    /// Why it ended.
    pub stop: Stop,
    /// The token counts, if the server sent them.
    pub tokens: Option<Tokens>,
}

/// A tool call of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The server's id. If that is missing or repeats an earlier call of this response, it is
    /// replaced, so it is unique within the response. See
    /// [`with_call_ids_not_in`](Response::with_call_ids_not_in) for the whole conversation.
    pub id: ToolCallId,
    /// The tool, known or not.
    pub name: String,
    /// The arguments as received, valid JSON or not. An object is kept as its JSON.
    pub arguments: String,
}

/// Why a response ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// It is complete, whether it contains text or calls.
    Complete,
    /// The token limit was reached.
    Length,
    /// The provider blocked the response.
    Blocked,
}

impl Stop {
    /// The arguments of a call that has none. A truncated call must not run as if it were complete.
    pub(crate) fn no_arguments(self) -> String {
        match self {
            Stop::Complete => "{}".to_owned(),
            Stop::Length | Stop::Blocked => String::new(),
        }
    }
}

/// Token counts of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens {
    /// Sent, including those from a cache.
    pub input: u64,
    /// Received.
    pub output: u64,
    /// How many of those sent came from a cache, if the provider reports it.
    pub cache_read: Option<u64>,
    /// How many of those sent were put into a cache, if the provider reports it.
    pub cache_write: Option<u64>,
    /// How many of those received were reasoning, if the provider reports it.
    pub reasoning: Option<u64>,
}
