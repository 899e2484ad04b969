//! Who gets what a background command prints, beside its spool: front ends as it comes, and an agent
//! that waits for a line.

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use tokio::sync::oneshot;

use super::running::TAIL_LINE;
use crate::live_output::LiveStream;

/// Who gets what a command prints, beside its spool.
pub(super) struct Listeners {
    pub(super) live: LiveStream,
    pub(super) watch: Option<LineWatch>,
}

impl Listeners {
    pub(super) fn watch(&mut self, bytes: &[u8]) {
        if let Some(watch) = &mut self.watch {
            watch.push(bytes);
        }
    }

    /// The output has ended, perhaps in the middle of a line.
    pub(super) fn finish(&mut self) {
        self.watch(b"\n");
    }
}

/// Reports the first line that matches.
pub(super) struct LineWatch {
    pattern: RegexMatcher,
    lines: Lines,
    report: Option<oneshot::Sender<String>>,
}

impl LineWatch {
    pub(super) fn new(pattern: RegexMatcher, report: oneshot::Sender<String>) -> LineWatch {
        LineWatch { pattern, lines: Lines::default(), report: Some(report) }
    }

    fn push(&mut self, bytes: &[u8]) {
        let LineWatch { pattern, lines, report } = self;
        if report.is_none() {
            return;
        }
        lines.push(bytes, |line| {
            if pattern.is_match(line).unwrap_or(false)
                && let Some(report) = report.take()
            {
                let text = String::from_utf8_lossy(line).trim_end().replace('\0', "\u{FFFD}");
                let _ = report.send(text.chars().take(TAIL_LINE).collect());
            }
        });
    }
}

/// Splits a stream of bytes into lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// The start of a line whose end has not come.
    open: Vec<u8>,
}

impl Lines {
    /// A longer line is split: nothing matches a line in full that no one could read.
    const LONGEST: usize = 64 * 1024;

    pub(super) fn push(&mut self, bytes: &[u8], mut take: impl FnMut(&[u8])) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.open.extend_from_slice(part);
            if part.ends_with(b"\n") || self.open.len() >= Lines::LONGEST {
                take(&self.open);
                self.open.clear();
            }
        }
    }

    pub(super) fn finish(self, mut take: impl FnMut(&[u8])) {
        if !self.open.is_empty() {
            take(&self.open);
        }
    }
}
