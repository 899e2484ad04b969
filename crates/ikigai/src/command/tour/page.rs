//! Printing the tour: at most 80 columns, without colours if they are unwanted.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ikigai_conversation::{AgentId, Message};
use ikigai_host::Environment;
use ikigai_lines::{LineStyle, change_lines, database_unavailable, retry_line};
use ikigai_protocol::{Event, EventKind, TranscriptReducer};
use tokio_util::sync::CancellationToken;

use super::pace::{PauseEnd, Speed};
use crate::exit::Exit;
use crate::print::{self, Reader, safe};

/// The minimum width of a terminal.
const WIDTH: usize = 80;

/// The page is shared by the agents and the tour.
pub(super) type SharedPage = Arc<Mutex<Page>>;

pub(super) fn lock(page: &Mutex<Page>) -> MutexGuard<'_, Page> {
    page.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The page on which the tour is printed.
pub(super) struct Page {
    is_terminal: bool,
    has_colours: bool,
    /// Printed lines can be erased.
    can_erase: bool,
    cursor: Cursor,
    reducers: BTreeMap<AgentId, TranscriptReducer>,
    interrupt: CancellationToken,
    /// Set once printing is no longer possible.
    end: Option<anyhow::Result<Reader>>,
}

/// Where the cursor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cursor {
    /// After some text.
    MidLine,
    /// At the start of a line.
    LineStart,
    /// At the start of a line, below an empty one.
    BlankLine,
}

const BOLD: &str = "1";
const DIM: &str = "2";

impl Page {
    pub(super) fn new(
        environment: &Environment,
        speed: Speed,
        interrupt: CancellationToken,
    ) -> Page {
        let is_dumb = environment.variable("TERM").is_none_or(|term| term == "dumb");
        let is_terminal = speed == Speed::Readable;
        let can_erase = is_terminal && !is_dumb;
        let has_colours = can_erase && environment.variable("NO_COLOR").is_none();
        Page {
            is_terminal,
            has_colours,
            can_erase,
            cursor: Cursor::BlankLine,
            reducers: BTreeMap::new(),
            interrupt,
            end: None,
        }
    }

    pub(super) fn title(&mut self, text: &str) {
        self.styled(BOLD, text);
        self.empty_line();
    }

    pub(super) fn heading(&mut self, text: &str) {
        self.empty_line();
        self.title(text);
    }

    /// Prints text of the tour itself.
    pub(super) fn say(&mut self, text: &str) {
        text.lines().for_each(|line| self.line(line));
    }

    /// Prints an empty line, unless there is one already.
    pub(super) fn empty_line(&mut self) {
        self.start_line();
        if self.cursor != Cursor::BlankLine {
            self.put("\n");
            self.cursor = Cursor::BlankLine;
        }
    }

    /// Prints a piece of what the user types.
    pub(super) fn typed(&mut self, piece: &str) {
        self.put(&self.in_style(BOLD, piece));
        self.cursor = Cursor::MidLine;
    }

    /// Ends the typed line.
    pub(super) fn end_typed(&mut self) {
        self.start_line();
    }

    /// Prints the output of a command typed by the user.
    pub(super) fn output(&mut self, text: &str) {
        safe(text).lines().for_each(|line| self.wrapped(line, None));
    }

    /// Prints an event of an agent.
    pub(super) fn show(&mut self, event: &Event) {
        match &event.kind {
            EventKind::TextDelta(delta) => self.text(delta),
            EventKind::Message(message) => self.logged(&event.agent, message),
            EventKind::Retry { attempt, of, reason, delay } => {
                self.wrapped(&safe(&retry_line(*attempt, *of, reason, *delay)), None);
            }
            EventKind::DatabaseUnavailable(reason) => {
                self.wrapped(&safe(&database_unavailable(reason)), None);
            }
            // `walk` handles the end of a turn.
            EventKind::MailHeld | EventKind::TurnEnded(_) | EventKind::AgentLost(_) => {
                self.start_line();
            }
            // The scripted conversation is short.
            EventKind::TurnStarted(_)
            | EventKind::Compaction(_)
            | EventKind::Warning(_)
            | EventKind::ContextUsed { .. }
            | EventKind::ReadsStarted(_)
            | EventKind::ToolOutput { .. }
            | EventKind::CommandStarted { .. }
            | EventKind::CommandOutput { .. }
            | EventKind::CommandEnded { .. }
            | EventKind::CommandLost { .. }
            | EventKind::ApprovalRequested(_)
            | EventKind::ThinkingDelta(_)
            | EventKind::CallProgress { .. }
            | EventKind::EffortRefused(_)
            | EventKind::InputRejected(_) => {}
        }
    }

    /// Text of the script fits on one line.
    fn text(&mut self, delta: &str) {
        if self.cursor != Cursor::MidLine {
            self.put("● ");
            self.cursor = Cursor::MidLine;
        }
        self.put(&safe(delta));
    }

    fn logged(&mut self, agent: &AgentId, message: &Message) {
        let changes = self.reducers.entry(agent.clone()).or_default().message(message);
        for (style, line) in changes.iter().flat_map(change_lines) {
            let style = match style {
                LineStyle::Plain => None,
                LineStyle::Dim => Some(DIM),
            };
            self.wrapped(&line, style);
        }
    }

    /// Prints what the tour waits for; [`clear_hint`](Page::clear_hint) removes it.
    pub(super) fn hint(&mut self, hint: &str) {
        self.empty_line();
        self.put(&self.in_style(DIM, hint));
        self.cursor = Cursor::MidLine;
    }

    pub(super) fn clear_hint(&mut self, pause_end: PauseEnd) {
        let (erase, cursor) = match (self.can_erase, pause_end) {
            (true, PauseEnd::Timeout) => ("\r\x1b[K", Cursor::BlankLine),
            (true, PauseEnd::Enter) => ("\x1b[A\r\x1b[K", Cursor::BlankLine),
            (false, PauseEnd::Timeout) => ("\n", Cursor::LineStart),
            (false, PauseEnd::Enter) => ("", Cursor::LineStart),
        };
        self.put(erase);
        self.cursor = cursor;
    }

    /// The exit code, after everything is cleaned up.
    pub(super) fn finish(&mut self, walked: anyhow::Result<()>) -> anyhow::Result<Exit> {
        self.start_line();
        if self.is_terminal && self.interrupt.is_cancelled() {
            // The terminal may have echoed keys.
            self.put(if self.can_erase { "\r\x1b[K" } else { "\n" });
            self.styled(DIM, "The tour was left. Its folder is removed.");
        }
        match self.end.take() {
            Some(Err(error)) => Err(error),
            // The reader is gone.
            Some(Ok(_)) => Ok(Exit::Done),
            None if self.interrupt.is_cancelled() => Ok(Exit::Interrupted),
            None => walked.map(|()| Exit::Done),
        }
    }

    fn wrapped(&mut self, line: &str, style: Option<&str>) {
        for line in wrap(line) {
            match style {
                Some(style) => self.styled(style, &line),
                None => self.line(&line),
            }
        }
    }

    fn styled(&mut self, style: &str, text: &str) {
        self.line(&self.in_style(style, text));
    }

    fn in_style(&self, style: &str, text: &str) -> String {
        match self.has_colours {
            true => format!("\x1b[{style}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }

    fn line(&mut self, text: &str) {
        self.start_line();
        self.put(text);
        self.put("\n");
        self.cursor = Cursor::LineStart;
    }

    fn start_line(&mut self) {
        if self.cursor == Cursor::MidLine {
            self.put("\n");
            self.cursor = Cursor::LineStart;
        }
    }

    /// Writes text. If that fails, the tour is over.
    fn put(&mut self, text: &str) {
        if self.end.is_some() {
            return;
        }
        match print::out_to_reader(text) {
            Ok(Reader::Listening) => {}
            end => {
                self.end = Some(end);
                self.interrupt.cancel();
            }
        }
    }
}

/// Wraps a line between words, with continuation lines indented like results.
fn wrap(line: &str) -> Vec<String> {
    const INDENT: &str = "  ";
    let mut lines = Vec::new();
    let mut current = String::new();
    for word in line.split_inclusive(' ') {
        let length = current.chars().count() + word.trim_end().chars().count();
        if length > WIDTH && !current.trim().is_empty() {
            lines.push(std::mem::replace(&mut current, INDENT.to_owned()));
        }
        current.push_str(word);
    }
    lines.push(current);
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &[&str]) {
        assert_eq!(wrap(line), expected);
    }

    #[test]
    fn a_line_is_broken_between_words() {
        check("", &[""]);
        check("  a b", &["  a b"]);
        let word = "é".repeat(39);
        check(&format!("{word} {word}"), &[&format!("{word} {word}")]);
        check(&format!("{word} {word} x"), &[&*format!("{word} {word}"), "  x"]);
        check(&format!("  {word} {word}"), &[&*format!("  {word}"), &*format!("  {word}")]);
    }

    #[test]
    fn a_word_that_is_too_long_stays_whole() {
        let long = "x".repeat(100);
        check(&long, &[&long]);
        check(&format!("a {long} b"), &["a", &*format!("  {long}"), "  b"]);
    }
}
