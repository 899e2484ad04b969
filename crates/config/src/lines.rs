//! Line numbers of a text, for messages.

/// Finds the line of a position in a text.
pub(crate) struct Lines {
    /// Where each line starts.
    starts: Vec<usize>,
}

impl Lines {
    pub(crate) fn of(text: &str) -> Lines {
        let after_breaks =
            text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Lines { starts: std::iter::once(0).chain(after_breaks).collect() }
    }

    /// The number of the line at a position, counted from 1.
    pub(crate) fn line(&self, position: usize) -> usize {
        self.starts.partition_point(|start| *start <= position)
    }

    /// Where the line at a position starts.
    pub(crate) fn start(&self, position: usize) -> usize {
        self.starts[self.line(position) - 1]
    }
}
