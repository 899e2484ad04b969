//! The queue of updates for the screen.
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

use crate::update::Update;

/// The limit for queued output of agents: a few screens for each of many agents, and less than the
/// scrollback keeps.
const LIMIT_BYTES: usize = 8 * 1024 * 1024;

/// Creates a queue and returns both ends.
pub fn feed() -> (Feed, Updates) {
    let shared = Arc::new(Shared { waiting: Mutex::default(), arrived: Notify::new() });
    (Feed(Arc::clone(&shared)), Updates(shared))
}

/// The sending end.
#[derive(Debug, Clone)]
pub struct Feed(Arc<Shared>);

/// The receiving end, for the screen.
#[derive(Debug)]
pub struct Updates(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

/// The queued updates. Apart from joined deltas, there is one for each commit and command since the
/// last frame.
#[derive(Debug, Default)]
struct Waiting {
    updates: VecDeque<Update>,
    bytes: usize,
}

impl Waiting {
    fn push(&mut self, update: Update) {
        let Some(update) = self.join_output(update) else { return };
        self.bytes += output_bytes(&update);
        match (self.updates.back_mut(), update) {
            (
                Some(Update::Event(Event { agent, kind: EventKind::TextDelta(text) })),
                Update::Event(Event { agent: same, kind: EventKind::TextDelta(delta) }),
            ) if *agent == same => text.push_str(&delta),
            (_, update) => self.updates.push_back(update),
        }
        if self.bytes > LIMIT_BYTES {
            self.updates
                .retain(|update| output_bytes(update) == 0 && !matches!(update, Update::Dropped));
            self.updates.push_back(Update::Dropped);
            self.bytes = 0;
        }
    }

    /// Joins the output of a command with what waits of it already. Only its end is shown, so that
    /// is all that is kept: however long the terminal is blocked, it takes no more memory.
    fn join_output(&mut self, update: Update) -> Option<Update> {
        /// More than the few lines that are shown.
        const KEPT: usize = 4 * 1024;
        /// About as many agents as print at once. Behind them, output waits twice.
        const LOOKED_AT: usize = 64;
        let Update::Event(Event { agent, kind: EventKind::ToolOutput { call, delta, skipped } }) =
            update
        else {
            return Some(update);
        };
        let before = self.updates.iter_mut().rev().take(LOOKED_AT);
        let mut of_agent = before.filter_map(|update| match update {
            Update::Event(event) if event.agent == agent => Some(&mut event.kind),
            _ => None,
        });
        match of_agent.next() {
            Some(EventKind::ToolOutput { call: same, delta: waiting, skipped: left_out })
                if *same == call =>
            {
                let had = waiting.len();
                if skipped > 0 {
                    *left_out += skipped + waiting.len() as u64;
                    waiting.clear();
                }
                waiting.push_str(&delta);
                let from = waiting.ceil_char_boundary(waiting.len().saturating_sub(KEPT));
                *left_out += from as u64;
                waiting.drain(..from);
                self.bytes = (self.bytes + waiting.len()).saturating_sub(had);
                None
            }
            _ => {
                let kind = EventKind::ToolOutput { call, delta, skipped };
                Some(Update::Event(Event { agent, kind }))
            }
        }
    }
}

/// The bytes of agent output in an update. The log has all of that output.
fn output_bytes(update: &Update) -> usize {
    let Update::Event(Event { kind, .. }) = update else { return 0 };
    match kind {
        EventKind::TextDelta(text) | EventKind::ThinkingDelta(text) => text.len(),
        EventKind::ToolOutput { delta, .. } | EventKind::CommandOutput { delta, .. } => delta.len(),
        EventKind::CommandStarted { .. } | EventKind::CommandEnded { .. } => 0,
        EventKind::CommandLost { .. } => 0,
        EventKind::CallProgress { name, subject, .. } => {
            name.len() + subject.as_ref().map_or(0, String::len)
        }
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
        EventKind::DatabaseUnavailable(_) | EventKind::MailHeld | EventKind::Warning(_) => 0,
        EventKind::ContextUsed { .. } | EventKind::Compaction(_) | EventKind::ReadsStarted(_) => 0,
        EventKind::InputRejected(_) | EventKind::AgentLost(_) | EventKind::EffortRefused(_) => 0,
    }
}

impl Feed {
    /// Sends an update to the screen, without waiting.
    pub fn send(&self, update: Update) {
        lock(&self.0.waiting).push(update);
        self.0.arrived.notify_one();
    }
}

impl Updates {
    /// Waits until the queue is not empty, and takes everything in it.
    ///
    /// # Cancel safety
    /// Nothing is taken before it is returned.
    pub async fn next(&mut self) -> VecDeque<Update> {
        loop {
            let all = std::mem::take(&mut *lock(&self.0.waiting)).updates;
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

    fn text(agent: u32, text: &str) -> Update {
        let agent = AgentId::top_level(agent);
        Update::Event(Event { agent, kind: EventKind::TextDelta(text.to_owned()) })
    }

    #[tokio::test]
    async fn deltas_of_one_answer_are_joined_and_order_is_kept() {
        let (feed, mut updates) = feed();
        for update in [text(0, "a"), text(0, "b"), text(1, "c"), text(0, "d")] {
            feed.send(update);
        }
        let all = format!("{:?}", updates.next().await);
        let expected = format!("{:?}", [text(0, "ab"), text(1, "c"), text(0, "d")]);
        assert_eq!(all, expected);
    }

    #[tokio::test]
    async fn output_of_many_commands_waits_as_its_end_only() {
        let (feed, mut updates) = feed();
        let call = ikigai_conversation::ToolCallId::new("c");
        for number in 0..1_000 {
            for agent in 0..50 {
                let delta = format!("{number} {}\n", "x".repeat(4_000));
                let kind = EventKind::ToolOutput { call: call.clone(), delta, skipped: 0 };
                feed.send(Update::Event(Event { agent: AgentId::top_level(agent), kind }));
            }
        }
        let all = updates.next().await;
        assert_eq!(all.len(), 50);
        for update in &all {
            let Update::Event(Event { kind: EventKind::ToolOutput { delta, skipped, .. }, .. }) =
                update
            else {
                unreachable!("only output was sent")
            };
            assert!(delta.len() <= 4 * 1024 && delta.contains("999 x"), "{}", delta.len());
            let sent: usize = (0..1_000).map(|number| format!("{number}").len() + 4_002).sum();
            assert_eq!(delta.len() as u64 + skipped, sent as u64);
        }
    }

    #[tokio::test]
    async fn output_for_a_blocked_terminal_is_dropped_with_a_notice() {
        let (feed, mut updates) = feed();
        let piece = "x".repeat(100_000);
        feed.send(Update::Edited(None));
        for number in 0..200 {
            feed.send(text(number % 2, &piece));
        }
        let all = updates.next().await;
        assert!(all.iter().map(output_bytes).sum::<usize>() <= LIMIT_BYTES);
        let dropped = |update: &&Update| matches!(update, Update::Dropped);
        assert_eq!(all.iter().filter(dropped).count(), 1);
        assert!(matches!(all.front(), Some(Update::Edited(None))), "other updates stay");
    }
}
