//! A block of a transcript, or a part of a long answer, and its rows.

use ikigai_conversation::MessageId;
use ikigai_protocol::{BlockContent, BlockId, MailCard, NoticeTone, render_thought};
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use crate::markdown::render_markdown;
use crate::safe::{safe, safe_line};
use crate::style::{BOLD, DIM, FAULT, MAIL, NOTIFICATION, PLAIN, USER, WARNING};
use crate::wrap::{Breaks, Margin, fit, wrap};

use super::call::{render_call, size_of_call};
use super::parts::Part;

#[derive(Debug)]
pub(crate) struct Piece {
    pub(super) block: BlockId,
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
    /// A part of an answer.
    Part { part: Part, is_first: bool },
    /// A whole block of another kind.
    Block(BlockContent),
}

impl Content {
    /// An answer that has not started yet.
    pub(super) fn first_part() -> Content {
        Content::Part { part: Part::default(), is_first: true }
    }

    /// Whether `next` follows without an empty row.
    pub(super) fn joins(&self, next: &Content) -> bool {
        match (self, next) {
            (Content::Part { .. }, Content::Part { part, .. }) => part.is_continuation,
            (Content::Block(block), Content::Block(next)) => is_small(block) && is_small(next),
            (Content::Part { .. }, Content::Block(_))
            | (Content::Block(_), Content::Part { .. }) => false,
        }
    }

    /// Whether it shows more when it is unfolded.
    pub(super) fn folds(&self) -> bool {
        match self {
            Content::Part { .. } => false,
            Content::Block(BlockContent::Said(text)) => is_long(text),
            Content::Block(block) => matches!(
                block,
                BlockContent::Call(_)
                    | BlockContent::Thought { .. }
                    | BlockContent::Summary { .. }
                    | BlockContent::Mail(_)
            ),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Content::Part { part, .. } => part.text.len(),
            Content::Block(block) => match block {
                BlockContent::Call(call) => size_of_call(call),
                BlockContent::Mail(cards) => {
                    cards.iter().map(|card| size_of::<MailCard>() + card.body.len()).sum()
                }
                BlockContent::Said(text)
                | BlockContent::Answer(text)
                | BlockContent::Notification(text)
                | BlockContent::Thought { text, .. }
                | BlockContent::Notice { text, .. }
                | BlockContent::Summary { text, .. }
                | BlockContent::Divider(text)
                | BlockContent::Typed(text)
                | BlockContent::Reply(text)
                | BlockContent::Refusal(text) => text.len(),
            },
        }
    }
}

/// Whether a block is so small that it stands next to others like it.
fn is_small(block: &BlockContent) -> bool {
    match block {
        BlockContent::Call(_) | BlockContent::Notification(_) | BlockContent::Typed(_) => true,
        BlockContent::Mail(_) => true,
        BlockContent::Notice { tone, .. } => *tone == NoticeTone::Info,
        BlockContent::Thought { .. } | BlockContent::Summary { .. } => false,
        BlockContent::Said(_) | BlockContent::Answer(_) | BlockContent::Divider(_) => false,
        BlockContent::Reply(_) | BlockContent::Refusal(_) => false,
    }
}

impl Piece {
    pub(super) fn new(
        block: BlockId,
        message: Option<MessageId>,
        content: Content,
        is_joined: bool,
    ) -> Piece {
        let gap = if is_joined { Gap::None } else { Gap::Line };
        let fold = Fold::Folded;
        let bytes = size_of::<Piece>() + content.bytes();
        Piece { block, message, content, fold, bytes, layout: None, gap, is_dim: false }
    }

    /// Its content has changed.
    pub(super) fn refresh(&mut self) {
        self.bytes = size_of::<Piece>() + self.content.bytes();
        self.layout = None;
    }

    pub(super) fn dim(&mut self) {
        self.is_dim = true;
        self.layout = None;
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
            Content::Part { part, is_first } => render_answer(&part.text, *is_first, width),
            Content::Block(block) => match block {
                BlockContent::Said(text) => render_said(text, self.fold, width),
                BlockContent::Answer(text) => render_answer(text, true, width),
                BlockContent::Thought { text, duration } => {
                    // What the model thinks now is shown as activity.
                    let head = duration.map(render_thought).or(match self.fold {
                        Fold::Folded => None,
                        Fold::Open => Some("Thinking".to_owned()),
                    });
                    let head = head.map(|head| Line::styled(format!("✻ {head}"), DIM));
                    let mut rows: Vec<Line<'static>> = head.into_iter().collect();
                    if self.fold == Fold::Open {
                        rows.extend(prefixed("  ", text, DIM, DIM, width));
                    }
                    rows
                }
                BlockContent::Mail(cards) => {
                    cards.iter().flat_map(|card| render_mail(card, self.fold, width)).collect()
                }
                BlockContent::Call(call) => render_call(call, self.fold, width),
                BlockContent::Notification(text) => {
                    prefixed("", text, NOTIFICATION, NOTIFICATION, width)
                }
                BlockContent::Notice { tone, text } => render_notice(*tone, text, width),
                BlockContent::Summary { title, text } => {
                    let mut rows = prefixed("", title, DIM, DIM, width);
                    if self.fold == Fold::Open {
                        rows.extend(prefixed("  ", text, DIM, DIM, width));
                    }
                    rows
                }
                BlockContent::Divider(text) => {
                    vec![Line::styled(format!("── {} ──", safe_line(text)), DIM)]
                }
                BlockContent::Typed(line) => prefixed("❯ ", line, DIM, DIM, width),
                BlockContent::Reply(text) => prefixed("", text, PLAIN, PLAIN, width),
                BlockContent::Refusal(text) => prefixed("", text, FAULT, FAULT, width),
            },
        }
    }
}

/// Whether a message of the user is folded: it was pasted rather than typed.
fn is_long(text: &str) -> bool {
    /// More lines than are typed.
    const TYPED: usize = 10;
    text.trim_end().lines().count() > TYPED
}

fn render_said(text: &str, fold: Fold, width: usize) -> Vec<Line<'static>> {
    /// Enough to recognize a text.
    const SHOWN: usize = 3;
    if fold == Fold::Open || !is_long(text) {
        return prefixed("❯ ", text, USER, PLAIN, width);
    }
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let mut rows = prefixed("❯ ", &lines[..SHOWN].join("\n"), USER, PLAIN, width);
    rows.push(Line::styled(format!("  … {} more lines", lines.len() - SHOWN), DIM));
    rows
}

/// A card: who wrote to whom, and the first line; unfolded, all of it.
fn render_mail(card: &MailCard, fold: Fold, width: usize) -> Vec<Line<'static>> {
    let title = format!("{}   ", safe_line(&card.title()));
    let (sign, names) = title.split_at(title.find(' ').unwrap_or_default());
    let head = [Span::styled(sign.to_owned(), MAIL), Span::styled(names.to_owned(), BOLD)];
    let line = safe_line(&card.line());
    let first = line.get(title.len()..).unwrap_or_default();
    let room = width.saturating_sub(title.width());
    let mut rows = vec![Line::from_iter(head.into_iter().chain([Span::raw(fit(first, room))]))];
    if fold == Fold::Open {
        rows.extend(prefixed("  ", &card.body, PLAIN, PLAIN, width));
    }
    rows
}

fn render_answer(text: &str, is_first: bool, width: usize) -> Vec<Line<'static>> {
    let mut rows = render_markdown(text, width.saturating_sub(2));
    if rows.is_empty() && is_first {
        rows.push(Line::default());
    }
    for (number, row) in rows.iter_mut().enumerate() {
        let prefix = if is_first && number == 0 { Span::raw("● ") } else { Span::raw("  ") };
        if !row.spans.is_empty() || number == 0 {
            row.spans.insert(0, prefix);
        }
    }
    rows
}

fn render_notice(tone: NoticeTone, text: &str, width: usize) -> Vec<Line<'static>> {
    match tone {
        NoticeTone::Info => prefixed("", text, DIM, DIM, width),
        NoticeTone::Warning => prefixed("⚠ ", text, WARNING, WARNING, width),
        NoticeTone::Fault => prefixed("✗ ", text, FAULT, FAULT, width),
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
