//! Facts about models that no response reports.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

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

/// Looks up facts in sources that take time: files and the bundled table.
pub type Lookup = Box<dyn FnOnce() -> ModelFacts + Send>;

/// The facts about a model that are known so far. Better ones may arrive while it is used.
#[derive(Clone)]
pub struct KnownFacts(Arc<Shared>);

struct Shared {
    facts: Mutex<ModelFacts>,
    /// What is left to look up.
    lookup: Mutex<Option<Lookup>>,
    is_looked_up: watch::Sender<bool>,
}

impl Default for KnownFacts {
    fn default() -> KnownFacts {
        KnownFacts::new(ModelFacts::default())
    }
}

impl KnownFacts {
    /// Starts with these facts, and there is nothing to look up.
    pub fn new(facts: ModelFacts) -> KnownFacts {
        KnownFacts::of(facts, None)
    }

    /// Starts with these facts. What `lookup` finds is added once it is needed.
    pub fn with_lookup(facts: ModelFacts, lookup: Lookup) -> KnownFacts {
        KnownFacts::of(facts, Some(lookup))
    }

    fn of(facts: ModelFacts, lookup: Option<Lookup>) -> KnownFacts {
        let is_looked_up = watch::Sender::new(lookup.is_none());
        let (facts, lookup) = (Mutex::new(facts), Mutex::new(lookup));
        KnownFacts(Arc::new(Shared { facts, lookup, is_looked_up }))
    }

    /// What is known now.
    pub fn now(&self) -> ModelFacts {
        lock(&self.0.facts).clone()
    }

    /// Adds or corrects facts, for every holder of them.
    pub fn update(&self, change: impl FnOnce(&mut ModelFacts)) {
        change(&mut lock(&self.0.facts));
    }

    /// Starts the lookup on a thread of its own, unless it has started: it takes up to 20 ms of
    /// processor time, for which no request should wait.
    pub fn look_up(&self) {
        let Some(lookup) = lock(&self.0.lookup).take() else { return };
        let known = self.clone();
        let look = move || {
            let done = Done(known);
            let found = lookup();
            done.0.update(|facts| *facts = std::mem::take(facts).or(found));
        };
        let started = thread::Builder::new().name("model facts".to_owned()).spawn(look);
        if started.is_err() {
            // Without a thread, what is known has to do.
            self.0.is_looked_up.send_replace(true);
        }
    }

    /// What is known when the lookup is done.
    pub async fn looked_up(&self) -> ModelFacts {
        self.look_up();
        let mut is_looked_up = self.0.is_looked_up.subscribe();
        // The sender lives as long as `self`.
        let _ = is_looked_up.wait_for(|done| *done).await;
        self.now()
    }
}

/// Ends the lookup when dropped, even by a panic: a waiting agent must go on.
struct Done(KnownFacts);

impl Drop for Done {
    fn drop(&mut self) {
        self.0.0.is_looked_up.send_replace(true);
    }
}

impl fmt::Debug for KnownFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KnownFacts").field(&self.now()).finish()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(tokens: u64) -> ModelFacts {
        ModelFacts { context_window: Some(tokens), ..ModelFacts::default() }
    }

    #[tokio::test]
    async fn what_is_known_wins_over_what_is_looked_up() {
        let found = ModelFacts { max_output: Some(5), ..window(2) };
        let known = KnownFacts::with_lookup(window(1), Box::new(|| found));
        assert_eq!(known.now(), window(1));
        let facts = known.looked_up().await;
        assert_eq!(facts, ModelFacts { max_output: Some(5), ..window(1) });
        assert_eq!((known.now(), known.clone().looked_up().await), (facts.clone(), facts));
    }

    #[tokio::test]
    async fn a_lookup_that_panics_leaves_what_is_known() {
        let known = KnownFacts::with_lookup(window(1), Box::new(|| panic!("a wrong table")));
        assert_eq!(known.looked_up().await, window(1));
    }
}
