//! Facts about models that no response reports.

use std::sync::{Arc, Mutex, PoisonError};

/// What is known about a model.
///
/// ```
/// use ikigai_providers::ModelFacts;
///
/// assert_eq!(ModelFacts::of("claude-sonnet-4-5").context_window, Some(200_000));
/// assert_eq!(ModelFacts::of("my-own-model"), ModelFacts::default());
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelFacts {
    /// How many tokens fit into its context, input and output together.
    pub context_window: Option<u64>,
    /// How many tokens one response has at most.
    pub max_output: Option<u64>,
    /// What its tokens cost.
    pub prices: Option<Prices>,
}

/// What a model's tokens cost, in USD per million.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    /// Tokens sent that came from no cache.
    pub input: f64,
    /// Tokens sent that came from a cache.
    pub cached: f64,
    /// Tokens sent that were written to a cache.
    pub cache_write: f64,
    /// Tokens received.
    pub output: f64,
}

/// The facts about a model that are known so far. Better ones may arrive while it is used.
#[derive(Debug, Clone, Default)]
pub struct KnownFacts(Arc<Mutex<ModelFacts>>);

impl KnownFacts {
    /// Starts with these facts.
    pub fn new(facts: ModelFacts) -> KnownFacts {
        KnownFacts(Arc::new(Mutex::new(facts)))
    }

    /// What is known now.
    pub fn now(&self) -> ModelFacts {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds or corrects facts, for every holder of them.
    pub fn update(&self, change: impl FnOnce(&mut ModelFacts)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
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
        ModelFacts { context_window: known.map(|(_, tokens)| *tokens), ..ModelFacts::default() }
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
            assert_eq!(ModelFacts::of(name).context_window, tokens, "{name}");
        }
    }
}
