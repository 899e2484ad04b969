//! The full screen: the program on a pseudo-terminal that is its own, and what a terminal shows of it.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use ikigai_testkit::ModelServer;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};
use unicode_width::UnicodeWidthStr;
use vt100::{Callbacks, Color, Parser};

use super::model::Format;
use super::{PATIENCE, Workspace, finish, pid, wait_for};

pub(crate) const UP: &str = "\x1b[A";
pub(crate) const DOWN: &str = "\x1b[B";
pub(crate) const ALT_UP: &str = "\x1b[1;3A";
pub(crate) const CONTROL_UP: &str = "\x1b[1;5A";
pub(crate) const ALT_DOWN: &str = "\x1b[1;3B";
pub(crate) const ALT_LEFT: &str = "\x1b[1;3D";
pub(crate) const ALT_RIGHT: &str = "\x1b[1;3C";
pub(crate) const PAGE_UP: &str = "\x1b[5~";
pub(crate) const CONTROL_HOME: &str = "\x1b[1;5H";
pub(crate) const CONTROL_END: &str = "\x1b[1;5F";
pub(crate) const ESCAPE: &str = "\x1b";

/// How the program left.
pub(crate) struct Left {
    pub(crate) code: Option<i32>,
    /// What is on the normal screen then.
    pub(crate) shown: String,
}

/// The program on its terminal.
pub(crate) struct Screen {
    /// Where it works, if nobody else needs to know.
    alone: Option<Workspace>,
    child: Child,
    keyboard: File,
    /// The program's end, for its settings.
    line: File,
    settings_before: String,
    terminal: Arc<Mutex<Parser<Heard>>>,
    /// Nobody looks at the terminal any more.
    is_closed: Arc<AtomicBool>,
}

/// What a terminal is told beside text.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) bells: usize,
    pub(crate) copied: Vec<String>,
    pub(crate) commands: Vec<String>,
    /// The titles that the window got.
    pub(crate) titles: Vec<String>,
    /// Control characters that no program should send.
    pub(crate) strange: Vec<u8>,
}

impl Callbacks for Heard {
    fn audible_bell(&mut self, _: &mut vt100::Screen) {
        self.bells += 1;
    }

    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        self.titles.push(String::from_utf8_lossy(title).into_owned());
    }

    fn copy_to_clipboard(&mut self, _: &mut vt100::Screen, _kind: &[u8], data: &[u8]) {
        self.copied.push(String::from_utf8_lossy(data).into_owned());
    }

    fn unhandled_control(&mut self, _: &mut vt100::Screen, byte: u8) {
        self.strange.push(byte);
    }

    fn unhandled_osc(&mut self, _: &mut vt100::Screen, params: &[&[u8]]) {
        let params: Vec<_> = params.iter().map(|param| String::from_utf8_lossy(param)).collect();
        self.commands.push(params.join(";"));
    }
}

/// The full screen with its model at the server, on a terminal of 80 columns and 24 rows.
pub(crate) fn command(workspace: &Workspace, server: &ModelServer) -> Command {
    let mut command = on_terminal(workspace);
    with_model(&mut command, server);
    command
}

/// On a terminal, with its model at the server.
pub(crate) fn with_model<'a>(command: &'a mut Command, server: &ModelServer) -> &'a mut Command {
    command
        .env("TERM", "xterm-256color")
        .env("OPENAI_BASE_URL", server.base_url())
        .env("OPENAI_API_KEY", "key-of-openai")
        .env("IKIGAI_MODEL", Format::Chat.model())
}

/// The program with the terminal as its own, so that it is told when that hangs up, and asks nobody else for its size.
pub(crate) fn on_terminal(workspace: &Workspace) -> Command {
    let mut command = workspace.under("setsid", &["--ctty"]);
    command.env("TERM", "xterm-256color");
    command
}

impl Screen {
    /// Ready for what is typed.
    #[track_caller]
    pub(crate) fn open(workspace: &Workspace, server: &ModelServer) -> Screen {
        Screen::start(&mut command(workspace, server), 80, 24)
    }

    /// The same in a place of its own.
    #[track_caller]
    pub(crate) fn alone(server: &ModelServer) -> Screen {
        let workspace = Workspace::new();
        let screen = Screen::open(&workspace, server);
        Screen { alone: Some(workspace), ..screen }
    }

    #[track_caller]
    pub(crate) fn start(command: &mut Command, width: u16, height: u16) -> Screen {
        let screen = Screen::spawn(command, width, height);
        screen.wait_for("❯");
        screen
    }

    /// Not yet ready.
    pub(crate) fn spawn(command: &mut Command, width: u16, height: u16) -> Screen {
        // Were it open in the program, too, the terminal would never hang up.
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        tcsetwinsize(&ours, size(width, height)).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
        let end = || File::options().read(true).write(true).open(&name).unwrap();
        let line = end();
        let settings_before = settings(&line);
        let [stdin, stdout, stderr] = [end(), end(), end()].map(Stdio::from);
        let child = command.stdin(stdin).stdout(stdout).stderr(stderr).spawn().unwrap();
        // What the command keeps open of the terminal would keep it from hanging up.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let keyboard = File::from(ours);
        let mut output = keyboard.try_clone().unwrap();
        let parser = Parser::new_with_callbacks(
            NonZeroU16::new(height).unwrap(),
            NonZeroU16::new(width).unwrap(),
            0,
            Heard::default(),
        );
        let terminal = Arc::new(Mutex::new(parser));
        let read = Arc::clone(&terminal);
        let is_closed = Arc::new(AtomicBool::new(false));
        let closed = Arc::clone(&is_closed);
        std::thread::spawn(move || {
            let mut chunk = [0; 65_536];
            let mut held_back = Vec::new();
            while let Ok(count) = output.read(&mut chunk)
                && !closed.load(Ordering::SeqCst)
            {
                let seen = shown(&mut held_back, &chunk[..count]);
                read.lock().unwrap().process(&seen);
            }
        });
        Screen { alone: None, child, keyboard, line, settings_before, terminal, is_closed }
    }

    pub(crate) fn terminal(&self) -> MutexGuard<'_, Parser<Heard>> {
        self.terminal.lock().unwrap()
    }

    /// All rows, without the spaces at their ends.
    pub(crate) fn text(&self) -> String {
        rows(&self.terminal()).join("\n")
    }

    /// The rows that are not empty, from the first one that has this in it.
    pub(crate) fn from(&self, first: &str) -> Vec<String> {
        let all = rows(&self.terminal());
        let shown = all.into_iter().skip_while(|row| !row.contains(first));
        shown.filter(|row| !row.is_empty()).collect()
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        self.wait_until(text, |shown| shown.contains(text));
    }

    #[track_caller]
    pub(crate) fn wait_until_gone(&self, text: &str) {
        self.wait_until(&format!("no {text}"), |shown| !shown.contains(text));
    }

    /// Waits until what is shown is as it should be.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        let begun = std::time::Instant::now();
        while !is_so(&self.text()) {
            assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}:\n{}", self.text());
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }

    /// What is shown, without what differs from run to run: once it is the recorded view of this
    /// name, or when patience ends. A frame may come in several parts.
    pub(crate) fn settled(&self, name: &str, without: impl Fn(&str) -> String) -> String {
        let file = format!("{}/tests/snapshots/{name}.snap", env!("CARGO_MANIFEST_DIR"));
        let recorded = std::fs::read_to_string(file).unwrap_or_default();
        let recorded = recorded.splitn(3, "---\n").nth(2).unwrap_or_default();
        let begun = std::time::Instant::now();
        loop {
            let shown = without(&self.text());
            if shown.trim() == recorded.trim() || begun.elapsed() > PATIENCE {
                return shown;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }

    /// Waits until the agent in view has nothing to do.
    #[track_caller]
    pub(crate) fn wait_until_idle(&self) {
        self.wait_until_gone(" · esc to interrupt");
    }

    /// Types, as fast as a paste.
    pub(crate) fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line and sends it.
    pub(crate) fn says(&mut self, line: &str) {
        self.types(&format!("{line}\r"));
    }

    /// Sends a line, and waits for what it is answered with.
    #[track_caller]
    pub(crate) fn asks(&mut self, line: &str, answer: &str) {
        self.says(line);
        self.wait_for(answer);
    }

    /// Waits until the last question can be answered by a key: one that comes too soon belongs to what is being typed.
    #[track_caller]
    pub(crate) fn answers(&mut self, key: &str) {
        self.wait_for("esc decide later");
        std::thread::sleep(std::time::Duration::from_millis(750));
        self.types(key);
    }

    pub(crate) fn resize(&self, width: u16, height: u16) {
        let rows = NonZeroU16::new(height).unwrap();
        self.terminal().screen_mut().set_size(rows, NonZeroU16::new(width).unwrap());
        tcsetwinsize(&self.keyboard, size(width, height)).unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.process(), signal).unwrap();
    }

    pub(crate) fn process(&self) -> Pid {
        pid(&self.child)
    }

    /// Whether the terminal is as it was before the program came.
    pub(crate) fn is_as_before(&self) -> bool {
        let terminal = self.terminal();
        let screen = terminal.screen();
        settings(&self.line) == self.settings_before
            && !screen.alternate_screen()
            && !screen.bracketed_paste()
            && !screen.hide_cursor()
            && screen.mouse_protocol_mode() == vt100::MouseProtocolMode::None
    }

    pub(crate) fn settings(&self) -> String {
        settings(&self.line)
    }

    /// Leaves by Ctrl+D.
    #[track_caller]
    pub(crate) fn leave(mut self) -> Left {
        self.types("\x04");
        self.ended()
    }

    /// Waits for the end, after which the terminal has to be as before.
    #[track_caller]
    pub(crate) fn ended(self) -> Left {
        let Screen { alone: _alone, child, keyboard, line, settings_before, terminal, .. } = self;
        let code = finish(child).status.code();
        // What was written last may still be on its way; this comes behind it.
        (&line).write_all(b"\x1b]777;the end\x07").unwrap();
        wait_for("the end", || {
            let terminal = terminal.lock().unwrap();
            terminal.callbacks().commands.contains(&"777;the end".to_owned()).then_some(())
        });
        let terminal = terminal.lock().unwrap();
        let screen = terminal.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste());
        assert_eq!(settings(&line), settings_before);
        assert_eq!(terminal.callbacks().strange, b"", "control characters reached the terminal");
        drop(keyboard);
        Left { code, shown: rows(&terminal).join("\n") }
    }

    /// The terminal is closed, as by the button of its window.
    pub(crate) fn hang_up(mut self) -> Child {
        self.is_closed.store(true, Ordering::SeqCst);
        // Whoever reads notices it when something is drawn.
        self.types("x");
        let Screen { child, keyboard, line, .. } = self;
        drop((keyboard, line));
        child
    }

    /// Whether any cell has a colour.
    pub(crate) fn has_colours(&self) -> bool {
        let terminal = self.terminal();
        let screen = terminal.screen();
        let (height, width) = screen.size();
        let cells =
            (0..height.get()).flat_map(|row| (0..width.get()).map(move |column| (row, column)));
        cells
            .filter_map(|(row, column)| screen.cell(row, column))
            .any(|cell| cell.fgcolor() != Color::Default || cell.bgcolor() != Color::Default)
    }

    /// The look of the first cell in which a text begins.
    #[track_caller]
    pub(crate) fn cell_of(&self, text: &str) -> vt100::Cell {
        let terminal = self.terminal();
        let screen = terminal.screen();
        let all = rows(&terminal);
        let row =
            all.iter().position(|row| row.contains(text)).unwrap_or_else(|| panic!("no {text}"));
        let before = &all[row][..all[row].find(text).unwrap()];
        let column = before.chars().count();
        screen.cell(row as u16, column as u16).unwrap().clone()
    }
}

/// Fails unless all that makes the screen is where it belongs.
#[track_caller]
pub(crate) fn assert_intact(screen: &Screen, width: usize, height: usize) {
    let shown = screen.text();
    let rows: Vec<&str> = shown.lines().collect();
    assert_eq!(rows.len(), height, "{shown}");
    let rules = rows.iter().filter(|row| is_separator(row) && row.width() == width).count();
    assert_eq!(rules, 1, "{shown}");
    let status = rows.iter().rposition(|row| row.contains("work")).unwrap();
    assert!(status >= height - 2, "{shown}");
    assert!(rows[status - 1].starts_with('❯'), "{shown}");
    assert!(rows.iter().all(|row| row.width() <= width), "{shown}");
    let terminal = screen.terminal();
    assert!(terminal.screen().alternate_screen());
    let heard = terminal.callbacks();
    assert_eq!((heard.strange.as_slice(), heard.copied.len()), (&[][..], 0));
    assert!(heard.commands.iter().all(|command| !command.contains("owned")), "{heard:?}");
}

/// Whether a row is the rule above the input, with or without a name.
pub(crate) fn is_separator(row: &str) -> bool {
    row.starts_with("──") && row.ends_with("──") && row.width() >= 20
}

/// A row without the spinner and times.
pub(crate) fn still(row: &str) -> String {
    let is_spinner = |c: char| ('\u{2800}'..'\u{2900}').contains(&c);
    if let Some(rest) = row.strip_prefix(is_spinner) {
        let parts = rest.split(" · ").map(|part| if is_time(part) { "0s" } else { part });
        return format!("⠋{}", parts.collect::<Vec<_>>().join(" · "));
    }
    // The outcome of a call stands at the edge, and a slow one has its duration behind it.
    match row.starts_with('●').then(|| row.rsplit_once("   ")).flatten() {
        Some((call, outcome)) => {
            let parts = outcome.split(" · ").filter(|part| !is_time(part));
            format!("{}   {}", call.trim_end(), parts.collect::<Vec<_>>().join(" · "))
        }
        None => row.to_owned(),
    }
}

fn is_time(text: &str) -> bool {
    let number = text.strip_suffix('s').unwrap_or_default();
    !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || ".m h".contains(c))
}

/// A row of the greeting without the folder, which has another name in every run.
pub(crate) fn without_folder(row: &str) -> String {
    match row.starts_with("scripted · /") {
        true => "scripted · /project".to_owned(),
        false => row.to_owned(),
    }
}

/// The bytes with another sign for U+FFFD, which the parser passes over although every terminal shows it. What may be the
/// beginning of one is held back.
fn shown(held_back: &mut Vec<u8>, bytes: &[u8]) -> Vec<u8> {
    const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();
    held_back.extend_from_slice(bytes);
    let mut seen = Vec::new();
    let mut at = 0;
    while at < held_back.len() {
        let rest = &held_back[at..];
        if rest.starts_with(REPLACEMENT) {
            seen.push(b'?');
            at += REPLACEMENT.len();
        } else if REPLACEMENT.starts_with(rest) {
            break;
        } else {
            seen.push(rest[0]);
            at += 1;
        }
    }
    held_back.drain(..at);
    seen
}

fn rows(terminal: &Parser<Heard>) -> Vec<String> {
    let (_, width) = terminal.screen().size();
    let rows = terminal.screen().rows(0, width.get());
    rows.map(|row| row.trim_end().to_owned()).collect()
}

fn size(width: u16, height: u16) -> Winsize {
    Winsize { ws_row: height, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 }
}

/// The settings of a line as text that can be compared.
fn settings(line: &File) -> String {
    format!("{:?}", tcgetattr(line).unwrap())
}
