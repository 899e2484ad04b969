//! Questions to the user before the screen opens: line by line on the terminal.

use std::io::{self, BufRead, Read, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// No answer and no key is longer.
const LINE_LIMIT: u64 = 16 << 10;

/// Reads a line; `None` at the end of input.
pub(crate) fn read_line() -> anyhow::Result<Option<String>> {
    let mut line = String::new();
    let count = io::stdin().lock().take(LINE_LIMIT).read_line(&mut line)?;
    // Ctrl-C arrives as a character while signals are off.
    let is_cancelled = line.contains('\u{3}');
    Ok((count > 0).then(|| if is_cancelled { String::new() } else { line }))
}

/// Reads a line that is not shown; `None` if there is none, or it is empty.
pub(crate) fn read_secret(question: &str) -> anyhow::Result<Option<String>> {
    put(question)?;
    let hidden = HiddenInput::start();
    let line = read_line();
    let was_hidden = hidden.0.is_some();
    drop(hidden);
    if was_hidden {
        put("\n")?;
    }
    Ok(line?.map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()))
}

/// Asks a question that Enter approves.
pub(crate) fn confirm(question: &str) -> anyhow::Result<bool> {
    put(&format!("{question} [Y/n] "))?;
    let Some(line) = read_line()? else { return Ok(false) };
    Ok(matches!(line.trim().to_lowercase().as_str(), "" | "y" | "yes"))
}

/// Writes text to the terminal, without starting a new line after it.
pub(crate) fn put(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    Ok(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())?)
}

/// Turns off the terminal's echo until dropped.
struct HiddenInput(Option<Termios>);

impl HiddenInput {
    fn start() -> HiddenInput {
        let before = tcgetattr(io::stdin()).ok();
        if let Some(mut hidden) = before.clone() {
            // Ctrl-C must not end the program here, or the echo would stay off.
            hidden.local_modes -= LocalModes::ECHO | LocalModes::ISIG;
            let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &hidden);
        }
        HiddenInput(before)
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}
