//! What comes out of a call: a dispatcher's refusal (bare) or an executor's outcome (enveloped).

use std::fmt;

use serde_json::{Map, Value};

use crate::context::Context;
use crate::file_error::describe_stale;
use crate::output::Output;
use crate::touched::{Stale, Touched};

/// The JSON object that a model gets as the result of its call.
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
pub struct ToolResult(Map<String, Value>);

impl ToolResult {
    /// A bare error: the single field `error`.
    pub fn error(text: &str) -> ToolResult {
        ToolResult(Map::from_iter([("error".to_owned(), Value::from(text))]))
    }

    /// A bare result: these fields and no envelope.
    pub fn bare(fields: Map<String, Value>) -> ToolResult {
        ToolResult(fields)
    }

    /// The refusal of a stale write when it is known who was quicker: `by agent 0/1/, 40 seconds ago`.
    pub fn stale(stale: &Stale, by: &str) -> ToolResult {
        Outcome::Failure(describe_stale(&stale.named, by)).into()
    }

    /// A success in its envelope.
    pub fn success(data: Map<String, Value>) -> ToolResult {
        let fields = [("success", Value::from(true)), ("data", Value::from(data))];
        ToolResult(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// A failure in its envelope: news for the model.
    pub fn failure(error: &str) -> ToolResult {
        Outcome::Failure(error.to_owned()).into()
    }

    /// Adds a line to the output of a success.
    pub fn add_line(&mut self, line: &str) {
        let output = self.0.get_mut("data").and_then(|data| data.get_mut("output"));
        if let Some(Value::String(output)) = output {
            if !output.is_empty() && !output.ends_with('\n') {
                output.push('\n');
            }
            output.push_str(line);
        }
    }

    /// Says that this was the last call of a turn, after `turns` responses with calls.
    pub fn mark_limit_reached(&mut self, turns: u32) {
        let message = format!("Tool call limit reached ({turns}). Stopping tool loop.");
        self.0.insert("limit_reached".to_owned(), Value::from(true));
        self.0.insert("limit_message".to_owned(), Value::from(message));
    }
}

impl fmt::Display for ToolResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let json = serde_json::to_string(&self.0).map_err(|_| fmt::Error)?;
        f.write_str(&json)
    }
}

/// A call that was run.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// For the model.
    pub result: ToolResult,
    /// What it did to a file, if it did, and if the agent [remembers](crate::Context::remembering) files.
    pub touched: Option<Touched>,
    /// Why its command did not run in its sandbox, and so not at all. It can be run without if the user approves.
    pub no_sandbox: Option<String>,
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

/// What an executor achieved. A failure is news for the model, not an error of the program.
#[derive(Debug)]
pub(crate) enum Outcome {
    Success {
        output: Output,
        fields: Vec<(&'static str, Value)>,
    },
    Failure(String),
    /// The sandbox of a command could not be set up.
    NoSandbox {
        error: String,
        /// For the question whether it may run without.
        why: String,
    },
}

impl Outcome {
    pub(crate) fn success(output: Output) -> Outcome {
        Outcome::Success { output, fields: Vec::new() }
    }

    /// What was read until an interrupt is not the whole, and must not pass for it.
    pub(crate) fn unless_interrupted(self, context: &Context) -> Outcome {
        match context.is_interrupted() {
            true => Outcome::Failure("Interrupted: the result would not be complete".to_owned()),
            false => self,
        }
    }

    /// Adds a field to the data of a success.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Value>) -> Outcome {
        if let Outcome::Success { fields, .. } = &mut self {
            fields.push((name, value.into()));
        }
        self
    }
}

/// What an executor achieved, and what it did to a file meanwhile.
pub(crate) struct Achieved {
    pub(crate) outcome: Outcome,
    pub(crate) touched: Option<Touched>,
}

impl From<Outcome> for Achieved {
    fn from(outcome: Outcome) -> Achieved {
        Achieved { outcome, touched: None }
    }
}

impl From<Achieved> for Ran {
    fn from(achieved: Achieved) -> Ran {
        let no_sandbox = match &achieved.outcome {
            Outcome::NoSandbox { why, .. } => Some(why.clone()),
            Outcome::Success { .. } | Outcome::Failure(_) => None,
        };
        Ran { result: achieved.outcome.into(), touched: achieved.touched, no_sandbox }
    }
}

impl From<Outcome> for ToolResult {
    fn from(outcome: Outcome) -> ToolResult {
        let field = |name: &str, value: Value| (name.to_owned(), value);
        ToolResult(match outcome {
            Outcome::Success { output, fields } => {
                let mut data = Map::from_iter([field("output", Value::from(output.text))]);
                data.extend(fields.into_iter().map(|(name, value)| field(name, value)));
                if output.truncated {
                    data.insert("truncated".to_owned(), Value::from(true));
                }
                Map::from_iter([field("success", Value::from(true)), field("data", data.into())])
            }
            Outcome::Failure(error) | Outcome::NoSandbox { error, .. } => {
                Map::from_iter([field("success", Value::from(false)), field("error", error.into())])
            }
        })
    }
}
