//! Sorted output from unordered findings, in a bounded space.
//!
//! The walkers find files in any order, and there may be millions. What is shown is only the beginning of
//! the sorted list, so everything that cannot be in it is counted and dropped.

use crate::output::{Capture, OutputSize};

/// What was found in one file.
#[derive(Debug)]
struct Finding {
    path: Vec<u8>,
    /// The lines to show, without the last line break; empty when the path itself is the line.
    lines: Vec<u8>,
}

impl Finding {
    fn text(&self) -> &[u8] {
        if self.lines.is_empty() { &self.path } else { &self.lines }
    }
}

/// The findings so far.
#[derive(Debug)]
pub(crate) struct SortedFindings {
    size: OutputSize,
    findings: Vec<Finding>,
    /// Bytes held by `findings`.
    held: usize,
    /// Bytes of the whole output, line breaks included, were nothing cut.
    total: u64,
    count: u64,
    /// Findings behind this path cannot be shown any more.
    last_shown: Option<Vec<u8>>,
}

impl SortedFindings {
    pub(crate) fn new(size: OutputSize) -> SortedFindings {
        SortedFindings { size, findings: Vec::new(), held: 0, total: 0, count: 0, last_shown: None }
    }

    /// A file that is itself the finding.
    pub(crate) fn add_path(&mut self, path: Vec<u8>) {
        let length = path.len() as u64;
        self.count += 1;
        self.add(Finding { path, lines: Vec::new() }, length);
    }

    /// `count` lines of one file, of `length` bytes in all, of which `lines` are kept.
    pub(crate) fn add_lines(&mut self, path: Vec<u8>, lines: Vec<u8>, length: u64, count: u64) {
        self.count += count;
        self.add(Finding { path, lines }, length);
    }

    fn add(&mut self, finding: Finding, length: u64) {
        self.total += length + 1;
        if self.last_shown.as_ref().is_some_and(|last| finding.path > *last) {
            return;
        }
        self.held += finding.text().len();
        self.findings.push(finding);
        // Twice the limit and a little: sorting is rare, and the space stays bounded.
        if self.held > 2 * self.size.bytes() + 64 * 1024 {
            self.drop_hidden();
        }
    }

    /// Sorts, and drops what lies behind the limit.
    fn drop_hidden(&mut self) {
        self.findings.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let mut held = 0;
        let shown = self.findings.iter().position(|finding| {
            held += finding.text().len() + 1;
            held > self.size.bytes()
        });
        if let Some(shown) = shown {
            self.findings.truncate(shown + 1);
            self.last_shown = self.findings.last().map(|finding| finding.path.clone());
        }
        self.held = self.findings.iter().map(|finding| finding.text().len()).sum();
    }

    /// Takes in what another thread found.
    pub(crate) fn merge(&mut self, other: SortedFindings) {
        self.total += other.total;
        self.count += other.count;
        self.held += other.held;
        self.findings.extend(other.findings);
        self.drop_hidden();
    }

    pub(crate) fn size(&self) -> OutputSize {
        self.size
    }

    /// The output, and how many findings there were.
    pub(crate) fn finish(mut self) -> (Capture, u64) {
        self.drop_hidden();
        let mut capture = Capture::beginning(self.size);
        let mut pushed: u64 = 0;
        for (index, finding) in self.findings.iter().enumerate() {
            if index > 0 {
                capture.push(b"\n");
                pushed += 1;
            }
            capture.push(finding.text());
            pushed += finding.text().len() as u64;
        }
        // Each finding counted its line break, but the last has none.
        capture.skip(self.total.saturating_sub(1).saturating_sub(pushed));
        (capture, self.count)
    }
}
