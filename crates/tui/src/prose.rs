//! An answer for the normal screen: Markdown as the model wrote it, wrapped between words.

use unicode_width::UnicodeWidthStr;

/// Wraps the prose of Markdown between words into lines of at most `width` columns, after a `sign`
/// at the start of the text. Code, tables and words that are wider than a line stay as they are:
/// the terminal wraps them and can still copy them in one piece.
pub fn wrap_prose(sign: &str, markdown: &str, width: usize) -> String {
    let mut wrapped = sign.to_owned();
    let mut fence = None;
    for (number, line) in markdown.split_inclusive('\n').enumerate() {
        let is_code = fence.is_some();
        match (fence, fence_of(line)) {
            (None, opened @ Some(_)) => fence = opened,
            (Some(open), Some(closed)) if open == closed => fence = None,
            (Some(_) | None, _) => {}
        }
        match is_code || fence.is_some() || is_laid_out(line) {
            true => wrapped.push_str(line),
            false => {
                let before = if number == 0 { sign.width() } else { 0 };
                push_wrapped(&mut wrapped, before, line, width);
            }
        }
    }
    wrapped
}

/// The fence that starts or ends a code block.
fn fence_of(line: &str) -> Option<&'static str> {
    ["```", "~~~"].into_iter().find(|fence| line.trim_start().starts_with(fence))
}

/// Whether the columns of a line outside fences matter: a table row or indented code.
fn is_laid_out(line: &str) -> bool {
    let text = line.trim_start_matches(' ');
    let is_indented = line.len() - text.len() >= 4 && marker(text) == 0;
    text.starts_with('|') || is_indented || line.contains('\t')
}

/// Wraps a line that starts after `before` used columns.
fn push_wrapped(wrapped: &mut String, before: usize, line: &str, width: usize) {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let begin = indent + marker(&line[indent..]);
    // An indent of more than half a line would leave more space than text.
    let hanging = if begin * 2 > width { 0 } else { begin };
    let mut used = 0;
    for (number, word) in line[begin..].split(' ').enumerate() {
        let wide = word.trim_end_matches('\n').width();
        if number == 0 {
            wrapped.push_str(&line[..begin]);
            used = before + begin;
        } else if used + 1 + wide > width && !word.trim_end().is_empty() {
            let end = wrapped.trim_end_matches(' ').len();
            wrapped.truncate(end);
            wrapped.push('\n');
            wrapped.extend(std::iter::repeat_n(' ', hanging));
            used = hanging;
        } else {
            wrapped.push(' ');
            used += 1;
        }
        wrapped.push_str(word);
        used += wide;
    }
}

/// The length of a list marker, in bytes and columns.
fn marker(text: &str) -> usize {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    match (digits, &text.as_bytes()[digits..]) {
        (0, [b'-' | b'*' | b'+', b' ', ..]) => 2,
        (1..=9, [b'.' | b')', b' ', ..]) => digits + 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(markdown: &str, expected: &str) {
        assert_eq!(wrap_prose("", markdown, 12), expected);
    }

    #[test]
    fn prose_wraps_between_words_and_list_items_hang() {
        check("one two three four", "one two\nthree four");
        check("one two 日本語 x\n\nfive\n", "one two\n日本語 x\n\nfive\n");
        check("- one two three\n", "- one two\n  three\n");
        check("  10. one two three", "  10. one\n      two\n      three");
        check("ends here  \nlike that", "ends here  \nlike that");
        check("", "");
    }

    #[test]
    fn a_deep_list_hangs_only_as_far_as_there_is_room() {
        let deep = format!("{}- one two three four", " ".repeat(20));
        check(&deep, &format!("{}- one\ntwo three\nfour", " ".repeat(20)));
    }

    #[test]
    fn a_sign_takes_room_and_does_not_hide_code() {
        assert_eq!(wrap_prose("● ", "one two four five six", 12), "● one two\nfour five\nsix");
        let code = "```\none two three four\n```\n";
        assert_eq!(wrap_prose("● ", &format!("{code}five"), 12), format!("● {code}five"));
    }

    #[test]
    fn code_tables_and_long_words_are_not_wrapped() {
        for kept in [
            "```sh\none two three four\n```\n",
            "~~~\none two three four\n```\none two three four\n",
            "| one | two | three |\n",
            "    one two three four\n",
            "\tone two three four\n",
            "https://example.org/a/long/path\n",
        ] {
            check(kept, kept);
        }
        check("see https://example.org/a/path too", "see\nhttps://example.org/a/path\ntoo");
        check("```\na\n```\none two three\n", "```\na\n```\none two\nthree\n");
    }
}
