//! The rows of a call: what it does, what came of it, its output or its diff.

use ikigai_conversation::{Approval, Decision, DiffLine, FileDiff, ResultState};
use ikigai_protocol::{CallBlock, CallEnd, CallState};
use ratatui_core::text::{Line, Span};

use crate::diff::render_diff;
use crate::safe::safe_line;
use crate::style::{CALL, DIM, FAULT, PLAIN, WARNING};
use crate::wrap::{Breaks, Margin, fit, wrap};

use super::piece::{Fold, prefixed};

/// Visible lines of a folded tool output.
const FOLDED_LINES: usize = 3;
/// Visible lines of a folded diff, which is of more interest.
const FOLDED_DIFF: usize = 24;

pub(super) fn render_call(call: &CallBlock, fold: Fold, width: usize) -> Vec<Line<'static>> {
    let mut rows = prefixed("→ ", &call.summary.to_string(), CALL, PLAIN, width);
    if let Some(approval) = &call.approval {
        rows.extend(prefixed("", &answered(approval), DIM, DIM, width));
    }
    match &call.state {
        CallState::Ended(end) => rows.extend(render_end(end, fold, width)),
        CallState::Running | CallState::Asking | CallState::Unfinished => {}
    }
    rows
}

/// An estimate of the memory of a call.
pub(super) fn size_of_call(call: &CallBlock) -> usize {
    let end = match &call.state {
        CallState::Ended(end) => size_of_end(end),
        CallState::Running | CallState::Asking | CallState::Unfinished => 0,
    };
    size_of::<CallBlock>() + call.summary.verb.len() + call.summary.subject.len() + end
}

fn size_of_end(end: &CallEnd) -> usize {
    let rule = end.rule.as_ref().map_or(0, String::len);
    let lines = end.diff.iter().flat_map(|diff| &diff.hunks).flat_map(|hunk| &hunk.lines);
    let diff: usize = lines.map(|line| size_of::<DiffLine>() + line.text().len()).sum();
    end.outcome.len() + end.output.len() + rule + diff
}

fn answered(approval: &Approval) -> String {
    match (&approval.decision, &approval.reason) {
        (Decision::Once, _) => "you said yes, once".to_owned(),
        (Decision::Always, _) => "you said yes, for this session".to_owned(),
        (Decision::No, Some(reason)) => format!("you said no: {reason}"),
        (Decision::No, None) => "you said no".to_owned(),
    }
}

fn render_end(end: &CallEnd, fold: Fold, width: usize) -> Vec<Line<'static>> {
    if let Some(diff) = &end.diff {
        return render_change(&end.outcome, diff, fold, width);
    }
    let style = match end.state {
        ResultState::Succeeded => DIM,
        ResultState::Refused => WARNING,
        ResultState::Failed => FAULT,
    };
    let mut rows = prefixed("← ", &end.outcome, style, style, width);
    let output = end.rule.as_ref().unwrap_or(&end.output);
    let shown = match fold {
        Fold::Folded => FOLDED_LINES,
        Fold::Open => usize::MAX,
    };
    let lines = output.lines().take(shown).flat_map(|line| match fold {
        // A preview must not fill the screen with one line.
        Fold::Folded => vec![Line::styled(
            format!("  {}", fit(&safe_line(cut(line)), width.saturating_sub(2))),
            DIM,
        )],
        Fold::Open => indented(&Line::styled(safe_line(line), DIM), width),
    });
    rows.extend(lines);
    rows.extend(more(output.lines().count().saturating_sub(shown)));
    rows
}

fn render_change(outcome: &str, diff: &FileDiff, fold: Fold, width: usize) -> Vec<Line<'static>> {
    let mut rows = prefixed("← ", outcome, DIM, DIM, width);
    let lines: Vec<Line<'_>> = render_diff(diff).collect();
    let shown = match fold {
        Fold::Folded => FOLDED_DIFF,
        Fold::Open => usize::MAX,
    };
    rows.extend(lines.iter().take(shown).flat_map(|line| indented(line, width)));
    rows.extend(more(lines.len().saturating_sub(shown)));
    if diff.omitted > 0 && fold == Fold::Open {
        rows.push(Line::styled(format!("  … {} more lines of the change", diff.omitted), DIM));
    }
    rows
}

/// Cuts a line at more than any screen shows in a row.
fn cut(line: &str) -> &str {
    const LIMIT: usize = 2_000;
    &line[..line.floor_char_boundary(LIMIT)]
}

fn more(count: usize) -> Option<Line<'static>> {
    let lines = if count == 1 { "line" } else { "lines" };
    (count > 0).then(|| Line::styled(format!("  … {count} more {lines} (Ctrl+O)"), DIM))
}

fn indented(line: &Line<'static>, width: usize) -> Vec<Line<'static>> {
    let style = line.style;
    let spans: Vec<Span<'static>> = line
        .spans
        .iter()
        .map(|span| Span::styled(span.content.clone(), style.patch(span.style)))
        .collect();
    wrap(&spans, width, &Margin::even("  ", PLAIN), Breaks::Anywhere)
}
