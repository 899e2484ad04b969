//! A conversation as lines of text, with their prefixes.

use std::time::Duration;

use ikigai_conversation::{AgentId, Body, CallSummary, Message, ResultSummary};
use ikigai_protocol::{StopReason, TurnEnd};

use crate::print::safe;

/// The style of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineStyle {
    Plain,
    Dim,
}

/// Renders a call, result or notification as lines that are safe for a terminal; other messages
/// have no lines.
pub(crate) fn render_lines(message: &Message) -> Vec<(LineStyle, String)> {
    /// Shown of a tool's output.
    const LINES: usize = 3;
    /// Shown of a diff: a small change with its context.
    const DIFF_LINES: usize = 12;
    match &message.body {
        Body::ToolCall(_) => vec![(LineStyle::Plain, safe(&line(message)))],
        Body::ToolResult(result) => {
            let diff = result.shown.as_ref().and_then(|shown| shown.diff.as_ref());
            let mut preview = match diff {
                Some(diff) => preview(&diff.unified().collect::<Vec<_>>().join("\n"), DIFF_LINES),
                None => preview(&result.output_text(), LINES),
            };
            // For some tools the output is the same as the result's line.
            if preview == [message.content.as_str()] {
                preview.clear();
            }
            let preview = preview.iter().map(|line| format!("  {line}"));
            let lines = [line(message)].into_iter().chain(preview);
            lines.map(|line| (LineStyle::Dim, safe(&line))).collect()
        }
        Body::Notification(_) => {
            message.content.lines().map(|line| (LineStyle::Dim, safe(line))).collect()
        }
        _ => Vec::new(),
    }
}

/// Shown when agents have reached the limit on waking each other.
pub(crate) const MAIL_HELD: &str = "⚠ mail is held: agents were woken as often as mail.max_wakes allows; your next message frees it";

/// Renders a call, result or notification as a line.
pub(crate) fn line(message: &Message) -> String {
    match &message.body {
        Body::ToolCall(call) => format!("→ {}", CallSummary::of(call).line()),
        Body::ToolResult(result) => {
            format!("← {}", ResultSummary::of(result, &message.content).outcome)
        }
        _ => message.content.clone(),
    }
}

/// A note on how a turn ended, if needed.
pub(crate) fn end_note(done: &TurnEnd) -> Option<String> {
    let is_silent = done.text.trim().is_empty();
    Some(match done.stop {
        StopReason::Stop if is_silent => "⚠ the model had nothing to say".to_owned(),
        StopReason::Stop => return None,
        StopReason::Length => "⚠ the answer was cut at the model's limit of tokens".to_owned(),
        StopReason::ToolLimit => "⚠ stopped at the limit of tool calls (max_tool_turns)".to_owned(),
        StopReason::Interrupted => match &done.error {
            Some(error) => format!("✗ interrupted: {error}"),
            None => "✗ interrupted".to_owned(),
        },
        StopReason::Error => format!("✗ {}", done.error.as_deref().unwrap_or("the turn failed")),
    })
}

/// Says that the database is unavailable and agents wait for it.
pub(crate) fn database_unavailable(reason: &str) -> String {
    format!("⚠ {reason}; waiting")
}

/// Says that a message was rejected because too many are queued.
pub(crate) fn rejected(text: &str) -> String {
    let shown: String = text.chars().take(64).collect();
    format!("⚠ too many messages wait, so this one was not taken: {shown}")
}

/// Prefixes every line with the agent's ID.
pub(crate) fn prefix_lines(agent: &AgentId, text: &str) -> String {
    let lines = text.lines().map(|line| format!("[{agent}] {line}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Renders a retry as a line.
pub(crate) fn retry(attempt: u32, reason: &str, delay: Duration) -> String {
    format!("⚠ {reason}; retry {attempt} in {:.1} s", delay.as_secs_f32())
}

/// The first lines of a tool's output, and the number of remaining lines.
fn preview(output: &str, lines: usize) -> Vec<String> {
    /// Wider than most terminals.
    const LINE_LIMIT: usize = 200;
    let mut shown: Vec<String> =
        output.lines().take(lines).map(|line| line.chars().take(LINE_LIMIT).collect()).collect();
    let more = output.lines().count().saturating_sub(lines);
    if more > 0 {
        shown.push(format!("… {more} more lines"));
    }
    shown
}

#[cfg(test)]
mod tests {
    use ikigai_conversation::{AgentId, MessageId, NewMessage, ResponseId, Time, ToolCallId};

    use super::*;

    fn logged(message: NewMessage) -> Message {
        let NewMessage { content, body } = message;
        let (id, agent) = (MessageId::new(1).unwrap(), AgentId::top_level(0));
        Message { id, agent, content, body, created_at: Time::from_millis(0) }
    }

    #[track_caller]
    fn check_result(output: &str, expected: &[&str]) {
        let call =
            NewMessage::tool_call(ToolCallId::new("1"), "file_edit", "{}", ResponseId::new("r"));
        let Body::ToolCall(call) = &call.body else { unreachable!("it is a call") };
        let shown = render_lines(&logged(NewMessage::tool_result(call, output)));
        let expected: Vec<_> =
            expected.iter().map(|line| (LineStyle::Dim, (*line).to_owned())).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_result_is_its_line_and_a_preview_that_does_not_repeat_it() {
        check_result(r#"{"success":true,"data":{"output":"Done"}}"#, &["← Done"]);
        check_result(
            r#"{"success":true,"data":{"output":"one\ntwo"}}"#,
            &["← one", "  one", "  two"],
        );
        check_result(r#"{"success":false,"error":"no"}"#, &["← error: no"]);
    }

    #[test]
    fn rendered_text_cannot_control_the_terminal() {
        let news = logged(NewMessage::notification("[Notification]\n\u{1b}[2J", Vec::new()));
        let expected =
            ["[Notification]", "\u{fffd}[2J"].map(|line| (LineStyle::Dim, line.to_owned()));
        assert_eq!(render_lines(&news), expected);
        assert_eq!(render_lines(&logged(NewMessage::user("hello"))), []);
    }

    #[test]
    fn a_call_is_its_verb_and_subject_on_one_line() {
        let id = ToolCallId::new("1");
        let call = NewMessage::tool_call(id, "x", r#"{"a":[1]}"#, ResponseId::new("r"));
        assert_eq!(line(&logged(call.clone())), "→ x: a=[1]", "a tool that says nothing itself");
        let call = call.with_shown(Vec::new(), CallSummary::new("Bash", "ls\n  -l"));
        assert_eq!(line(&logged(call)), "→ Bash: ls -l");
    }

    #[test]
    fn a_preview_is_the_first_lines_and_the_number_of_others() {
        assert_eq!(preview("a\nb", 3), ["a", "b"]);
        assert_eq!(preview("a\nb\nc\nd\ne", 3), ["a", "b", "c", "… 2 more lines"]);
        assert_eq!(preview(&"x".repeat(300), 3), ["x".repeat(200)]);
        assert_eq!(preview("", 3), Vec::<String>::new());
    }
}
