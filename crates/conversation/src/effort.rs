//! Reasoning effort: how long a model thinks before it answers.

use serde::{Deserialize, Serialize};

/// How long a model thinks before it answers. Without one, the provider decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// Not at all.
    Off,
    /// Briefly.
    Low,
    /// For a while.
    Medium,
    /// As long as it takes.
    High,
}

impl Effort {
    /// All efforts, in ascending order.
    pub const ALL: [Effort; 4] = [Effort::Off, Effort::Low, Effort::Medium, Effort::High];

    /// Parses the word used in the configuration.
    pub fn parse(word: &str) -> Option<Effort> {
        Effort::ALL.into_iter().find(|effort| effort.word() == word)
    }

    /// The word used in the configuration.
    pub fn word(self) -> &'static str {
        match self {
            Effort::Off => "off",
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
        }
    }
}
