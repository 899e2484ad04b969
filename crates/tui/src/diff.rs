//! Rendering of file diffs, with the numbers of the lines in the file.

use ikigai_conversation::{DiffLine, FileDiff, Hunk};
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use crate::highlight::highlight;
use crate::safe::safe_line;
use crate::style::{ADDED, ADDED_TINT, DIM, PLAIN, REMOVED, REMOVED_TINT};
use crate::wrap::{Breaks, Margin, width_of, wrap};

/// A row of a diff, safe and not wrapped.
#[derive(Debug)]
pub(crate) struct DiffRow {
    /// The number and the sign, for the first row and for the others.
    margin: Margin,
    text: Vec<Span<'static>>,
    /// Behind the text, to the edge of the screen.
    tint: Style,
}

impl DiffRow {
    /// Wraps it, with its tint up to the edge of the screen.
    pub(crate) fn render(&self, width: usize) -> Vec<Line<'static>> {
        let mut rows = wrap(&self.text, width, &self.margin, Breaks::Anywhere);
        for line in &mut rows {
            let rest = width.saturating_sub(width_of(&line.spans));
            if self.tint != PLAIN && rest > 0 {
                line.spans.push(Span::styled(" ".repeat(rest), self.tint));
            }
        }
        rows
    }
}

/// The rows of a diff. Old lines have the numbers of the old file, all others those of the new one.
pub(crate) fn render_diff(diff: &FileDiff) -> Vec<DiffRow> {
    let last = diff.hunks.last().map_or(0, |hunk| {
        let lines = hunk.lines.len() as u64;
        hunk.old.max(hunk.new).saturating_add(lines)
    });
    let digits = last.to_string().len().max(2);
    let language = diff.path.rsplit_once('.').map_or("", |(_, extension)| extension);
    let mut rows = Vec::new();
    for (number, hunk) in diff.hunks.iter().enumerate() {
        if number > 0 {
            let margin = Margin::even(&format!("{:>width$}", "⋮", width = digits + 4), DIM);
            rows.push(DiffRow { margin, text: Vec::new(), tint: PLAIN });
        }
        rows.extend(render_hunk(hunk, language, digits));
    }
    rows
}

fn render_hunk(hunk: &Hunk, language: &str, digits: usize) -> Vec<DiffRow> {
    // Lines of the old and of the new file are highlighted apart: together they are not a program.
    let safe = |line: &DiffLine| safe_line(line.text());
    let side = |is_other: fn(&DiffLine) -> bool| {
        let lines: Vec<String> =
            hunk.lines.iter().filter(|line| !is_other(line)).map(safe).collect();
        highlight(language, &lines.join("\n")).into_iter()
    };
    let mut old_side = side(|line| matches!(line, DiffLine::Added(_)));
    let mut new_side = side(|line| matches!(line, DiffLine::Removed(_)));
    let (mut old, mut new) = (hunk.old, hunk.new);
    let mut rows = Vec::new();
    for line in &hunk.lines {
        let (number, sign, style, tint, text) = match line {
            DiffLine::Context(_) => {
                old_side.next();
                (new, " ", DIM, PLAIN, new_side.next())
            }
            DiffLine::Added(_) => (new, "+", ADDED, ADDED_TINT, new_side.next()),
            DiffLine::Removed(_) => (old, "−", REMOVED, REMOVED_TINT, old_side.next()),
        };
        match line {
            DiffLine::Context(_) => (old, new) = (old + 1, new + 1),
            DiffLine::Added(_) => new += 1,
            DiffLine::Removed(_) => old += 1,
        }
        let first = format!("    {number:>digits$} {sign} ");
        let rest = " ".repeat(first.chars().count());
        let margin = Margin {
            first: vec![Span::styled(first, style.patch(tint))],
            rest: vec![Span::styled(rest, tint)],
        };
        let text = text.unwrap_or_default().into_iter();
        // Without a language, the colour is that of the sign.
        let base = if language.is_empty() { style.patch(tint) } else { tint };
        let text = text.map(|span| Span::styled(span.content, base.patch(span.style))).collect();
        rows.push(DiffRow { margin, text, tint });
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(path: &str, hunks: Vec<Hunk>) -> Vec<String> {
        let diff = FileDiff { path: path.to_owned(), added: 1, removed: 1, hunks, omitted: 0 };
        let text = |spans: &[Span<'_>]| spans.iter().map(|span| &*span.content).collect::<String>();
        let rows = render_diff(&diff);
        rows.iter().map(|row| text(&row.margin.first) + &text(&row.text)).collect()
    }

    fn hunk(old: u64, new: u64, lines: &[&str]) -> Hunk {
        let lines = lines.iter().map(|line| DiffLine::from((*line).to_owned())).collect();
        Hunk { old, new, lines }
    }

    #[test]
    fn lines_have_their_numbers_in_the_file_and_no_control_characters() {
        let first = hunk(36, 36, &[" while x:", "-\told", "+\tn\u{1b}ew", "+more", " end"]);
        let expected = [
            "    36   while x:",
            "    37 −     old",
            "    37 +     n\u{fffd}ew",
            "    38 + more",
            "    39   end",
        ];
        assert_eq!(shown("f", vec![first.clone()]), expected);
        assert_eq!(shown("f.py", vec![first]), expected, "highlighted");
    }

    #[test]
    fn hunks_are_told_apart() {
        let hunks = vec![hunk(8, 8, &["-a", " b"]), hunk(120, 119, &[" c"])];
        assert_eq!(shown("f", hunks), ["      8 − a", "      8   b", "      ⋮", "    119   c"]);
    }
}
