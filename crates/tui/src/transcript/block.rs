//! A block of a transcript and its rows.

use ikigai_conversation::{DiffLine, FileDiff, MessageId, ResultState, ResultSummary, ToolResult};
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use crate::diff::render_diff;
use crate::markdown::render_markdown;
use crate::safe::{safe, safe_line};
use crate::style::{AGENT, CALL, DIM, FAULT, PLAIN, USER, WARNING};
use crate::wrap::{Breaks, Margin, wrap};

use super::parts::Part;

/// Visible lines of a folded tool output.
const FOLDED_LINES: usize = 3;
/// Visible lines of a folded diff, which is of more interest.
const FOLDED_DIFF: usize = 24;

#[derive(Debug)]
pub(crate) struct Block {
    /// The message of the log that it shows, if any.
    pub(super) message: Option<MessageId>,
    pub(super) content: Content,
    pub(super) fold: Fold,
    /// An estimate of its memory.
    pub(super) bytes: usize,
    /// The cached layout.
    pub(super) layout: Option<Layout>,
    gap: Gap,
    is_dim: bool,
}

#[derive(Debug)]
pub(super) struct Layout {
    width: usize,
    rows: Vec<Line<'static>>,
}

/// Whether all of an output is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fold {
    Folded,
    Open,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gap {
    None,
    Line,
}

#[derive(Debug)]
pub(super) enum Content {
    Said(String),
    Answer { part: Part, is_first: bool },
    Call(String),
    Result { line: String, output: String, state: ResultState },
    Change { line: String, diff: FileDiff },
    Note { tone: Tone, text: String },
    Rule(String),
}

/// The style of a note that is not part of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Events and remarks.
    Dim,
    /// The reply to a command.
    Plain,
    /// `⚠`
    Warning,
    /// `✗`
    Fault,
    /// The error of a command.
    Error,
}

impl Content {
    pub(super) fn note(tone: Tone, text: &str) -> Content {
        Content::Note { tone, text: text.to_owned() }
    }

    pub(super) fn result(result: &ToolResult, content: &str) -> Content {
        let ResultSummary { outcome: line, state, diff, rule } = ResultSummary::of(result, content);
        if let Some(diff) = diff {
            return Content::Change { line, diff };
        }
        let output = rule.unwrap_or_else(|| result.output_text());
        // The output of some tools is the same as the summary.
        let output = if output == line { String::new() } else { output };
        Content::Result { line, output, state }
    }

    /// Whether `next` follows without an empty row.
    pub(super) fn joins(&self, next: &Content) -> bool {
        match (self, next) {
            (Content::Answer { .. }, Content::Answer { part, .. }) => part.is_continuation,
            (
                Content::Call(_) | Content::Result { .. } | Content::Note { tone: Tone::Dim, .. },
                next,
            ) => {
                matches!(
                    next,
                    Content::Call(_)
                        | Content::Result { .. }
                        | Content::Change { .. }
                        | Content::Note { tone: Tone::Dim, .. }
                )
            }
            _ => false,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Content::Said(text) | Content::Call(text) | Content::Rule(text) => text.len(),
            Content::Answer { part, .. } => part.text.len(),
            Content::Result { line, output, .. } => line.len() + output.len(),
            Content::Change { line, diff } => line.len() + size_of_diff(diff),
            Content::Note { text, .. } => text.len(),
        }
    }
}

impl Block {
    pub(super) fn new(message: Option<MessageId>, content: Content, is_joined: bool) -> Block {
        let bytes = size_of::<Block>() + content.bytes();
        let gap = if is_joined { Gap::None } else { Gap::Line };
        Block { message, content, fold: Fold::Folded, bytes, layout: None, gap, is_dim: false }
    }

    pub(super) fn dim(&mut self) {
        self.is_dim = true;
        self.layout = None;
    }

    /// Whether it is part of a streaming answer.
    pub(super) fn is_streaming(&self) -> bool {
        self.message.is_none() && matches!(self.content, Content::Answer { .. })
    }

    pub(super) fn is_laid_out(&self, width: usize) -> bool {
        self.layout.as_ref().is_some_and(|layout| layout.width == width)
    }

    pub(super) fn rows(&self) -> &[Line<'static>] {
        self.layout.as_ref().map(|layout| &*layout.rows).unwrap_or_default()
    }

    pub(super) fn lay_out(&mut self, width: usize) {
        let mut rows = self.render(width);
        if self.gap == Gap::Line && !rows.is_empty() {
            rows.insert(0, Line::default());
        }
        if self.is_dim {
            for span in rows.iter_mut().flat_map(|row| &mut row.spans) {
                span.style = DIM;
            }
        }
        self.layout = Some(Layout { width, rows });
    }

    fn render(&self, width: usize) -> Vec<Line<'static>> {
        match &self.content {
            Content::Said(text) => prefixed("❯ ", text, USER, PLAIN, width),
            Content::Answer { part, is_first } => render_answer(&part.text, *is_first, width),
            Content::Call(line) => prefixed("→ ", line, CALL, PLAIN, width),
            Content::Result { line, output, state } => {
                self.render_result(line, output, *state, width)
            }
            Content::Change { line, diff } => self.render_change(line, diff, width),
            Content::Note { tone, text } => render_note(*tone, text, width),
            Content::Rule(text) => vec![Line::styled(format!("── {text} ──"), DIM)],
        }
    }

    fn render_result(
        &self,
        line: &str,
        output: &str,
        state: ResultState,
        width: usize,
    ) -> Vec<Line<'static>> {
        let style = match state {
            ResultState::Succeeded => DIM,
            ResultState::Refused => WARNING,
            ResultState::Failed => FAULT,
        };
        let mut rows = prefixed("← ", line, style, style, width);
        let shown = match self.fold {
            Fold::Folded => FOLDED_LINES,
            Fold::Open => usize::MAX,
        };
        let lines = output.lines().take(shown).flat_map(|line| match self.fold {
            // A preview must not fill the screen with one line.
            Fold::Folded => vec![Line::styled(
                format!("  {}", crate::wrap::fit(&safe_line(cut(line)), width.saturating_sub(2))),
                DIM,
            )],
            Fold::Open => indented(&Line::styled(safe_line(line), DIM), width),
        });
        rows.extend(lines);
        rows.extend(more(output.lines().count().saturating_sub(shown)));
        rows
    }

    fn render_change(&self, line: &str, diff: &FileDiff, width: usize) -> Vec<Line<'static>> {
        let mut rows = prefixed("← ", line, DIM, DIM, width);
        let lines: Vec<Line<'_>> = render_diff(diff).collect();
        let shown = match self.fold {
            Fold::Folded => FOLDED_DIFF,
            Fold::Open => usize::MAX,
        };
        rows.extend(lines.iter().take(shown).flat_map(|line| indented(line, width)));
        rows.extend(more(lines.len().saturating_sub(shown)));
        if diff.omitted > 0 && self.fold == Fold::Open {
            rows.push(Line::styled(format!("  … {} more lines of the change", diff.omitted), DIM));
        }
        rows
    }
}

fn size_of_diff(diff: &FileDiff) -> usize {
    let lines = diff.hunks.iter().flat_map(|hunk| &hunk.lines);
    lines.map(|line| size_of::<DiffLine>() + line.text().len()).sum()
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

fn render_answer(text: &str, is_first: bool, width: usize) -> Vec<Line<'static>> {
    let mut rows = render_markdown(text, width.saturating_sub(2));
    if rows.is_empty() && is_first {
        rows.push(Line::default());
    }
    for (number, row) in rows.iter_mut().enumerate() {
        let prefix =
            if is_first && number == 0 { Span::styled("● ", AGENT) } else { Span::raw("  ") };
        if !row.spans.is_empty() || number == 0 {
            row.spans.insert(0, prefix);
        }
    }
    rows
}

fn render_note(tone: Tone, text: &str, width: usize) -> Vec<Line<'static>> {
    match tone {
        Tone::Dim => prefixed("", text, DIM, DIM, width),
        Tone::Plain => prefixed("", text, PLAIN, PLAIN, width),
        Tone::Warning => prefixed("⚠ ", text, WARNING, WARNING, width),
        Tone::Fault => prefixed("✗ ", text, FAULT, FAULT, width),
        Tone::Error => prefixed("", text, FAULT, FAULT, width),
    }
}

/// Untrusted text with a prefix before its first row.
fn prefixed(
    prefix: &str,
    text: &str,
    mark: Style,
    style: Style,
    width: usize,
) -> Vec<Line<'static>> {
    let mut margin = Margin::hanging(prefix, mark);
    let mut rows = Vec::new();
    for line in safe(text.trim_end()).split('\n') {
        rows.extend(wrap(&[Span::styled(line, style)], width, &margin, Breaks::Words));
        margin.finish_first_row();
    }
    rows
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
