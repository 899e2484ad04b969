//! What comes out of a call: a dispatcher's refusal (bare) or an executor's result (in its envelope), and what there
//! is to say about it. It becomes JSON once, at the very end.

use std::fmt;

use ikigai_conversation::{CommandId, FileDiff, NewMessage, ResultState, ResultSummary, ToolCall};
use serde_json::{Map, Value};

use crate::background::Leaving;
use crate::context::Context;
use crate::file_error::describe_stale;
use crate::file_use::{FileUse, Stale};
use crate::output::Output;
use crate::repair::Repairs;

/// What a model gets as the result of its call, with what a front end shows of it.
///
/// ```
/// # use ikigai_tools::Dispatcher;
/// let mut result = Dispatcher::<()>::new(Vec::new()).dispatch("", b"").unwrap_err();
/// result.mark_limit_reached(50);
/// assert_eq!(
///     result.to_string(),
///     r#"{"error":"Unknown tool: ","limit_reached":true,"limit_message":"Tool call limit reached (50). Stopping tool loop."}"#
/// );
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    content: Content,
    /// After how many responses with calls this was the last call of a turn, if it was.
    limit: Option<u32>,
    /// Boxed: results are also returned as errors, which should be small.
    about: Box<About>,
}

/// The field with the list of repairs.
pub(crate) const REPAIRED: &str = "repaired";

/// What there is to say about a result.
#[derive(Debug, Clone, PartialEq)]
struct About {
    /// The line in the log; `None` for the error, the first line of the output, or `ok`.
    line: Option<String>,
    state: ResultState,
    diff: Option<FileDiff>,
    /// The rule that would have permitted the call.
    rule: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
enum Content {
    /// These fields and no envelope.
    Bare(Map<String, Value>),
    /// The field `error` and no envelope.
    BareError(String),
    Success {
        data: Map<String, Value>,
        is_truncated: bool,
    },
    Failure(String),
}

impl ToolResult {
    /// A bare error: the single field `error`.
    pub fn error(text: &str) -> ToolResult {
        ToolResult::new(Content::BareError(text.to_owned()), ResultState::Failed)
    }

    /// A bare result: these fields and no envelope.
    pub fn bare(fields: Map<String, Value>) -> ToolResult {
        ToolResult::new(Content::Bare(fields), ResultState::Succeeded)
    }

    /// A success in its envelope.
    pub fn success(data: Map<String, Value>) -> ToolResult {
        ToolResult::new(Content::Success { data, is_truncated: false }, ResultState::Succeeded)
    }

    /// A success that has some text to show.
    pub fn output(text: String) -> ToolResult {
        Output::from(text).into()
    }

    /// A failure in its envelope: information for the model, not an error of the program.
    pub fn failure(error: &str) -> ToolResult {
        ToolResult::new(Content::Failure(error.to_owned()), ResultState::Failed)
    }

    /// The result of a call that was not permitted, and the rule that would permit it.
    pub fn refused(why: &str, rule: Option<String>) -> ToolResult {
        let content = Content::Failure(format!("Not permitted: {why}"));
        let mut result = ToolResult::new(content, ResultState::Refused);
        result.about.rule = rule;
        result
    }

    /// The refusal of a stale write when it is known who was quicker: `by agent 0/1/, 40 seconds ago`.
    pub fn stale(stale: &Stale, by: &str) -> ToolResult {
        ToolResult::failure(&describe_stale(&stale.named, by))
    }

    fn new(content: Content, state: ResultState) -> ToolResult {
        let about = Box::new(About { line: None, state, diff: None, rule: None });
        ToolResult { content, limit: None, about }
    }

    /// Adds a field to the data of a success.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> ToolResult {
        if let Content::Success { data, .. } = &mut self.content {
            data.insert(name.to_owned(), value.into());
        }
        self
    }

    /// Tells the model of a success what was repaired in its call, before what the tool itself did.
    #[must_use]
    pub fn with_repairs(mut self, repairs: Option<&Repairs>) -> ToolResult {
        if let (Content::Success { data, .. }, Some(repairs)) = (&mut self.content, repairs) {
            let notes = repairs.notes.iter().cloned().map(Value::from);
            let own = data.remove(REPAIRED).and_then(|own| own.as_array().cloned());
            data.insert(REPAIRED.to_owned(), notes.chain(own.into_iter().flatten()).collect());
        }
        self
    }

    /// A success is summed up by this line.
    #[must_use]
    pub fn summed_up(mut self, line: impl Into<String>) -> ToolResult {
        if self.is_success() {
            self.about.line = Some(line.into());
        }
        self
    }

    /// For a success of the tool whose work failed all the same: a command's exit code.
    #[must_use]
    pub fn in_state(mut self, state: ResultState) -> ToolResult {
        self.about.state = state;
        self
    }

    /// Adds what was changed in a file.
    #[must_use]
    pub fn with_diff(mut self, diff: Option<FileDiff>) -> ToolResult {
        self.about.diff = diff;
        self
    }

    /// What was read until an interrupt is not the whole, and must not pass for it.
    pub(crate) fn unless_interrupted(self, context: &Context) -> ToolResult {
        match context.is_interrupted() {
            true => ToolResult::failure("Interrupted: the result would not be complete"),
            false => self,
        }
    }

    /// Whether it has no `error`.
    pub fn is_success(&self) -> bool {
        match &self.content {
            Content::Bare(fields) => !fields.contains_key("error"),
            Content::Success { .. } => true,
            Content::BareError(_) | Content::Failure(_) => false,
        }
    }

    /// Adds a line to the output of a success.
    pub fn add_line(&mut self, line: &str) {
        if let Content::Success { data, .. } = &mut self.content
            && let Some(Value::String(output)) = data.get_mut("output")
        {
            if !output.is_empty() && !output.ends_with('\n') {
                output.push('\n');
            }
            output.push_str(line);
        }
    }

    /// Says that this was the last call of a turn, after `turns` responses with calls.
    pub fn mark_limit_reached(&mut self, turns: u32) {
        self.limit = Some(turns);
    }

    /// The message that closes a call in its log.
    pub fn into_message(self, call: &ToolCall) -> NewMessage {
        let (line, success) = (self.line(), self.is_success());
        let ToolResult { content, limit, about } = self;
        let About { state, diff, rule, line: _ } = *about;
        let without_rule = rule.as_deref().and_then(|rule| line.strip_suffix(rule));
        let outcome = match &diff {
            Some(diff) if success => diff.size(),
            Some(_) | None => without_rule.unwrap_or(&line).to_owned(),
        };
        let summary = ResultSummary::new(&outcome, state, diff, rule);
        let output = Value::Object(content.into_fields(limit)).to_string();
        NewMessage::shown_result(call, output, success, &line, summary)
    }

    fn line(&self) -> String {
        if let Some(line) = &self.about.line {
            return line.clone();
        }
        match &self.content {
            Content::Failure(error) | Content::BareError(error) => format!("error: {error}"),
            Content::Success { data: fields, .. } | Content::Bare(fields) => {
                let output = fields.get("output").and_then(Value::as_str).unwrap_or_default();
                let first = output.lines().next().filter(|line| !line.trim().is_empty());
                first.unwrap_or("ok").to_owned()
            }
        }
    }
}

impl Content {
    fn into_fields(self, limit: Option<u32>) -> Map<String, Value> {
        let field = |name: &str, value: Value| (name.to_owned(), value);
        let mut fields = match self {
            Content::Bare(fields) => fields,
            Content::BareError(error) => Map::from_iter([field("error", error.into())]),
            Content::Success { mut data, is_truncated } => {
                if is_truncated {
                    data.insert("truncated".to_owned(), Value::from(true));
                }
                Map::from_iter([field("success", Value::from(true)), field("data", data.into())])
            }
            Content::Failure(error) => {
                Map::from_iter([field("success", Value::from(false)), field("error", error.into())])
            }
        };
        if let Some(turns) = limit {
            let message = format!("Tool call limit reached ({turns}). Stopping tool loop.");
            fields.insert("limit_reached".to_owned(), Value::from(true));
            fields.insert("limit_message".to_owned(), Value::from(message));
        }
        fields
    }
}

/// The JSON object that a model gets.
impl fmt::Display for ToolResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.content.clone().into_fields(self.limit);
        write!(f, "{}", Value::Object(fields))
    }
}

impl From<Output> for ToolResult {
    fn from(output: Output) -> ToolResult {
        let data = Map::from_iter([("output".to_owned(), Value::from(output.text))]);
        let content = Content::Success { data, is_truncated: output.truncated };
        ToolResult::new(content, ResultState::Succeeded)
    }
}

/// A call that was run.
#[derive(Debug)]
pub struct Execution {
    /// For the model.
    pub result: ToolResult,
    /// What it did to a file, if it did, and if the agent [remembers](crate::Context::remembering) files.
    pub file: Option<FileUse>,
    /// Why its command did not run in its sandbox, and so not at all. It can be run without if the user approves.
    pub no_sandbox: Option<String>,
    /// Its command, if that continues in the background. The result is made with its number then.
    pub leaving: Option<Box<Leaving>>,
    /// The background commands that the result shows to have ended.
    pub ended: Vec<CommandId>,
}

impl From<ToolResult> for Execution {
    fn from(result: ToolResult) -> Execution {
        Execution { result, file: None, no_sandbox: None, leaving: None, ended: Vec::new() }
    }
}

/// Why a call was not carried out at all.
#[derive(Debug, PartialEq)]
pub enum Refusal {
    /// There is no tool of this name.
    UnknownTool(String),
    /// The arguments are no JSON object.
    InvalidJson,
    /// A required parameter is absent, or no value of its type.
    Missing(&'static str),
    /// An optional parameter is no value of its type, or out of range.
    Invalid(&'static str),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Longer names are noise, and a model may send a page of them.
        const SHOWN_NAME: usize = 64;
        match self {
            Refusal::UnknownTool(name) => {
                f.write_str("Unknown tool: ")?;
                name.chars().take(SHOWN_NAME).try_for_each(|c| fmt::Write::write_char(f, c))
            }
            Refusal::InvalidJson => f.write_str("Invalid JSON arguments"),
            Refusal::Missing(name) => write!(f, "Missing required parameter: {name}"),
            Refusal::Invalid(name) => write!(f, "Invalid parameter: {name}"),
        }
    }
}

impl From<Refusal> for ToolResult {
    fn from(refusal: Refusal) -> ToolResult {
        ToolResult::error(&refusal.to_string())
    }
}

/// `3 files`, `1 file`.
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
