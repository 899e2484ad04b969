//! Blocks as lines of text, with their prefixes.

use std::time::Duration;

use ikigai_conversation::AgentId;
use ikigai_protocol::{
    BlockChange, BlockContent, CallBlock, CallChange, CallEnd, CallState, NoticeTone,
    render_thought, safe,
};

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
                CallState::Ended(end) => dim_lines(end),
                CallState::Running | CallState::Asking | CallState::Unfinished => {
                    vec![(LineStyle::Plain, safe(&call_line(call)))]
                }
            },
            BlockContent::Notification(text) => {
                text.lines().map(|line| (LineStyle::Dim, safe(line))).collect()
            }
            BlockContent::Thought { duration, .. } => {
                let line = duration.map_or_else(|| "Thinking…".to_owned(), render_thought);
                vec![(LineStyle::Dim, line)]
            }
            BlockContent::Summary { title, .. } => vec![(LineStyle::Plain, safe(title))],
            BlockContent::Said(_) | BlockContent::Answer(_) | BlockContent::Notice { .. } => {
                Vec::new()
            }
            BlockContent::Divider(_) | BlockContent::Typed(_) => Vec::new(),
            BlockContent::Reply(_) | BlockContent::Refusal(_) => Vec::new(),
        },
        BlockChange::Call { change: CallChange::Ended(end), .. } => dim_lines(end),
        BlockChange::Call { .. } | BlockChange::Extended { .. } | BlockChange::Logged { .. } => {
            Vec::new()
        }
        BlockChange::Thought { .. } => Vec::new(),
        BlockChange::Removed(_) | BlockChange::Hidden(_) | BlockChange::HiddenAfter(_) => {
            Vec::new()
        }
    }
}

fn dim_lines(end: &CallEnd) -> Vec<(LineStyle, String)> {
    end_lines(end).iter().map(|line| (LineStyle::Dim, safe(line))).collect()
}

/// A call on one line.
pub fn call_line(call: &CallBlock) -> String {
    format!("→ {}", call.summary.line())
}

/// The outcome of a call on one line.
pub fn end_line(end: &CallEnd) -> String {
    format!("← {}", end.outcome)
}

/// The outcome of a call and a preview of its output or diff.
fn end_lines(end: &CallEnd) -> Vec<String> {
    /// Shown of a tool's output.
    const LINES: usize = 3;
    /// Shown of a diff: a small change with its context.
    const DIFF_LINES: usize = 12;
    let preview = match &end.diff {
        Some(diff) => preview(&diff.unified().collect::<Vec<_>>().join("\n"), DIFF_LINES),
        None => preview(&end.output, LINES),
    };
    let preview = preview.iter().map(|line| format!("  {line}"));
    [end_line(end)].into_iter().chain(preview).collect()
}

/// A notice with the sign of its importance.
pub fn notice_line(tone: NoticeTone, text: &str) -> String {
    match tone {
        NoticeTone::Info => text.to_owned(),
        NoticeTone::Warning => format!("⚠ {text}"),
        NoticeTone::Fault => format!("✗ {text}"),
    }
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
pub fn retry_line(attempt: u32, reason: &str, delay: Duration) -> String {
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
        check_result(r#"{"success":true,"data":{"output":"Done"}}"#, &["← Done"]);
        check_result(
            r#"{"success":true,"data":{"output":"one\ntwo"}}"#,
            &["← one", "  one", "  two"],
        );
        check_result(r#"{"success":false,"error":"no"}"#, &["← error: no"]);
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
        assert_eq!(lines([call.clone()]), plain("→ x: a=[1]"), "a tool that says nothing itself");
        let call = call.with_shown(Vec::new(), CallSummary::new("Bash", "ls\n  -l"));
        assert_eq!(lines([call]), plain("→ Bash: ls -l"));
    }

    #[test]
    fn a_preview_is_the_first_lines_and_the_number_of_others() {
        assert_eq!(preview("a\nb", 3), ["a", "b"]);
        assert_eq!(preview("a\nb\nc\nd\ne", 3), ["a", "b", "c", "… 2 more lines"]);
        assert_eq!(preview(&"x".repeat(300), 3), ["x".repeat(200)]);
        assert_eq!(preview("", 3), Vec::<String>::new());
    }
}
