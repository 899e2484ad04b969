//! A call whose arguments are still arriving: what it will be about, and how far it is.

use std::time::{Duration, Instant};

/// The time between two reports.
const INTERVAL: Duration = Duration::from_millis(100);
/// The first text among the arguments is looked for in so many bytes: paths and names are short and
/// come first.
const START: usize = 4 * 1024;
/// A longer text, or one of several lines, does not say what a call is about.
const SUBJECT: usize = 200;

/// What is known about a call that is being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrittenCall {
    /// The name of the tool.
    pub(crate) name: String,
    /// The first argument that is a text, once it is complete.
    pub(crate) subject: Option<String>,
    /// The lines of text among the arguments so far.
    pub(crate) lines: u64,
}

/// Follows the arguments of the calls of a response.
#[derive(Debug, Default)]
pub(crate) struct WrittenCalls {
    /// The number of the call in the response.
    number: usize,
    name: String,
    /// The start of its arguments.
    start: String,
    breaks: u64,
    /// Whether the last character starts an escape sequence.
    is_escaped: bool,
    reported: Option<Instant>,
    /// Whether a report has said what the call is about.
    is_known: bool,
}

impl WrittenCalls {
    /// Takes a piece of the arguments of a call. Gives what there is to report: what the call is
    /// about at once, how far it is at most ten times a second.
    pub(crate) fn add(&mut self, number: usize, name: &str, piece: &str) -> Option<WrittenCall> {
        if self.number != number || self.name != name {
            let reported = self.reported.filter(|_| self.number == number);
            let name = name.to_owned();
            *self = WrittenCalls { number, name, reported, ..WrittenCalls::default() };
        }
        let room = START.saturating_sub(self.start.len());
        self.start.push_str(&piece[..piece.floor_char_boundary(room)]);
        for byte in piece.bytes() {
            self.breaks += u64::from(self.is_escaped && byte == b'n');
            self.is_escaped = !self.is_escaped && byte == b'\\';
        }
        let now = Instant::now();
        let is_due = self.reported.is_none_or(|reported| now - reported >= INTERVAL);
        let report = (is_due || !self.is_known).then(|| self.report())?;
        let is_new = !self.is_known && report.subject.is_some();
        if !is_due && !is_new {
            return None;
        }
        self.reported = Some(now);
        self.is_known |= report.subject.is_some();
        Some(report)
    }

    fn report(&self) -> WrittenCall {
        let subject = first_text(&self.start).filter(|text| {
            text.len() <= SUBJECT && !text.trim().is_empty() && !text.contains('\n')
        });
        WrittenCall { name: self.name.clone(), subject, lines: self.breaks }
    }
}

/// The first value of an incomplete object, if it is a complete text.
fn first_text(arguments: &str) -> Option<String> {
    let rest = arguments.trim_start().strip_prefix('{')?.trim_start();
    let (_, rest) = take_text(rest)?;
    let (text, _) = take_text(rest.trim_start().strip_prefix(':')?.trim_start())?;
    serde_json::from_str(text).ok()
}

/// A JSON string at the start, with its quotation marks, and what follows it.
fn take_text(json: &str) -> Option<(&str, &str)> {
    let mut is_escaped = false;
    let bytes = json.bytes().enumerate().skip_while(|(at, byte)| *at == 0 && *byte == b'"');
    for (at, byte) in bytes.filter(|_| json.starts_with('"')) {
        match byte {
            b'"' if !is_escaped => return Some(json.split_at(at + 1)),
            byte => is_escaped = !is_escaped && byte == b'\\',
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is known after these pieces.
    fn known(pieces: &[&str]) -> (Option<String>, u64) {
        let mut calls = WrittenCalls::default();
        for piece in pieces {
            calls.add(0, "x", piece);
        }
        let WrittenCall { subject, lines, .. } = calls.report();
        (subject, lines)
    }

    #[test]
    fn the_first_text_and_the_lines_are_known_as_they_arrive() {
        assert_eq!(known(&["{\"pa", "th\":\"a"]), (None, 0));
        let path = Some("a\"b".to_owned());
        assert_eq!(known(&["{ \"path\" : \"a\\\"b\"", ",\"content\":\"1\\"]), (path.clone(), 0));
        let content = ["{\"path\":\"a\\\"b\",\"content\":\"1\\", "n2\\\\n3\\n"];
        assert_eq!(known(&content), (path, 2), "an escaped backslash is no line break");
        assert_eq!(known(&["{\"limit\":5,\"path\":\"a\""]), (None, 0));
        assert_eq!(known(&["[\"a\"", "nonsense"]), (None, 0));
        let long = "y".repeat(100_000);
        assert_eq!(known(&["{\"content\":\"", &long, "\"}"]), (None, 0));
    }

    #[test]
    fn a_report_is_made_at_once_and_then_only_now_and_then() {
        let mut calls = WrittenCalls::default();
        assert!(calls.add(0, "x", "").is_some());
        let again = (0..1_000).filter(|_| calls.add(0, "x", "y").is_some()).count();
        assert!(again < 1_000);
        let next = calls.add(1, "x", "{\"a\":\"b\"");
        assert_eq!(next.and_then(|call| call.subject).as_deref(), Some("b"));
    }
}
