//! The lines that a person types.

use std::io::{self, BufRead, Read};
use std::thread;

use tokio::sync::mpsc;

/// What came from the terminal.
pub(super) enum Typed {
    Line(String),
    TooLong,
}

/// A terminal gives at most 4 KB at a time; a backslash at the end goes on in the next line.
const LINE_LIMIT: u64 = 1024 * 1024;

/// Reads lines on a thread of its own, until the terminal's end of input. It may stay blocked in a read when
/// the program ends; nobody waits for it.
pub(super) fn read_lines() -> io::Result<mpsc::Receiver<Typed>> {
    let (send, lines) = mpsc::channel(1);
    let read = move || {
        let mut stdin = io::stdin().lock();
        let mut text = String::new();
        while let Some(typed) = read_line(&mut stdin) {
            let typed = match typed {
                Typed::Line(line) => match line.strip_suffix('\\') {
                    Some(begun) => {
                        text.push_str(begun);
                        text.push('\n');
                        continue;
                    }
                    None => Typed::Line(std::mem::take(&mut text) + &line),
                },
                Typed::TooLong => Typed::TooLong,
            };
            if send.blocking_send(typed).is_err() {
                break;
            }
        }
    };
    thread::Builder::new().name("keyboard".to_owned()).spawn(read)?;
    Ok(lines)
}

/// The next line without its end; `None` at the end of input. Bytes that are no UTF-8 are replaced.
fn read_line(input: &mut impl BufRead) -> Option<Typed> {
    let mut bytes = Vec::new();
    let count = input.by_ref().take(LINE_LIMIT).read_until(b'\n', &mut bytes).ok()?;
    if count == 0 {
        return None;
    }
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    } else if count as u64 == LINE_LIMIT {
        input.skip_until(b'\n').ok()?;
        return Some(Typed::TooLong);
    }
    Some(Typed::Line(String::from_utf8_lossy(&bytes).into_owned()))
}
