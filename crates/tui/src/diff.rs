//! Rendering of file diffs.

use ikigai_conversation::FileDiff;
use ratatui_core::text::Line;

use crate::safe::safe_line;
use crate::style::{ADDED, CODE, PLAIN, REMOVED};

/// The lines of a diff, safe and not wrapped.
pub(crate) fn render_diff(diff: &FileDiff) -> impl Iterator<Item = Line<'static>> {
    diff.unified().map(|line| render_line(&line))
}

fn render_line(line: &str) -> Line<'static> {
    let style = match line.as_bytes().first() {
        Some(b'+') => ADDED,
        Some(b'-') => REMOVED,
        Some(b'@') => CODE,
        Some(_) | None => PLAIN,
    };
    // The sign is kept apart, so that tab stops are the same as in the file.
    let at = line.chars().next().map_or(0, char::len_utf8);
    Line::styled(format!("{}{}", &line[..at], safe_line(&line[at..])), style)
}

#[cfg(test)]
mod tests {
    use ikigai_conversation::Hunk;

    use super::*;

    #[test]
    fn a_diff_has_removed_and_added_lines() {
        let lines = [" one", "-two", "+\t2\u{1b}", " three"].map(|line| line.to_owned().into());
        let hunks = vec![Hunk { old: 1, new: 1, lines: lines.into() }];
        let diff = FileDiff { path: "f".to_owned(), added: 1, removed: 1, hunks, omitted: 0 };
        let lines: Vec<Line<'_>> = render_diff(&diff).collect();
        let expected = [
            Line::styled("@@ -1,3 +1,3 @@", CODE),
            Line::styled(" one", PLAIN),
            Line::styled("-two", REMOVED),
            Line::styled("+    2\u{fffd}", ADDED),
            Line::styled(" three", PLAIN),
        ];
        assert_eq!(lines, expected);
    }
}
