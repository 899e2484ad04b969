//! The beginning of a message, on one line.

use unicode_segmentation::UnicodeSegmentation;

/// Characters as a person counts them.
const CHARACTERS: usize = 50;
/// Bytes, dots included: a single character can be made as long as one likes.
const BYTES: usize = 400;
const DOTS: &str = "...";

/// The first 50 characters with every run of line breaks as one space, then `...` if there was more.
pub fn preview(body: &str) -> String {
    let folded = fold_line_breaks(body);
    let shown: &str = match folded.grapheme_indices(true).nth(CHARACTERS) {
        Some((end, _)) => &folded[..end],
        None => &folded,
    };
    if shown.len() == folded.len() && shown.len() <= BYTES {
        return folded;
    }
    format!("{}{DOTS}", fitting(shown, BYTES - DOTS.len()))
}

/// As many whole characters as fit; of a first one that does not fit, as many code points.
fn fitting(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let starts = text.grapheme_indices(true).map(|(start, _)| start);
    match starts.take_while(|&start| start <= bytes).last() {
        None | Some(0) => &text[..text.floor_char_boundary(bytes)],
        Some(end) => &text[..end],
    }
}

fn fold_line_breaks(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    let mut in_break = false;
    for character in text.chars() {
        let is_break = is_line_break(character);
        match (is_break, in_break) {
            (true, false) => folded.push(' '),
            (true, true) => {}
            (false, _) => folded.push(character),
        }
        in_break = is_break;
    }
    folded
}

fn is_line_break(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{0B}' | '\u{0C}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &str, expected: &str) {
        assert_eq!(preview(body), expected);
    }

    #[test]
    fn fifty_characters_are_whole_and_fifty_one_are_cut() {
        check(&"x".repeat(50), &"x".repeat(50));
        check(&"x".repeat(51), &format!("{}...", "x".repeat(50)));
    }

    #[test]
    fn a_character_is_what_a_person_sees_as_one() {
        let family = "👨‍👩‍👧";
        check(&family.repeat(15), &family.repeat(15));
        check(&"e\u{301}".repeat(51), &format!("{}...", "e\u{301}".repeat(50)));
        check(&"🇩🇪".repeat(50), &"🇩🇪".repeat(49).chars().collect::<String>().add("..."));
    }

    #[test]
    fn a_preview_has_at_most_400_bytes_with_its_dots() {
        let family = "👨‍👩‍👧";
        let shown = preview(&family.repeat(50));
        assert_eq!(shown, format!("{}...", family.repeat(397 / family.len())));
        let huge = format!("a{}", "\u{301}".repeat(30_000));
        let shown = preview(&huge);
        assert!(shown.len() <= 400 && shown.ends_with("\u{301}..."), "{} bytes", shown.len());
        check(&"ü".repeat(50), &"ü".repeat(50));
    }

    #[test]
    fn every_run_of_line_breaks_is_one_space() {
        check("a\nb", "a b");
        check("a\r\n\r\nb\rc", "a b c");
        check("a\n \nb", "a   b");
        check("a\u{2028}b", "a b");
    }

    use std::ops::Add;
}
