//! The start of a message, on one line.

use unicode_segmentation::UnicodeSegmentation;

/// Characters as a reader counts them: graphemes.
const CHARACTERS: usize = 50;
/// Bytes, dots included: a single grapheme can be arbitrarily long.
const BYTES: usize = 400;
const DOTS: &str = "...";

/// The first 50 characters with every run of line breaks as one space, then `...` if there is more.
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

/// As many whole characters as fit. If the first one does not fit, as many
/// of its code points as do.
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
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(body: &str, expected: &str) {
        assert_eq!(preview(body), expected);
    }

    #[test]
    fn fifty_characters_are_kept_and_fifty_one_are_cut() {
        check(&"x".repeat(50), &"x".repeat(50));
        check(&"x".repeat(51), &format!("{}...", "x".repeat(50)));
    }

    #[test]
    fn a_character_is_a_grapheme() {
        let family = "👨‍👩‍👧";
        check(&family.repeat(15), &family.repeat(15));
        check(&"e\u{301}".repeat(51), &format!("{}...", "e\u{301}".repeat(50)));
        check(&"🇩🇪".repeat(50), &"🇩🇪".repeat(50));
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

    #[test]
    fn a_body_of_400_bytes_in_50_characters_is_kept_and_one_more_byte_is_cut() {
        let character = "👍\u{301}\u{301}";
        assert_eq!(character.len(), 8);
        check(&character.repeat(50), &character.repeat(50));
        let longer = format!("{}{character}\u{301}", character.repeat(49));
        check(&longer, &format!("{}...", character.repeat(49)));
        check(&character.repeat(51), &format!("{}...", character.repeat(49)));
    }

    /// The time for a preview does not depend on the length of the body.
    #[test]
    fn a_character_of_60_kilobytes_is_cut_between_code_points() {
        let huge = format!("a{}b", "\u{20dd}".repeat(20_000));
        check(&huge, &format!("a{}...", "\u{20dd}".repeat(132)));
    }

    #[test]
    fn a_short_body_is_unchanged() {
        for body in ["", "x", "a  b", "tab\there", "\u{1b}[31m", "…"] {
            check(body, body);
        }
    }

    proptest! {
        #[test]
        fn a_preview_is_one_short_line_that_begins_as_the_body_does(
            body in "(.|\\PC|[\r\n\u{301}\u{200d}🇩👍]){0,300}"
        ) {
            let shown = preview(&body);
            prop_assert!(shown.len() <= BYTES);
            prop_assert!(!shown.chars().any(is_line_break));
            let folded = fold_line_breaks(&body);
            if shown != folded {
                let kept = shown.strip_suffix(DOTS).unwrap();
                prop_assert!(folded.starts_with(kept) && folded.len() > kept.len());
                prop_assert!(kept.graphemes(true).count() <= CHARACTERS);
            }
        }
    }
}
