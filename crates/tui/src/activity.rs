//! What an agent is doing, and the line that shows it.

use std::time::Duration;

use ratatui_core::text::{Line, Span};

use crate::look::{CALL, DIM, WARNING};
use crate::safe::safe_line;
use crate::team::State;
use crate::wrap::fit;

/// The time between two frames of the spinner.
pub(crate) const TURN: Duration = Duration::from_millis(120);
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Activity {
    Idle,
    Busy {
        /// When the turn started.
        since: Duration,
        with: Work,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Work {
    /// The model has not started to answer yet.
    Waiting,
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
    Store(String),
}

impl Activity {
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self, Activity::Busy { .. })
    }

    /// The state as the agent list shows it.
    pub(crate) fn state(&self) -> State {
        match self {
            Activity::Idle => State::Idle,
            Activity::Busy { with: Work::Tool(_), .. } => State::Tool,
            Activity::Busy { with: Work::Asking, .. } => State::Asking,
            Activity::Busy { with: Work::Waiting | Work::Answering, .. } => State::Waiting,
            Activity::Busy { with: Work::Retry { .. } | Work::Store(_), .. } => State::Waiting,
        }
    }

    /// Starts a turn.
    pub(crate) fn begin(&mut self, now: Duration) {
        *self = Activity::Busy { since: now, with: Work::Waiting };
    }

    /// Changes the activity; the start of the turn may not have been seen.
    pub(crate) fn turn_to(&mut self, work: Work, now: Duration) {
        match self {
            Activity::Busy { with, .. } => *with = work,
            Activity::Idle => *self = Activity::Busy { since: now, with: work },
        }
    }

    /// The line, while the agent is busy.
    pub(crate) fn render(&self, model: &str, now: Duration, width: usize) -> Option<Line<'static>> {
        let Activity::Busy { since, with } = self else { return None };
        let elapsed = now.saturating_sub(*since);
        let spinner = SPINNER[(elapsed.as_millis() / TURN.as_millis()) as usize % SPINNER.len()];
        let (text, style) = match with {
            Work::Waiting => (format!("waiting for {model}"), DIM),
            Work::Answering => (format!("{model} answers"), DIM),
            Work::Tool(call) => (call.clone(), DIM),
            Work::Asking => ("waiting for your answer".to_owned(), WARNING),
            Work::Retry { attempt, reason, at } => {
                let left = at.saturating_sub(now).as_secs_f32();
                (format!("⚠ {reason}; retry {attempt} in {left:.0} s"), WARNING)
            }
            Work::Store(reason) => (format!("⚠ {reason}; waiting"), WARNING),
        };
        let elapsed = elapsed_text(elapsed);
        let tail = match with {
            // The question shows the keys for the answer.
            Work::Asking => format!(" · {elapsed}"),
            Work::Waiting
            | Work::Answering
            | Work::Tool(_)
            | Work::Retry { .. }
            | Work::Store(_) => {
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
            Activity::Busy { with: Work::Tool(call), .. } => Some(call),
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
    fn check(work: Work, width: usize, expected: &str) {
        let since = Duration::from_secs(10);
        let activity = Activity::Busy { since, with: work };
        let line = activity.render("gpt-5", Duration::from_secs(75), width);
        assert_eq!(line.unwrap().to_string(), expected);
    }

    #[test]
    fn the_line_says_what_how_long_and_how_to_end_it() {
        check(Work::Waiting, 80, "⠙ waiting for gpt-5 · 1 min 05 s · Esc interrupts");
        check(
            Work::Tool("bash: cargo test".to_owned()),
            80,
            "⠙ bash: cargo test · 1 min 05 s · Esc interrupts",
        );
        check(
            Work::Tool("bash: cargo test".to_owned()),
            40,
            "⠙ bash: c… · 1 min 05 s · Esc interrupts",
        );
        let retry =
            Work::Retry { attempt: 2, reason: "busy".to_owned(), at: Duration::from_secs(80) };
        check(retry, 80, "⠙ ⚠ busy; retry 2 in 5 s · 1 min 05 s · Esc interrupts");
    }

    #[test]
    fn an_idle_agent_has_no_line() {
        assert_eq!(Activity::Idle.render("m", Duration::ZERO, 80), None);
    }
}
