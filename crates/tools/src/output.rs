//! The one place where tool output is bounded.
//!
//! Bytes are streamed into a [`Capture`], which keeps the start (for commands also the end) and
//! only counts the rest. `finish` turns it into text, with a line that says what was cut.

use std::borrow::Cow;

/// A text that can be sent to a model: bounded, and valid UTF-8.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) text: String,
    /// Whether part of it was cut.
    pub(crate) truncated: bool,
    /// Whether invalid UTF-8 was replaced.
    pub(crate) lossy: bool,
}

impl Output {
    /// Adds a line by ikigai itself, which does not count against the limit.
    pub(crate) fn add_line(&mut self, line: &str) {
        start_line(&mut self.text);
        self.text.push_str(line);
    }
}

/// A short text by ikigai itself.
impl From<String> for Output {
    fn from(text: String) -> Output {
        Output { text, truncated: false, lossy: false }
    }
}

/// The maximum size of a tool's output: the setting `max_output_size`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputSize(usize);

impl OutputSize {
    /// Enough for a useful output.
    pub const MIN: usize = 1_024;
    /// A larger result would not fit any model or mail.
    pub const MAX: usize = 104_857_600;

    /// `None` if `bytes` is out of range.
    ///
    /// ```
    /// use ikigai_tools::OutputSize;
    /// assert!(OutputSize::new(51_200).is_some());
    /// assert!(OutputSize::new(1_023).is_none());
    /// ```
    pub fn new(bytes: usize) -> Option<OutputSize> {
        (Self::MIN..=Self::MAX).contains(&bytes).then_some(OutputSize(bytes))
    }

    /// The nearest size in range.
    pub fn clamped(bytes: usize) -> OutputSize {
        OutputSize(bytes.clamp(Self::MIN, Self::MAX))
    }

    /// The number of bytes.
    pub fn bytes(self) -> usize {
        self.0
    }
}

/// Cuts a text to `limit` bytes and adds the usual line about it; `None` if it fits.
pub fn cut(text: &str, limit: usize) -> Option<String> {
    if text.len() <= limit {
        return None;
    }
    let mut capture = Capture::new(limit, 0);
    capture.push(text.as_bytes());
    Some(capture.finish().text)
}

/// Collects output of any length in bounded memory.
#[derive(Debug, Clone)]
pub(crate) struct Capture {
    head: Vec<u8>,
    head_limit: usize,
    /// Holds up to twice `tail_limit`, so that its front is rarely dropped.
    tail: Vec<u8>,
    tail_limit: usize,
    total: u64,
}

impl Capture {
    /// Keeps the start.
    pub(crate) fn beginning(size: OutputSize) -> Capture {
        Capture::new(size.bytes(), 0)
    }

    /// Keeps half of the limit of the start, half of the end.
    pub(crate) fn both_ends(size: OutputSize) -> Capture {
        let tail = size.bytes() / 2;
        Capture::new(size.bytes() - tail, tail)
    }

    fn new(head_limit: usize, tail_limit: usize) -> Capture {
        Capture { head: Vec::new(), head_limit, tail: Vec::new(), tail_limit, total: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = self.head_limit - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        self.push_tail(rest);
    }

    fn push_tail(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(self.tail_limit)..];
        if self.tail.len() + bytes.len() > 2 * self.tail_limit {
            let keep_from = self.tail.len().saturating_sub(self.tail_limit);
            self.tail.drain(..keep_from);
        }
        self.tail.extend_from_slice(bytes);
    }

    /// Counts bytes that follow without looking at them.
    pub(crate) fn skip(&mut self, bytes: u64) {
        self.total += bytes;
    }

    /// Passes on what is kept, in order, with a line that says what is not.
    pub(crate) fn for_each_part<E>(
        &self,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let tail = &self.tail[self.tail.len() - self.tail_limit.min(self.tail.len())..];
        let kept = (self.head.len() + tail.len()) as u64;
        take(&self.head)?;
        if kept < self.total {
            take(format!("\n[Not kept: {} bytes]\n", self.total - kept).as_bytes())?;
        }
        take(tail)
    }

    /// Whether more bytes would only be counted.
    pub(crate) fn is_full(&self) -> bool {
        self.tail_limit == 0 && self.total >= self.head_limit as u64
    }

    pub(crate) fn finish(mut self) -> Output {
        let limit = (self.head_limit + self.tail_limit) as u64;
        let has_tail = self.tail_limit > 0;
        if self.total <= limit {
            self.head.append(&mut self.tail);
            let (text, lossy) = decode(self.head);
            let total = text.len() as u64;
            if total <= limit {
                return Output { text, truncated: false, lossy };
            }
            // Replacing invalid bytes made it longer than the limit.
            let head = text[..text.floor_char_boundary(self.head_limit)].to_owned();
            let tail = last_bytes(&text, self.tail_limit).to_owned();
            return Output { lossy, ..join(head, has_tail.then_some(&tail), total) };
        }
        without_cut_character(&mut self.head);
        let (mut head, head_lossy) = decode(self.head);
        head.truncate(head.floor_char_boundary(self.head_limit));
        let kept = &self.tail[self.tail.len() - self.tail_limit.min(self.tail.len())..];
        let (tail, tail_lossy) = decode(from_first_character(kept).to_vec());
        let tail = last_bytes(&tail, self.tail_limit);
        let lossy = head_lossy || tail_lossy;
        Output { lossy, ..join(head, has_tail.then_some(tail), self.total) }
    }
}

/// Joins the kept parts with the line that says what was cut.
fn join(head: String, tail: Option<&str>, total: u64) -> Output {
    let ends = match tail {
        Some(tail) => format!("first {} and last {}", head.len(), tail.len()),
        None => format!("first {}", head.len()),
    };
    let mut text = head;
    start_line(&mut text);
    text.push_str(&format!("[Output truncated: showing {ends} of {total} bytes]"));
    if let Some(tail) = tail {
        text.push('\n');
        text.push_str(tail);
    }
    Output { text, truncated: true, lossy: false }
}

fn start_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

fn decode(bytes: Vec<u8>) -> (String, bool) {
    match String::from_utf8(bytes) {
        Ok(text) => (text, false),
        Err(error) => match String::from_utf8_lossy(error.as_bytes()) {
            Cow::Borrowed(text) => (text.to_owned(), false),
            Cow::Owned(text) => (text, true),
        },
    }
}

/// Removes a trailing character that the limit cut in two.
fn without_cut_character(bytes: &mut Vec<u8>) {
    let from = bytes.len().saturating_sub(3);
    if let Some(start) = (from..bytes.len()).rev().find(|&i| bytes[i] >= 0xC0) {
        let length = match bytes[start] {
            0xF0.. => 4,
            0xE0.. => 3,
            _ => 2,
        };
        if start + length > bytes.len() {
            bytes.truncate(start);
        }
    }
}

/// Skips the rest of a character that was cut in two.
fn from_first_character(bytes: &[u8]) -> &[u8] {
    let continuation = bytes.iter().take(3).take_while(|&&byte| byte & 0xC0 == 0x80).count();
    &bytes[continuation..]
}

fn last_bytes(text: &str, limit: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(limit))..]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
    use proptest::strategy::Strategy;

    use super::{Capture, Output};

    fn capture(head: usize, tail: usize, bytes: &[u8]) -> (String, bool, bool) {
        let mut capture = Capture::new(head, tail);
        capture.push(bytes);
        let Output { text, truncated, lossy } = capture.finish();
        (text, truncated, lossy)
    }

    /// `shown` is the whole output.
    #[track_caller]
    fn check_whole(head: usize, tail: usize, bytes: &[u8], shown: &str, lossy: bool) {
        assert_eq!(capture(head, tail, bytes), (shown.to_owned(), false, lossy));
    }

    #[track_caller]
    fn check_cut(head: usize, tail: usize, bytes: &[u8], shown: &str, lossy: bool) {
        assert_eq!(capture(head, tail, bytes), (shown.to_owned(), true, lossy));
    }

    #[test]
    fn what_fits_exactly_is_whole() {
        check_whole(4, 0, b"", "", false);
        check_whole(4, 0, b"abcd", "abcd", false);
        check_whole(2, 2, b"abcd", "abcd", false);
        check_whole(2, 0, "ä".as_bytes(), "ä", false);
    }

    #[test]
    fn one_byte_more_is_cut() {
        check_cut(4, 0, b"abcde", "abcd\n[Output truncated: showing first 4 of 5 bytes]", false);
        let both = "ab\n[Output truncated: showing first 2 and last 2 of 5 bytes]\nde";
        check_cut(2, 2, b"abcde", both, false);
    }

    #[test]
    fn the_marker_begins_a_line_and_adds_no_empty_one() {
        check_cut(2, 0, b"a\nb", "a\n[Output truncated: showing first 2 of 3 bytes]", false);
        check_cut(2, 0, "€x".as_bytes(), "[Output truncated: showing first 0 of 4 bytes]", false);
    }

    #[test]
    fn a_character_at_the_first_cut_is_left_out() {
        for (limit, shown) in [(1, "a"), (2, "a"), (3, "a"), (4, "a€"), (5, "a€"), (6, "a€")]
        {
            let length = shown.len();
            let expected =
                format!("{shown}\n[Output truncated: showing first {length} of 8 bytes]");
            check_cut(limit, 0, "a€😀".as_bytes(), &expected, false);
        }
        check_cut(3, 0, "😀".as_bytes(), "[Output truncated: showing first 0 of 4 bytes]", false);
        check_cut(1, 0, "ä".as_bytes(), "[Output truncated: showing first 0 of 2 bytes]", false);
    }

    #[test]
    fn a_character_at_the_second_cut_is_left_out() {
        for (limit, shown) in [(1, "b"), (2, "b"), (3, "b"), (4, "€b"), (5, "€b"), (7, "€b")]
        {
            let length = shown.len();
            let bytes = "aaaaaaaaaa😀€b".as_bytes();
            let marker =
                format!("[Output truncated: showing first 1 and last {length} of 18 bytes]");
            check_cut(1, limit, bytes, &format!("a\n{marker}\n{shown}"), false);
        }
    }

    #[test]
    fn a_character_that_both_ends_share_is_whole_when_nothing_is_cut() {
        for head in 1..4 {
            check_whole(head, 4 - head, "😀".as_bytes(), "😀", false);
        }
    }

    #[test]
    fn broken_bytes_are_replaced_and_told() {
        check_whole(9, 0, b"a\xffb", "a\u{fffd}b", true);
        check_cut(
            4,
            0,
            b"\xffbcdef",
            "\u{fffd}b\n[Output truncated: showing first 4 of 6 bytes]",
            true,
        );
    }

    /// Three bytes replace one, so the result may exceed the limit.
    #[test]
    fn replacing_broken_bytes_never_exceeds_the_limit() {
        let shown = "\u{fffd}\n[Output truncated: showing first 3 of 12 bytes]";
        check_cut(4, 0, b"\xff\xff\xff\xff", shown, true);
        let shown = "[Output truncated: showing first 0 and last 0 of 12 bytes]\n";
        check_cut(2, 2, b"\xff\xff\xff\xff", shown, true);
        let shown = "\u{fffd}\n[Output truncated: showing first 3 and last 3 of 9 bytes]\n\u{fffd}";
        check_cut(4, 4, b"\xff\xff\xff", shown, true);
    }

    #[test]
    fn skipped_bytes_are_counted() {
        let mut capture = Capture::new(4, 0);
        capture.push(b"abc");
        assert!(!capture.is_full());
        capture.push(b"d");
        assert!(capture.is_full());
        capture.skip(1_000_000_000_000);
        let expected = "abcd\n[Output truncated: showing first 4 of 1000000000004 bytes]";
        assert_eq!(capture.finish().text, expected);
    }

    #[test]
    fn a_line_of_our_own_begins_a_line() {
        for (text, expected) in [("", "note"), ("a", "a\nnote"), ("a\n", "a\nnote")] {
            let mut output = Output::from(text.to_owned());
            output.add_line("note");
            assert_eq!(output.text, expected);
        }
    }

    /// Text with characters of every length, and invalid bytes.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            3 => prop::sample::select(vec!["a", "\n", "ä", "€", "😀"]).prop_map(|c| c.as_bytes().to_vec()),
            1 => any::<u8>().prop_map(|byte| vec![byte]),
        ];
        prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
    }

    fn text() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec!["a", "\n", "ä", "€", "😀"]);
        prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same(
            bytes in bytes(),
            cuts in prop::collection::vec(0..200_usize, 0..12),
            head in 0..40_usize,
            tail in 0..40_usize,
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let mut pieces = Capture::new(head, tail);
            for ends in cuts.windows(2) {
                pieces.push(&bytes[ends[0]..ends[1]]);
            }
            let Output { text, truncated, lossy } = pieces.finish();
            prop_assert_eq!((text, truncated, lossy), capture(head, tail, &bytes));
        }

        #[test]
        fn no_output_is_longer_than_its_limit_and_the_marker(
            bytes in bytes(),
            head in 0..40_usize,
            tail in 0..40_usize,
        ) {
            let (text, truncated, _) = capture(head, tail, &bytes);
            let marker = match (truncated, tail) {
                (false, _) => 0,
                (true, 0) => "\n[Output truncated: showing first 40 of 999 bytes]".len(),
                (true, _) => "\n[Output truncated: showing first 40 and last 40 of 999 bytes]\n".len(),
            };
            prop_assert!(text.len() <= head + tail + marker, "{} bytes: {text:?}", text.len());
        }

        /// Of valid text, exactly the longest whole start and end are kept, and nothing is
        /// replaced.
        #[test]
        fn a_cut_never_splits_a_character(
            text in text(),
            head in 0..40_usize,
            tail in 1..40_usize,
        ) {
            let expected = if text.len() <= head + tail {
                (text.clone(), false, false)
            } else {
                let first = &text[..text.floor_char_boundary(head)];
                let last = &text[text.ceil_char_boundary(text.len() - tail)..];
                let line = if first.is_empty() || first.ends_with('\n') { "" } else { "\n" };
                let (x, z, y) = (first.len(), last.len(), text.len());
                let marker = format!("[Output truncated: showing first {x} and last {z} of {y} bytes]");
                (format!("{first}{line}{marker}\n{last}"), true, false)
            };
            prop_assert_eq!(capture(head, tail, text.as_bytes()), expected);
        }
    }
}
