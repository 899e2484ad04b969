//! Writing to the terminal or a pipe. A reader that has seen enough (`| head`) is no error.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use anyhow::Context;

/// Writes to standard output, at once.
pub(crate) fn out(text: impl AsRef<[u8]>) -> anyhow::Result<()> {
    out_to_reader(text).map(drop)
}

/// Whether somebody still reads what is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    Listening,
    Gone,
}

/// The same, for whoever would otherwise print on and on.
pub(crate) fn out_to_reader(text: impl AsRef<[u8]>) -> anyhow::Result<Reader> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_ref()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
        written => written.context("cannot write to standard output").map(|()| Reader::Listening),
    }
}

/// The same for the words of a model: a file or a program gets every byte of them, a terminal only what cannot
/// touch it.
pub(crate) fn words_to_reader(text: &str) -> anyhow::Result<Reader> {
    match io::stdout().is_terminal() {
        true => out_to_reader(safe(text)),
        false => out_to_reader(text),
    }
}

/// Text of agents, models and strangers as a terminal may get it: it cannot move the cursor, change a colour, ring
/// a bell or turn round the order in which other text is shown.
pub(crate) fn safe(text: &str) -> String {
    text.chars().map(|c| if is_harmless(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}

/// The same for JSON, which keeps its meaning: `serde_json` escapes the control characters of ASCII but for DEL,
/// and none of the others, such as U+009B, which begins an escape sequence.
pub(crate) fn safe_json(json: impl Display) -> String {
    let json = json.to_string();
    if json.chars().all(is_harmless) {
        return json;
    }
    let escape = |c: char| match is_harmless(c) {
        true => c.to_string(),
        false => format!("\\u{:04x}", u32::from(c)),
    };
    json.chars().map(escape).collect()
}

fn is_harmless(c: char) -> bool {
    let turns_order = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c == '\n' || c == '\t' || !(c.is_control() || turns_order)
}

/// Tells on standard error why the program failed.
pub(crate) fn error(error: &anyhow::Error) {
    note(&format!("ikigai: {error:#}"));
}

/// Tells something on standard error. Nobody is left to tell when that fails.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{}", safe(text));
}
