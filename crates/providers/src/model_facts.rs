//! Facts about models that no server reports.

/// What is known about a model by its name.
///
/// ```
/// use ikigai_providers::ModelFacts;
///
/// assert_eq!(ModelFacts::of("claude-sonnet-4-5").context_tokens, Some(200_000));
/// assert_eq!(ModelFacts::of("my-own-model"), ModelFacts::default());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelFacts {
    /// The size of its context window in tokens.
    pub context_tokens: Option<u64>,
}

/// The starts of names, with the context windows of such models. The first match counts.
const CONTEXT_TOKENS: [(&str, u64); 8] = [
    ("gpt-5", 400_000),
    ("gpt-4.1", 1_000_000),
    ("gpt-4o", 128_000),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4", 200_000),
    ("claude-", 200_000),
    ("gemini-", 1_000_000),
];

impl ModelFacts {
    /// The facts about the model that its provider calls `name`.
    pub fn of(name: &str) -> ModelFacts {
        let known = CONTEXT_TOKENS.iter().find(|(start, _)| name.starts_with(start));
        ModelFacts { context_tokens: known.map(|(_, tokens)| *tokens) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_context_window_follows_from_the_start_of_the_name() {
        for (name, tokens) in [
            ("gpt-5-mini", Some(400_000)),
            ("gpt-4.1", Some(1_000_000)),
            ("gpt-4", None),
            ("o3-mini", Some(200_000)),
            ("claude-opus-5-5", Some(200_000)),
            ("gemini-3.8-flash", Some(1_000_000)),
            ("my-claude-", None),
            ("", None),
        ] {
            assert_eq!(ModelFacts::of(name).context_tokens, tokens, "{name}");
        }
    }
}
