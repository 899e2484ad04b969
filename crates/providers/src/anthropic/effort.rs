//! Reasoning effort in a Messages request. Models since Claude 4.6 decide themselves how long they
//! think, within an effort. Older ones get a number of tokens, and so does everything that is not
//! a Claude.

use ikigai_conversation::Effort;
use serde::Serialize;

use super::encode::max_tokens;

/// The field `thinking`.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Thinking {
    Disabled,
    Enabled {
        budget_tokens: u32,
    },
    Adaptive {
        /// By default the latest models do not show what they think.
        display: &'static str,
    },
}

/// The field `output_config`, for adaptive thinking.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct OutputConfig {
    effort: &'static str,
}

/// The least that the API accepts.
const SMALLEST_BUDGET: u32 = 1_024;

impl Thinking {
    pub(super) fn of(effort: Effort, model: &str) -> Thinking {
        let budget_tokens = match effort {
            Effort::Off => return Thinking::Disabled,
            _ if is_adaptive(model) => return Thinking::Adaptive { display: "summarized" },
            Effort::Low => 4_096,
            Effort::Medium => 10_240,
            Effort::High => 16_000,
        };
        // The answer has to fit too.
        let half = max_tokens(model) / 2;
        Thinking::Enabled { budget_tokens: budget_tokens.min(half).max(SMALLEST_BUDGET) }
    }
}

impl OutputConfig {
    pub(super) fn of(effort: Effort, model: &str) -> Option<OutputConfig> {
        let is_sent = effort != Effort::Off && is_adaptive(model);
        is_sent.then(|| OutputConfig { effort: effort.word() })
    }
}

/// Whether a model is a Claude since version 4.6. A name without a version stands for the latest.
fn is_adaptive(model: &str) -> bool {
    let Some((_, name)) = model.rsplit_once("claude-") else { return false };
    // Gateways write a dot where the API has a hyphen. Longer numbers are dates.
    let words = name.split(['-', '.', ':', '@']).filter(|word| word.len() <= 2);
    let numbers: Vec<u32> = words.filter_map(|word| word.parse().ok()).collect();
    match numbers.as_slice() {
        [] => true,
        [major] => *major >= 5,
        [major, minor, ..] => (*major, *minor) >= (4, 6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anthropic::Anthropic;
    use crate::testing::sent_for_effort;

    #[test]
    fn older_models_get_a_budget_at_the_end() {
        let sent = |model, effort| sent_for_effort(&Anthropic, model, effort);
        let off = r#","thinking":{"type":"disabled"}"#;
        let budget =
            |tokens: u32| format!(r#","thinking":{{"type":"enabled","budget_tokens":{tokens}}}"#);
        for model in ["claude-sonnet-4-5", "scripted"] {
            assert_eq!(sent(model, Effort::Off), off);
            assert_eq!(sent(model, Effort::Low), budget(4_096));
            assert_eq!(sent(model, Effort::Medium), budget(10_240));
            assert_eq!(sent(model, Effort::High), budget(16_000));
        }
        assert_eq!(sent("claude-3-haiku-20240307", Effort::High), budget(2_048));
    }

    #[test]
    fn later_models_get_an_effort() {
        let sent = |effort| sent_for_effort(&Anthropic, "claude-opus-4-7", effort);
        assert_eq!(sent(Effort::Off), r#","thinking":{"type":"disabled"}"#);
        for effort in [Effort::Low, Effort::Medium, Effort::High] {
            let name = effort.word();
            let adaptive = r#""thinking":{"type":"adaptive","display":"summarized"}"#;
            let expected = format!(r#",{adaptive},"output_config":{{"effort":"{name}"}}"#);
            assert_eq!(sent(effort), expected);
        }
    }

    #[test]
    fn the_version_is_in_the_name() {
        for (model, expected) in [
            ("claude-3-7-sonnet-20250219", false),
            ("claude-3.5-haiku", false),
            ("claude-sonnet-4-20250514", false),
            ("claude-opus-4-1", false),
            ("anthropic/claude-sonnet-4.5", false),
            ("claude-haiku-4-5-20251001", false),
            ("claude-opus-4-6", true),
            ("anthropic/claude-opus-4.6", true),
            ("claude-sonnet-5", true),
            ("claude-opus-5-5-20270101", true),
            ("us.anthropic.claude-opus-4-6-v1:0", true),
            ("claude-mythos-preview", true),
            ("MiniMax-M2", false),
            ("scripted", false),
        ] {
            assert_eq!(is_adaptive(model), expected, "{model}");
        }
    }
}
