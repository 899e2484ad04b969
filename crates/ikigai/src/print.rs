//! Writing to the terminal or a pipe. A reader that has seen enough (`| head`) is no error.

use std::io::{self, IsTerminal, Write};

use anyhow::Context;

pub(crate) use ikigai_host::{safe, safe_json};

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

/// Tells on standard error why the program failed.
pub(crate) fn error(error: &anyhow::Error) {
    note(&format!("ikigai: {error:#}"));
}

/// Tells something on standard error. Nobody is left to tell when that fails.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{}", safe(text));
}
