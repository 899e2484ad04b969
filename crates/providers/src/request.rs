//! One call of a model, in no provider's format.

use ikigai_conversation::Seen;
use serde_json::Value;

/// What a model is asked.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The model's name, as its provider knows it.
    pub model: &'a str,
    /// Whose model it is: what another provider wanted back stays here.
    pub origin: &'a str,
    /// What the model may see, in order.
    pub view: &'a [Seen<'a>],
    /// The tools on offer, in order.
    pub tools: &'a [Tool],
    /// Whether the model may call them.
    pub tool_use: ToolUse,
}

/// A tool, as a model is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// What the model calls it by.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The JSON schema of its parameters.
    pub parameters: Value,
}

/// Whether a model may call tools. Tools that were on offer stay so, or no cache would hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolUse {
    /// As it likes.
    Auto,
    /// Not in this response.
    None,
}
