//! What an agent is doing, and the rows that show it.

use std::collections::VecDeque;
use std::time::Duration;

use ikigai_conversation::{CallSummary, ToolCall, ToolCallId};
use ikigai_protocol::{AgentState, render_elapsed, render_short_count};
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use crate::safe::safe_line;
use crate::style::{BOLD, CALL, DIM, PLAIN, WARNING};
use crate::transcript::bar_row;
use crate::wrap::{fit, width_of};

/// The time between two frames of the spinner.
pub(crate) const SPINNER_INTERVAL: Duration = Duration::from_millis(120);
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// The most running calls that are shown: as many as run at the same time.
const CALLS: usize = 8;
const HINT: &str = "esc to interrupt";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Activity {
    Idle,
    Busy {
        /// When the turn started.
        turn: Duration,
        /// When the phase started.
        since: Duration,
        phase: Phase,
        /// The calls that run.
        calls: Vec<RunningCall>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The model has not started to answer yet.
    Waiting,
    Thinking {
        /// How much it has thought.
        bytes: usize,
    },
    Answering,
    /// It writes the arguments of a call.
    Writing(String),
    /// Calls run.
    Calls,
    Asking,
    Retry {
        attempt: u32,
        of: u32,
        reason: String,
        at: Duration,
    },
    /// The database is unavailable, for this reason.
    Database(String),
}

/// A call that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunningCall {
    id: ToolCallId,
    summary: CallSummary,
    since: Duration,
    output: Tail,
}

impl Activity {
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self, Activity::Busy { .. })
    }

    /// The state as the agent list shows it.
    pub(crate) fn state(&self) -> AgentState {
        match self {
            Activity::Idle => AgentState::Idle,
            Activity::Busy { phase: Phase::Calls, .. } => AgentState::Tool,
            Activity::Busy { phase: Phase::Asking, .. } => AgentState::Asking,
            Activity::Busy {
                phase:
                    Phase::Waiting
                    | Phase::Thinking { .. }
                    | Phase::Answering
                    | Phase::Writing(_)
                    | Phase::Retry { .. }
                    | Phase::Database(_),
                ..
            } => AgentState::Waiting,
        }
    }

    /// Starts a turn.
    pub(crate) fn start(&mut self, now: Duration) {
        let (phase, calls) = (Phase::Waiting, Vec::new());
        *self = Activity::Busy { turn: now, since: now, phase, calls };
    }

    /// Changes the activity; the start of the turn may not have been seen.
    pub(crate) fn set_phase(&mut self, phase: Phase, now: Duration) {
        match self {
            Activity::Busy { phase: current, since, .. } => {
                if std::mem::discriminant(current) != std::mem::discriminant(&phase) {
                    *since = now;
                }
                *current = phase;
            }
            Activity::Idle => {
                let calls = Vec::new();
                *self = Activity::Busy { turn: now, since: now, phase, calls };
            }
        }
    }

    /// The model has thought some more.
    pub(crate) fn think(&mut self, text: &str, now: Duration) {
        let before = match self {
            Activity::Busy { phase: Phase::Thinking { bytes }, .. } => *bytes,
            Activity::Busy { .. } | Activity::Idle => 0,
        };
        self.set_phase(Phase::Thinking { bytes: before + text.len() }, now);
    }

    /// A call starts to run. One that only reads has started before it is in the log.
    pub(crate) fn start_call(&mut self, call: &ToolCall, now: Duration) {
        self.set_phase(Phase::Calls, now);
        if let Activity::Busy { calls, .. } = self {
            if calls.iter().any(|running| running.id == call.tool_call_id) {
                return;
            }
            let (id, summary) = (call.tool_call_id.clone(), CallSummary::of(call));
            calls.push(RunningCall { id, summary, since: now, output: Tail::default() });
        }
    }

    /// The user has decided on a call, which starts to run if it may.
    pub(crate) fn answer_call(&mut self, id: &ToolCallId, now: Duration) {
        self.set_phase(Phase::Calls, now);
        if let Activity::Busy { calls, .. } = self {
            calls.iter_mut().filter(|call| call.id == *id).for_each(|call| call.since = now);
        }
    }

    /// A running call has printed something.
    pub(crate) fn add_output(&mut self, id: &ToolCallId, text: &str) {
        if let Activity::Busy { calls, .. } = self {
            calls.iter_mut().filter(|call| call.id == *id).for_each(|call| call.output.push(text));
        }
    }

    /// A call has its result.
    pub(crate) fn end_call(&mut self, id: &ToolCallId, now: Duration) {
        let is_over = match self {
            Activity::Busy { calls, .. } => {
                calls.retain(|call| call.id != *id);
                calls.is_empty()
            }
            Activity::Idle => true,
        };
        if is_over {
            self.set_phase(Phase::Waiting, now);
        }
    }

    /// The rows, while the agent is busy.
    pub(crate) fn render(&self, model: &str, now: Duration, width: usize) -> Vec<Line<'static>> {
        let Activity::Busy { turn, since, phase, calls } = self else { return Vec::new() };
        let frame = now.saturating_sub(*turn).as_millis() / SPINNER_INTERVAL.as_millis();
        let spinner = SPINNER[frame as usize % SPINNER.len()];
        let elapsed = render_elapsed(now.saturating_sub(*since));
        let row = |text: String, style: Style, hint: &str| {
            activity_row(spinner, vec![Span::styled(safe_line(&text), style)], hint, width)
        };
        let working = |text: String, style| row(text, style, &format!(" · {elapsed} · {HINT}"));
        match phase {
            Phase::Retry { at, .. } if *at <= now => {
                vec![working(format!("Waiting for {model}"), DIM)]
            }
            Phase::Waiting => vec![working(format!("Waiting for {model}"), DIM)],
            Phase::Thinking { bytes } => {
                // About four bytes each: what is billed is only known afterwards.
                let tokens = render_short_count(*bytes as u64 / 4);
                let hint = format!(" · {elapsed} · {tokens} tokens · {HINT}");
                vec![row("Thinking".to_owned(), DIM, &hint)]
            }
            Phase::Answering => vec![working("Answering".to_owned(), DIM)],
            Phase::Writing(text) => vec![working(text.clone(), DIM)],
            // The question shows the keys for the answer.
            Phase::Asking => {
                let text = "Waiting for your answer".to_owned();
                vec![row(text, WARNING, &format!(" · {elapsed}"))]
            }
            Phase::Retry { attempt, of, reason, at } => {
                // Rounded up: there is no retry in zero seconds.
                let left = at.saturating_sub(now).as_millis().div_ceil(1_000);
                let text = format!("Retrying in {left}s ({attempt} of {of}): {reason}");
                vec![row(text, WARNING, &format!(" · {HINT}"))]
            }
            Phase::Database(reason) => vec![working(format!("{reason}; waiting"), WARNING)],
            Phase::Calls if calls.is_empty() => vec![working("Working".to_owned(), DIM)],
            Phase::Calls => {
                let rows = calls.iter().take(CALLS).enumerate().flat_map(|(number, call)| {
                    let hint = if number == 0 { HINT } else { "" };
                    let output = call.output.rows(width);
                    std::iter::once(call.row(spinner, now, hint, width)).chain(output)
                });
                rows.collect()
            }
        }
    }

    /// The number of rows.
    pub(crate) fn height(&self) -> usize {
        match self {
            Activity::Idle => 0,
            Activity::Busy { phase: Phase::Calls, calls, .. } => {
                let heights = calls.iter().take(CALLS).map(|call| 1 + call.output.lines.len());
                heights.sum::<usize>().max(1)
            }
            Activity::Busy { .. } => 1,
        }
    }

    /// A short description for the team list.
    pub(crate) fn summary(&self) -> Option<String> {
        match self {
            Activity::Busy { phase: Phase::Calls, calls, .. } => {
                calls.first().map(|call| call.summary.line())
            }
            Activity::Idle | Activity::Busy { .. } => None,
        }
    }
}

impl RunningCall {
    fn row(&self, spinner: &str, now: Duration, hint: &str, width: usize) -> Line<'static> {
        let elapsed = render_elapsed(now.saturating_sub(self.since));
        let between = if hint.is_empty() { "" } else { " · " };
        let hint = format!(" · {elapsed}{between}{hint}");
        let CallSummary { verb, subject, running } = &self.summary;
        let text = match running {
            Some(running) => vec![Span::styled(safe_line(running), PLAIN)],
            None => {
                let verb = Span::styled(safe_line(verb), BOLD);
                vec![verb, Span::raw("  "), Span::styled(safe_line(subject), PLAIN)]
            }
        };
        activity_row(spinner, text, &hint, width)
    }
}

/// The last lines that a command has printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Tail {
    lines: VecDeque<String>,
    /// Whether the last line may continue.
    is_open: bool,
}

impl Tail {
    /// As many as stay when the command has ended.
    const LINES: usize = 5;
    /// More than a row has room for.
    const LINE_BYTES: usize = 2_000;

    fn push(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            let line = piece.trim_end_matches(['\n', '\r']);
            // A progress bar draws its line again.
            let (is_redrawn, line) = match line.rsplit_once('\r') {
                Some((_, line)) => (true, line),
                None => (false, line),
            };
            match self.lines.back_mut().filter(|_| self.is_open) {
                Some(last) if is_redrawn => line.clone_into(last),
                Some(last) if last.len() < Tail::LINE_BYTES => last.push_str(line),
                Some(_) => {}
                None => self.lines.push_back(line.to_owned()),
            }
            self.is_open = !piece.ends_with('\n');
        }
        while self.lines.len() > Tail::LINES {
            self.lines.pop_front();
        }
    }

    fn rows(&self, width: usize) -> impl Iterator<Item = Line<'static>> {
        self.lines.iter().map(move |line| bar_row(line, width))
    }
}

/// The spinner, a text that is cut if there is no room for all of it, and a hint.
fn activity_row(
    spinner: &str,
    text: Vec<Span<'static>>,
    hint: &str,
    width: usize,
) -> Line<'static> {
    let mut left = width.saturating_sub(2 + hint.chars().count());
    let mut spans = vec![Span::styled(format!("{spinner} "), CALL)];
    for span in text {
        let fitted = Span::styled(fit(&span.content, left), span.style);
        left -= width_of(std::slice::from_ref(&fitted)).min(left);
        spans.push(fitted);
    }
    spans.push(Span::styled(hint.to_owned(), DIM));
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use ikigai_conversation::{Body, NewMessage, ResponseId};

    use super::*;

    fn rows(activity: &Activity, width: usize) -> Vec<String> {
        let rows = activity.render("gpt-5", Duration::from_secs(75), width);
        assert_eq!(rows.len(), activity.height());
        rows.iter().map(Line::to_string).collect()
    }

    #[track_caller]
    fn check(phase: Phase, width: usize, expected: &str) {
        let since = Duration::from_secs(10);
        let activity = Activity::Busy { turn: since, since, phase, calls: Vec::new() };
        assert_eq!(rows(&activity, width), [expected]);
    }

    fn call(id: &str, verb: &str, subject: &str) -> ToolCall {
        let call = NewMessage::tool_call(ToolCallId::new(id), "x", "{}", ResponseId::new("r"));
        let call = call.with_shown(Vec::new(), CallSummary::new(verb, subject));
        let Body::ToolCall(call) = call.body else { unreachable!("it is a call") };
        call
    }

    #[test]
    fn the_row_shows_the_activity_its_duration_and_the_key_to_interrupt() {
        check(Phase::Waiting, 80, "⠙ Waiting for gpt-5 · 1m 05s · esc to interrupt");
        check(Phase::Waiting, 40, "⠙ Waiting f… · 1m 05s · esc to interrupt");
        let thinking = Phase::Thinking { bytes: 4_800 };
        check(thinking, 80, "⠙ Thinking · 1m 05s · 1.2k tokens · esc to interrupt");
        let at = Duration::from_millis(78_100);
        let retry = Phase::Retry { attempt: 2, of: 5, reason: "busy".to_owned(), at };
        check(retry, 80, "⠙ Retrying in 4s (2 of 5): busy · esc to interrupt");
    }

    #[test]
    fn each_running_call_has_a_row_until_it_ends() {
        let mut activity = Activity::Idle;
        activity.start_call(&call("c1", "Bash", "make\nall"), Duration::from_secs(60));
        activity.start_call(&call("c2", "Read", "src/main.rs"), Duration::from_secs(70));
        let expected = ["⠼ Bash  make all · 15s · esc to interrupt", "⠼ Read  src/main.rs · 5s"];
        let shown = rows(&activity, 80);
        let without_spinner = |row: &str| row.chars().skip(1).collect::<String>();
        assert_eq!(
            shown.iter().map(|row| without_spinner(row)).collect::<Vec<_>>(),
            expected.map(without_spinner)
        );
        activity.end_call(&ToolCallId::new("c1"), Duration::from_secs(75));
        assert_eq!(activity.summary().as_deref(), Some("Read  src/main.rs"));
        activity.end_call(&ToolCallId::new("c2"), Duration::from_secs(75));
        assert!(rows(&activity, 80)[0].contains("Waiting for gpt-5"));
    }

    #[test]
    fn a_call_may_say_what_it_does_while_it_runs() {
        let mut activity = Activity::Idle;
        let mut waiting = call("c", "Wait", "for tests, docs");
        let summary =
            waiting.shown.take().map(|shown| shown.while_running("Waiting for tests, docs"));
        activity.start_call(&ToolCall { shown: summary, ..waiting }, Duration::from_secs(44));
        assert!(
            rows(&activity, 80)[0].ends_with(" Waiting for tests, docs · 31s · esc to interrupt")
        );
    }

    #[test]
    fn a_phase_has_its_own_time() {
        let mut activity = Activity::Idle;
        activity.start(Duration::from_secs(10));
        activity.think("hm", Duration::from_secs(60));
        activity.think("m", Duration::from_secs(70));
        assert!(rows(&activity, 80)[0].contains("Thinking · 15s · "), "{:?}", rows(&activity, 80));
    }

    #[test]
    fn a_running_command_shows_the_last_lines_that_it_printed() {
        let mut activity = Activity::Idle;
        let (id, now) = (ToolCallId::new("c"), Duration::from_secs(75));
        activity.start_call(&call("c", "Bash", "make"), now);
        for text in ["1\n2\n3", "3\n4\n5\r\n", "1%", "\r50%\r10", "0%"] {
            activity.add_output(&id, text);
        }
        let expected = ["  │ 2", "  │ 33", "  │ 4", "  │ 5", "  │ 100%"];
        assert_eq!(rows(&activity, 80)[1..], expected);
        activity.add_output(&id, &"x".repeat(100_000));
        activity.add_output(&id, "\u{1b}[2J");
        assert!(rows(&activity, 80).iter().all(|row| row.chars().count() <= 80));
    }

    #[test]
    fn an_idle_agent_has_no_row() {
        assert_eq!(rows(&Activity::Idle, 80), Vec::<String>::new());
    }
}
