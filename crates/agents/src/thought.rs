//! What a model thinks before it answers, as far as its provider shows it.

use std::time::{Duration, Instant};

use ikigai_conversation::{NewMessage, THINKING_LIMIT};

/// The thinking of one response.
#[derive(Debug)]
pub(crate) struct Thought {
    text: String,
    /// How many more bytes are kept.
    room: usize,
    started: Instant,
    duration: Duration,
}

impl Thought {
    pub(crate) fn start() -> Thought {
        let (started, duration) = (Instant::now(), Duration::ZERO);
        Thought { text: String::new(), room: THINKING_LIMIT, started, duration }
    }

    /// Adds a piece. What exceeds the limit is dropped.
    pub(crate) fn add(&mut self, piece: &str) {
        let kept = piece.floor_char_boundary(self.room);
        self.text.push_str(&piece[..kept]);
        self.room = if kept < piece.len() { 0 } else { self.room - kept };
        self.duration = self.started.elapsed();
    }

    /// Adds it to the first message of the response.
    pub(crate) fn add_to(self, message: NewMessage) -> NewMessage {
        message.with_thinking(self.text, self.duration)
    }
}

#[cfg(test)]
mod tests {
    use ikigai_conversation::{Body, ResponseId};

    use super::*;

    #[test]
    fn a_long_thought_is_cut_between_characters() {
        let mut thought = Thought::start();
        for piece in ["x", &"ü".repeat(THINKING_LIMIT), "y"] {
            thought.add(piece);
        }
        let message = thought.add_to(NewMessage::assistant("hi", ResponseId::new("r")));
        let Body::Assistant(answer) = message.body else { panic!("an answer") };
        let kept = format!("x{}", "ü".repeat((THINKING_LIMIT - 1) / 2));
        assert_eq!(answer.thinking, Some(kept));
        assert!(answer.thinking_ms.is_some());
    }
}
