//! The facts about a model in use, by their sources. Better ones may arrive while it is used.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use tokio::sync::watch;

use crate::model_facts::ModelFacts;

/// Looks up facts in sources that take time: files, the bundled table and the server's list.
pub type Lookup = Box<dyn FnOnce(&KnownFacts) + Send>;

/// The facts about a model that are known so far, shared by all who use it.
#[derive(Clone)]
pub struct KnownFacts(Arc<Shared>);

struct Shared {
    sources: Mutex<Sources>,
    /// What is left to look up.
    lookup: Mutex<Option<Lookup>>,
    progress: watch::Sender<Progress>,
}

/// By authority: the user, the server, the table.
#[derive(Default)]
struct Sources {
    configured: ModelFacts,
    listed: ModelFacts,
    bundled: ModelFacts,
    /// The window that the server named when it refused a request.
    named_window: Option<u64>,
    /// Names in the server's list that are similar, if the list does not have the model.
    similar: Vec<String>,
}

/// How far the lookup is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Progress {
    Open,
    /// What is still looked up is not worth waiting for.
    Settled,
    Done,
}

impl Default for KnownFacts {
    fn default() -> KnownFacts {
        KnownFacts::new(ModelFacts::default())
    }
}

impl KnownFacts {
    /// Facts that the user has configured, and nothing to look up.
    pub fn new(configured: ModelFacts) -> KnownFacts {
        KnownFacts::of(configured, None)
    }

    /// Facts that the user has configured. `lookup` adds to them once they are needed.
    pub fn with_lookup(configured: ModelFacts, lookup: Lookup) -> KnownFacts {
        KnownFacts::of(configured, Some(lookup))
    }

    fn of(configured: ModelFacts, lookup: Option<Lookup>) -> KnownFacts {
        let progress = if lookup.is_none() { Progress::Done } else { Progress::Open };
        let sources = Sources { configured, ..Sources::default() };
        let (sources, lookup) = (Mutex::new(sources), Mutex::new(lookup));
        KnownFacts(Arc::new(Shared { sources, lookup, progress: watch::Sender::new(progress) }))
    }

    /// What is known now.
    pub fn now(&self) -> ModelFacts {
        let sources = lock(&self.0.sources);
        let Sources { configured, listed, bundled, named_window, .. } = &*sources;
        let mut facts = configured.clone().or(listed.clone()).or(bundled.clone());
        facts.context_window = match (facts.context_window, *named_window) {
            (Some(known), Some(named)) => Some(known.min(named)),
            (known, named) => known.or(named),
        };
        facts
    }

    /// Adds what the server's list says.
    pub fn add_listed(&self, facts: ModelFacts) {
        lock(&self.0.sources).listed = facts;
    }

    /// Adds what the bundled table says.
    pub fn add_bundled(&self, facts: ModelFacts) {
        lock(&self.0.sources).bundled = facts;
    }

    /// Adds the window that the server named when it refused a request.
    pub fn add_named_window(&self, window: u64) {
        lock(&self.0.sources).named_window = Some(window);
    }

    /// Adds the names that are similar to the model's, which the server's list does not have.
    pub fn add_similar(&self, names: Vec<String>) {
        lock(&self.0.sources).similar = names;
    }

    /// Says that the rest of the lookup is not worth waiting for.
    pub fn settle(&self) {
        self.advance(Progress::Settled);
    }

    /// Starts the lookup on a thread of its own, unless it has started: it takes up to 20 ms of
    /// processor time and an answer of the server, for which no request should wait.
    pub fn look_up(&self) {
        let Some(lookup) = lock(&self.0.lookup).take() else { return };
        let known = self.clone();
        let look = move || {
            let done = Done(known);
            lookup(&done.0);
        };
        let started = thread::Builder::new().name("model facts".to_owned()).spawn(look);
        if started.is_err() {
            // Without a thread, what is known has to do.
            self.advance(Progress::Done);
        }
    }

    /// What is known once the lookup has settled.
    pub async fn looked_up(&self) -> ModelFacts {
        self.wait_for(Progress::Settled).await;
        self.now()
    }

    /// The names that are similar to the model's in the server's list, once the lookup is done.
    /// Empty if the list has the model, or there is none.
    pub async fn similar_names(&self) -> Vec<String> {
        self.wait_for(Progress::Done).await;
        lock(&self.0.sources).similar.clone()
    }

    async fn wait_for(&self, wanted: Progress) {
        self.look_up();
        let mut progress = self.0.progress.subscribe();
        // The sender lives as long as `self`.
        let _ = progress.wait_for(|progress| *progress >= wanted).await;
    }

    fn advance(&self, to: Progress) {
        self.0.progress.send_modify(|progress| *progress = to.max(*progress));
    }
}

/// Ends the lookup when dropped, even by a panic: a waiting agent must go on.
struct Done(KnownFacts);

impl Drop for Done {
    fn drop(&mut self) {
        self.0.advance(Progress::Done);
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
    async fn the_user_wins_over_the_server_and_the_server_over_the_table() {
        let lookup = |known: &KnownFacts| {
            known.add_bundled(ModelFacts { tools: Some(true), max_output: Some(7), ..window(3) });
            known.add_listed(ModelFacts { max_output: Some(5), ..window(2) });
        };
        let known = KnownFacts::with_lookup(window(1), Box::new(lookup));
        assert_eq!(known.now(), window(1));
        let facts = known.looked_up().await;
        let expected = ModelFacts { tools: Some(true), max_output: Some(5), ..window(1) };
        assert_eq!(facts, expected);
        assert_eq!((known.now(), known.clone().looked_up().await), (facts.clone(), facts));
    }

    #[test]
    fn a_refusal_narrows_the_window_or_makes_it_known() {
        for (configured, named, expected) in [(Some(10), 4, 4), (Some(3), 4, 3), (None, 4, 4)] {
            let facts = ModelFacts { context_window: configured, ..ModelFacts::default() };
            let known = KnownFacts::new(facts);
            known.add_named_window(named);
            assert_eq!(known.now(), window(expected));
        }
    }

    #[tokio::test]
    async fn what_is_settled_is_not_waited_for() {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let lookup = move |known: &KnownFacts| {
            known.add_bundled(window(1));
            known.settle();
            let _ = receiver.recv();
            known.add_similar(vec!["other".to_owned()]);
        };
        let known = KnownFacts::with_lookup(ModelFacts::default(), Box::new(lookup));
        assert_eq!(known.looked_up().await, window(1));
        drop(sender);
        assert_eq!(known.similar_names().await, ["other"]);
    }

    #[tokio::test]
    async fn a_lookup_that_panics_leaves_what_is_known() {
        let known = KnownFacts::with_lookup(window(1), Box::new(|_| panic!("a wrong table")));
        assert_eq!(known.looked_up().await, window(1));
    }
}
