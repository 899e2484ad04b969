//! A request to a model, in no provider's format.

use ikigai_conversation::{Effort, Seen};
use serde_json::Value;

/// A request to a model: for an agent's turn, or beside it, such as for a summary or a title.
///
/// ```
/// use ikigai_conversation::Seen;
/// use ikigai_providers::{Client, Fault, Request};
///
/// async fn title(client: &Client, model: &str, conversation: &str) -> Result<String, Fault> {
///     let view = [Seen::System("Write a title of at most five words."), Seen::User(conversation)];
///     let request = Request::without_tools(model, "anthropic", &view);
///     Ok(client.ask(&request, &mut |_| {}).await?.text)
/// }
/// ```
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
    /// How long the model thinks, if the provider does not decide.
    pub effort: Option<Effort>,
    /// How long the response may be, if it has a limit besides the model's own.
    pub max_output_tokens: Option<u64>,
}

impl<'a> Request<'a> {
    /// A request that offers no tools.
    pub fn without_tools(model: &'a str, origin: &'a str, view: &'a [Seen<'a>]) -> Request<'a> {
        let (tools, tool_use, effort) = (&[], ToolUse::None, None);
        Request { model, origin, view, tools, tool_use, effort, max_output_tokens: None }
    }
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
