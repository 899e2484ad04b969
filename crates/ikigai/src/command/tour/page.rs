//! What is printed, and how it looks: at most 80 columns, plain where colours are not wanted.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ikigai_conversation::Message;
use ikigai_protocol::{Event, EventKind};
use tokio_util::sync::CancellationToken;

use super::pace::{Read, Speed};
use crate::environment::Environment;
use crate::exit::Exit;
use crate::print::{self, Reader, safe};
use crate::transcript::{self, Look};

/// The width that every terminal has.
const WIDTH: usize = 80;

/// The agents print on it as well as the walk.
pub(super) type SharedPage = Arc<Mutex<Page>>;

pub(super) fn lock(page: &Mutex<Page>) -> MutexGuard<'_, Page> {
    page.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The page on which the walk is printed.
pub(super) struct Page {
    is_terminal: bool,
    has_colours: bool,
    /// What was printed can be taken back.
    can_erase: bool,
    cursor: Cursor,
    interrupt: CancellationToken,
    /// Why nothing more can be printed.
    end: Option<anyhow::Result<Reader>>,
}

/// Where the cursor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cursor {
    /// Behind something.
    WithinLine,
    /// At the beginning of a line.
    Fresh,
    /// There, and above it is an empty line.
    Apart,
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
        Page { is_terminal, has_colours, can_erase, cursor: Cursor::Apart, interrupt, end: None }
    }

    pub(super) fn title(&mut self, text: &str) {
        self.styled(BOLD, text);
        self.empty_line();
    }

    pub(super) fn heading(&mut self, text: &str) {
        self.empty_line();
        self.title(text);
    }

    /// Says something in the walk's own name.
    pub(super) fn say(&mut self, text: &str) {
        text.lines().for_each(|line| self.line(line));
    }

    /// Leaves a line empty, unless one is.
    pub(super) fn empty_line(&mut self) {
        self.fresh();
        if self.cursor != Cursor::Apart {
            self.put("\n");
            self.cursor = Cursor::Apart;
        }
    }

    /// Prints a piece of what the person types.
    pub(super) fn typed(&mut self, piece: &str) {
        self.put(&self.in_style(BOLD, piece));
        self.cursor = Cursor::WithinLine;
    }

    /// The person has pressed Enter behind it.
    pub(super) fn end_typed(&mut self) {
        self.fresh();
    }

    /// Prints what a command of the person put out.
    pub(super) fn output(&mut self, text: &str) {
        safe(text).lines().for_each(|line| self.wrapped(line, None));
    }

    /// Prints what happened to an agent.
    pub(super) fn show(&mut self, event: &Event) {
        match &event.kind {
            EventKind::TextDelta(delta) => self.text(delta),
            EventKind::Message(message) => self.logged(message),
            EventKind::Retry { attempt, reason, delay } => {
                self.wrapped(&safe(&transcript::retry(*attempt, reason, *delay)), None);
            }
            EventKind::DatabaseUnavailable(reason) => {
                self.wrapped(&safe(&transcript::store_waits(reason)), None);
            }
            // How it ended is the walk's business.
            EventKind::MailHeld | EventKind::TurnEnded(_) | EventKind::AgentLost(_) => self.fresh(),
            EventKind::TurnStarted(_)
            | EventKind::ApprovalRequested(_)
            | EventKind::InputRejected(_) => {}
        }
    }

    /// The words of the script fit into a line.
    fn text(&mut self, delta: &str) {
        if self.cursor != Cursor::WithinLine {
            self.put("● ");
            self.cursor = Cursor::WithinLine;
        }
        self.put(&safe(delta));
    }

    fn logged(&mut self, message: &Message) {
        for (look, line) in transcript::shown(message) {
            let style = match look {
                Look::Plain => None,
                Look::Dim => Some(DIM),
            };
            self.wrapped(&line, style);
        }
    }

    /// Tells for what the walk waits; [`go_on`](Page::go_on) takes it back.
    pub(super) fn hint(&mut self, hint: &str) {
        self.empty_line();
        self.put(&self.in_style(DIM, hint));
        self.cursor = Cursor::WithinLine;
    }

    pub(super) fn go_on(&mut self, read: Read) {
        let (erase, cursor) = match (self.can_erase, read) {
            (true, Read::ForLong) => ("\r\x1b[K", Cursor::Apart),
            (true, Read::Entered) => ("\x1b[A\r\x1b[K", Cursor::Apart),
            (false, Read::ForLong) => ("\n", Cursor::Fresh),
            (false, Read::Entered) => ("", Cursor::Fresh),
        };
        self.put(erase);
        self.cursor = cursor;
    }

    /// How the program ends; everything is tidied up by now.
    pub(super) fn finish(&mut self, walked: anyhow::Result<()>) -> anyhow::Result<Exit> {
        self.fresh();
        if self.is_terminal && self.interrupt.is_cancelled() {
            // The terminal may have shown which keys were pressed.
            self.put(if self.can_erase { "\r\x1b[K" } else { "\n" });
            self.styled(DIM, "Left. Nothing stays behind.");
        }
        match self.end.take() {
            Some(Err(error)) => Err(error),
            // Whoever read has seen enough.
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
        self.fresh();
        self.put(text);
        self.put("\n");
        self.cursor = Cursor::Fresh;
    }

    fn fresh(&mut self) {
        if self.cursor == Cursor::WithinLine {
            self.put("\n");
            self.cursor = Cursor::Fresh;
        }
    }

    /// When it cannot be printed, the walk is over.
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

/// Breaks a line between words; what follows is indented as results are.
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
