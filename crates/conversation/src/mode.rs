//! Modes: what agents may do without a rule or approval.

use serde::{Deserialize, Serialize};

/// What agents may do without a rule or approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Read in the working tree; no commands.
    Read,
    /// Read and write in the working tree; run commands in the sandbox.
    Work,
    /// Everything that the user may do, without questions.
    Full,
}

impl Mode {
    /// Parses the word used in the configuration.
    pub fn parse(word: &str) -> Option<Mode> {
        match word {
            "read" => Some(Mode::Read),
            "work" => Some(Mode::Work),
            "full" => Some(Mode::Full),
            _ => None,
        }
    }

    /// The word used in the configuration.
    pub fn word(self) -> &'static str {
        match self {
            Mode::Read => "read",
            Mode::Work => "work",
            Mode::Full => "full",
        }
    }
}
