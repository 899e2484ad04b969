//! Sorted output from unordered findings, in bounded memory.
//!
//! Walks find files in any order, and there may be millions. Only the start of the sorted list is
//! shown, so everything that cannot be in it is counted and dropped.

use crate::output::{Capture, OutputSize};

/// The finding in one file.
#[derive(Debug)]
struct Finding {
    path: Vec<u8>,
    /// The lines to show, without the last line break; empty if the path itself is the line.
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
    /// The number of bytes in `findings`.
    held: usize,
    /// The size of the complete output, line breaks included.
    total: u64,
    count: u64,
    /// Findings after this path cannot be shown any more.
    last_shown: Option<Vec<u8>>,
}

impl SortedFindings {
    pub(crate) fn new(size: OutputSize) -> SortedFindings {
        SortedFindings { size, findings: Vec::new(), held: 0, total: 0, count: 0, last_shown: None }
    }

    /// Adds a file that is itself the finding.
    pub(crate) fn add_path(&mut self, path: Vec<u8>) {
        let length = path.len() as u64;
        self.count += 1;
        self.add(Finding { path, lines: Vec::new() }, length);
    }

    /// Adds `count` lines of one file with `length` bytes in total, of which `lines` are kept.
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
        // About twice the limit, so that sorting is rare and memory stays bounded.
        if self.held > 2 * self.size.bytes() + 64 * 1024 {
            self.drop_hidden();
        }
    }

    /// Sorts, and drops what is beyond the limit.
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

    /// Adds the findings of another thread.
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

    /// The output and the number of findings.
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
        // Each finding counted a line break, but the last one has none.
        capture.skip(self.total.saturating_sub(1).saturating_sub(pushed));
        (capture, self.count)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

    use super::SortedFindings;
    use crate::output::OutputSize;

    fn size() -> OutputSize {
        OutputSize::new(OutputSize::MIN).unwrap()
    }

    /// What is shown of all lines, and how many there are.
    fn expected(mut lines: Vec<String>) -> (String, u64) {
        lines.sort();
        let (all, limit) = (lines.join("\n"), OutputSize::MIN);
        let count = lines.len() as u64;
        if all.len() <= limit {
            return (all, count);
        }
        let line = if all[..limit].ends_with('\n') { "" } else { "\n" };
        let marker = format!("[Output truncated: showing first {limit} of {} bytes]", all.len());
        (format!("{}{line}{marker}", &all[..limit]), count)
    }

    fn finish(findings: SortedFindings) -> (String, u64) {
        let (output, count) = findings.finish();
        (output.finish().text, count)
    }

    /// Paths that come in any order, through several threads, more than are held.
    fn found(paths: &[String], threads: usize) -> SortedFindings {
        let mut all = SortedFindings::new(size());
        for part in paths.chunks(paths.len().div_ceil(threads).max(1)) {
            let mut own = SortedFindings::new(size());
            part.iter().for_each(|path| own.add_path(path.clone().into_bytes()));
            all.merge(own);
        }
        all
    }

    #[test]
    fn nothing_found_is_nothing_shown() {
        assert_eq!(finish(SortedFindings::new(size())), (String::new(), 0));
    }

    #[test]
    fn paths_are_sorted_byte_by_byte_and_joined_by_line_breaks() {
        let paths = ["b", "a/b", "a.b", "ä", "B"].map(str::to_owned);
        assert_eq!(finish(found(&paths, 2)), ("B\na.b\na/b\nb\nä".to_owned(), 5));
    }

    #[test]
    fn lines_of_a_file_follow_its_path_and_keep_their_order() {
        let mut findings = SortedFindings::new(size());
        findings.add_lines(b"b".to_vec(), b"b:9: x\nb:10: x".to_vec(), 14, 2);
        findings.add_lines(b"a".to_vec(), b"a:1: x".to_vec(), 6, 1);
        assert_eq!(finish(findings), ("a:1: x\nb:9: x\nb:10: x".to_owned(), 3));
    }

    /// Only the start of a file's lines is kept; the rest is counted anyway.
    #[test]
    fn lines_that_were_not_kept_are_counted() {
        let mut findings = SortedFindings::new(size());
        let kept = "x".repeat(OutputSize::MIN + 10);
        findings.add_lines(b"a".to_vec(), kept.clone().into_bytes(), 1_000_000, 400);
        findings.add_lines(b"b".to_vec(), b"never shown".to_vec(), 11, 1);
        let marker = "[Output truncated: showing first 1024 of 1000012 bytes]";
        assert_eq!(finish(findings), (format!("{}\n{marker}", &kept[..1_024]), 401));
    }

    #[test]
    fn exactly_the_limit_is_whole() {
        let paths = ["a".repeat(511), "b".repeat(512)];
        assert_eq!(finish(found(&paths, 1)), expected(paths.to_vec()));
        assert!(!finish(found(&paths, 1)).0.contains("truncated"));
    }

    #[test]
    fn the_space_stays_bounded_however_much_is_found() {
        let mut findings = SortedFindings::new(size());
        for number in (0..100_000).rev() {
            findings.add_path(format!("{number:099}").into_bytes());
        }
        assert!(findings.held <= 2 * OutputSize::MIN + 64 * 1024 + 99, "{} bytes", findings.held);
        let all = (0..100_000).map(|number| format!("{number:099}")).collect();
        assert_eq!(finish(findings), expected(all));
    }

    proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

        #[test]
        fn any_order_and_any_number_of_threads_give_the_same(
            numbers in prop::collection::vec(0..5_000_u32, 0..400),
            width in 1..700_usize,
            threads in 1..5_usize,
        ) {
            let paths: Vec<String> = numbers.iter().map(|number| format!("{number:0width$}")).collect();
            let findings = found(&paths, threads);
            prop_assert!(findings.held <= 2 * OutputSize::MIN + 64 * 1024 + width);
            prop_assert_eq!(finish(findings), expected(paths));
        }
    }
}
