//! The terminal itself: taken over, and given back as it was after every way out.

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
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};
use crossterm::{execute, queue};
use ratatui_core::terminal::Terminal;

use crate::app::App;
use crate::backend::Ansi;
use crate::safe::safe_line;

/// A whole frame goes out in one write: half a frame is seen as flicker.
const FRAME_BYTES: usize = 64 * 1024;

/// The wheel as arrow keys on the alternate screen: saved, then switched on; and as it was before.
const WHEEL_AS_ARROWS: &str = "\x1b[?1007s\x1b[?1007h";
const WHEEL_AS_BEFORE: &str = "\x1b[?1007r";

/// Who has the mouse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mouse {
    /// The terminal, so that selecting works as everywhere.
    Terminal,
    /// The program (`--mouse`).
    Captured,
}

/// How a person is called back to the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bell {
    /// By the bell.
    Plain,
    /// By a notification of the terminal's (OSC 9), where it is known to have them.
    Notification,
}

/// The terminal while it is ours. Dropping it gives it back.
pub(crate) struct Screen {
    terminal: Terminal<Ansi<BufWriter<Ours>>>,
    mouse: Mouse,
    bell: Bell,
}

/// Whether there is something to be given back.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal as long as it is ours: what is written later was meant for the screen, and goes nowhere.
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
        Ok(Screen { terminal, mouse, bell })
    }

    pub(crate) fn draw(&mut self, app: &mut App, now: Duration) -> io::Result<()> {
        // A panic on another thread has given it back.
        if !IS_TAKEN.load(Ordering::SeqCst) {
            self.reclaim()?;
        }
        self.terminal.autoresize()?;
        let cursor = app.draw(self.terminal.get_frame().buffer_mut(), now);
        // Only now: a panic while it is drawn would leave this in the buffer, and then the terminal waits for an end.
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.apply_buffer_with_cursor(cursor)?;
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)
    }

    /// The next frame is drawn whole, whatever the terminal shows now.
    pub(crate) fn forget(&mut self) -> io::Result<()> {
        self.terminal.clear()
    }

    /// Gives the terminal to somebody else for a while.
    pub(crate) fn lend(&mut self) {
        restore();
    }

    /// Takes it again, whatever was done to it meanwhile.
    pub(crate) fn reclaim(&mut self) -> io::Result<()> {
        // What is taken once more has to be given back once more: some of it is a stack.
        restore();
        take(self.mouse)?;
        self.forget()
    }

    pub(crate) fn ring(&mut self, text: &str) -> io::Result<()> {
        let sequence = match self.bell {
            Bell::Plain => "\x07".to_owned(),
            Bell::Notification => format!("\x1b]9;{}\x07", safe_line(text)),
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
        EnableBracketedPaste,
        EnableFocusChange,
        // So that Shift+Enter can be told from Enter, where the terminal can; others pass over it.
        PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES),
    )?;
    match mouse {
        Mouse::Terminal => queue!(stdout, Print(WHEEL_AS_ARROWS))?,
        Mouse::Captured => queue!(stdout, EnableMouseCapture)?,
    }
    stdout.flush()
}

/// Gives the terminal back as it was. It may be called at any time, from any thread, more than once.
fn restore() {
    if !IS_TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut stdout = io::stdout();
    // A terminal that is gone needs nothing any more.
    let _ = execute!(
        stdout,
        EndSynchronizedUpdate,
        DisableMouseCapture,
        Print(WHEEL_AS_BEFORE),
        PopKeyboardEnhancementFlags,
        DisableFocusChange,
        DisableBracketedPaste,
        ResetColor,
        LeaveAlternateScreen,
        Show,
    );
    let _ = disable_raw_mode();
}

/// What a panic says is to be read on the normal screen.
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
