//! A request to a model, in no provider's format.

use ikigai_conversation::Seen;
use serde_json::Value;

/// What a model is asked.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The model's name, as its provider knows it.
    pub model: &'a str,
    /// The provider of the model. Extras from other providers are not sent.
    pub origin: &'a str,
    /// What the model may see, in order.
    pub view: &'a [Seen<'a>],
    /// The tools that the model is offered, in order.
    pub tools: &'a [Tool],
    /// Whether the model may call them.
    pub tool_use: ToolUse,
}

/// A tool, as the model sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// The name that the model uses.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The JSON schema of its parameters.
    pub parameters: Value,
}

/// Whether a model may call tools. The list of tools does not change with
/// it, or no cache would work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolUse {
    /// As it likes.
    Auto,
    /// Not in this response.
    None,
}
