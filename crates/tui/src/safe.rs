//! Sanitizes untrusted text of models, tools and files for the screen. This is the only place that
//! does it: all text passes through here before it is drawn.
//!
//! Text loses three things: control over the terminal (control characters), the ability to hide or
//! reorder text (zero-width characters, direction marks), and widths that terminals disagree on
//! (joined emoji). Control characters and direction marks become `�`; invisible characters are
//! removed.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// The distance between tab stops.
const TAB: usize = 4;

/// The most bytes per cell: a letter can carry any number of combining marks.
const CELL_LIMIT: usize = 32;

/// Sanitizes text of any number of lines. Line breaks stay; `\r\n` counts as one.
pub(crate) fn safe(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)) {
        return Cow::Borrowed(text);
    }
    let mut made = String::with_capacity(text.len());
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            made.push('\n');
        }
        push_safe_line(&mut made, line.strip_suffix('\r').unwrap_or(line));
    }
    Cow::Owned(made)
}

/// Sanitizes text that has to stay on one line: line breaks become spaces.
pub(crate) fn safe_line(text: &str) -> String {
    safe(text).replace('\n', " ")
}

fn push_safe_line(made: &mut String, line: &str) {
    let mut column = 0;
    for grapheme in line.graphemes(true) {
        if grapheme == "\t" {
            let spaces = TAB - column % TAB;
            made.extend(std::iter::repeat_n(' ', spaces));
            column += spaces;
            continue;
        }
        let before = made.len();
        made.extend(grapheme.chars().filter_map(shown));
        let cell = &made[before..];
        let width = cell.width();
        if width == 0 {
            made.truncate(before);
        } else if cell.len() > CELL_LIMIT {
            made.truncate(before);
            made.push(char::REPLACEMENT_CHARACTER);
        }
        column += width;
    }
}

/// The character to show, if any.
fn shown(c: char) -> Option<char> {
    match c {
        // Direction marks, overrides and isolates, and separators that some programs treat as line
        // breaks.
        '\u{200e}'
        | '\u{200f}'
        | '\u{061c}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}' => Some(char::REPLACEMENT_CHARACTER),
        // Zero-width characters that change the width of their neighbours (joiners, variation
        // selectors), and tags, which can carry hidden text.
        '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{00ad}' => None,
        '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e0fff}' => None,
        c if c.is_control() => Some(char::REPLACEMENT_CHARACTER),
        c => Some(c),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(safe(text), expected);
    }

    #[test]
    fn control_characters_become_visible() {
        check("a\u{1b}[2Jb\u{7}", "a�[2Jb�");
        check("c1: \u{9b}31m, \u{85}", "c1: �31m, �");
        check("over\rwritten\r\nnext", "over�written\nnext");
    }

    #[test]
    fn text_cannot_be_hidden_or_reordered() {
        check("a\u{200b}b\u{feff}c\u{ad}d", "abcd");
        check("x\u{202e}y\u{2066}z", "x�y�z");
        check("שלום", "שלום");
        check("hi\u{e0068}\u{e0069}", "hi");
    }

    #[test]
    fn emoji_have_a_width_that_all_terminals_agree_on() {
        check("👩\u{200d}👧 ❤\u{fe0f}", "👩👧 ❤");
    }

    #[test]
    fn tabs_expand_to_the_next_stop() {
        check("a\tb\n\tc", "a   b\n    c");
    }

    #[test]
    fn combining_marks_per_letter_are_limited() {
        check(&format!("a{}b", "\u{301}".repeat(1_000)), "�b");
        check("e\u{301}", "e\u{301}");
    }

    proptest! {
        #[test]
        fn no_text_keeps_a_control_character(text in any::<String>()) {
            let made = safe(&text);
            prop_assert!(!made.chars().any(|c| c.is_control() && c != '\n'), "{:?}", made);
            let again = safe(&made).into_owned();
            prop_assert_eq!(again, made);
        }
    }
}
