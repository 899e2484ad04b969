//! The rows of a call: what it does, what came of it at the right edge, its output or its diff.

use std::time::Duration;

use ikigai_conversation::{CallSummary, DiffLine, FileDiff, ResultState};
use ikigai_protocol::{CallBlock, CallEnd, CallState, OutputPreview, render_duration};
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use crate::diff::render_diff;
use crate::safe::{safe, safe_line};
use crate::style::{ADDED, BOLD, BULLET, DIM, FAULT, PLAIN, REMOVED, WARNING, WORKED};
use crate::wrap::{Breaks, Margin, fit, width_of, wrap};

use super::piece::Fold;

/// Visible rows of a folded subject.
const SUBJECT_ROWS: usize = 4;
/// Visible lines of a folded output: the last ones, since failures are at the end.
const OUTPUT_LINES: usize = 5;
/// Visible rows of a folded diff.
const DIFF_ROWS: usize = 20;
/// Stands before the rows below a call.
const BAR: &str = "  │ ";
/// The least columns for a subject beside an outcome.
const SUBJECT_ROOM: usize = 12;
/// Shorter durations are of no interest.
const NOTABLE: Duration = Duration::from_millis(100);

/// A call that has ended. A running one is shown as activity.
pub(super) fn render_call(call: &CallBlock, fold: Fold, width: usize) -> Vec<Line<'static>> {
    match &call.state {
        CallState::Running | CallState::Asking => Vec::new(),
        CallState::Unfinished => {
            let outcome = vec![Span::styled("not finished", DIM)];
            head(&call.summary, DIM, &outcome, fold, width)
        }
        CallState::Ended(end) => {
            let bullet = match end.state {
                ResultState::Succeeded => WORKED,
                ResultState::Refused => WARNING,
                ResultState::Failed => FAULT,
            };
            let output = shown_output(end, fold);
            let (beside, below) = outcome(end, output, width);
            let mut rows = head(&call.summary, bullet, &beside, fold, width);
            if let Some(span) = below {
                rows.extend(wrap(&[span], width, &Margin::even(BAR, DIM), Breaks::Words));
            }
            match &end.diff {
                Some(diff) => rows.extend(render_change(diff, fold, width)),
                None => rows.extend(render_output(output, fold, width)),
            }
            rows
        }
    }
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

/// The bullet, the verb, the subject, and the outcome at the right edge.
fn head(
    summary: &CallSummary,
    bullet: Style,
    outcome: &[Span<'static>],
    fold: Fold,
    width: usize,
) -> Vec<Line<'static>> {
    let verb = fit(&safe_line(&summary.verb), width / 2);
    let indent = 2 + verb.width() + 2;
    let mut margin = Margin {
        first: vec![
            Span::styled(format!("{BULLET} "), bullet),
            Span::styled(verb, BOLD),
            Span::raw("  "),
        ],
        rest: vec![Span::raw(" ".repeat(indent))],
    };
    let beside = width_of(outcome) + 2;
    let room = width.saturating_sub(if outcome.is_empty() { 0 } else { beside });
    let mut rows = Vec::new();
    for line in safe(summary.subject.trim_end()).split('\n') {
        rows.extend(wrap(&[Span::raw(line)], room, &margin, Breaks::Words));
        margin.finish_first_row();
    }
    if fold == Fold::Folded && rows.len() > SUBJECT_ROWS {
        rows.truncate(SUBJECT_ROWS);
        if let Some(last) = rows.last_mut() {
            *last = Line::from(format!("{}…", fit(&last.to_string(), room.saturating_sub(1))));
        }
    }
    if let Some(first) = rows.first_mut()
        && !outcome.is_empty()
    {
        let gap = width.saturating_sub(width_of(&first.spans) + width_of(outcome));
        first.spans.push(Span::raw(" ".repeat(gap)));
        first.spans.extend(outcome.iter().cloned());
    }
    rows
}

/// The outcome at the right edge. One that is too long for that stands below.
fn outcome(
    end: &CallEnd,
    output: &str,
    width: usize,
) -> (Vec<Span<'static>>, Option<Span<'static>>) {
    let text = safe_line(&end.outcome);
    // The sign says that it is one.
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let mut spans = match (&end.diff, end.state) {
        (Some(diff), ResultState::Succeeded) => vec![
            Span::styled(format!("+{}", diff.added), ADDED),
            Span::raw(" "),
            Span::styled(format!("−{}", diff.removed), REMOVED),
        ],
        // The output below says it.
        (_, ResultState::Succeeded) if output.lines().next() == Some(&end.outcome) => Vec::new(),
        (_, ResultState::Succeeded) => vec![Span::styled(text.to_owned(), DIM)],
        (_, ResultState::Refused) => vec![Span::styled(format!("! {text}"), WARNING)],
        (_, ResultState::Failed) => vec![Span::styled(format!("✗ {text}"), FAULT)],
    };
    let below = (width_of(&spans) > (width / 2).saturating_sub(SUBJECT_ROOM)).then(|| {
        let style = spans.first().map_or(PLAIN, |span| span.style);
        Span::styled(spans.drain(..).map(|span| span.content).collect::<String>(), style)
    });
    if let Some(duration) = end.duration.filter(|duration| *duration >= NOTABLE) {
        let between = if spans.is_empty() { "" } else { " · " };
        spans.push(Span::styled(format!("{between}{}", render_duration(duration)), DIM));
    }
    (spans, below)
}

/// The output to show; empty if there is none.
fn shown_output(end: &CallEnd, fold: Fold) -> &str {
    match (&end.rule, end.preview, fold) {
        (_, OutputPreview::Nothing, Fold::Folded) => "",
        (Some(rule), _, _) => rule,
        (None, _, _) => &end.output,
    }
}

fn render_output(output: &str, fold: Fold, width: usize) -> Vec<Line<'static>> {
    let hidden = match fold {
        Fold::Folded => output.lines().count().saturating_sub(OUTPUT_LINES),
        Fold::Open => 0,
    };
    let margin = Margin::even(BAR, DIM);
    let lines = output.lines().skip(hidden).flat_map(|line| match fold {
        // A preview must not fill the screen with one line.
        Fold::Folded => vec![bar_row(line, width)],
        Fold::Open => wrap(&[Span::styled(safe_line(line), DIM)], width, &margin, Breaks::Anywhere),
    });
    more(hidden).map(|text| bar_row(&text, width)).into_iter().chain(lines).collect()
}

/// A line of output, cut at the edge of the screen.
pub(crate) fn bar_row(line: &str, width: usize) -> Line<'static> {
    /// More than any screen shows in a row.
    const LIMIT: usize = 2_000;
    let line = safe_line(&line[..line.floor_char_boundary(LIMIT)]);
    Line::styled(format!("{BAR}{}", fit(&line, width.saturating_sub(BAR.width()))), DIM)
}

fn more(count: usize) -> Option<String> {
    let lines = if count == 1 { "line" } else { "lines" };
    (count > 0).then(|| format!("… {count} more {lines}"))
}

fn render_change(diff: &FileDiff, fold: Fold, width: usize) -> Vec<Line<'static>> {
    let all = render_diff(diff);
    let shown = match fold {
        Fold::Folded if all.len() > DIFF_ROWS => DIFF_ROWS,
        Fold::Folded | Fold::Open => all.len(),
    };
    let hidden = all.len() - shown + usize::try_from(diff.omitted).unwrap_or(usize::MAX);
    let mut rows: Vec<Line<'static>> =
        all.into_iter().take(shown).flat_map(|row| row.render(width)).collect();
    rows.extend(more(hidden).map(|text| Line::styled(format!("    {text}"), DIM)));
    rows
}
