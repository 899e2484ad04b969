//! What came back from a model, in no provider's format.

use ikigai_conversation::{Extras, ToolCallId};

/// A whole response. What broke off in the middle is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// All its text, in order; possibly none.
    pub text: String,
    /// The calls it asks for, in order.
    pub calls: Vec<Call>,
    /// What the provider wants back with this response.
    pub extras: Option<Extras>,
    /// Why it ended.
    pub stop: Stop,
    /// What it cost, if the server said so.
    pub tokens: Option<Tokens>,
}

/// A call that a model asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// What the server called it; where that was missing or stood for an earlier call of this response,
    /// one that was made here. So it is unique within the response; see
    /// [`with_call_ids_not_in`](Response::with_call_ids_not_in) for the whole conversation.
    pub id: ToolCallId,
    /// The tool, known or not.
    pub name: String,
    /// The arguments as they came, JSON or not. An object is written as its JSON.
    pub arguments: String,
}

/// Why a response ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// It was complete, be it an answer or calls.
    Complete,
    /// The limit of tokens was reached.
    Length,
    /// The provider did not let the model go on.
    Blocked,
}

impl Stop {
    /// The arguments of a call for which none came. One that was cut off before them must not run as if it
    /// were whole.
    pub(crate) fn no_arguments(self) -> String {
        match self {
            Stop::Complete => "{}".to_owned(),
            Stop::Length | Stop::Blocked => String::new(),
        }
    }
}

/// What a response cost, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens {
    /// Sent, those from a cache included.
    pub input: u64,
    /// Received.
    pub output: u64,
    /// How many of those sent came from a cache, where the provider says so.
    pub cache_read: Option<u64>,
    /// How many of those sent were put into a cache, where the provider says so.
    pub cache_write: Option<u64>,
}
