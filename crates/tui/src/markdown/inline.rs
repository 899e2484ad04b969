//! Collects inline text with its emphasis between two blocks.

use pulldown_cmark::{Tag, TagEnd};
use ratatui_core::style::Style;
use ratatui_core::text::Span;

use crate::style::{BOLD, DIM, ITALIC, LINK, PLAIN, STRUCK};

#[derive(Default)]
pub(super) struct Inline {
    /// The lines, split at hard breaks.
    lines: Vec<Vec<Span<'static>>>,
    /// The current styles, the innermost last.
    styles: Vec<Style>,
    /// The targets of the open links, and the text shown for each so far.
    links: Vec<(String, String)>,
}

impl Inline {
    pub(super) fn push(&mut self, text: &str, style: Style) {
        if let Some((_, shown)) = self.links.last_mut() {
            shown.push_str(text);
        }
        let style = self.styles.iter().fold(style, |style, outer| style.patch(*outer));
        // A line break must not end up in a cell.
        let span = Span::styled(text.replace('\n', " "), style);
        match self.lines.last_mut() {
            Some(line) => line.push(span),
            None => self.lines.push(vec![span]),
        }
    }

    /// Adds text and keeps its line breaks.
    pub(super) fn push_lines(&mut self, text: &str) {
        for (number, line) in text.trim_end_matches('\n').split('\n').enumerate() {
            if number > 0 {
                self.break_line();
            }
            self.push(line, PLAIN);
        }
    }

    pub(super) fn break_line(&mut self) {
        self.lines.push(Vec::new());
    }

    pub(super) fn enter(&mut self, style: Style) {
        self.styles.push(style);
    }

    pub(super) fn leave(&mut self) {
        self.styles.pop();
    }

    pub(super) fn start(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::Emphasis => self.enter(ITALIC),
            Tag::Strong => self.enter(BOLD),
            Tag::Strikethrough => self.enter(STRUCK),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.enter(LINK);
                self.links.push((dest_url.to_string(), String::new()));
            }
            // All others are blocks.
            _ => {}
        }
    }

    pub(super) fn end(&mut self, tag: TagEnd) {
        self.leave();
        if matches!(tag, TagEnd::Link | TagEnd::Image)
            && let Some((target, shown)) = self.links.pop()
            && !target.is_empty()
            && target != shown
            && target.strip_prefix("mailto:") != Some(&shown)
        {
            self.push(&format!(" ({target})"), DIM);
        }
    }

    /// Takes the lines so far.
    pub(super) fn take(&mut self) -> Vec<Vec<Span<'static>>> {
        std::mem::take(&mut self.lines)
    }

    /// Takes everything as one line.
    pub(super) fn take_line(&mut self) -> Vec<Span<'static>> {
        self.take().into_iter().flatten().collect()
    }
}
