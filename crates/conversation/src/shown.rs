//! Summaries of calls and results, written by the tool and stored with them. Front ends can display
//! them without knowing any tool. They are not sent to models.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::body::{ToolCall, ToolResult};
use crate::diff::FileDiff;
use crate::one_line::{cut, first_text, line, one_line};

/// The kinds of effects that a call can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectKind {
    /// Reads, lists or searches files.
    Read,
    /// Creates or changes files.
    Write,
    /// Runs a command.
    Command,
    /// Reaches a host on the network.
    Host,
    /// Uses the database: mail, agents.
    Database,
    /// Unknown, or written by a later version.
    #[serde(other)]
    Unknown,
}

/// A short summary of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallSummary {
    /// What it does: `Read`, `Edit`, `Bash`.
    pub verb: String,
    /// What it does that to: a path, a command, a pattern. May be empty or have several lines.
    pub subject: String,
    /// What is shown while it runs, if that is not the verb and the subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<String>,
}

impl CallSummary {
    /// The maximum characters of a verb. Custom tools may have any name.
    const VERB: usize = 64;
    /// The maximum characters of a subject: more than the four rows that a call may take on a wide
    /// screen.
    const SUBJECT: usize = 2_000;

    /// A summary of bounded length.
    pub fn new(verb: &str, subject: &str) -> CallSummary {
        let (verb, subject) = (cut(verb, CallSummary::VERB), cut(subject, CallSummary::SUBJECT));
        CallSummary { verb, subject, running: None }
    }

    /// The same summary, with another text while the call runs.
    #[must_use]
    pub fn while_running(self, text: &str) -> CallSummary {
        CallSummary { running: Some(line(text)), ..self }
    }

    /// A summary for a tool that provides none: its name, and its first argument that is a text.
    ///
    /// ```
    /// # use ikigai_conversation::CallSummary;
    /// let summary = CallSummary::of_arguments("deploy", r#"{"to":"staging","dry_run":true}"#);
    /// assert_eq!(summary.to_string(), "deploy  staging");
    /// ```
    pub fn of_arguments(name: &str, arguments: &str) -> CallSummary {
        CallSummary::new(name, &one_line(&first_text(arguments), CallSummary::SUBJECT))
    }

    /// The summary on one line.
    pub fn line(&self) -> String {
        line(&self.to_string())
    }

    /// The summary of a call in a log. Logs of earlier versions have none.
    pub fn of(call: &ToolCall) -> CallSummary {
        let made = || CallSummary::of_arguments(&call.name, &call.arguments);
        call.shown.clone().unwrap_or_else(made)
    }
}

/// The verb, two spaces, and the subject.
impl std::fmt::Display for CallSummary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.subject.as_str() {
            "" => f.write_str(&self.verb),
            subject => write!(f, "{}  {subject}", self.verb),
        }
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultState {
    /// It succeeded.
    Succeeded,
    /// It was not permitted.
    Refused,
    /// It or its command failed, or a later version wrote another state.
    #[serde(other)]
    Failed,
}

/// A short summary of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultSummary {
    /// The outcome of the call, on one line: `3 matches`, `exit 1`, `+4 −1`.
    pub outcome: String,
    /// How it ended.
    pub state: ResultState,
    /// What it changed in a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<FileDiff>,
    /// For a refused call: the rule that would allow it, as TOML for the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

impl ResultSummary {
    /// A summary whose outcome is one line of bounded length.
    pub fn new(
        outcome: &str,
        state: ResultState,
        diff: Option<FileDiff>,
        rule: Option<String>,
    ) -> ResultSummary {
        ResultSummary { outcome: line(outcome), state, diff, rule }
    }

    /// The summary of a result in a log. Logs of earlier versions have none; `content` is used
    /// instead.
    pub fn of(result: &ToolResult, content: &str) -> ResultSummary {
        result.shown.clone().unwrap_or_else(|| ResultSummary {
            outcome: content.to_owned(),
            state: if result.success { ResultState::Succeeded } else { ResultState::Failed },
            diff: None,
            rule: None,
        })
    }
}

impl ToolResult {
    /// The output of the tool, without trailing white space; empty if there is none.
    pub fn output_text(&self) -> String {
        let result: Value = serde_json::from_str(&self.output).unwrap_or_default();
        result["data"]["output"].as_str().unwrap_or_default().trim_end().to_owned()
    }
}

/// Everything that a call would do: approval is for all of it. It is not escaped for a terminal
/// yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Preview {
    /// It runs this command.
    Command {
        /// The whole command.
        command: String,
    },
    /// It changes a file.
    Change {
        /// What the diff does not show.
        remark: Option<String>,
        /// The complete diff from the current content of the file.
        diff: FileDiff,
    },
    /// It does something else, with these arguments.
    Arguments {
        /// All of them, as JSON.
        arguments: String,
    },
}

/// Whether a call that never got a result may have had effects that are not in the log.
///
/// Logs of earlier versions have no effects; their only tool that ran commands was `bash`.
pub(crate) fn ran_command(call: &ToolCall) -> bool {
    match &call.effects {
        Some(effects) => effects.contains(&EffectKind::Command),
        None => call.name == "bash",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Body, NewMessage, ResponseId, ToolCallId};

    fn call(name: &str, arguments: &str) -> ToolCall {
        let id = ToolCallId::new("c");
        let call = NewMessage::tool_call(id, name, arguments, ResponseId::new("r"));
        let Body::ToolCall(call) = call.body else { unreachable!("it is a call") };
        call
    }

    /// Calls of earlier versions are summarized from their name and arguments, results from their
    /// line.
    #[test]
    fn a_log_without_summaries_is_summarized_from_its_messages() {
        let call = call("grep", r#"{"pattern":"a\tb","path":"src"}"#);
        assert_eq!(CallSummary::of(&call).to_string(), "grep  a b");
        let result = NewMessage::tool_result(&call, r#"{"success":true,"data":{"output":"x"}}"#);
        let Body::ToolResult(body) = &result.body else { unreachable!("it is a result") };
        let summary = ResultSummary::of(body, &result.content);
        assert_eq!((summary.outcome.as_str(), summary.state), ("x", ResultState::Succeeded));
        let failed = NewMessage::tool_result(&call, r#"{"error":"no"}"#);
        let Body::ToolResult(body) = &failed.body else { unreachable!("it is a result") };
        let summary = ResultSummary::of(body, &failed.content);
        assert_eq!((summary.outcome.as_str(), summary.state), ("error: no", ResultState::Failed));
    }

    #[test]
    fn the_length_of_a_summary_is_bounded() {
        let long = "x".repeat(10_000);
        let summary = CallSummary::of_arguments(&long, &long);
        assert_eq!(summary.verb.chars().count(), CallSummary::VERB);
        assert_eq!(summary.subject.chars().count(), CallSummary::SUBJECT);
    }

    #[test]
    fn values_of_a_later_version_are_accepted() {
        let kinds: Vec<EffectKind> = serde_json::from_str(r#"["read","teleport"]"#).unwrap();
        assert_eq!(kinds, [EffectKind::Read, EffectKind::Unknown]);
        let summary: ResultSummary =
            serde_json::from_str(r#"{"outcome":"x","state":"postponed","more":1}"#).unwrap();
        assert_eq!(summary.state, ResultState::Failed);
    }
}
