//! The draft of a message: the text, the cursor, and editing as in readline.
//!
//! A long paste is one character in the text, [`PASTE`]; the pasted texts are kept separately, in
//! the same order. So every edit treats a paste as a unit.

mod rows;

use unicode_segmentation::GraphemeCursor;

pub(crate) use rows::{DraftRows, Moved};

/// Represents a paste: the object replacement character, which is removed from all input.
const PASTE: char = '\u{fffc}';

/// A paste of more lines is shown as a placeholder.
const PASTE_LINES: usize = 10;
/// The same for a paste with few line breaks, which could fill the screen.
const PASTE_CHARS: usize = 2_000;
/// The limit for everything typed and pasted. Larger texts belong in a file.
const LIMIT: usize = 1024 * 1024;

#[derive(Debug, Clone, Default)]
pub(crate) struct Draft {
    text: String,
    /// The byte offset of the cursor, always between two graphemes.
    cursor: usize,
    /// One text for each [`PASTE`].
    pastes: Vec<String>,
    /// The text that was cut last.
    killed: String,
    last: Last,
}

/// The kind of the last edit: consecutive cuts add up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Last {
    Kill,
    #[default]
    Other,
}

/// The outcome of a paste.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pasted {
    Whole,
    /// Too long, so nothing was changed.
    TooLong,
}

/// A movement of the cursor, or the range of a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Motion {
    Left,
    Right,
    WordLeft,
    WordRight,
    /// To the start of the word, where only white space separates words.
    SpaceLeft,
    LineStart,
    LineEnd,
}

impl Draft {
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text to send, with the pasted texts.
    pub(crate) fn whole(&self) -> String {
        let mut pastes = self.pastes.iter();
        let mut whole = String::new();
        for c in self.text.chars() {
            match c {
                PASTE => whole.push_str(pastes.next().map(String::as_str).unwrap_or_default()),
                c => whole.push(c),
            }
        }
        whole
    }

    /// The text up to the cursor.
    pub(crate) fn before_cursor(&self) -> &str {
        &self.text[..self.cursor]
    }

    /// Replaces the text and puts the cursor at its end. Keeps the text that was cut.
    pub(crate) fn set(&mut self, text: &str) {
        self.clear();
        self.insert(text);
    }

    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.pastes.clear();
        self.cursor = 0;
        self.last = Last::Other;
    }

    /// Inserts text at the cursor. What exceeds the limit is dropped.
    pub(crate) fn insert(&mut self, text: &str) {
        let text: String = clean(text);
        let room = LIMIT.saturating_sub(self.size());
        let text = &text[..text.floor_char_boundary(room)];
        self.text.insert_str(self.cursor, text);
        self.cursor = self.boundary_from(self.cursor + text.len());
        self.last = Last::Other;
    }

    /// Pastes text, as a placeholder if it is long, and completely or not at all.
    pub(crate) fn paste(&mut self, text: &str) -> Pasted {
        let text = clean(text);
        if text.len() > LIMIT.saturating_sub(self.size()) {
            return Pasted::TooLong;
        }
        let lines = text.trim_end_matches('\n').split('\n').count();
        if lines <= PASTE_LINES && text.len() <= PASTE_CHARS {
            self.insert(&text);
            return Pasted::Whole;
        }
        let index = self.text[..self.cursor].matches(PASTE).count();
        self.pastes.insert(index, text);
        self.text.insert(self.cursor, PASTE);
        self.cursor += PASTE.len_utf8();
        self.last = Last::Other;
        Pasted::Whole
    }

    /// Replaces the placeholder at the cursor by the pasted text, so that it can be edited. Returns
    /// whether there was one.
    pub(crate) fn expand(&mut self) -> bool {
        if !self.is_at_paste() {
            return false;
        }
        let text = self.remove(self.cursor, self.cursor + PASTE.len_utf8());
        self.text.insert_str(self.cursor, &text);
        self.last = Last::Other;
        true
    }

    /// Whether the cursor is at a placeholder.
    pub(crate) fn is_at_paste(&self) -> bool {
        self.text[self.cursor..].starts_with(PASTE)
    }

    pub(crate) fn go(&mut self, motion: Motion) {
        self.cursor = self.target(motion);
        self.last = Last::Other;
    }

    /// Deletes from the cursor to the target of a motion.
    pub(crate) fn delete(&mut self, motion: Motion) {
        self.take(motion);
        self.last = Last::Other;
    }

    /// Cuts from the cursor to the target of a motion; [`Draft::yank`] inserts it again.
    pub(crate) fn kill(&mut self, motion: Motion) {
        let is_backwards = self.target(motion) < self.cursor;
        let cut = self.take(motion);
        if cut.is_empty() {
            return;
        }
        match (self.last, is_backwards) {
            (Last::Kill, true) => self.killed.insert_str(0, &cut),
            (Last::Kill, false) => self.killed.push_str(&cut),
            (Last::Other, _) => self.killed = cut,
        }
        self.killed.truncate(self.killed.floor_char_boundary(LIMIT));
        self.last = Last::Kill;
    }

    pub(crate) fn yank(&mut self) {
        let killed = self.killed.clone();
        self.paste(&killed);
    }

    /// Replaces the text between `from` and the cursor.
    pub(crate) fn replace_from(&mut self, from: usize, text: &str) {
        let from = self.text.floor_char_boundary(from.min(self.cursor));
        self.remove(from, self.cursor);
        self.insert(text);
    }

    fn size(&self) -> usize {
        self.text.len() + self.pastes.iter().map(String::len).sum::<usize>()
    }

    fn target(&self, motion: Motion) -> usize {
        let (text, cursor) = (&self.text, self.cursor);
        match motion {
            Motion::Left => self.neighbour(GraphemeCursor::prev_boundary).unwrap_or(0),
            Motion::Right => self.neighbour(GraphemeCursor::next_boundary).unwrap_or(text.len()),
            Motion::WordLeft => {
                let end = text[..cursor].trim_end_matches(|c| !is_word(c)).len();
                match text[..end].ends_with(PASTE) {
                    true => end - PASTE.len_utf8(),
                    false => text[..end].trim_end_matches(|c| is_word(c) && c != PASTE).len(),
                }
            }
            Motion::WordRight => {
                let rest = text[cursor..].trim_start_matches(|c| !is_word(c));
                let rest = match rest.strip_prefix(PASTE) {
                    Some(rest) => rest,
                    None => rest.trim_start_matches(|c| is_word(c) && c != PASTE),
                };
                self.boundary_from(text.len() - rest.len())
            }
            Motion::SpaceLeft => {
                let end = text[..cursor].trim_end();
                end.trim_end_matches(|c: char| !c.is_whitespace()).len()
            }
            Motion::LineStart => text[..cursor].rfind('\n').map_or(0, |at| at + 1),
            Motion::LineEnd => text[cursor..].find('\n').map_or(text.len(), |at| cursor + at),
        }
    }

    fn neighbour<E>(
        &self,
        find: impl FnOnce(&mut GraphemeCursor, &str, usize) -> Result<Option<usize>, E>,
    ) -> Option<usize> {
        let mut at = GraphemeCursor::new(self.cursor, self.text.len(), true);
        find(&mut at, &self.text, 0).ok().flatten()
    }

    /// The first grapheme boundary that is not before `at`.
    fn boundary_from(&self, at: usize) -> usize {
        let at = self.text.ceil_char_boundary(at);
        let mut cursor = GraphemeCursor::new(at, self.text.len(), true);
        match cursor.is_boundary(&self.text, 0) {
            Ok(true) | Err(_) => at,
            Ok(false) => {
                cursor.next_boundary(&self.text, 0).ok().flatten().unwrap_or(self.text.len())
            }
        }
    }

    /// Removes the text between the cursor and the target of a motion. At the end of a line, a cut
    /// to the end of the line removes the line break.
    fn take(&mut self, motion: Motion) -> String {
        let target = match (motion, self.target(motion)) {
            (Motion::LineEnd, at) if at == self.cursor => (at + 1).min(self.text.len()),
            (_, at) => at,
        };
        self.remove(self.cursor.min(target), self.cursor.max(target))
    }

    fn remove(&mut self, from: usize, to: usize) -> String {
        let first = self.text[..from].matches(PASTE).count();
        let count = self.text[from..to].matches(PASTE).count();
        let mut pastes = self.pastes.drain(first..first + count);
        let mut taken = String::new();
        for c in self.text.drain(from..to) {
            match c {
                PASTE => taken.push_str(&pastes.next().unwrap_or_default()),
                c => taken.push(c),
            }
        }
        drop(pastes);
        self.cursor = self.boundary_from(from);
        taken
    }
}

/// Words consist of letters and digits; a paste is a word.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == PASTE
}

/// Normalizes line breaks, keeps tabs, and removes control characters.
fn clean(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.chars().filter(|c| *c == '\n' || *c == '\t' || !c.is_control() && *c != PASTE).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn typed(text: &str) -> Draft {
        let mut draft = Draft::default();
        draft.insert(text);
        draft
    }

    /// The text with `|` where the cursor is.
    fn shown(draft: &Draft) -> String {
        let mut text = draft.text.clone();
        text.insert(draft.cursor, '|');
        text
    }

    #[track_caller]
    fn check(text: &str, motions: &[Motion], expected: &str) {
        let mut draft = typed(text);
        motions.iter().for_each(|motion| draft.go(*motion));
        assert_eq!(shown(&draft), expected);
    }

    #[test]
    fn the_cursor_moves_by_graphemes_words_and_lines() {
        use Motion::{Left, LineEnd, LineStart, Right, SpaceLeft, WordLeft, WordRight};
        check("ae\u{301}", &[Left], "a|e\u{301}");
        check("one two", &[WordLeft], "one |two");
        check("one two", &[WordLeft, WordLeft, WordLeft], "|one two");
        check("a --- ", &[WordLeft], "|a --- ");
        check("a b-c ", &[SpaceLeft], "a |b-c ");
        check("one two", &[LineStart, WordRight], "one| two");
        check("one\ntwo", &[LineStart], "one\n|two");
        check("one\ntwo", &[LineStart, Left, LineStart, LineEnd, Right], "one\n|two");
        check("a", &[Right, Left, Left], "|a");
    }

    #[test]
    fn consecutive_cuts_are_yanked_together() {
        let mut draft = typed("one two three");
        draft.kill(Motion::WordLeft);
        draft.kill(Motion::WordLeft);
        assert_eq!(shown(&draft), "one |");
        draft.yank();
        draft.yank();
        assert_eq!(shown(&draft), "one two threetwo three|");
    }

    #[test]
    fn a_cut_at_the_end_of_a_line_removes_the_line_break() {
        let mut draft = typed("a\nb");
        draft.go(Motion::Left);
        draft.go(Motion::LineStart);
        draft.go(Motion::Left);
        draft.go(Motion::LineStart);
        draft.kill(Motion::LineEnd);
        draft.kill(Motion::LineEnd);
        assert_eq!(shown(&draft), "|b");
    }

    #[test]
    fn a_long_paste_is_one_unit_and_is_sent_completely() {
        let long = "line\n".repeat(12);
        let mut draft = typed("see: ");
        draft.paste(&long);
        draft.insert("!");
        assert_eq!(draft.whole(), format!("see: {long}!"));
        draft.delete(Motion::Left);
        draft.delete(Motion::Left);
        assert_eq!((draft.whole().as_str(), draft.pastes.len()), ("see: ", 0));
    }

    #[test]
    fn a_long_paste_can_be_expanded_and_edited() {
        let long = "line\n".repeat(12);
        let mut draft = typed("see: ");
        draft.paste(&long);
        assert!(!draft.expand(), "the cursor is behind it");
        draft.go(Motion::Left);
        assert!(draft.expand() && !draft.expand());
        draft.insert("the ");
        assert_eq!(draft.whole(), format!("see: the {long}"));
        assert_eq!(draft.rows(20).rows.len(), 13);
    }

    #[test]
    fn a_short_paste_is_text() {
        let mut draft = Draft::default();
        draft.paste("a\r\nb\u{1b}[31m\u{7}");
        assert_eq!(draft.whole(), "a\nb[31m");
    }

    #[test]
    fn the_size_of_a_draft_is_limited() {
        let mut draft = Draft::default();
        for _ in 0..4 {
            draft.paste(&"x".repeat(LIMIT / 2));
        }
        assert_eq!(draft.whole().len(), LIMIT / 2);
    }

    fn edits() -> impl Strategy<Value = Vec<(u8, String)>> {
        prop::collection::vec((0u8..16, "[ -~é\u{301}日👩\\n\u{fffc}]{0,12}"), 0..40)
    }

    proptest! {
        #[test]
        fn no_edit_breaks_the_text(edits in edits()) {
            use Motion::{Left, LineEnd, LineStart, Right, SpaceLeft, WordLeft, WordRight};
            let all = [Left, Right, WordLeft, WordRight, LineStart, LineEnd, SpaceLeft];
            let mut draft = Draft::default();
            for (kind, text) in edits {
                match kind {
                    0..3 => draft.insert(&text),
                    3 => drop(draft.paste(&"x\n".repeat(20))),
                    4 if text.is_empty() => drop(draft.expand()),
                    4 => draft.yank(),
                    5 => draft.replace_from(2, &text),
                    6..8 => draft.kill(all[text.len() % 7]),
                    8..10 => draft.delete(all[text.len() % 7]),
                    kind => draft.go(all[usize::from(kind) % 7]),
                }
                prop_assert!(draft.text.is_char_boundary(draft.cursor));
                prop_assert_eq!(draft.text.matches(PASTE).count(), draft.pastes.len());
                let rows = draft.rows(10);
                prop_assert!(rows.cursor.0 < rows.rows.len() && rows.cursor.1 <= 10);
                draft.go_up(10);
                draft.go_down(7);
                prop_assert!(draft.text.is_char_boundary(draft.cursor));
            }
        }
    }
}
