//! The layout of a draft: its rows, and the cursor in them.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::safe::safe_line;

use super::{Draft, Last, PASTE};

/// The rows of a draft for one width.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DraftRows {
    pub(crate) rows: Vec<String>,
    /// Row and column.
    pub(crate) cursor: (usize, usize),
    /// The byte offset at which each row starts.
    starts: Vec<usize>,
}

/// Whether the cursor could move to another row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moved {
    Yes,
    /// The cursor is already in the first or last row.
    AtEdge,
}

impl Draft {
    /// Rows of at most `width` columns. Lines break anywhere, so that columns stay as typed.
    pub(crate) fn rows(&self, width: usize) -> DraftRows {
        let width = width.max(2);
        let mut laid = DraftRows { rows: vec![String::new()], cursor: (0, 0), starts: vec![0] };
        let (mut column, mut pastes) = (0, self.pastes.iter());
        for (at, grapheme) in self.text.grapheme_indices(true) {
            if at == self.cursor {
                laid.cursor = (laid.rows.len() - 1, column);
            }
            if grapheme == "\n" {
                laid.start_row(at + 1);
                column = 0;
                continue;
            }
            let cell = match grapheme.starts_with(PASTE) {
                true => pastes.next().map(|paste| placeholder(paste)).unwrap_or_default(),
                false => safe_line(grapheme),
            };
            for piece in cell.graphemes(true) {
                let taken = piece.width();
                if column + taken > width && column > 0 {
                    laid.start_row(at);
                    column = 0;
                    if at == self.cursor && laid.cursor.1 >= width {
                        laid.cursor = (laid.rows.len() - 1, 0);
                    }
                }
                column += taken;
                laid.push(piece);
            }
        }
        if self.cursor == self.text.len() {
            if column >= width {
                laid.start_row(self.text.len());
                column = 0;
            }
            laid.cursor = (laid.rows.len() - 1, column);
        }
        laid
    }

    /// Moves the cursor one row up.
    pub(crate) fn go_up(&mut self, width: usize) -> Moved {
        let laid = self.rows(width);
        match laid.cursor {
            (0, _) => Moved::AtEdge,
            (row, column) => self.go_to(&laid, row - 1, column),
        }
    }

    /// Moves the cursor one row down.
    pub(crate) fn go_down(&mut self, width: usize) -> Moved {
        let laid = self.rows(width);
        match laid.cursor {
            (row, _) if row + 1 == laid.rows.len() => Moved::AtEdge,
            (row, column) => self.go_to(&laid, row + 1, column),
        }
    }

    fn go_to(&mut self, laid: &DraftRows, row: usize, column: usize) -> Moved {
        let start = laid.starts[row];
        let end = laid.starts.get(row + 1).copied().unwrap_or(self.text.len());
        let mut at = 0;
        let mut cursor = start;
        for grapheme in self.text[start..end].graphemes(true) {
            if at >= column || grapheme == "\n" {
                break;
            }
            at += safe_line(grapheme).width().max(1);
            cursor += grapheme.len();
        }
        // The end of a wrapped row is the start of the next one.
        let is_next_row = cursor == end && row + 1 < laid.starts.len();
        self.cursor = if is_next_row { self.previous_boundary(cursor) } else { cursor };
        self.last = Last::Other;
        Moved::Yes
    }

    fn previous_boundary(&self, at: usize) -> usize {
        self.text[..at].grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }
}

impl DraftRows {
    fn start_row(&mut self, start: usize) {
        self.rows.push(String::new());
        self.starts.push(start);
    }

    fn push(&mut self, cell: &str) {
        if let Some(row) = self.rows.last_mut() {
            row.push_str(cell);
        }
    }
}

fn placeholder(paste: &str) -> String {
    match paste.trim_end_matches('\n').split('\n').count() {
        1 => format!("[Pasted {} characters]", paste.chars().count()),
        lines => format!("[Pasted {lines} lines]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, width: usize, rows: &[&str], cursor: (usize, usize)) {
        let mut draft = Draft::default();
        draft.insert(text);
        let laid = draft.rows(width);
        assert_eq!(
            (laid.rows.iter().map(String::as_str).collect::<Vec<_>>(), laid.cursor),
            (rows.to_vec(), cursor)
        );
    }

    #[test]
    fn lines_wrap_at_the_edge_of_the_screen() {
        check("", 5, &[""], (0, 0));
        check("abcdefg", 5, &["abcde", "fg"], (1, 2));
        check("abcde", 5, &["abcde", ""], (1, 0));
        check("a\n", 5, &["a", ""], (1, 0));
        check("日本語", 5, &["日本", "語"], (1, 2));
    }

    #[test]
    fn a_placeholder_shows_the_size_of_a_paste() {
        let mut draft = Draft::default();
        draft.paste(&"x\n".repeat(11));
        draft.paste(&"y".repeat(5_000));
        assert_eq!(draft.rows(80).rows, ["[Pasted 11 lines][Pasted 5000 characters]"]);
    }

    #[test]
    fn up_and_down_keep_the_column_if_possible() {
        let mut draft = Draft::default();
        draft.insert("abcdef\nx\nuvw");
        assert_eq!((draft.go_up(20), draft.before_cursor()), (Moved::Yes, "abcdef\nx"));
        assert_eq!((draft.go_up(20), draft.before_cursor()), (Moved::Yes, "a"));
        assert_eq!(draft.go_up(20), Moved::AtEdge);
        assert_eq!((draft.go_down(3), draft.before_cursor()), (Moved::Yes, "abcd"));
    }
}
