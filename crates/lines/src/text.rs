//! Blocks as lines of text, with their prefixes.

use std::time::Duration;

use ikigai_conversation::AgentId;
use ikigai_protocol::{
    BlockChange, BlockContent, CallBlock, CallChange, CallEnd, CallState, OutputPreview,
    render_below, render_duration, render_outcome, render_thought, safe,
};

use crate::live::LiveLines;

/// The style of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineStyle {
    /// As it is.
    Plain,
    /// Dim.
    Dim,
}

/// Renders a new call, result or notification as lines that are safe for a terminal; other changes
/// have no lines.
pub fn change_lines(change: &BlockChange) -> Vec<(LineStyle, String)> {
    match change {
        BlockChange::Added(block) => match &block.content {
            BlockContent::Call(call) => match &call.state {
                // The call was shown by another process.
                CallState::Ended(end) => end_lines(end, &LiveLines::default()),
                CallState::Running | CallState::Asking | CallState::Unfinished => {
                    vec![(LineStyle::Plain, safe(&call_line(call)))]
                }
            },
            BlockContent::Mail(cards) => {
                cards.iter().map(|card| (LineStyle::Dim, safe(&card.line()))).collect()
            }
            BlockContent::Notification(text) => {
                text.lines().map(|line| (LineStyle::Dim, safe(line))).collect()
            }
            BlockContent::Thought { duration, .. } => {
                let line = duration.map_or_else(|| "Thinking…".to_owned(), render_thought);
                vec![(LineStyle::Dim, format!("✻ {line}"))]
            }
            BlockContent::Summary { title, .. } => vec![(LineStyle::Plain, safe(title))],
            BlockContent::Said(_) | BlockContent::Answer(_) | BlockContent::Notice { .. } => {
                Vec::new()
            }
            BlockContent::Divider(_) | BlockContent::Typed(_) => Vec::new(),
            BlockContent::Reply(_) | BlockContent::Refusal(_) => Vec::new(),
        },
        BlockChange::Call { change: CallChange::Ended(end), .. } => {
            end_lines(end, &LiveLines::default())
        }
        BlockChange::Call { .. } | BlockChange::Extended { .. } | BlockChange::Logged { .. } => {
            Vec::new()
        }
        BlockChange::Thought { .. } => Vec::new(),
        BlockChange::Removed(_)
        | BlockChange::Hidden(_)
        | BlockChange::HiddenAfter(_)
        | BlockChange::Cleared => Vec::new(),
    }
}

/// A call on one line.
pub fn call_line(call: &CallBlock) -> String {
    format!("● {}", call.summary.line())
}

/// The outcome of a call on one line, below the call.
pub fn end_line(end: &CallEnd) -> String {
    format!("  {}", render_outcome(end))
}

/// The outcome of a call and a preview of its output or diff. Of output that was shown while the
/// call ran, only the rest follows, and the outcome stands below.
pub(crate) fn end_lines(end: &CallEnd, shown: &LiveLines) -> Vec<(LineStyle, String)> {
    let lines = match (&end.diff, end.preview) {
        (None, OutputPreview::End) if shown.has_begun() => {
            let mut lines = shown.rest(&end.output);
            lines.push(end_line(end));
            lines
        }
        _ => [end_line(end)].into_iter().chain(render_below(end)).collect(),
    };
    lines.iter().map(|line| (LineStyle::Dim, safe(line))).collect()
}

/// Says that the database is unavailable and agents wait for it.
pub fn database_unavailable(reason: &str) -> String {
    format!("⚠ {reason}; waiting")
}

/// Prefixes every line with the agent's ID.
pub fn prefix_lines(agent: &AgentId, text: &str) -> String {
    let lines = text.lines().map(|line| format!("[{agent}] {line}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Renders a retry as a line.
pub fn retry_line(attempt: u32, of: u32, reason: &str, delay: Duration) -> String {
    format!("⚠ Retrying in {} ({attempt} of {of}): {reason}", render_duration(delay))
}

#[cfg(test)]
mod tests {
    use ikigai_conversation::{
        Body, CallSummary, Message, MessageId, NewMessage, ResponseId, Time, ToolCallId,
    };
    use ikigai_protocol::TranscriptReducer;

    use super::*;

    /// The lines of a log.
    fn lines(log: impl IntoIterator<Item = NewMessage>) -> Vec<(LineStyle, String)> {
        let mut reducer = TranscriptReducer::default();
        let messages = (1..).zip(log).map(|(id, message)| {
            let (id, agent) = (MessageId::new(id).unwrap(), AgentId::top_level(0));
            message.into_message(id, agent, Time::from_millis(0))
        });
        let changes = messages.flat_map(|message: Message| reducer.message(&message));
        changes.collect::<Vec<_>>().iter().flat_map(change_lines).collect()
    }

    #[track_caller]
    fn check_result(output: &str, expected: &[&str]) {
        let message =
            NewMessage::tool_call(ToolCallId::new("1"), "file_edit", "{}", ResponseId::new("r"));
        let Body::ToolCall(call) = &message.body else { unreachable!("it is a call") };
        let result = NewMessage::tool_result(call, output);
        let shown = lines([message, result]);
        let expected: Vec<_> =
            expected.iter().map(|line| (LineStyle::Dim, (*line).to_owned())).collect();
        assert_eq!(shown[1..], expected);
    }

    #[test]
    fn a_result_is_its_line_and_a_preview_that_does_not_repeat_it() {
        check_result(r#"{"success":true,"data":{"output":"Done"}}"#, &["  Done"]);
        check_result(
            r#"{"success":true,"data":{"output":"one\ntwo"}}"#,
            &["  one", "  │ one", "  │ two"],
        );
        check_result(r#"{"success":false,"error":"no"}"#, &["  ✗ no"]);
    }

    #[test]
    fn rendered_text_cannot_control_the_terminal() {
        let news = NewMessage::notification("[Notification]\n\u{1b}[2J", Vec::new());
        let expected =
            ["[Notification]", "\u{fffd}[2J"].map(|line| (LineStyle::Dim, line.to_owned()));
        assert_eq!(lines([news, NewMessage::user("hello")]), expected);
    }

    #[test]
    fn a_call_is_its_verb_and_subject_on_one_line() {
        let id = ToolCallId::new("1");
        let call = NewMessage::tool_call(id, "x", r#"{"a":[1]}"#, ResponseId::new("r"));
        let plain = |text: &str| [(LineStyle::Plain, text.to_owned())];
        assert_eq!(lines([call.clone()]), plain("● x"), "a tool that says nothing itself");
        let call = call.with_shown(Vec::new(), CallSummary::new("Bash", "ls\n  -l"));
        assert_eq!(lines([call]), plain("● Bash  ls -l"));
    }
}
