//! Taking over the terminal, and restoring it on every way out.

use std::io::{self, BufWriter, Stdout, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::clipboard::CopyToClipboard;
use crossterm::cursor::Show;
use crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, DisableMouseCapture, EnableBracketedPaste,
    EnableFocusChange, EnableMouseCapture, KeyboardEnhancementFlags, PopKeyboardEnhancementFlags,
    PushKeyboardEnhancementFlags,
};
use crossterm::style::{Print, ResetColor};
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
    LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{execute, queue};
use ratatui_core::terminal::Terminal;

use crate::app::App;
use crate::backend::Ansi;
use crate::safe::{safe, safe_line};

/// A whole frame fits into one write: half a frame would flicker.
const FRAME_BYTES: usize = 64 * 1024;

/// Sends the wheel as arrow keys on the alternate screen: saves the setting, then switches it on.
const WHEEL_AS_ARROWS: &str = "\x1b[?1007s\x1b[?1007h";
/// Restores the saved setting.
const WHEEL_AS_BEFORE: &str = "\x1b[?1007r";

/// Saves the title of the window.
const SAVE_TITLE: &str = "\x1b[22;2t";
/// Restores the saved title.
const RESTORE_TITLE: &str = "\x1b[23;2t";
/// Asks for the colour of the background. The answer arrives as input.
const ASK_BACKGROUND: &str = "\x1b]11;?\x1b\\";

/// Who gets mouse events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mouse {
    /// The terminal, so that selecting text works as usual.
    Terminal,
    /// The program (`--mouse`).
    Captured,
}

/// How to draw the user's attention to the terminal: with a desktop notification where the terminal
/// is known to support one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bell {
    /// With the bell.
    Plain,
    /// With OSC 9: iTerm2, WezTerm, Ghostty.
    Osc9,
    /// With OSC 99: kitty.
    Osc99,
    /// With OSC 777: foot, urxvt.
    Osc777,
}

/// The terminal while we own it. Dropping this restores it.
pub(crate) struct Screen {
    terminal: Terminal<Ansi<BufWriter<Ours>>>,
    mouse: Mouse,
    bell: Bell,
    /// The title of the window, once one was set.
    title: String,
}

/// Whether the terminal has to be restored.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Writes to the terminal while we own it. Later output was meant for the screen and is discarded.
struct Ours(Stdout);

impl Write for Ours {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match IS_TAKEN.load(Ordering::SeqCst) {
            true => self.0.write(bytes),
            false => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Screen {
    pub(crate) fn open(mouse: Mouse, bell: Bell) -> io::Result<Screen> {
        restore_on_panic();
        take(mouse).inspect_err(|_| restore())?;
        let writer = BufWriter::with_capacity(FRAME_BYTES, Ours(io::stdout()));
        let terminal = Terminal::new(Ansi::new(writer)).inspect_err(|_| restore())?;
        Ok(Screen { terminal, mouse, bell, title: String::new() })
    }

    pub(crate) fn draw(&mut self, app: &mut App, now: Duration) -> io::Result<()> {
        // A panic on another thread has restored the terminal.
        if !IS_TAKEN.load(Ordering::SeqCst) {
            self.reclaim()?;
        }
        self.terminal.autoresize()?;
        let cursor = app.draw(self.terminal.get_frame().buffer_mut(), now);
        // Not earlier: after a panic while drawing, this would stay in the buffer and the terminal
        // would wait for the end.
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.apply_buffer_with_cursor(cursor)?;
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)
    }

    /// Makes the next frame draw every cell.
    pub(crate) fn forget(&mut self) -> io::Result<()> {
        self.terminal.clear()
    }

    /// Gives the terminal to another program for a while.
    pub(crate) fn lend(&mut self) {
        restore();
    }

    /// Takes the terminal over again, in whatever state it is.
    pub(crate) fn reclaim(&mut self) -> io::Result<()> {
        // Some of these settings are stacks: pushing twice would need popping twice.
        restore();
        take(self.mouse)?;
        self.title.clear();
        self.forget()
    }

    /// Prints text on the normal screen, unwrapped, while the terminal is lent. Keys are not echoed,
    /// and Ctrl+C is one like any other. [`end_plain`](Screen::end_plain) must follow.
    pub(crate) fn print_plain(text: &str) -> io::Result<()> {
        enable_raw_mode()?;
        let mut stdout = io::stdout();
        let text = safe(text).replace('\n', "\r\n");
        write!(stdout, "{text}\r\nPress any key to return ")?;
        stdout.flush()
    }

    pub(crate) fn end_plain() {
        // The terminal may be gone.
        let _ = write!(io::stdout(), "\r\n");
        let _ = disable_raw_mode();
    }

    /// Sets the title of the window.
    pub(crate) fn set_title(&mut self, title: String) -> io::Result<()> {
        if title == self.title {
            return Ok(());
        }
        queue!(self.terminal.backend_mut(), Print(format!("\x1b]2;{}\x07", safe_line(&title))))?;
        self.title = title;
        Ok(())
    }

    pub(crate) fn ask_background(&mut self) -> io::Result<()> {
        execute!(self.terminal.backend_mut(), Print(ASK_BACKGROUND))
    }

    pub(crate) fn ring(&mut self, text: &str) -> io::Result<()> {
        let text = safe_line(text);
        let sequence = match self.bell {
            Bell::Plain => "\x07".to_owned(),
            Bell::Osc9 => format!("\x1b]9;{text}\x07"),
            Bell::Osc99 => format!("\x1b]99;;{text}\x1b\\"),
            Bell::Osc777 => format!("\x1b]777;notify;ikigai;{}\x1b\\", text.replace(';', ",")),
        };
        execute!(self.terminal.backend_mut(), Print(sequence))
    }

    pub(crate) fn copy(&mut self, text: &str) -> io::Result<()> {
        execute!(self.terminal.backend_mut(), CopyToClipboard::to_clipboard_from(text))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

fn take(mouse: Mouse) -> io::Result<()> {
    enable_raw_mode()?;
    IS_TAKEN.store(true, Ordering::SeqCst);
    let mut stdout = io::stdout();
    queue!(
        stdout,
        EnterAlternateScreen,
        // A program that was killed may have left its text there.
        Clear(ClearType::All),
        Print(SAVE_TITLE),
        EnableBracketedPaste,
        EnableFocusChange,
        // Distinguishes Shift+Enter from Enter, if the terminal can; others ignore it.
        PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES),
    )?;
    match mouse {
        Mouse::Terminal => queue!(stdout, Print(WHEEL_AS_ARROWS))?,
        Mouse::Captured => queue!(stdout, EnableMouseCapture)?,
    }
    stdout.flush()
}

/// Restores the terminal. Can be called at any time, from any thread, more than once.
fn restore() {
    if !IS_TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut stdout = io::stdout();
    // The terminal may be gone.
    let _ = execute!(
        stdout,
        EndSynchronizedUpdate,
        DisableMouseCapture,
        Print(WHEEL_AS_BEFORE),
        PopKeyboardEnhancementFlags,
        DisableFocusChange,
        DisableBracketedPaste,
        ResetColor,
        Print(RESTORE_TITLE),
        LeaveAlternateScreen,
        Show,
    );
    let _ = disable_raw_mode();
}

/// Restores the terminal before a panic prints its message.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
    });
}
