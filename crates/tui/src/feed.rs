//! The way of news to the screen.
//!
//! An agent must not wait for the screen, so whoever gives never waits. The pieces of an answer are joined while they lie
//! here: a flood of them takes no more room than the text itself, and the screen takes all at once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ikigai_agents::{Event, Happening};
use tokio::sync::Notify;

use crate::news::News;

/// Both ends of a new feed.
pub fn feed() -> (Feed, Arrivals) {
    let shared = Arc::new(Shared { waiting: Mutex::default(), arrived: Notify::new() });
    (Feed(Arc::clone(&shared)), Arrivals(shared))
}

/// The end that news are given to.
#[derive(Debug, Clone)]
pub struct Feed(Arc<Shared>);

/// The screen's end.
#[derive(Debug)]
pub struct Arrivals(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Apart from joined text, as many as there were commits and commands since the last frame.
    waiting: Mutex<VecDeque<News>>,
    arrived: Notify,
}

impl Feed {
    /// Gives news to the screen, at once.
    pub fn give(&self, news: News) {
        let mut waiting = lock(&self.0.waiting);
        match (waiting.back_mut(), news) {
            (
                Some(News::Event(Event { agent, happening: Happening::Text(text) })),
                News::Event(Event { agent: same, happening: Happening::Text(delta) }),
            ) if *agent == same => text.push_str(&delta),
            (_, news) => waiting.push_back(news),
        }
        drop(waiting);
        self.0.arrived.notify_one();
    }
}

impl Arrivals {
    /// Waits until there is something, and takes all of it.
    ///
    /// # Cancel safety
    /// Nothing is taken before it is returned.
    pub async fn next(&mut self) -> VecDeque<News> {
        loop {
            let all = std::mem::take(&mut *lock(&self.0.waiting));
            if !all.is_empty() {
                return all;
            }
            self.0.arrived.notified().await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use ikigai_conversation::AgentId;

    use super::*;

    fn text(agent: u32, text: &str) -> News {
        let agent = AgentId::top_level(agent);
        News::Event(Event { agent, happening: Happening::Text(text.to_owned()) })
    }

    #[tokio::test]
    async fn pieces_of_one_answer_are_joined_and_order_is_kept() {
        let (feed, mut arrivals) = feed();
        for news in [text(0, "a"), text(0, "b"), text(1, "c"), text(0, "d")] {
            feed.give(news);
        }
        let all = format!("{:?}", arrivals.next().await);
        let expected = format!("{:?}", [text(0, "ab"), text(1, "c"), text(0, "d")]);
        assert_eq!(all, expected);
    }
}
