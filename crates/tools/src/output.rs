//! The one place where a tool's output is bounded.
//!
//! Bytes stream into a [`Capture`], which keeps the beginning (and for commands the end) of what comes
//! and only counts the rest. It is turned into text, with a line that says what was cut, by `finish`.

use std::borrow::Cow;

/// A text that a model may get as it is: bounded, and valid UTF-8.
#[derive(Debug)]
pub struct Output {
    pub(crate) text: String,
    /// Something was cut out of it.
    pub(crate) truncated: bool,
    /// Bytes that are no UTF-8 were replaced.
    pub(crate) lossy: bool,
}

impl Output {
    /// Adds a line of the program's own, which is not counted against the limit.
    pub(crate) fn add_line(&mut self, line: &str) {
        start_line(&mut self.text);
        self.text.push_str(line);
    }
}

/// A short text of the program's own.
impl From<String> for Output {
    fn from(text: String) -> Output {
        Output { text, truncated: false, lossy: false }
    }
}

/// How many bytes of output a model gets: the setting `max_output_size`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputSize(usize);

impl OutputSize {
    /// Enough to say something useful in.
    pub const MIN: usize = 1_024;
    /// Beyond this a single result would not fit any model or mail.
    pub const MAX: usize = 104_857_600;

    /// `None` when `bytes` is out of range.
    ///
    /// ```
    /// use ikigai_tools::OutputSize;
    /// assert!(OutputSize::new(51_200).is_some());
    /// assert!(OutputSize::new(1_023).is_none());
    /// ```
    pub fn new(bytes: usize) -> Option<OutputSize> {
        (Self::MIN..=Self::MAX).contains(&bytes).then_some(OutputSize(bytes))
    }

    pub(crate) fn bytes(self) -> usize {
        self.0
    }
}

/// Collects an output of any length in a bounded space.
#[derive(Debug)]
pub(crate) struct Capture {
    head: Vec<u8>,
    head_limit: usize,
    /// Holds up to twice `tail_limit`, so that dropping its front is rare.
    tail: Vec<u8>,
    tail_limit: usize,
    total: u64,
}

impl Capture {
    /// Keeps the beginning.
    pub(crate) fn beginning(size: OutputSize) -> Capture {
        Capture::new(size.bytes(), 0)
    }

    /// Keeps half of the beginning, half of the end.
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

    /// Counts bytes that are known to follow without looking at them.
    pub(crate) fn skip(&mut self, bytes: u64) {
        self.total += bytes;
    }

    /// Whether further bytes can only be counted.
    pub(crate) fn is_full(&self) -> bool {
        self.tail_limit == 0 && self.total >= self.head_limit as u64
    }

    pub(crate) fn finish(mut self) -> Output {
        let limit = (self.head_limit + self.tail_limit) as u64;
        if self.total <= limit {
            self.head.append(&mut self.tail);
            let (text, lossy) = decode(self.head);
            let total = text.len() as u64;
            if total <= limit {
                return Output { text, truncated: false, lossy };
            }
            // Replacing broken bytes made it longer than the limit.
            let head = text[..text.floor_char_boundary(self.head_limit)].to_owned();
            let tail = last_bytes(&text, self.tail_limit).to_owned();
            return join(head, &tail, self.tail_limit > 0, total, lossy);
        }
        without_cut_character(&mut self.head);
        let (mut head, head_lossy) = decode(self.head);
        head.truncate(head.floor_char_boundary(self.head_limit));
        let kept = &self.tail[self.tail.len() - self.tail_limit.min(self.tail.len())..];
        let (tail, tail_lossy) = decode(from_first_character(kept).to_vec());
        let tail = last_bytes(&tail, self.tail_limit);
        join(head, tail, self.tail_limit > 0, self.total, head_lossy || tail_lossy)
    }
}

fn join(head: String, tail: &str, has_tail: bool, total: u64, lossy: bool) -> Output {
    let ends = match has_tail {
        true => format!("first {} and last {}", head.len(), tail.len()),
        false => format!("first {}", head.len()),
    };
    let mut text = head;
    start_line(&mut text);
    text.push_str(&format!("[Output truncated: showing {ends} of {total} bytes]"));
    if has_tail {
        text.push('\n');
        text.push_str(tail);
    }
    Output { text, truncated: true, lossy }
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

/// Takes a character off the end that the limit cut in two.
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

/// Leaves out the rest of a character whose beginning was cut away.
fn from_first_character(bytes: &[u8]) -> &[u8] {
    let continuation = bytes.iter().take(3).take_while(|&&byte| byte & 0xC0 == 0x80).count();
    &bytes[continuation..]
}

fn last_bytes(text: &str, limit: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(limit))..]
}
