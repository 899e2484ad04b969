//! What a running command prints, line by line.

use ikigai_protocol::{output_line, output_preview};

/// The output of the running command that was shown.
#[derive(Debug, Default)]
pub(crate) struct LiveLines {
    /// A line whose end has not arrived.
    partial: String,
    /// How many lines were passed on.
    passed: usize,
    /// Whether the agent left something out, so that the lines cannot be counted.
    has_gap: bool,
}

impl LiveLines {
    /// Takes more output; `skipped` bytes before it are missing. Gives the lines to show: the latest
    /// of them, so that a flood can still be read.
    pub(crate) fn push(&mut self, delta: &str, skipped: u64) -> Vec<String> {
        /// A longer line is cut; the log has all of it.
        const PARTIAL: usize = 4 * 1024;
        if skipped > 0 {
            self.has_gap = true;
            self.partial.clear();
        }
        self.partial.push_str(delta);
        let Some(end) = self.partial.rfind('\n') else {
            self.partial.truncate(self.partial.floor_char_boundary(PARTIAL));
            return Vec::new();
        };
        let complete: String = self.partial.drain(..=end).collect();
        self.passed += complete.lines().count();
        output_preview(&complete)
    }

    /// Whether anything was shown.
    pub(crate) fn has_begun(&self) -> bool {
        self.passed > 0
    }

    /// The lines to show at the end of the command, whose output is this.
    pub(crate) fn rest(&self, output: &str) -> Vec<String> {
        match self.has_gap {
            true => output_preview(output),
            false => output.lines().skip(self.passed).map(output_line).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_shown_once_and_the_rest_at_the_end() {
        let mut live = LiveLines::default();
        assert_eq!(live.push("one\ntw", 0), ["  │ one"]);
        assert_eq!(live.push("o\n", 0), ["  │ two"]);
        assert_eq!(live.rest("one\ntwo\nthree"), ["  │ three"]);
    }

    #[test]
    fn a_flood_shows_its_latest_lines() {
        let mut live = LiveLines::default();
        let lines: String = (1..=100).map(|number| format!("{number}\n")).collect();
        let shown = live.push(&lines, 0);
        assert_eq!(shown[..2], ["  │ … 95 more lines", "  │ 96"]);
        assert_eq!(live.push("x\n", 10), ["  │ x"]);
        assert_eq!(live.rest("y\nz"), ["  │ y", "  │ z"], "with a gap, the end is shown");
    }
}
