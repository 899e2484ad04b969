//! A call that needs approval: everything that it would do, its agent, and what caused it.

use std::ops::Range;

use ikigai_conversation::{AgentId, Decision, Preview};
use ikigai_protocol::{ApprovalAnswer, ApprovalRequest, RULE_LOCATION};
use ratatui_core::text::{Line, Span};

use crate::diff::render_diff;
use crate::draft::Draft;
use crate::safe::{safe, safe_line};
use crate::style::{BOLD, DANGER, DIM, PLAIN};
use crate::wrap::{Breaks, Margin, wrap};

const CHOICES: &str =
    "y yes, once · a always in this session · n no · Esc later · PgUp, PgDn scroll";

/// Replaces the choices after an approval that came before everything was seen.
const WARNING: &str =
    "You have not seen all of it: PgDn · y or a again says yes · n no · Esc later";

/// A call that waits for approval.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) request: ApprovalRequest,
    pub(crate) stage: Stage,
    /// The first visible row.
    scrolled: usize,
    /// Whether the user was warned that not everything has been seen.
    is_warned: bool,
    /// The rows above the choices, cached: a question can be as long as a file and is drawn with
    /// every frame.
    layout: Option<Layout>,
}

#[derive(Debug)]
struct Layout {
    width: usize,
    rows: Vec<Line<'static>>,
    /// How many of them, from the first, show what the call would do.
    preview: usize,
    /// How many have been seen, from the first, without a gap.
    seen: usize,
}

#[derive(Debug)]
pub(crate) enum Stage {
    /// Waits for one of three keys.
    Choice,
    /// Denied; asks for the reason.
    Reason(Draft),
    /// Set aside until later.
    Aside,
}

impl Question {
    pub(crate) fn new(request: ApprovalRequest) -> Question {
        Question { request, stage: Stage::Choice, scrolled: 0, is_warned: false, layout: None }
    }

    pub(crate) fn answer(&self, decision: Decision, reason: Option<String>) -> ApprovalAnswer {
        ApprovalAnswer { call: self.request.call.tool_call_id.clone(), decision, reason }
    }

    /// Whether an approval counts: everything has been seen, or the user was warned and approves
    /// again.
    pub(crate) fn confirms_approval(
        &mut self,
        agent: &AgentId,
        width: usize,
        height: usize,
    ) -> bool {
        self.note_seen(agent, width, height);
        let layout = self.layout(agent, width);
        layout.seen >= layout.preview || std::mem::replace(&mut self.is_warned, true)
    }

    /// Scrolls within `height` rows: down for positive numbers.
    pub(crate) fn scroll(&mut self, agent: &AgentId, width: usize, height: usize, rows: isize) {
        let last = self.height(agent, width).saturating_sub(height);
        self.scrolled = self.scrolled.saturating_add_signed(rows).min(last);
    }

    /// The rows to scroll by for a page of `height` rows: the last row becomes the first one.
    pub(crate) fn page(&self, width: usize, height: usize) -> usize {
        let row_for_more = 1;
        height.saturating_sub(self.foot(width).len() + row_for_more + 1).max(1)
    }

    /// The question in at most `height` rows, which always include the choices.
    pub(crate) fn rows(
        &mut self,
        agent: &AgentId,
        width: usize,
        height: usize,
    ) -> Vec<Line<'static>> {
        self.note_seen(agent, width, height);
        let shown = self.shown(agent, width, height);
        let body = &self.layout(agent, width).rows;
        let mut rows = body[shown.clone()].to_vec();
        let left = body.len() - shown.end;
        if left > 0 {
            rows.push(Line::styled(format!("  … {left} more rows: PgDn"), DANGER));
        }
        rows.extend(self.foot(width));
        rows
    }

    /// The rows above the choices that fit into `height` rows. If there are more, the last row says
    /// so.
    fn shown(&mut self, agent: &AgentId, width: usize, height: usize) -> Range<usize> {
        let room = height.saturating_sub(self.foot(width).len());
        let scrolled = self.scrolled;
        let count = self.layout(agent, width).rows.len();
        let from = scrolled.min(count.saturating_sub(room));
        match count.min(from + room) {
            to if to == count => from..count,
            to => from..to.saturating_sub(1).max(from),
        }
    }

    /// Rows after skipped ones do not count as seen.
    fn note_seen(&mut self, agent: &AgentId, width: usize, height: usize) {
        let shown = self.shown(agent, width, height);
        let layout = self.layout(agent, width);
        if shown.start <= layout.seen {
            layout.seen = layout.seen.max(shown.end);
        }
    }

    /// The total number of rows.
    pub(crate) fn height(&mut self, agent: &AgentId, width: usize) -> usize {
        self.layout(agent, width).rows.len() + self.foot(width).len()
    }

    /// Everything above the choices, laid out once per width.
    fn layout(&mut self, agent: &AgentId, width: usize) -> &mut Layout {
        let layout = match self.layout.take() {
            Some(layout) if layout.width == width => layout,
            Some(_) | None => self.lay_out(agent, width),
        };
        self.layout.insert(layout)
    }

    fn lay_out(&self, agent: &AgentId, width: usize) -> Layout {
        let ApprovalRequest { call, preview, why, rule, cause } = &self.request;
        let line = |text: String, style| {
            wrap(&[Span::styled(safe_line(&text), style)], width, &Margin::default(), Breaks::Words)
        };
        let mut rows = line(format!("? agent {agent} asks for {}: {why}", call.name), BOLD);
        let margin = Margin::even("    ", PLAIN);
        for line in render_preview(preview) {
            let spans: Vec<Span<'_>> =
                line.spans.iter().map(|span| span.clone().patch_style(line.style)).collect();
            rows.extend(wrap(&spans, width, &margin, Breaks::Anywhere));
        }
        let preview = rows.len();
        if !cause.is_empty() {
            let cause = safe_line(&format!("set going by: {cause}"));
            let margin = Margin::hanging("  ", PLAIN);
            rows.extend(wrap(&[Span::styled(cause, DIM)], width, &margin, Breaks::Words));
        }
        if let Some(rule) = rule {
            rows.extend(line(format!("  never asked again with this {RULE_LOCATION}:"), DIM));
            // On separate lines, as in the file.
            for part in rule.lines() {
                let part = Span::styled(safe_line(part), DIM);
                rows.extend(wrap(&[part], width, &margin, Breaks::Words));
            }
        }
        Layout { width, rows, preview, seen: 0 }
    }

    fn foot(&self, width: usize) -> Vec<Line<'static>> {
        match &self.stage {
            Stage::Choice | Stage::Aside => {
                let choices = if self.is_warned { WARNING } else { CHOICES };
                wrap(&[Span::styled(choices, DANGER)], width, &Margin::default(), Breaks::Words)
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
}

/// Everything that the call would do, since an approval covers all of it.
fn render_preview(preview: &Preview) -> Vec<Line<'static>> {
    match preview {
        Preview::Command { command: text } | Preview::Arguments { arguments: text } => {
            safe(text).lines().map(|line| Line::raw(line.to_owned())).collect()
        }
        Preview::Change { remark, diff } => {
            let head = Line::styled(safe_line(remark.as_ref().unwrap_or(&diff.path)), BOLD);
            let rows = render_diff(diff).into_iter().map(|row| {
                let spans: Vec<Span<'_>> = row.margin.first.into_iter().chain(row.text).collect();
                Line::from(spans)
            });
            std::iter::once(head).chain(rows).collect()
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use ikigai_conversation::{Body, FileDiff, Hunk, NewMessage, ResponseId, ToolCallId};

    use super::*;

    pub(crate) fn approval_request(name: &str, preview: Preview) -> ApprovalRequest {
        let id = ToolCallId::new("c");
        let call = NewMessage::tool_call(id, name, "{}", ResponseId::new("r"));
        let Body::ToolCall(call) = call.body else { unreachable!("it is a call") };
        let (why, cause) = ("needs approval".to_owned(), "fix it".to_owned());
        ApprovalRequest { call, preview, why, rule: None, cause }
    }

    pub(crate) fn command(command: &str) -> Preview {
        Preview::Command { command: command.to_owned() }
    }

    fn change(remark: Option<&str>, lines: &[&str]) -> Preview {
        let lines = lines.iter().map(|line| (*line).to_owned().into()).collect();
        let hunks = vec![Hunk { old: 7, new: 7, lines }];
        let diff = FileDiff { path: "f".to_owned(), added: 1, removed: 0, hunks, omitted: 0 };
        Preview::Change { remark: remark.map(str::to_owned), diff }
    }

    #[track_caller]
    fn check(request: ApprovalRequest, height: usize, expected: &[&str]) {
        let mut question = Question::new(request);
        let rows = question.rows(&AgentId::top_level(0), 90, height);
        assert_eq!(rows.iter().map(Line::to_string).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_command_is_shown_whole() {
        check(
            approval_request("bash", command("rm -r a\n\u{1b}[2Jb")),
            20,
            &[
                "? agent 0/ asks for bash: needs approval",
                "    rm -r a",
                "    \u{fffd}[2Jb",
                "  set going by: fix it",
                CHOICES,
            ],
        );
    }

    #[test]
    fn more_rows_are_announced() {
        check(
            approval_request("bash", command("a\nb\nc\nd")),
            4,
            &[
                "? agent 0/ asks for bash: needs approval",
                "    a",
                "  … 4 more rows: PgDn",
                CHOICES,
            ],
        );
    }

    fn shown(preview: Preview) -> Vec<String> {
        let mut question = Question::new(approval_request("some_tool", preview));
        let rows = question.rows(&AgentId::top_level(0), 90, usize::MAX);
        rows.iter().skip(1).take(rows.len() - 3).map(Line::to_string).collect()
    }

    #[test]
    fn a_change_is_shown_with_its_path_or_its_remark() {
        let expected = ["    f", "         7   0", "         8 − 1", "         8 + 2"];
        assert_eq!(shown(change(None, &[" 0", "-1", "+2"])), expected);
        let expected = ["    f: all 5 bytes of the file are replaced by", "         7 + 2"];
        assert_eq!(
            shown(change(Some("f: all 5 bytes of the file are replaced by"), &["+2"])),
            expected
        );
    }

    /// Regression: a message said that the text was too large, and the change could still be
    /// approved.
    #[test]
    fn a_large_change_is_shown_whole() {
        let shown = shown(change(None, &vec!["+x"; 200_000]));
        assert_eq!(shown.iter().filter(|row| row.ends_with(" + x")).count(), 200_000);
    }

    #[test]
    fn other_calls_show_all_their_arguments() {
        let arguments = r#"{"to":"staging"}"#.to_owned();
        assert_eq!(shown(Preview::Arguments { arguments }), [r#"    {"to":"staging"}"#]);
    }
}
