//! The rows of an approval dialog, in its frame.

use std::ops::Range;

use ikigai_conversation::{AgentId, Preview};
use ikigai_protocol::ApprovalRequest;
use ratatui_core::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use crate::diff::render_diff;
use crate::safe::{safe, safe_line};
use crate::style::{BOLD, DANGER, DIM, PLAIN, USER};
use crate::wrap::{Breaks, Margin, fit, width_of, wrap};

use super::{Choice, Question};

/// The columns of the frame.
const FRAME: usize = 4;

/// Everything above the choices.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) width: usize,
    title: String,
    pub(super) rows: Vec<Line<'static>>,
    /// How many of them, from the first, show what the call would do.
    pub(super) preview: usize,
    /// How many have been seen, from the first, without a gap.
    pub(super) seen: usize,
}

/// The choices, or the input of a reason.
#[derive(Debug)]
pub(super) struct Foot(Vec<Line<'static>>);

impl Layout {
    pub(super) fn new(request: &ApprovalRequest, agent: &AgentId, width: usize) -> Layout {
        let ApprovalRequest { call, preview, why, rule: _, cause, hash: _ } = request;
        let room = width.saturating_sub(FRAME);
        let line = |text: String| {
            let text = Span::styled(safe_line(&text), DIM);
            wrap(&[text], room, &Margin::default(), Breaks::Words)
        };
        let wants = match preview {
            Preview::Command { .. } => "run a command".to_owned(),
            Preview::Change { .. } => "change a file".to_owned(),
            Preview::Arguments { .. } => format!("call {}", call.name),
        };
        let title = safe_line(&format!("Agent {agent} wants to {wants}"));
        let mut rows = line(why.clone());
        rows.extend(render_preview(preview, room));
        let preview = rows.len();
        if !cause.is_empty() {
            rows.extend(line(format!("Because of: {cause}")));
        }
        Layout { width, title, rows, preview, seen: 0 }
    }

    /// The dialog with these of its rows.
    pub(super) fn render(
        &self,
        shown: Range<usize>,
        foot: &Foot,
        hint: &str,
    ) -> Vec<Line<'static>> {
        let left = self.rows.len() - shown.end;
        let more = (left > 0).then(|| Line::styled(format!("… {left} more rows: PgDn"), DANGER));
        let body = self.rows[shown].iter().cloned().chain(more).chain(foot.0.iter().cloned());
        let top = edge(['╭', '╮'], Span::styled(fit(&self.title, self.room()), BOLD), self.width);
        let bottom = edge(['╰', '╯'], Span::styled(fit(hint, self.room()), DIM), self.width);
        let body = body.map(|row| framed(row, self.width));
        std::iter::once(top).chain(body).chain([bottom]).collect()
    }

    fn room(&self) -> usize {
        self.width.saturating_sub(FRAME)
    }
}

impl Foot {
    /// A row for each choice, and below the selected one the rule that it saves.
    pub(super) fn list(question: &Question, width: usize) -> Foot {
        let width = width.saturating_sub(FRAME);
        let mut rows = Vec::new();
        for (choice, number) in question.choices().iter().zip(1..) {
            let is_selected = *choice == question.selected();
            let (sign, style) = if is_selected { ("❯ ", USER) } else { ("  ", PLAIN) };
            let text = [Span::styled(label(*choice), style)];
            let margin = Margin::hanging(&format!("{sign}{number} "), style);
            rows.extend(wrap(&text, width, &margin, Breaks::Words));
            if is_selected && *choice == Choice::Always {
                rows.extend(render_rule(question.request.rule.as_deref(), width));
            }
        }
        Foot(rows)
    }

    /// All choices in one row.
    pub(super) fn row(question: &Question, width: usize) -> Foot {
        let mut spans = Vec::new();
        for (choice, number) in question.choices().iter().zip(1..) {
            if !spans.is_empty() {
                spans.push(Span::styled(" · ", DIM));
            }
            let style = if *choice == question.selected() { USER } else { PLAIN };
            spans.push(Span::styled(format!("{number} {}", short_label(*choice)), style));
        }
        Foot(wrap(&spans, width.saturating_sub(FRAME), &Margin::default(), Breaks::Words))
    }

    pub(super) fn reason(reason: &str, width: usize) -> Foot {
        let margin = Margin::hanging("Why not? ", DANGER);
        let text = [Span::raw(safe_line(reason))];
        Foot(wrap(&text, width.saturating_sub(FRAME), &margin, Breaks::Anywhere))
    }

    /// The rows with the edges of the frame.
    pub(super) fn height(&self) -> usize {
        self.0.len() + 2
    }
}

fn label(choice: Choice) -> &'static str {
    match choice {
        Choice::Once => "Yes",
        Choice::Session => "Yes, and don't ask again this session",
        Choice::Always => "Yes, and always allow this (saved to config)",
        Choice::No => "No, and tell it why…",
    }
}

fn short_label(choice: Choice) -> &'static str {
    match choice {
        Choice::Once => "yes",
        Choice::Session => "yes, this session",
        Choice::Always => "yes, always",
        Choice::No => "no",
    }
}

/// The rule that is saved, as it will stand in the file.
fn render_rule(rule: Option<&str>, width: usize) -> Vec<Line<'static>> {
    let margin = Margin::even("    ", PLAIN);
    let lines = rule.unwrap_or_default().lines();
    let row =
        |line: &str| wrap(&[Span::styled(safe_line(line), DIM)], width, &margin, Breaks::Anywhere);
    lines.flat_map(row).collect()
}

/// Everything that the call would do, since an approval covers all of it.
fn render_preview(preview: &Preview, width: usize) -> Vec<Line<'static>> {
    let margin = Margin::even("  ", PLAIN);
    match preview {
        Preview::Command { command: text } | Preview::Arguments { arguments: text } => {
            let lines = safe(text);
            let row = |line: &str| wrap(&[Span::raw(line)], width, &margin, Breaks::Anywhere);
            lines.lines().flat_map(row).collect()
        }
        Preview::Change { remark, diff } => {
            let head = safe_line(remark.as_ref().unwrap_or(&diff.path));
            let head = wrap(&[Span::styled(head, BOLD)], width, &margin, Breaks::Anywhere);
            let rows = render_diff(diff).into_iter().flat_map(|row| row.render(width));
            head.into_iter().chain(rows).collect()
        }
    }
}

/// A row between the sides of the frame.
fn framed(row: Line<'static>, width: usize) -> Line<'static> {
    let rest = width.saturating_sub(FRAME + width_of(&row.spans));
    let style = row.style;
    let mut spans = vec![Span::styled("│ ", DIM)];
    spans.extend(row.spans.into_iter().map(|span| span.patch_style(style)));
    spans.push(Span::styled(format!("{} │", " ".repeat(rest)), DIM));
    Line::from(spans)
}

/// The upper or lower edge, with a text in it.
fn edge(corners: [char; 2], text: Span<'static>, width: usize) -> Line<'static> {
    let rest = width.saturating_sub(FRAME + text.content.width());
    let [left, right] = corners;
    let line = format!(" {}{right}", "─".repeat(rest));
    Line::from(vec![Span::styled(format!("{left} "), DIM), text, Span::styled(line, DIM)])
}
