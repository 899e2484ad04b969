//! Facts about models that no response reports.

use serde::{Deserialize, Serialize};

use crate::prices::Prices;

/// What is known about a model.
///
/// ```
/// use ikigai_providers::ModelFacts;
///
/// let configured = ModelFacts { context_window: Some(8_192), ..ModelFacts::default() };
/// let listed = ModelFacts { context_window: Some(4_096), max_output: Some(512), ..ModelFacts::default() };
/// let facts = configured.or(listed);
/// assert_eq!((facts.context_window, facts.max_output), (Some(8_192), Some(512)));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelFacts {
    /// How many tokens fit into its context, input and output together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// How many tokens one response has at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    /// What its tokens cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// Whether it takes images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
    /// Whether its reasoning effort can be chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<bool>,
    /// Whether it calls tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
}

impl ModelFacts {
    /// Adds what only a source with less authority knows.
    #[must_use]
    pub fn or(self, other: ModelFacts) -> ModelFacts {
        ModelFacts {
            context_window: self.context_window.or(other.context_window),
            max_output: self.max_output.or(other.max_output),
            prices: self.prices.or(other.prices),
            images: self.images.or(other.images),
            effort: self.effort.or(other.effort),
            tools: self.tools.or(other.tools),
        }
    }
}
