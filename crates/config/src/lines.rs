//! Lines of a text, for messages that name one.

/// Finds the line that a position of a text is in.
pub(crate) struct Lines {
    /// Where each line begins.
    starts: Vec<usize>,
}

impl Lines {
    pub(crate) fn of(text: &str) -> Lines {
        let after_breaks =
            text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Lines { starts: std::iter::once(0).chain(after_breaks).collect() }
    }

    /// The line of a position, counted from 1.
    pub(crate) fn line(&self, position: usize) -> usize {
        self.starts.partition_point(|start| *start <= position)
    }

    /// Where the line of a position begins.
    pub(crate) fn start(&self, position: usize) -> usize {
        self.starts[self.line(position) - 1]
    }
}
