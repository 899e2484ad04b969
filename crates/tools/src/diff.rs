//! What a write changes, line by line: bounded beside its result, whole where approval is asked for.

use std::time::Duration;

use ikigai_conversation::{DiffLine, FileDiff, Hunk};
use similar::{ChangeTag, TextDiff};

/// Unchanged lines around a change.
const CONTEXT: usize = 2;

/// Files that are larger are not compared beside a result: no source file is, and every write would pay for it.
pub(crate) const COMPARED_BYTES: usize = 1024 * 1024;

/// How much of a diff is kept, and how long its shortest form is searched for: between texts that have little in common
/// that takes minutes. Then a longer one is taken.
#[derive(Debug, Clone, Copy)]
struct Room {
    lines: usize,
    bytes: usize,
    patience: Duration,
}

impl Room {
    /// Beside a result it stays in the log for good, and every write waits for it: several screens, and less than most
    /// files that are read.
    const STORED: Room = Room { lines: 400, bytes: 32 * 1024, patience: Duration::from_millis(50) };
    /// Before approval, all of it.
    const ALL: Room =
        Room { lines: usize::MAX, bytes: usize::MAX, patience: Duration::from_millis(200) };

    /// Whether a line still fits. Behind one that does not, none does.
    fn takes(&mut self, line: &str) -> bool {
        if self.lines == 0 || line.len() > self.bytes {
            self.lines = 0;
            return false;
        }
        self.lines -= 1;
        self.bytes -= line.len();
        true
    }
}

/// What a write has changed; `None` when a side is no text, or too large.
pub(crate) fn stored_diff(path: &str, old: &[u8], new: &[u8]) -> Option<FileDiff> {
    let is_comparable = |bytes: &[u8]| bytes.len() <= COMPARED_BYTES && !bytes.contains(&0);
    if !is_comparable(old) || !is_comparable(new) {
        return None;
    }
    let (old, new) = (std::str::from_utf8(old).ok()?, std::str::from_utf8(new).ok()?);
    Some(compare(path, old, new, Room::STORED))
}

/// All that a write would change.
pub(crate) fn whole_diff(path: &str, old: &str, new: &str) -> FileDiff {
    compare(path, old, new, Room::ALL)
}

fn compare(path: &str, old: &str, new: &str, mut room: Room) -> FileDiff {
    let diff = TextDiff::configure().timeout(room.patience).diff_lines(old, new);
    let mut file =
        FileDiff { path: path.to_owned(), added: 0, removed: 0, hunks: Vec::new(), omitted: 0 };
    for group in diff.grouped_ops(CONTEXT) {
        let Some(first) = group.first() else { continue };
        let number = |start: usize| start as u64 + 1;
        let (old, new) = (number(first.old_range().start), number(first.new_range().start));
        let mut lines = Vec::new();
        for change in group.iter().flat_map(|operation| diff.iter_changes(operation)) {
            let text = change.value();
            let text = text.strip_suffix('\n').unwrap_or(text);
            let text = text.strip_suffix('\r').unwrap_or(text);
            let line: fn(String) -> DiffLine = match change.tag() {
                ChangeTag::Equal => DiffLine::Context,
                ChangeTag::Insert => {
                    file.added += 1;
                    DiffLine::Added
                }
                ChangeTag::Delete => {
                    file.removed += 1;
                    DiffLine::Removed
                }
            };
            match room.takes(text) {
                true => lines.push(line(text.to_owned())),
                false => file.omitted += 1,
            }
        }
        if !lines.is_empty() {
            file.hunks.push(Hunk { old, new, lines });
        }
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(old: &str, new: &str, size: &str, expected: &[&str]) {
        let diff = whole_diff("f", old, new);
        assert_eq!(diff.unified().collect::<Vec<_>>(), expected);
        assert_eq!(diff.size(), size);
        assert_eq!(stored_diff("f", old.as_bytes(), new.as_bytes()), Some(diff));
    }

    #[test]
    fn a_diff_has_the_numbers_of_the_lines_and_two_lines_around_them() {
        let old: String = (1..=20).map(|number| format!("{number}\n")).collect();
        let new = old.replace("\n10\n", "\nten\n").replace("20\n", "20\n21\n");
        let expected = [
            "@@ -8,5 +8,5 @@",
            " 8",
            " 9",
            "-10",
            "+ten",
            " 11",
            " 12",
            "@@ -19,2 +19,3 @@",
            " 19",
            " 20",
            "+21",
        ];
        check(&old, &new, "+2 −1", &expected);
    }

    #[test]
    fn a_file_may_be_new_or_emptied() {
        check("", "a\nb\n", "+2 −0", &["@@ -0,0 +1,2 @@", "+a", "+b"]);
        check("a\r\n", "", "+0 −1", &["@@ -1 +0,0 @@", "-a"]);
        check("a\n", "a\n", "+0 −0", &[]);
    }

    #[test]
    fn what_is_stored_is_bounded_and_says_how_much_is_missing() {
        let new = "x\n".repeat(10_000);
        let diff = stored_diff("f", b"", new.as_bytes()).unwrap();
        let kept: usize = diff.hunks.iter().map(|hunk| hunk.lines.len()).sum();
        assert_eq!((kept, diff.omitted, diff.added), (400, 9_600, 10_000));
        let long = format!("a\n{}\nb\n", "x".repeat(40_000));
        let diff = stored_diff("f", b"", long.as_bytes()).unwrap();
        assert_eq!((diff.omitted, diff.added), (2, 3), "behind a line that is left out comes none");
        let whole = whole_diff("f", "", &new);
        assert_eq!((whole.unified().count(), whole.omitted), (10_001, 0));
    }

    #[test]
    fn what_is_no_text_or_too_large_is_not_compared() {
        assert_eq!(stored_diff("f", b"a\xff", b"b"), None);
        assert_eq!(stored_diff("f", b"a", b"b\0"), None);
        assert_eq!(stored_diff("f", b"a", &b"x\n".repeat(COMPARED_BYTES)), None);
    }
}
