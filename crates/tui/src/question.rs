//! A call that needs a yes: the whole of what it would do, whose it is, and what set it going (permissions.md, Asking and rules).

use std::time::Duration;

use ikigai_agents::{Answer, Asking};
use ikigai_conversation::{AgentId, Decision};
use ratatui_core::text::{Line, Span};
use serde_json::Value;

use crate::diff::render_diff;
use crate::draft::Draft;
use crate::look::{BOLD, DANGER, DIM, PLAIN};
use crate::safe::{safe, safe_line};
use crate::transcript::changed_path;
use crate::wrap::{Breaks, Margin, wrap};

/// A key that comes sooner after the one before belongs to what is being typed: nobody says yes in the middle of a
/// word.
pub(crate) const PAUSE: Duration = Duration::from_millis(700);

const CHOICES: &str =
    "y yes, once · a always in this session · n no · Esc later · PgUp, PgDn scroll";

#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) asking: Asking,
    /// What the file holds that the call would change, once somebody has looked.
    pub(crate) before: Option<String>,
    pub(crate) stage: Stage,
    /// The first row that is seen.
    pub(crate) scrolled: usize,
    /// Since when it is shown.
    pub(crate) since: Duration,
}

#[derive(Debug)]
pub(crate) enum Stage {
    /// One of three keys is waited for.
    Choice,
    /// It is a no; why?
    Reason(Draft),
    /// The person wants to see something else first.
    Aside,
}

impl Question {
    pub(crate) fn new(asking: Asking, now: Duration) -> Question {
        Question { asking, before: None, stage: Stage::Choice, scrolled: 0, since: now }
    }

    pub(crate) fn answer(&self, decision: Decision, reason: Option<String>) -> Answer {
        Answer { call: self.asking.call.tool_call_id.clone(), decision, reason }
    }

    /// The question in at most `height` rows, the choices always among them.
    pub(crate) fn rows(&self, agent: &AgentId, width: usize, height: usize) -> Vec<Line<'static>> {
        let body = self.body(agent, width);
        let foot = self.foot(width);
        let room = height.saturating_sub(foot.len());
        let from = self.scrolled.min(body.len().saturating_sub(room));
        let left = body.len() - from - room.min(body.len() - from);
        let mut rows: Vec<Line<'static>> = body.into_iter().skip(from).take(room).collect();
        if left > 0 {
            rows.pop();
            rows.push(Line::styled(format!("  … {} more rows: PgDn", left + 1), DANGER));
        }
        rows.extend(foot);
        rows
    }

    /// How many rows there are in all.
    pub(crate) fn height(&self, agent: &AgentId, width: usize) -> usize {
        self.body(agent, width).len() + self.foot(width).len()
    }

    fn body(&self, agent: &AgentId, width: usize) -> Vec<Line<'static>> {
        let Asking { call, why, rule, cause } = &self.asking;
        let line = |text: String, style| {
            wrap(&[Span::styled(safe_line(&text), style)], width, &Margin::default(), Breaks::Words)
        };
        let mut rows = line(format!("? agent {agent} asks for {}: {why}", call.name), BOLD);
        let margin = Margin::even("    ", PLAIN);
        for subject in self.subject() {
            let spans: Vec<Span<'_>> =
                subject.spans.iter().map(|span| span.clone().patch_style(subject.style)).collect();
            rows.extend(wrap(&spans, width, &margin, Breaks::Anywhere));
        }
        if !cause.is_empty() {
            rows.extend(line(format!("  set going by: {cause}"), DIM));
        }
        if let Some(rule) = rule {
            rows.extend(line(format!("  never asked again with: {rule}"), DIM));
        }
        rows
    }

    fn foot(&self, width: usize) -> Vec<Line<'static>> {
        match &self.stage {
            Stage::Choice | Stage::Aside => {
                wrap(&[Span::styled(CHOICES, DANGER)], width, &Margin::default(), Breaks::Words)
            }
            Stage::Reason(reason) => {
                let margin = Margin::hanging("why not? ", DANGER);
                let text = safe_line(&reason.whole());
                let mut rows = wrap(&[Span::raw(text)], width, &margin, Breaks::Anywhere);
                rows.push(Line::styled("Enter says no · Esc goes back", DIM));
                rows
            }
        }
    }

    /// What the call would do: all of it, since a yes is to all of it.
    fn subject(&self) -> Vec<Line<'static>> {
        let call = &self.asking.call;
        let Ok(arguments) = serde_json::from_str::<Value>(&call.arguments) else {
            return lines(&call.arguments);
        };
        let text = |name: &str| arguments[name].as_str().unwrap_or_default();
        match (call.name.as_str(), changed_path(call)) {
            ("bash", _) => lines(text("command")),
            ("file_write", Some(path)) => {
                let before = self.before.as_deref().unwrap_or_default();
                headed(&path, render_diff(before, text("content")))
            }
            ("file_edit", Some(path)) => {
                headed(&path, render_diff(text("old_string"), text("new_string")))
            }
            _ => lines(&arguments.to_string()),
        }
    }
}

fn lines(text: &str) -> Vec<Line<'static>> {
    safe(text).lines().map(|line| Line::raw(line.to_owned())).collect()
}

fn headed(path: &str, mut diff: Vec<Line<'static>>) -> Vec<Line<'static>> {
    diff.insert(0, Line::styled(safe_line(path), BOLD));
    diff
}

#[cfg(test)]
mod tests {
    use ikigai_conversation::{ResponseId, ToolCall, ToolCallId};

    use super::*;

    pub(crate) fn asking(name: &str, arguments: &str) -> Asking {
        let call = ToolCall {
            tool_call_id: ToolCallId::new("1"),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
            response: ResponseId::new("r"),
            extras: None,
        };
        Asking { call, why: "needs a yes".to_owned(), rule: None, cause: "fix it".to_owned() }
    }

    #[track_caller]
    fn check(asking: Asking, height: usize, expected: &[&str]) {
        let question = Question::new(asking, Duration::ZERO);
        let rows = question.rows(&AgentId::top_level(0), 90, height);
        assert_eq!(rows.iter().map(Line::to_string).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_command_is_shown_whole() {
        check(
            asking("bash", r#"{"command":"rm -r a\n\u001b[2Jb"}"#),
            20,
            &[
                "? agent 0/ asks for bash: needs a yes",
                "    rm -r a",
                "    �[2Jb",
                "  set going by: fix it",
                CHOICES,
            ],
        );
    }

    #[test]
    fn what_does_not_fit_is_said_to_be_there() {
        check(
            asking("bash", r#"{"command":"a\nb\nc\nd"}"#),
            4,
            &["? agent 0/ asks for bash: needs a yes", "    a", "  … 4 more rows: PgDn", CHOICES],
        );
    }

    #[test]
    fn a_write_is_shown_as_what_it_changes() {
        let mut question =
            Question::new(asking("file_write", r#"{"path":"f","content":"2\n"}"#), Duration::ZERO);
        question.before = Some("1\n".to_owned());
        let shown: Vec<String> = question.subject().iter().map(Line::to_string).collect();
        assert_eq!(shown, ["f", "@@ -1 +1 @@", "-1", "+2"]);
    }
}
