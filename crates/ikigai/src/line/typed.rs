//! The lines that a person types.

use std::io::{self, BufRead, Read};
use std::thread;

use tokio::sync::mpsc;

/// What came from the terminal.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    Line(String),
    TooLong,
    /// With what arrow keys and their like leave in a line that nobody edits.
    Garbled,
}

/// For all lines that a backslash joins. Larger texts are better put into a file.
const LIMIT: usize = 1024 * 1024;

/// What a terminal keeps of a line that it edits itself. It drops the rest without a word, so a line of this
/// length is not the one that was typed.
const TERMINAL_LIMIT: usize = 4095;

/// Reads lines on a thread of its own, until the terminal's end of input. It may stay blocked in a read when
/// the program ends; nobody waits for it.
pub(super) fn read_lines() -> io::Result<mpsc::Receiver<Typed>> {
    let (send, lines) = mpsc::channel(1);
    let read = move || {
        let mut stdin = io::stdin().lock();
        while let Some(typed) = read_text(&mut stdin) {
            if send.blocking_send(typed).is_err() {
                break;
            }
        }
    };
    thread::Builder::new().name("keyboard".to_owned()).spawn(read)?;
    Ok(lines)
}

/// The next line, with those that a backslash at its end joins to it; `None` at the end of input.
fn read_text(input: &mut impl BufRead) -> Option<Typed> {
    let mut text = String::new();
    loop {
        let line = match read_line(input) {
            Some(Typed::Line(line)) => line,
            Some(fault @ (Typed::TooLong | Typed::Garbled)) => return Some(fault),
            None => return (!text.is_empty()).then_some(Typed::Line(text)),
        };
        let is_more = line.ends_with('\\');
        text.push_str(line.strip_suffix('\\').unwrap_or(&line));
        if text.len() > LIMIT {
            return Some(Typed::TooLong);
        }
        if !is_more {
            return Some(Typed::Line(text));
        }
        text.push('\n');
    }
}

/// The next line without its end; `None` at the end of input. Bytes that are no UTF-8 are replaced.
fn read_line(input: &mut impl BufRead) -> Option<Typed> {
    let mut bytes = Vec::new();
    let count = input.by_ref().take(LIMIT as u64).read_until(b'\n', &mut bytes).ok()?;
    if count == 0 {
        return None;
    }
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    } else if count == LIMIT {
        input.skip_until(b'\n').ok()?;
    }
    if bytes.len() >= TERMINAL_LIMIT {
        return Some(Typed::TooLong);
    }
    let line = String::from_utf8_lossy(&bytes).into_owned();
    Some(match line.chars().any(|c| c.is_control() && c != '\t') {
        true => Typed::Garbled,
        false => Typed::Line(line),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(mut input: &[u8], expected: &[Typed]) {
        let read: Vec<Typed> = std::iter::from_fn(|| read_text(&mut input)).collect();
        assert!(read == expected, "{} texts", read.len());
    }

    fn line(text: &str) -> Typed {
        Typed::Line(text.to_owned())
    }

    #[test]
    fn a_backslash_joins_lines_also_at_the_end_of_input() {
        check(b"a\nb\n", &[line("a"), line("b")]);
        check(b"a\\\nb\\\nc\nd", &[line("a\nb\nc"), line("d")]);
        check(b"abc\\", &[line("abc\n")]);
        check(b"\n\xff\n", &[line(""), line("\u{fffd}")]);
    }

    #[test]
    fn what_is_too_long_is_said_to_be_and_what_follows_is_read() {
        let mut input = vec![b'x'; LIMIT + 10];
        input.extend_from_slice(b"\nshort\n");
        check(&input, &[Typed::TooLong, line("short")]);
        check(&[&[b'x'; TERMINAL_LIMIT][..], b"\n"].concat(), &[Typed::TooLong]);
        let longest = "x".repeat(TERMINAL_LIMIT - 1);
        check(format!("{longest}\n").as_bytes(), &[line(&longest)]);
        let joined = format!("{}\\\n", "x".repeat(4_000)).repeat(300);
        assert_eq!(read_text(&mut joined.as_bytes()), Some(Typed::TooLong));
    }

    #[test]
    fn what_arrow_keys_leave_is_not_taken_for_words() {
        check(b"abc\x1b[D\x1b[DX\nabc\td\n", &[Typed::Garbled, line("abc\td")]);
    }
}
