//! What a change to a file looks like.

use ratatui_core::text::Line;
use similar::TextDiff;

use crate::look::{ADDED, CODE, PLAIN, REMOVED};
use crate::safe::safe_line;

/// Larger texts are not compared for the conversation: it takes longer than anybody looks. What is asked for is
/// shown whole, see `subject.rs`.
const LIMIT: usize = 256 * 1024;

/// The lines of a change, unbroken and safe.
pub(crate) fn render_diff(before: &str, after: &str) -> Vec<Line<'static>> {
    if before.len() + after.len() > LIMIT {
        return vec![Line::raw("(too large to be compared here)")];
    }
    let diff = TextDiff::from_lines(before, after);
    render_hunks(&diff.unified_diff().missing_newline_hint(false).to_string()).collect()
}

/// The lines of a unified diff without its head.
pub(crate) fn render_hunks(diff: &str) -> impl Iterator<Item = Line<'static>> {
    diff.lines().map(render_line)
}

fn render_line(line: &str) -> Line<'static> {
    let style = match line.as_bytes().first() {
        Some(b'+') => ADDED,
        Some(b'-') => REMOVED,
        Some(b'@') => CODE,
        Some(_) | None => PLAIN,
    };
    // The sign stands apart, so that tabs behind it lead where they do in the file.
    let at = line.chars().next().map_or(0, char::len_utf8);
    Line::styled(format!("{}{}", &line[..at], safe_line(&line[at..])), style)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_lines_taken_away_and_lines_added() {
        let lines = render_diff("one\ntwo\nthree\n", "one\n\t2\u{1b}\nthree\n");
        let expected = [
            Line::styled("@@ -1,3 +1,3 @@", CODE),
            Line::styled(" one", PLAIN),
            Line::styled("-two", REMOVED),
            Line::styled("+    2�", ADDED),
            Line::styled(" three", PLAIN),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn what_is_too_large_is_not_compared() {
        let large = "x\n".repeat(LIMIT);
        assert_eq!(render_diff(&large, "").len(), 1);
    }
}
