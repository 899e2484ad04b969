//! A conversation as plain text: what `ikigai log` prints, and what is shown for native selection.
//! Nothing is wrapped, so that copied text is as it was.

use ikigai_conversation::{DiffLine, FileDiff, Message, ResultState};

use crate::block::{
    Block, BlockChange, BlockContent, BlockId, CallBlock, CallChange, CallEnd, CallState,
    NoticeTone, OutputPreview,
};
use crate::elapsed::render_duration;
use crate::mail_card::MailCard;
use crate::render::render_thought;
use crate::transcript::TranscriptReducer;

/// How many lines of output are shown below a call.
const OUTPUT_LINES: usize = 5;
/// How many rows of a diff are shown below a call.
const DIFF_LINES: usize = 20;
/// Shorter durations are of no interest.
const NOTABLE_MILLIS: u128 = 100;

/// A conversation as text, block by block, with an empty line between those that are not calls.
#[derive(Debug, Default)]
pub struct PlainText {
    text: String,
    /// Whether the last block stands beside others like it without an empty line.
    is_after_small: Option<bool>,
}

impl PlainText {
    /// Adds a block.
    pub fn push(&mut self, content: &BlockContent) {
        let Some(lines) = render_block(content) else { return };
        let is_small = is_small(content);
        if self.is_after_small.is_some_and(|before| !(before && is_small)) {
            self.text.push('\n');
        }
        self.text.push_str(lines.trim_end());
        self.text.push('\n');
        self.is_after_small = Some(is_small);
    }

    /// Takes the text so far. It may contain control characters of models and files: the front end
    /// has to escape them.
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }
}

/// The messages of a log as text. A call is added with its result.
#[derive(Debug, Default)]
pub struct PlainLog {
    reducer: TranscriptReducer,
    text: PlainText,
    /// The calls without a result.
    open: Vec<(BlockId, CallBlock)>,
}

impl PlainLog {
    /// Adds a message.
    pub fn push(&mut self, message: &Message) {
        for change in self.reducer.message(message) {
            match change {
                BlockChange::Added(Block { id, content: BlockContent::Call(call), .. })
                    if !matches!(call.state, CallState::Ended(_)) =>
                {
                    self.open.push((id, *call));
                }
                BlockChange::Added(block) => self.text.push(&block.content),
                BlockChange::Call { block, change } => self.change_call(block, change),
                BlockChange::Cleared => {
                    self.text.push(&BlockContent::Divider("cleared".to_owned()));
                }
                // The log keeps what a rewind hides, and nothing streams.
                BlockChange::Extended { .. } | BlockChange::Logged { .. } => {}
                BlockChange::Thought { .. } | BlockChange::Removed(_) => {}
                BlockChange::Hidden(_) | BlockChange::HiddenAfter(_) => {}
            }
        }
    }

    fn change_call(&mut self, block: BlockId, change: CallChange) {
        let Some(at) = self.open.iter().position(|(id, _)| *id == block) else { return };
        self.open[at].1.apply(change);
        if matches!(self.open[at].1.state, CallState::Ended(_)) {
            let (_, call) = self.open.remove(at);
            self.text.push(&BlockContent::Call(Box::new(call)));
        }
    }

    /// Takes the text so far.
    pub fn take(&mut self) -> String {
        self.text.take()
    }

    /// Adds the calls that have no result yet, and takes the text.
    pub fn finish(mut self) -> String {
        for (_, call) in std::mem::take(&mut self.open) {
            self.text.push(&BlockContent::Call(Box::new(call)));
        }
        self.text.take()
    }
}

/// Whether a block stands beside others like it without an empty line.
fn is_small(content: &BlockContent) -> bool {
    matches!(content, BlockContent::Call(_) | BlockContent::Mail(_) | BlockContent::Notification(_))
}

/// A block as text; `None` if there is nothing to show.
fn render_block(content: &BlockContent) -> Option<String> {
    Some(match content {
        BlockContent::Said(text) | BlockContent::Typed(text) => hanging("❯ ", text),
        BlockContent::Answer(text) => hanging("● ", text),
        BlockContent::Thought { duration, .. } => format!("✻ {}", render_thought((*duration)?)),
        BlockContent::Call(call) => render_call(call),
        BlockContent::Mail(cards) => {
            let cards: Vec<String> = cards.iter().map(MailCard::line).collect();
            cards.join("\n")
        }
        BlockContent::Notice { tone, text } => render_notice(*tone, text),
        BlockContent::Summary { title, .. } => title.clone(),
        BlockContent::Divider(text) => format!("── {text} ──"),
        BlockContent::Notification(text)
        | BlockContent::Reply(text)
        | BlockContent::Refusal(text) => text.clone(),
    })
}

/// A notice with the sign of its importance.
pub fn render_notice(tone: NoticeTone, text: &str) -> String {
    match tone {
        NoticeTone::Info => text.to_owned(),
        NoticeTone::Warning => format!("⚠ {text}"),
        NoticeTone::Fault => format!("✗ {text}"),
    }
}

/// Only the first line gets the sign: an indent before the others would be copied with them.
fn hanging(sign: &str, text: &str) -> String {
    format!("{sign}{}", text.trim_end())
}

/// A call with its outcome, and what it printed or changed.
fn render_call(call: &CallBlock) -> String {
    let head = format!("● {}", call.summary);
    match &call.state {
        CallState::Running | CallState::Asking => head,
        CallState::Unfinished => format!("{head}  not finished"),
        CallState::Ended(end) => {
            let outcome = [Some(render_outcome(end)), render_time(end)];
            let outcome = outcome.into_iter().flatten().collect::<Vec<_>>().join(" · ");
            let below = render_below(end);
            let lines = [format!("{head}  {outcome}")].into_iter().chain(below);
            lines.collect::<Vec<_>>().join("\n")
        }
    }
}

/// The outcome of a call with the sign of its state: `3 matches`, `✗ exit 1`, `! Denied by user`.
pub fn render_outcome(end: &CallEnd) -> String {
    // The sign says that it is an error.
    let outcome = end.outcome.strip_prefix("error: ").unwrap_or(&end.outcome);
    match end.state {
        ResultState::Succeeded => outcome.to_owned(),
        ResultState::Refused => format!("! {outcome}"),
        ResultState::Failed => format!("✗ {outcome}"),
    }
}

fn render_time(end: &CallEnd) -> Option<String> {
    let notable = end.duration.filter(|duration| duration.as_millis() >= NOTABLE_MILLIS);
    notable.map(render_duration)
}

/// The lines below a call: its diff, or the end of its output.
pub fn render_below(end: &CallEnd) -> Vec<String> {
    match (&end.diff, end.preview) {
        (Some(diff), _) => diff_lines(diff),
        (None, OutputPreview::Nothing) => Vec::new(),
        (None, OutputPreview::End) => output_preview(&end.output),
    }
}

/// The last lines of an output, and how many are above them: failures are at the end.
pub fn output_preview(output: &str) -> Vec<String> {
    let lines: Vec<&str> = output.lines().collect();
    let above = lines.len().saturating_sub(OUTPUT_LINES);
    let more = (above > 0).then(|| more(above));
    let lines = more.into_iter().chain(lines[above..].iter().map(|line| (*line).to_owned()));
    lines.map(|line| output_line(&line)).collect()
}

/// A line of output, cut where no terminal shows more.
pub fn output_line(line: &str) -> String {
    format!("  │ {}", cut(line))
}

/// The first lines of a diff with their numbers in the file: old ones of lines that were removed.
fn diff_lines(diff: &FileDiff) -> Vec<String> {
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
    let omitted = usize::try_from(diff.omitted).unwrap_or(usize::MAX);
    let hidden = lines.len().saturating_sub(DIFF_LINES).saturating_add(omitted);
    lines.truncate(DIFF_LINES);
    lines.extend((hidden > 0).then(|| format!("    {}", more(hidden))));
    lines
}

fn cut(line: &str) -> String {
    /// Wider than most terminals.
    const LIMIT: usize = 200;
    line.chars().take(LIMIT).collect()
}

fn more(count: usize) -> String {
    format!("… {count} more {}", if count == 1 { "line" } else { "lines" })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ikigai_conversation::{CallSummary, Hunk, ToolCallId};

    use super::*;

    fn call(verb: &str, subject: &str, end: CallEnd) -> BlockContent {
        BlockContent::Call(Box::new(CallBlock {
            call: ToolCallId::new("c"),
            summary: CallSummary::new(verb, subject),
            effects: Vec::new(),
            approval: None,
            state: CallState::Ended(end),
        }))
    }

    fn ended(outcome: &str, state: ResultState, output: &str) -> CallEnd {
        CallEnd {
            outcome: outcome.to_owned(),
            state,
            diff: None,
            rule: None,
            output: output.to_owned(),
            preview: OutputPreview::End,
            duration: Some(Duration::from_millis(420)),
        }
    }

    #[test]
    fn a_conversation_reads_like_the_screen_without_wrapped_lines() {
        let contents = [
            BlockContent::Said("fix the test\nplease".to_owned()),
            BlockContent::Thought { text: "hm".to_owned(), duration: Some(Duration::from_secs(6)) },
            call("Bash", "make", ended("exit 1", ResultState::Failed, "1\n2\n3\n4\n5\n6")),
            call("Read", "a.py", ended("error: File not found: a.py", ResultState::Failed, "")),
            BlockContent::Answer("Done:\n\n- one\n".to_owned()),
        ];
        let mut text = PlainText::default();
        contents.iter().for_each(|content| text.push(content));
        let expected = "\
❯ fix the test
please

✻ Thought for 6s

● Bash  make  ✗ exit 1 · 0.4s
  │ … 1 more line
  │ 2
  │ 3
  │ 4
  │ 5
  │ 6
● Read  a.py  ✗ File not found: a.py · 0.4s

● Done:

- one
";
        assert_eq!(text.take(), expected);
    }

    #[test]
    fn a_diff_has_the_numbers_of_the_file() {
        let lines = [" a", "-b", "+B", "+C", " d"].map(|line| line.to_owned().into()).into();
        let hunks = vec![Hunk { old: 41, new: 40, lines }];
        let diff = FileDiff { path: "f".to_owned(), added: 2, removed: 1, hunks, omitted: 3 };
        let expected = [
            "    40   a",
            "    42 − b",
            "    41 + B",
            "    42 + C",
            "    43   d",
            "    … 3 more lines",
        ];
        assert_eq!(diff_lines(&diff), expected);
    }

    #[test]
    fn a_line_is_cut_where_no_terminal_shows_more() {
        assert_eq!(output_preview(&"x".repeat(300)), [format!("  │ {}", "x".repeat(200))]);
        assert_eq!(output_preview(""), Vec::<String>::new());
    }
}
