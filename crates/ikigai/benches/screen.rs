//! The full screen under load: how soon a key is seen while agents flood it, what a long scrollback takes, and what an idle
//! screen costs.
//!
//! `cargo bench -p ikigai --bench screen` prints a table. The program runs on a pseudo-terminal of 200 columns and 60 rows;
//! the model is a scripted server in this process, so the machine is shared with it.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a bench prints, starts programs, and is looked at by a person"
)]
#![allow(missing_docs, reason = "nobody links against a bench")]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use ikigai_testkit::{CapturedRequest, ModelServer, Reply};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::json;
use tempfile::TempDir;
use vt100::Parser;

const IKIGAI: &str = env!("CARGO_BIN_EXE_ikigai");
const COLUMNS: u16 = 200;
const ROWS: u16 = 60;
/// Beside the one in view: so many agents that stream slowly, and one whose command prints 100 MB.
const STREAMING: usize = 48;
const KEYS: usize = 300;
/// Between two keys, about what a fast hand does.
const PACE: Duration = Duration::from_millis(40);
const TURNS: usize = 20;
const LINES: usize = 5_000;
const WATCHED: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_secs(120);

fn main() {
    // `cargo test --benches` runs this with another flag: that it builds is enough there.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    println!("| what | figure |");
    println!("| --- | --- |");
    keys("a key until it is seen, nothing else going on", false);
    keys("the same during the flood", true);
    scrollback_and_idle();
}

/// How soon a key is seen.
fn keys(what: &str, is_flooded: bool) {
    let server = ModelServer::choosing(flood);
    let mut screen = Screen::open(&server);
    if is_flooded {
        screen.types("begin\r");
        screen.wait_for("delta");
        // All have begun.
        let started = Instant::now();
        while server.requests().len() < STREAMING + 3 && started.elapsed() < PATIENCE {
            std::thread::sleep(PACE);
        }
    }
    let mut times = Vec::new();
    let mut typed = String::new();
    for key in ('a'..='z').cycle().take(KEYS) {
        if typed.len() == 26 {
            screen.types("\x15");
            screen.wait_for_row("❯");
            typed.clear();
        }
        typed.push(key);
        let begun = Instant::now();
        screen.types(&key.to_string());
        screen.wait_for_row(&format!("❯ {typed}"));
        times.push(begun.elapsed());
        std::thread::sleep(PACE);
    }
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
    row(
        what,
        &format!("p50 {:.1?}, p99 {:.1?}, slowest {:.1?} ({KEYS} keys)", at(50), at(99), at(100)),
    );
}

/// 1,000 deltas a second for the agent in view, a command with 100 MB of output, and many others at work.
fn flood(asked: &CapturedRequest) -> Reply {
    let said = asked.last_user_text().unwrap_or_default();
    if said.contains("begin") && asked.results_since_user() == 0 {
        let children =
            (0..STREAMING).map(|number| (number, "stream")).chain([(STREAMING, "print")]);
        let calls: Vec<(String, &str)> =
            children.map(|(number, task)| (format!("fork_{number}"), task)).collect();
        return Reply::calls(
            calls.iter().map(|(id, task)| (id.as_str(), "fork", json!({"prompt": task}))),
        );
    }
    if said.contains("print") && asked.results_since_user() == 0 {
        let command = "yes 0123456789012345678901234567890123456789 | head -c 100000000";
        return Reply::call("print", "bash", json!({"command": command}));
    }
    let pause = if said.contains("begin") { 1 } else { 50 };
    let pieces = (0..60_000 / pause).map(|number| match number % 12 {
        11 => format!("delta {number}\n\n"),
        _ => format!("delta {number} "),
    });
    Reply::pieces(pieces).drip(Duration::from_millis(pause))
}

/// 100,000 lines of scrollback: their memory, and what the screen does when nothing happens.
fn scrollback_and_idle() {
    let server = ModelServer::choosing(|_| {
        let lines = (0..LINES).map(|line| format!("- line {line} of `this` **answer**\n"));
        Reply::pieces(
            lines
                .collect::<String>()
                .as_bytes()
                .chunks(4_000)
                .map(|piece| String::from_utf8_lossy(piece).into_owned()),
        )
    });
    let mut screen = Screen::open(&server);
    let before = screen.resident_kb();
    for turn in 0..TURNS {
        screen.types(&format!("turn {turn}\r"));
        screen.wait_until(|shown| {
            shown.contains(&format!("line {} of", LINES - 1))
                && !shown.contains(" · esc to interrupt")
        });
        screen.types("\x1b[1;5H\x1b[1;5F");
        screen.wait_for_row("❯");
    }
    let after = screen.resident_kb();
    let lines = TURNS * LINES;
    row(
        &format!("memory of the program with {lines} lines of answers"),
        &format!("{} MB ({} MB at its start)", after / 1000, before / 1000),
    );
    screen.types("\x1b[1;5H");
    screen.wait_for("turn 0");
    // What is put off is done by then.
    std::thread::sleep(Duration::from_secs(3));
    let (cpu, bytes) = (screen.cpu(), screen.written());
    std::thread::sleep(WATCHED);
    let worked = screen.cpu() - cpu;
    row(
        "an idle screen with them",
        &format!(
            "{:.2} % of a core, {} bytes written in {WATCHED:?}",
            100.0 * worked.as_secs_f64() / WATCHED.as_secs_f64(),
            screen.written() - bytes
        ),
    );
}

struct Screen {
    _home: TempDir,
    child: Child,
    keyboard: File,
    seen: Arc<Seen>,
}

struct Seen {
    terminal: Mutex<Parser>,
    changed: Condvar,
    bytes: AtomicU64,
}

impl Screen {
    fn open(server: &ModelServer) -> Screen {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let size = Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&ours, size).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
        let end = || Stdio::from(File::options().read(true).write(true).open(&name).unwrap());
        let home = tempfile::tempdir().unwrap();
        let child = Command::new("setsid")
            .args(["--ctty", IKIGAI])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", home.path())
            .env("TERM", "xterm-256color")
            .env("OPENAI_BASE_URL", server.base_url())
            .env("OPENAI_API_KEY", "k")
            .env("IKIGAI_MODEL", "openai/scripted")
            .env("IKIGAI_MAX_AGENTS", "100")
            .current_dir(home.path())
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let keyboard = File::from(ours);
        let seen = Arc::new(Seen {
            terminal: Mutex::new(Parser::new(
                NonZeroU16::new(ROWS).unwrap(),
                NonZeroU16::new(COLUMNS).unwrap(),
                0,
            )),
            changed: Condvar::new(),
            bytes: AtomicU64::new(0),
        });
        read(keyboard.try_clone().unwrap(), Arc::clone(&seen));
        let screen = Screen { _home: home, child, keyboard, seen };
        screen.wait_for("ikigai 0.1");
        screen
    }

    fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    fn wait_for(&self, text: &str) {
        self.wait_until(|shown| shown.contains(text));
    }

    fn wait_for_row(&self, row: &str) {
        // The input is the last row but one; only that is looked at.
        self.wait(|terminal| {
            let mut rows = terminal.screen().rows(0, COLUMNS);
            rows.nth(usize::from(ROWS) - 2).is_some_and(|shown| shown.trim_end() == row)
        });
    }

    fn wait_until(&self, is_so: impl Fn(&str) -> bool) {
        self.wait(|terminal| is_so(&terminal.screen().contents()));
    }

    fn wait(&self, is_so: impl Fn(&Parser) -> bool) {
        let terminal = self.seen.terminal.lock().unwrap();
        let waited =
            self.seen.changed.wait_timeout_while(terminal, PATIENCE, |terminal| !is_so(terminal));
        let (terminal, timeout) = waited.unwrap();
        assert!(!timeout.timed_out(), "waited in vain:\n{}", terminal.screen().contents());
    }

    fn written(&self) -> u64 {
        self.seen.bytes.load(Ordering::SeqCst)
    }

    fn resident_kb(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// What the program has worked so far.
    fn cpu(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        Duration::from_millis(ticks * 10)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads what the program draws, as a terminal does.
fn read(mut output: File, seen: Arc<Seen>) {
    std::thread::spawn(move || {
        let mut chunk = [0; 65_536];
        while let Ok(count) = output.read(&mut chunk) {
            seen.bytes.fetch_add(count as u64, Ordering::SeqCst);
            seen.terminal.lock().unwrap().process(&chunk[..count]);
            seen.changed.notify_all();
        }
    });
}

fn row(what: &str, figure: &str) {
    println!("| {what} | {figure} |");
}
