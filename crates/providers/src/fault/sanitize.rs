//! Sanitizes a server's message for one line of a terminal.

/// The text on one line: white space collapsed, without control characters, at most `limit`
/// characters.
///
/// Characters that change the text direction are removed too: they would
/// reorder the text around them.
pub(crate) fn scrub(text: &str, limit: usize) -> String {
    let mut line = String::new();
    let mut length = 0;
    let mut gap = false;
    for c in text.chars() {
        if c.is_whitespace() {
            gap = true;
            continue;
        }
        if c.is_control() || turns_direction(c) {
            continue;
        }
        let wanted = if gap && length > 0 { 2 } else { 1 };
        // Leave room for the mark of a cut.
        if length + wanted > limit - 1 {
            line.push('…');
            break;
        }
        if wanted == 2 {
            line.push(' ');
        }
        line.push(c);
        length += wanted;
        gap = false;
    }
    line
}

/// The title of a web page.
pub(super) fn page_title(page: &str) -> Option<&str> {
    // Only ASCII changes, so that positions stay the same.
    let lower = page.to_ascii_lowercase();
    let start = lower.find("<title>")? + "<title>".len();
    let length = lower[start..].find("</title>")?;
    Some(&page[start..start + length])
}

/// The text of a web page without its tags.
pub(super) fn page_text(page: &str) -> String {
    let pieces = page.split('<').map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text));
    let text: String = pieces.take(PIECES).collect::<Vec<_>>().join(" ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The message of an error is at the start. A page may be long.
const PIECES: usize = 200;

fn turns_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(scrub(text, 10), expected);
    }

    #[test]
    fn a_text_becomes_one_clean_line() {
        check("  a \r\n\t b\u{2028}c  ", "a b c");
        check("a\u{1b}[2Jb\u{7f}\u{85}c", "a[2Jb c");
        check("a\u{202e}b", "ab");
        check("", "");
    }

    #[test]
    fn a_long_text_is_cut_with_a_mark() {
        check("123456789", "123456789");
        check("12345678 9", "12345678…");
        check("éééééééééééé", "ééééééééé…");
    }
}
