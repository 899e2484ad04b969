//! Writing to the terminal or a pipe. A closed pipe (`| head`) is not an error.

use std::io::{self, IsTerminal, Write};

use anyhow::Context;

pub(crate) use ikigai_protocol::{safe, safe_json};

/// Writes to standard output and flushes.
pub(crate) fn out(text: impl AsRef<[u8]>) -> anyhow::Result<()> {
    out_to_reader(text).map(drop)
}

/// Whether the reader of standard output is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    Listening,
    Gone,
}

/// Like [`out`], but reports whether the reader is gone, so that the caller can stop.
pub(crate) fn out_to_reader(text: impl AsRef<[u8]>) -> anyhow::Result<Reader> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_ref()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
        written => written.context("cannot write to standard output").map(|()| Reader::Listening),
    }
}

/// Prints text of a model: unchanged to a file or program, made safe for a terminal.
pub(crate) fn model_text_to_reader(text: &str) -> anyhow::Result<Reader> {
    match io::stdout().is_terminal() {
        true => out_to_reader(safe(text)),
        false => out_to_reader(text),
    }
}

/// Prints on standard error why the program failed.
pub(crate) fn error(error: &anyhow::Error) {
    note(&format!("ikigai: {error:#}"));
}

/// Prints a note on standard error. Failures are ignored, since there is nowhere to report them.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{}", safe(text));
}
