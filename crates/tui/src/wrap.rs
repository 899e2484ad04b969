//! Wraps lines that are wider than the screen into rows.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Where a line may break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Breaks {
    /// Between words, and inside a word only if it is wider than a row.
    Words,
    /// Anywhere: code and output keep their columns.
    Anywhere,
}

/// The prefix of the rows of a line: of the first one, and of all others.
#[derive(Debug, Clone, Default)]
pub(crate) struct Margin {
    pub(crate) first: Vec<Span<'static>>,
    pub(crate) rest: Vec<Span<'static>>,
}

impl Margin {
    /// A prefix for the first row, and as many spaces for the others.
    pub(crate) fn hanging(prefix: &str, style: Style) -> Margin {
        let rest = vec![Span::raw(" ".repeat(prefix.width()))];
        Margin { first: vec![Span::styled(prefix.to_owned(), style)], rest }
    }

    /// The same prefix for every row.
    pub(crate) fn even(prefix: &str, style: Style) -> Margin {
        let span = Span::styled(prefix.to_owned(), style);
        Margin { first: vec![span.clone()], rest: vec![span] }
    }

    /// Marks the first row as written.
    pub(crate) fn finish_first_row(&mut self) {
        self.first.clone_from(&self.rest);
    }
}

/// Breaks a line of safe text into rows of at most `width` columns, including margins. Returns at
/// least one row.
pub(crate) fn wrap(
    spans: &[Span<'_>],
    width: usize,
    margin: &Margin,
    breaks: Breaks,
) -> Vec<Line<'static>> {
    // A margin that leaves no room is the caller's mistake, but must not cause an endless loop.
    let room = |margin: &[Span<'_>]| width.saturating_sub(width_of(margin)).max(1);
    let mut rows = Rows {
        room: room(&margin.first),
        rest_room: room(&margin.rest),
        margin,
        rows: Vec::new(),
        row: Vec::new(),
        used: 0,
        space: None,
    };
    for span in spans {
        let style = span.style;
        // Most text is ASCII, where each character is a grapheme that takes one cell.
        if span.content.is_ascii() {
            let texts = (0..span.content.len()).map(|at| &span.content[at..=at]);
            texts.for_each(|text| rows.push(Atom { text, width: 1, style }, breaks));
        } else {
            let texts = span.content.graphemes(true);
            texts.for_each(|text| rows.push(Atom { text, width: text.width(), style }, breaks));
        }
    }
    rows.finish()
}

/// A grapheme, in one cell or two.
#[derive(Clone, Copy)]
struct Atom<'a> {
    text: &'a str,
    width: usize,
    style: Style,
}

struct Rows<'a> {
    /// Columns for text in the current row.
    room: usize,
    /// The same for the rows after it.
    rest_room: usize,
    margin: &'a Margin,
    rows: Vec<Line<'static>>,
    /// The current row, without its margin.
    row: Vec<Atom<'a>>,
    used: usize,
    /// The last space in `row`.
    space: Option<usize>,
}

impl<'a> Rows<'a> {
    fn push(&mut self, atom: Atom<'a>, breaks: Breaks) {
        if self.used + atom.width > self.room && !self.row.is_empty() {
            let may_move = breaks == Breaks::Words;
            if may_move && atom.text == " " {
                return self.end_row();
            }
            match self.space.filter(|_| may_move) {
                Some(space) => self.end_row_at(space),
                None => self.end_row(),
            }
        }
        // An indent is no place to break: the word behind it would stand at the margin.
        if atom.text == " " && self.row.iter().any(|atom| atom.text != " ") {
            self.space = Some(self.row.len());
        }
        self.used += atom.width;
        self.row.push(atom);
    }

    /// Ends the row at a space; the rest moves to the next row.
    fn end_row_at(&mut self, space: usize) {
        let rest = self.row.split_off(space + 1);
        self.row.pop();
        self.end_row();
        self.used = rest.iter().map(|atom| atom.width).sum();
        self.row = rest;
    }

    fn end_row(&mut self) {
        let margin = if self.rows.is_empty() { &self.margin.first } else { &self.margin.rest };
        let mut spans = margin.clone();
        for atom in self.row.drain(..) {
            match spans.last_mut() {
                Some(last) if last.style == atom.style => last.content.to_mut().push_str(atom.text),
                Some(_) | None => spans.push(Span::styled(atom.text.to_owned(), atom.style)),
            }
        }
        self.rows.push(Line::from(spans));
        self.room = self.rest_room;
        self.used = 0;
        self.space = None;
    }

    fn finish(mut self) -> Vec<Line<'static>> {
        if !self.row.is_empty() || self.rows.is_empty() {
            self.end_row();
        }
        self.rows
    }
}

/// The width of spans in columns.
pub(crate) fn width_of(spans: &[Span<'_>]) -> usize {
    spans.iter().map(|span| span.content.width()).sum()
}

/// Truncates text to a width, with `…` at the cut.
pub(crate) fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut made = String::new();
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        used += grapheme.width();
        if used >= width {
            break;
        }
        made.push_str(grapheme);
    }
    if width > 0 {
        made.push('…');
    }
    made
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::safe::safe_line;

    #[track_caller]
    fn check(text: &str, width: usize, breaks: Breaks, expected: &[&str]) {
        let margin = Margin::hanging("● ", Style::new());
        let rows = wrap(&[Span::raw(text)], width, &margin, breaks);
        let rows: Vec<String> = rows.iter().map(Line::to_string).collect();
        assert_eq!(rows, expected);
    }

    #[test]
    fn rows_break_between_words_and_inside_only_if_needed() {
        check("one two three", 9, Breaks::Words, &["● one two", "  three"]);
        check("abcdefghij", 6, Breaks::Words, &["● abcd", "  efgh", "  ij"]);
        check("a b c", 3, Breaks::Words, &["● a", "  b", "  c"]);
        check("", 9, Breaks::Words, &["● "]);
        check("    abcdef g", 10, Breaks::Words, &["●     abcd", "  ef g"]);
    }

    #[test]
    fn code_keeps_its_columns() {
        check("ab  cd ef", 6, Breaks::Anywhere, &["● ab  ", "  cd e", "  f"]);
    }

    #[test]
    fn wide_characters_are_never_split() {
        check("日本語", 7, Breaks::Words, &["● 日本", "  語"]);
    }

    #[test]
    fn truncated_text_ends_with_an_ellipsis() {
        assert_eq!(
            [fit("abc", 3), fit("abcd", 3), fit("日本語", 4), fit("x", 0)],
            ["abc", "ab…", "日…", ""]
        );
    }

    proptest! {
        #[test]
        fn rows_fit_and_only_spaces_are_lost(text in any::<String>(), width in 4usize..50) {
            let text = safe_line(&text);
            let rows = wrap(&[Span::raw(&*text)], width, &Margin::default(), Breaks::Words);
            prop_assert!(rows.iter().all(|row| row.width() <= width));
            let dense = |text: &str| text.replace(' ', "");
            let shown: String = rows.iter().map(|row| dense(&row.to_string())).collect();
            prop_assert_eq!(shown, dense(&text));
        }
    }
}
