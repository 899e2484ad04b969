//! What an agent is doing, and the line that shows it.

use std::time::Duration;

use ikigai_protocol::AgentState;
use ratatui_core::text::{Line, Span};

use crate::safe::safe_line;
use crate::style::{CALL, DIM, WARNING};
use crate::wrap::fit;

/// The time between two frames of the spinner.
pub(crate) const SPINNER_INTERVAL: Duration = Duration::from_millis(120);
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Activity {
    Idle,
    Busy {
        /// When the turn started.
        since: Duration,
        phase: Phase,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The model has not started to answer yet.
    Waiting,
    Thinking,
    Answering,
    /// A tool runs; the call as a line.
    Tool(String),
    Asking,
    Retry {
        attempt: u32,
        reason: String,
        at: Duration,
    },
    /// The database is unavailable, for this reason.
    Database(String),
}

impl Activity {
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self, Activity::Busy { .. })
    }

    /// The state as the agent list shows it.
    pub(crate) fn state(&self) -> AgentState {
        match self {
            Activity::Idle => AgentState::Idle,
            Activity::Busy { phase: Phase::Tool(_), .. } => AgentState::Tool,
            Activity::Busy { phase: Phase::Asking, .. } => AgentState::Asking,
            Activity::Busy {
                phase: Phase::Waiting | Phase::Thinking | Phase::Answering, ..
            } => AgentState::Waiting,
            Activity::Busy { phase: Phase::Retry { .. } | Phase::Database(_), .. } => {
                AgentState::Waiting
            }
        }
    }

    /// Starts a turn.
    pub(crate) fn start(&mut self, now: Duration) {
        *self = Activity::Busy { since: now, phase: Phase::Waiting };
    }

    /// Changes the activity; the start of the turn may not have been seen.
    pub(crate) fn set_phase(&mut self, phase: Phase, now: Duration) {
        match self {
            Activity::Busy { phase: current, .. } => *current = phase,
            Activity::Idle => *self = Activity::Busy { since: now, phase },
        }
    }

    /// The line, while the agent is busy.
    pub(crate) fn render(&self, model: &str, now: Duration, width: usize) -> Option<Line<'static>> {
        let Activity::Busy { since, phase } = self else { return None };
        let elapsed = now.saturating_sub(*since);
        let spinner =
            SPINNER[(elapsed.as_millis() / SPINNER_INTERVAL.as_millis()) as usize % SPINNER.len()];
        let (text, style) = match phase {
            Phase::Waiting => (format!("waiting for {model}"), DIM),
            Phase::Thinking => (format!("{model} thinks"), DIM),
            Phase::Answering => (format!("{model} answers"), DIM),
            Phase::Tool(call) => (call.clone(), DIM),
            Phase::Asking => ("waiting for your answer".to_owned(), WARNING),
            Phase::Retry { attempt, reason, at } => {
                let left = at.saturating_sub(now).as_secs_f32();
                (format!("⚠ {reason}; retry {attempt} in {left:.0} s"), WARNING)
            }
            Phase::Database(reason) => (format!("⚠ {reason}; waiting"), WARNING),
        };
        let elapsed = elapsed_text(elapsed);
        let tail = match phase {
            // The question shows the keys for the answer.
            Phase::Asking => format!(" · {elapsed}"),
            Phase::Waiting
            | Phase::Thinking
            | Phase::Answering
            | Phase::Tool(_)
            | Phase::Retry { .. }
            | Phase::Database(_) => {
                format!(" · {elapsed} · Esc interrupts")
            }
        };
        let room = width.saturating_sub(2 + tail.chars().count());
        Some(Line::from(vec![
            Span::styled(format!("{spinner} "), CALL),
            Span::styled(fit(&safe_line(&text), room), style),
            Span::styled(tail, DIM),
        ]))
    }

    /// A short description for the team list.
    pub(crate) fn summary(&self) -> Option<&str> {
        match self {
            Activity::Busy { phase: Phase::Tool(call), .. } => Some(call),
            Activity::Idle | Activity::Busy { .. } => None,
        }
    }
}

fn elapsed_text(elapsed: Duration) -> String {
    match elapsed.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(phase: Phase, width: usize, expected: &str) {
        let since = Duration::from_secs(10);
        let activity = Activity::Busy { since, phase };
        let line = activity.render("gpt-5", Duration::from_secs(75), width);
        assert_eq!(line.unwrap().to_string(), expected);
    }

    #[test]
    fn the_line_shows_the_activity_its_duration_and_the_key_to_interrupt() {
        check(Phase::Waiting, 80, "⠙ waiting for gpt-5 · 1 min 05 s · Esc interrupts");
        check(
            Phase::Tool("bash: cargo test".to_owned()),
            80,
            "⠙ bash: cargo test · 1 min 05 s · Esc interrupts",
        );
        check(
            Phase::Tool("bash: cargo test".to_owned()),
            40,
            "⠙ bash: c… · 1 min 05 s · Esc interrupts",
        );
        let retry =
            Phase::Retry { attempt: 2, reason: "busy".to_owned(), at: Duration::from_secs(80) };
        check(retry, 80, "⠙ ⚠ busy; retry 2 in 5 s · 1 min 05 s · Esc interrupts");
    }

    #[test]
    fn an_idle_agent_has_no_line() {
        assert_eq!(Activity::Idle.render("m", Duration::ZERO, 80), None);
    }
}
