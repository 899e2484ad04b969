//! Lines of input from the terminal.

use std::io::{self, BufRead, Read};
use std::thread;

use tokio::sync::mpsc;

/// A line of input.
#[derive(Debug, PartialEq, Eq)]
pub enum Input {
    /// A line, joined with the following ones while it ends in a backslash.
    Line(String),
    /// More than a terminal or this program takes.
    TooLong,
    /// Contains control sequences, such as those of arrow keys, which the terminal's line editor
    /// does not handle.
    Garbled,
}

/// The limit on lines joined with backslashes. Larger texts belong in a file.
const LIMIT: usize = 1024 * 1024;

/// The length at which a terminal silently truncates the line it edits. A line of this length is
/// not what was typed.
const TERMINAL_LIMIT: usize = 4095;

/// Reads lines on a separate thread until the end of input. The thread may still be blocked in a
/// read when the program exits, so it is not joined.
pub fn read_lines() -> io::Result<mpsc::Receiver<Input>> {
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

/// The next line, joined with the following ones while it ends in a backslash; `None` at the end of
/// input.
fn read_text(input: &mut impl BufRead) -> Option<Input> {
    let mut text = String::new();
    loop {
        let line = match read_line(input) {
            Some(Input::Line(line)) => line,
            Some(fault @ (Input::TooLong | Input::Garbled)) => return Some(fault),
            None => return (!text.is_empty()).then_some(Input::Line(text)),
        };
        let is_more = line.ends_with('\\');
        text.push_str(line.strip_suffix('\\').unwrap_or(&line));
        if text.len() > LIMIT {
            return Some(Input::TooLong);
        }
        if !is_more {
            return Some(Input::Line(text));
        }
        text.push('\n');
    }
}

/// The next line without its line break; `None` at the end of input. Invalid UTF-8 is replaced.
fn read_line(input: &mut impl BufRead) -> Option<Input> {
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
        return Some(Input::TooLong);
    }
    let line = String::from_utf8_lossy(&bytes).into_owned();
    Some(match line.chars().any(|c| c.is_control() && c != '\t') {
        true => Input::Garbled,
        false => Input::Line(line),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(mut input: &[u8], expected: &[Input]) {
        let read: Vec<Input> = std::iter::from_fn(|| read_text(&mut input)).collect();
        assert!(read == expected, "{} texts", read.len());
    }

    fn line(text: &str) -> Input {
        Input::Line(text.to_owned())
    }

    #[test]
    fn a_backslash_joins_lines_even_at_the_end_of_input() {
        check(b"a\nb\n", &[line("a"), line("b")]);
        check(b"a\\\nb\\\nc\nd", &[line("a\nb\nc"), line("d")]);
        check(b"abc\\", &[line("abc\n")]);
        check(b"\n\xff\n", &[line(""), line("\u{fffd}")]);
    }

    #[test]
    fn a_line_that_is_too_long_is_reported_and_the_next_is_read() {
        let mut input = vec![b'x'; LIMIT + 10];
        input.extend_from_slice(b"\nshort\n");
        check(&input, &[Input::TooLong, line("short")]);
        check(&[&[b'x'; TERMINAL_LIMIT][..], b"\n"].concat(), &[Input::TooLong]);
        let longest = "x".repeat(TERMINAL_LIMIT - 1);
        check(format!("{longest}\n").as_bytes(), &[line(&longest)]);
        let joined = format!("{}\\\n", "x".repeat(4_000)).repeat(300);
        assert_eq!(read_text(&mut joined.as_bytes()), Some(Input::TooLong));
    }

    #[test]
    fn control_sequences_of_arrow_keys_are_not_taken_for_text() {
        check(b"abc\x1b[D\x1b[DX\nabc\td\n", &[Input::Garbled, line("abc\td")]);
    }
}
