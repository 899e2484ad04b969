//! Blocks as lines of text, with their prefixes.

use std::time::Duration;

use ikigai_conversation::{AgentId, DiffLine, FileDiff, ResultState};
use ikigai_protocol::{
    BlockChange, BlockContent, CallBlock, CallChange, CallEnd, CallState, NoticeTone,
    OutputPreview, render_duration, render_thought, safe,
};

use crate::live::LiveLines;

/// Shown of an output.
const OUTPUT_LINES: usize = 5;
/// Shown of a diff.
const DIFF_LINES: usize = 20;
/// The characters of a line that are shown: wider than most terminals.
const LINE_LIMIT: usize = 200;

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
        BlockChange::Call { change: CallChange::Ended(end), .. } => {
            end_lines(end, &LiveLines::default())
        }
        BlockChange::Call { .. } | BlockChange::Extended { .. } | BlockChange::Logged { .. } => {
            Vec::new()
        }
        BlockChange::Thought { .. } => Vec::new(),
        BlockChange::Removed(_) | BlockChange::Hidden(_) | BlockChange::HiddenAfter(_) => {
            Vec::new()
        }
    }
}

/// A call on one line.
pub fn call_line(call: &CallBlock) -> String {
    format!("● {}", call.summary.line())
}

/// The outcome of a call on one line, below the call.
pub fn end_line(end: &CallEnd) -> String {
    // The sign says that it is an error.
    let outcome = end.outcome.strip_prefix("error: ").unwrap_or(&end.outcome);
    match end.state {
        ResultState::Succeeded => format!("  {outcome}"),
        ResultState::Refused => format!("  ! {outcome}"),
        ResultState::Failed => format!("  ✗ {outcome}"),
    }
}

/// The outcome of a call and a preview of its output or diff. Output that was shown while the call
/// ran is not repeated.
pub(crate) fn end_lines(end: &CallEnd, shown: &LiveLines) -> Vec<(LineStyle, String)> {
    let preview = match (&end.diff, end.preview) {
        (Some(diff), _) => diff_preview(diff),
        (None, OutputPreview::Nothing) => Vec::new(),
        (None, OutputPreview::End) => shown.rest(&end.output),
    };
    let lines = [end_line(end)].into_iter().chain(preview);
    lines.map(|line| (LineStyle::Dim, safe(&line))).collect()
}

/// The last lines of an output, and how many are above them: failures are at the end.
pub(crate) fn output_preview(output: &str) -> Vec<String> {
    let lines: Vec<&str> = output.lines().collect();
    let above = lines.len().saturating_sub(OUTPUT_LINES);
    output_lines(&lines[above..], above)
}

/// Lines of output below how many others there are.
pub(crate) fn output_lines(lines: &[&str], above: usize) -> Vec<String> {
    let above = (above > 0).then(|| more(above));
    let lines = above.into_iter().chain(lines.iter().map(|line| cut(line)));
    lines.map(|line| format!("  │ {line}")).collect()
}

/// The first lines of a diff with their numbers in the file: old ones of lines that were removed.
fn diff_preview(diff: &FileDiff) -> Vec<String> {
    let mut lines = Vec::new();
    for hunk in &diff.hunks {
        let (mut old, mut new) = (hunk.old, hunk.new);
        for line in &hunk.lines {
            let (number, sign) = match line {
                DiffLine::Context(_) => (new, ' '),
                DiffLine::Added(_) => (new, '+'),
                DiffLine::Removed(_) => (old, '−'),
            };
            old += u64::from(!matches!(line, DiffLine::Added(_)));
            new += u64::from(!matches!(line, DiffLine::Removed(_)));
            lines.push(format!("    {number:>2} {sign} {}", cut(line.text())));
        }
    }
    let hidden = lines.len().saturating_sub(DIFF_LINES) as u64 + diff.omitted;
    lines.truncate(DIFF_LINES);
    let hidden = usize::try_from(hidden).unwrap_or(usize::MAX);
    lines.extend((hidden > 0).then(|| format!("    {}", more(hidden))));
    lines
}

fn cut(line: &str) -> String {
    line.chars().take(LINE_LIMIT).collect()
}

fn more(count: usize) -> String {
    format!("… {count} more {}", if count == 1 { "line" } else { "lines" })
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

    #[test]
    fn a_preview_is_the_last_lines_and_the_number_of_others() {
        assert_eq!(output_preview("a\nb"), ["  │ a", "  │ b"]);
        let seven = output_preview("1\n2\n3\n4\n5\n6\n7");
        assert_eq!(seven, ["  │ … 2 more lines", "  │ 3", "  │ 4", "  │ 5", "  │ 6", "  │ 7"]);
        assert_eq!(output_preview(&"x".repeat(300)), [format!("  │ {}", "x".repeat(200))]);
        assert_eq!(output_preview(""), Vec::<String>::new());
    }

    #[test]
    fn a_diff_has_the_numbers_of_the_file() {
        let lines = [" a", "-b", "+B", "+C", " d"].map(|line| line.to_owned().into()).into();
        let hunks = vec![ikigai_conversation::Hunk { old: 41, new: 40, lines }];
        let diff = FileDiff { path: "f".to_owned(), added: 2, removed: 1, hunks, omitted: 3 };
        let expected = [
            "    40   a",
            "    42 − b",
            "    41 + B",
            "    42 + C",
            "    43   d",
            "    … 3 more lines",
        ];
        assert_eq!(diff_preview(&diff), expected);
    }
}
