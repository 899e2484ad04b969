//! Limits for what is kept of a response. A server that never stops must not fill the memory.

use crate::fault::{Category, Fault};

/// Text, arguments and extras of one response together. The longest responses of current models
/// have about 128,000 tokens, well below a tenth of it.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// Calls and other blocks of one response. A model that makes a thousand
/// calls at once is out of control.
const MAX_PARTS: usize = 1_000;

/// Counts what is kept of one response.
#[derive(Debug, Default)]
pub(crate) struct Bounds {
    bytes: usize,
    parts: usize,
}

impl Bounds {
    /// Counts bytes that are about to be kept.
    pub(crate) fn add_bytes(&mut self, bytes: usize) -> Result<(), Fault> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes <= MAX_BYTES {
            return Ok(());
        }
        let limit = MAX_BYTES / (1024 * 1024);
        Err(Fault::new(Category::Unreadable, format!("the response is longer than {limit} MiB")))
    }

    /// Counts a block or call that is about to be kept.
    pub(crate) fn add_part(&mut self) -> Result<(), Fault> {
        self.parts += 1;
        if self.parts <= MAX_PARTS {
            return Ok(());
        }
        Err(Fault::new(
            Category::Unreadable,
            format!("the response has more than {MAX_PARTS} parts"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_has_a_limit_of_bytes_and_of_parts() {
        let mut bounds = Bounds::default();
        assert_eq!(bounds.add_bytes(MAX_BYTES), Ok(()));
        let fault = bounds.add_bytes(1).unwrap_err();
        assert_eq!(fault.message, "the response is longer than 32 MiB");
        assert!(bounds.add_bytes(usize::MAX).is_err());

        let mut bounds = Bounds::default();
        for _ in 0..MAX_PARTS {
            assert_eq!(bounds.add_part(), Ok(()));
        }
        let fault = bounds.add_part().unwrap_err();
        assert_eq!(fault.message, "the response has more than 1000 parts");
    }
}
