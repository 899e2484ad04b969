//! Splits an answer into parts. While it streams, only the last part can change, so only that one
//! is laid out again.
//!
//! A part ends before an unindented line that follows an empty one. There, every Markdown block has
//! ended except for fenced code. Long code is split, and the next part repeats the opening fence.
//! Anything else that keeps growing, such as a paragraph of a hundred thousand characters, is split
//! where possible.

/// Fenced code is split after so many lines.
const FENCE_LINES: usize = 100;
/// The most bytes per part: every delta lays out the whole last part.
const LIMIT: usize = 8 * 1024;
/// A longer line does not open a fence: it would be repeated in every part of the code.
const FENCE_LIMIT: usize = 200;

/// A part of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// Self-contained Markdown.
    pub(crate) text: String,
    /// Whether it continues the block of the part before.
    pub(crate) is_continuation: bool,
}

impl Part {
    /// What it adds to the parts before: a fence that was repeated to open it is left out.
    pub(crate) fn continued(&self) -> &str {
        let is_repeated =
            self.is_continuation && (self.text.starts_with("```") || self.text.starts_with("~~~"));
        match self.text.split_once('\n').filter(|_| is_repeated) {
            Some((_, rest)) => rest,
            None => &self.text,
        }
    }
}

/// The unfinished part and the parser state.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    tail: Part,
    /// The byte offset of the last line, which is incomplete.
    line: usize,
    /// Whether the line before it is empty.
    is_after_blank: bool,
    /// The line that opened the current fence.
    fence: Option<String>,
    /// The lines of code in this part.
    code_lines: usize,
}

impl Parts {
    /// Adds a delta and returns the parts that it finishes.
    pub(crate) fn push(&mut self, delta: &str) -> Vec<Part> {
        let mut finished = Vec::new();
        let mut from = self.tail.text.len();
        self.tail.text.push_str(delta);
        loop {
            let length = self.tail.text.len();
            let end = self.tail.text[from..].find('\n').map(|end| from + end + 1);
            if end.unwrap_or(length) > LIMIT {
                finished.push(self.cut_long());
                from = self.line;
                continue;
            }
            let Some(end) = end else { return finished };
            finished.extend(self.take_line(end));
            // The tail has shrunk by what was split off, or grown by a repeated fence.
            from = self.tail.text.len() - (length - end);
            self.line = from;
        }
    }

    /// The unfinished part.
    pub(crate) fn tail(&self) -> &Part {
        &self.tail
    }

    pub(crate) fn into_tail(self) -> Part {
        self.tail
    }

    /// Processes the line that ends at `end`.
    fn take_line(&mut self, end: usize) -> Option<Part> {
        let line = &self.tail.text[self.line..end];
        if let Some(fence) = &self.fence {
            if closes(fence, line) {
                self.fence = None;
                return None;
            }
            self.code_lines += 1;
            return (self.code_lines >= FENCE_LINES).then(|| self.cut_block(end));
        }
        let is_blank = line.trim().is_empty();
        let is_at_margin = !line.starts_with([' ', '\t']);
        let is_new = self.is_after_blank && !is_blank && is_at_margin && self.line > 0;
        let opened = opens(line).then(|| line.to_owned());
        self.is_after_blank = is_blank;
        if opened.is_some() {
            self.fence = opened;
            self.code_lines = 0;
        }
        is_new.then(|| self.cut(self.line))
    }

    fn cut(&mut self, at: usize) -> Part {
        let rest = self.tail.text.split_off(at);
        std::mem::replace(&mut self.tail, Part { text: rest, is_continuation: false })
    }

    /// Splits inside a block: if that is code, the rest is code as well.
    fn cut_block(&mut self, at: usize) -> Part {
        let part = self.cut(at);
        let opening = self.fence.as_deref().unwrap_or_default();
        self.tail.text.insert_str(0, opening);
        self.tail.is_continuation = true;
        self.line = opening.len();
        self.code_lines = 0;
        part
    }

    /// Splits a part that is too long: before its last line, else after a word, else anywhere.
    fn cut_long(&mut self) -> Part {
        let most = self.tail.text.floor_char_boundary(LIMIT);
        let word = self.tail.text[..most].rfind(' ').map(|space| space + 1);
        let places = [Some(self.line), word];
        let at = places.into_iter().flatten().find(|place| (LIMIT / 2..=most).contains(place));
        self.cut_block(at.unwrap_or(most))
    }
}

/// Whether a line opens a fence. A fence inside a list counts as text here, so it stays in one part
/// with its list.
fn opens(line: &str) -> bool {
    if line.len() > FENCE_LIMIT {
        return false;
    }
    let line = line
        .strip_prefix("   ")
        .or(line.strip_prefix("  "))
        .or(line.strip_prefix(' '))
        .unwrap_or(line);
    marker(line).is_some_and(|(mark, length)| !(mark == '`' && line[length..].contains('`')))
}

fn closes(fence: &str, line: &str) -> bool {
    match (marker(fence.trim_start()), marker(line.trim())) {
        (Some((mark, length)), Some((closing, run))) => {
            mark == closing && run >= length && line.trim().len() == run
        }
        _ => false,
    }
}

/// The run of fence characters at the start, if it is long enough for a fence.
fn marker(line: &str) -> Option<(char, usize)> {
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = line.chars().take_while(|c| *c == mark).count();
    (length >= 3).then_some((mark, length))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(text: &str) -> Vec<String> {
        let mut parts = Parts::default();
        let mut all = parts.push(text);
        all.push(parts.into_tail());
        all.into_iter().map(|part| part.text).collect()
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(split(text), expected);
    }

    #[test]
    fn a_part_ends_where_a_block_has_ended() {
        check("a\nb\n\nc\n\nd", &["a\nb\n\n", "c\n\nd"]);
        check("- a\n\n  b\n\nc\n", &["- a\n\n  b\n\n", "c\n"]);
        check("\n\na\n", &["\n\n", "a\n"]);
    }

    #[test]
    fn code_stays_in_one_part() {
        check("```\na\n\nb\n```\n\nc\n", &["```\na\n\nb\n```\n\n", "c\n"]);
        check("~~~\n```\n\nx\n~~~\n", &["~~~\n```\n\nx\n~~~\n"]);
        check("```a`\n\nb\n", &["```a`\n\n", "b\n"]);
    }

    #[test]
    fn long_code_is_split_and_its_fence_repeated() {
        let text = format!("```rust\n{}```\n\nend\n", "x\n".repeat(150));
        let first = format!("```rust\n{}", "x\n".repeat(FENCE_LINES));
        let second = format!("```rust\n{}```\n\n", "x\n".repeat(50));
        check(&text, &[&first, &second, "end\n"]);
    }

    #[test]
    fn long_text_is_split_after_a_line_or_a_word_or_anywhere() {
        let sizes = |text: &str| split(text).iter().map(String::len).collect::<Vec<_>>();
        assert_eq!(sizes(&"a line\n".repeat(2_000)), [8_190, 5_810]);
        assert_eq!(sizes(&"words ".repeat(2_000)), [8_190, 3_810]);
        assert_eq!(sizes(&"é".repeat(10_000)), [8_192, 8_192, 3_616]);
        let code = split(&format!("```c\n{}", "x".repeat(10_000)));
        assert_eq!(code.iter().map(String::len).collect::<Vec<_>>(), [8_192, 1_818]);
        assert!(code[1].starts_with("```c\nx"));
    }

    proptest! {
        #[test]
        fn deltas_of_any_size_give_the_same_parts_of_a_long_text(
            words in prop::collection::vec(0usize..7, 0..400),
            size in 500usize..5_000,
        ) {
            let (long, word) = ("x".repeat(5_000), "é".repeat(60));
            let kinds = [&*long, &*word, "a word ", "\n", "\n\n", "```c\n", "```\n"];
            let text: String = words.into_iter().map(|kind| kinds[kind]).collect();
            let mut parts = Parts::default();
            let mut all = Vec::new();
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let (piece, behind) = rest.split_at(rest.ceil_char_boundary(size.min(rest.len())));
                all.extend(parts.push(piece));
                rest = behind;
            }
            all.push(parts.into_tail());
            prop_assert!(all.iter().all(|part| part.text.len() <= LIMIT + FENCE_LIMIT));
            let all: Vec<String> = all.into_iter().map(|part| part.text).collect();
            prop_assert_eq!(all, split(&text));
        }

        #[test]
        fn deltas_of_any_size_give_the_same_parts(text in "[ab`~ \\n-]{0,200}", cuts in prop::collection::vec(0usize..200, 0..8)) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let mut parts = Parts::default();
            let mut all = Vec::new();
            for pair in cuts.windows(2) {
                all.extend(parts.push(&text[pair[0]..pair[1]]));
            }
            all.push(parts.into_tail());
            let all: Vec<String> = all.into_iter().map(|part| part.text).collect();
            prop_assert_eq!(&all, &split(&text));
        }
    }
}
