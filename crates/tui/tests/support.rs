//! A program on a pseudo-terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

/// Longer than any step takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Terminal {
    child: Child,
    keyboard: File,
    /// The program's end, kept open for reading its modes.
    other_end: File,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    #[expect(clippy::disallowed_methods, reason = "a test starts the program that it is about")]
    pub(crate) fn start() -> Terminal {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
        let other_end = File::options().read(true).write(true).open(name).unwrap();
        let end = || Stdio::from(other_end.try_clone().unwrap());
        let keyboard = File::from(ours);
        resize(&keyboard, 80, 24);
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child::plays_the_agents", "--ignored", "--nocapture"])
            .env_remove("NO_COLOR")
            // Stopping the program stops its process group.
            .process_group(0)
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let shown: Arc<Mutex<Vec<u8>>> = Arc::default();
        let (mut screen, read) = (keyboard.try_clone().unwrap(), Arc::clone(&shown));
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(count) = screen.read(&mut chunk) {
                read.lock().unwrap().extend_from_slice(&chunk[..count]);
            }
        });
        Terminal { child, keyboard, other_end, shown }
    }

    pub(crate) fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn resizes(&self, width: u16, height: u16) {
        resize(&self.keyboard, width, height);
        self.signal(Signal::WINCH);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// The output to the terminal so far.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    /// Discards the output so far.
    pub(crate) fn forget(&self) {
        self.shown.lock().unwrap().clear();
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        self.wait_for_times(text, 1);
    }

    /// Waits until a text has been written so many times.
    #[track_caller]
    pub(crate) fn wait_for_times(&self, text: &str, times: usize) {
        let start = Instant::now();
        while self.text().matches(text).count() < times {
            assert!(start.elapsed() < TIMEOUT, "no {text:?} in {:?}", self.text());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until the program is stopped.
    #[track_caller]
    pub(crate) fn wait_for_stop(&self) {
        let start = Instant::now();
        loop {
            let found =
                waitpid(Some(self.pid()), WaitOptions::UNTRACED | WaitOptions::NOHANG).unwrap();
            if found.is_some_and(|(_, status)| status.stopped()) {
                return;
            }
            assert!(start.elapsed() < TIMEOUT, "it does not stop");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether the terminal is in raw mode.
    pub(crate) fn is_raw(&self) -> bool {
        !tcgetattr(&self.other_end).unwrap().local_modes.contains(LocalModes::ICANON)
    }

    #[track_caller]
    pub(crate) fn finish(mut self) -> String {
        let start = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < TIMEOUT, "it does not end: {:?}", self.text());
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!self.is_raw(), "the terminal was not restored");
        self.wait_for("test result");
        self.text()
    }
}

fn resize(terminal: &File, width: u16, height: u16) {
    let size = Winsize { ws_col: width, ws_row: height, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).unwrap();
}
