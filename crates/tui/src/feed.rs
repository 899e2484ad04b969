//! The queue of news for the screen.
//!
//! An agent must not wait for the screen, so sending never waits. Deltas of an answer are joined in
//! the queue: a flood of them takes no more memory than the text itself, and the screen receives
//! all of them at once. A blocked terminal (Ctrl+S, a lost network) receives nothing. Output of
//! agents is then dropped, and read from the log afterwards.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ikigai_conversation::{Body, Message};
use ikigai_protocol::{Event, EventKind};
use tokio::sync::Notify;

use crate::news::News;

/// The limit for queued output of agents: a few screens for each of many agents, and less than the
/// scrollback keeps.
const LIMIT_BYTES: usize = 8 * 1024 * 1024;

/// Creates a queue and returns both ends.
pub fn feed() -> (Feed, Arrivals) {
    let shared = Arc::new(Shared { waiting: Mutex::default(), arrived: Notify::new() });
    (Feed(Arc::clone(&shared)), Arrivals(shared))
}

/// The sending end.
#[derive(Debug, Clone)]
pub struct Feed(Arc<Shared>);

/// The receiving end, for the screen.
#[derive(Debug)]
pub struct Arrivals(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

/// The queued news. Apart from joined deltas, there is one for each commit and command since the
/// last frame.
#[derive(Debug, Default)]
struct Waiting {
    news: VecDeque<News>,
    bytes: usize,
}

impl Waiting {
    fn push(&mut self, news: News) {
        self.bytes += speech(&news);
        match (self.news.back_mut(), news) {
            (
                Some(News::Event(Event { agent, kind: EventKind::TextDelta(text) })),
                News::Event(Event { agent: same, kind: EventKind::TextDelta(delta) }),
            ) if *agent == same => text.push_str(&delta),
            (_, news) => self.news.push_back(news),
        }
        if self.bytes > LIMIT_BYTES {
            self.news.retain(|news| speech(news) == 0 && !matches!(news, News::Missed));
            self.news.push_back(News::Missed);
            self.bytes = 0;
        }
    }
}

/// The bytes of agent output in it, which the log has as well.
fn speech(news: &News) -> usize {
    let News::Event(Event { kind, .. }) = news else { return 0 };
    match kind {
        EventKind::TextDelta(text) => text.len(),
        EventKind::Message(Message { content, body, .. }) => match body {
            Body::Assistant(_) => content.len(),
            Body::ToolCall(call) => content.len() + call.arguments.len(),
            Body::ToolResult(result) => content.len() + result.output.len(),
            Body::User | Body::System | Body::Notification(_) | Body::Summary(_) => 0,
            Body::Fork(_) | Body::Usage(_) | Body::Mark(_) | Body::Rewind(_) | Body::Clear => 0,
            Body::Trim(_) | Body::Kill(_) | Body::Interrupted(_) | Body::Command(_) => 0,
            Body::Approval(_) => 0,
        },
        // The end of a turn contains its answer, but only this event says that the turn has ended.
        EventKind::TurnEnded(_) => 0,
        EventKind::TurnStarted(_) | EventKind::Retry { .. } | EventKind::ApprovalRequested(_) => 0,
        EventKind::DatabaseUnavailable(_) | EventKind::MailHeld => 0,
        EventKind::InputRejected(_) | EventKind::AgentLost(_) => 0,
    }
}

impl Feed {
    /// Sends news to the screen, without waiting.
    pub fn give(&self, news: News) {
        lock(&self.0.waiting).push(news);
        self.0.arrived.notify_one();
    }
}

impl Arrivals {
    /// Waits until the queue is not empty, and takes everything in it.
    ///
    /// # Cancel safety
    /// Nothing is taken before it is returned.
    pub async fn next(&mut self) -> VecDeque<News> {
        loop {
            let all = std::mem::take(&mut *lock(&self.0.waiting)).news;
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
        News::Event(Event { agent, kind: EventKind::TextDelta(text.to_owned()) })
    }

    #[tokio::test]
    async fn deltas_of_one_answer_are_joined_and_order_is_kept() {
        let (feed, mut arrivals) = feed();
        for news in [text(0, "a"), text(0, "b"), text(1, "c"), text(0, "d")] {
            feed.give(news);
        }
        let all = format!("{:?}", arrivals.next().await);
        let expected = format!("{:?}", [text(0, "ab"), text(1, "c"), text(0, "d")]);
        assert_eq!(all, expected);
    }

    #[tokio::test]
    async fn output_for_a_blocked_terminal_is_dropped_with_a_notice() {
        let (feed, mut arrivals) = feed();
        let piece = "x".repeat(100_000);
        feed.give(News::Edited(None));
        for number in 0..200 {
            feed.give(text(number % 2, &piece));
        }
        let all = arrivals.next().await;
        assert!(all.iter().map(speech).sum::<usize>() <= LIMIT_BYTES);
        let missed = |news: &&News| matches!(news, News::Missed);
        assert_eq!(all.iter().filter(missed).count(), 1);
        assert!(matches!(all.front(), Some(News::Edited(None))), "what is no speech stays");
    }
}
