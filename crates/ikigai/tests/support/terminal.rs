//! A program on a pseudo-terminal: what is typed, and what it has shown so far.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use ikigai_testkit::ModelServer;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::model::Format;
use super::{PATIENCE, Workspace, finish, pid, wait_for};

/// A program that believes to be on a terminal.
pub(crate) struct Terminal {
    child: Child,
    keyboard: File,
    shown: Arc<Mutex<Vec<u8>>>,
}

/// `ikigai` on a terminal with its model at the server; plain, so that tests see text alone.
pub(crate) fn talking(workspace: &Workspace, server: &ModelServer) -> Command {
    let mut command = workspace.ikigai();
    command
        .env("OPENAI_BASE_URL", server.base_url())
        .env("OPENAI_API_KEY", "key-of-openai")
        .env("IKIGAI_MODEL", Format::Chat.model())
        .env("TERM", "dumb");
    command
}

/// The same, started and ready for a line.
pub(crate) fn start_talking(workspace: &Workspace, server: &ModelServer) -> Terminal {
    let terminal = Terminal::start(&mut talking(workspace, server));
    terminal.wait_for("❯ ");
    terminal
}

/// Ends the input, and returns all that was shown.
#[track_caller]
pub(crate) fn leave(mut terminal: Terminal) -> String {
    terminal.end_input();
    let (code, shown) = terminal.finish("--session");
    assert_eq!(code, Some(0), "{shown}");
    shown
}

impl Terminal {
    pub(crate) fn start(command: &mut Command) -> Terminal {
        // Were it open in other programs, too, the terminal would never hang up.
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
        let end = || Stdio::from(File::options().read(true).write(true).open(&name).unwrap());
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        // What the command keeps open of the terminal would keep it from ending.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let keyboard = File::from(ours);
        let mut screen = keyboard.try_clone().unwrap();
        let shown: Arc<Mutex<Vec<u8>>> = Arc::default();
        let read = Arc::clone(&shown);
        // Reading fails when the last one at the other end has left.
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(count) = screen.read(&mut chunk) {
                read.lock().unwrap().extend_from_slice(&chunk[..count]);
            }
        });
        Terminal { child, keyboard, shown }
    }

    pub(crate) fn text(&self) -> String {
        text(&self.shown)
    }

    /// Waits until the text was shown this often.
    #[track_caller]
    pub(crate) fn wait_for_count(&self, text: &str, count: usize) {
        wait_for(text, || (self.text().matches(text).count() >= count).then_some(()));
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        self.wait_for_times(text, 1);
    }

    /// Waits until `text` was shown so many times.
    #[track_caller]
    pub(crate) fn wait_for_times(&self, text: &str, times: usize) {
        let begun = std::time::Instant::now();
        while self.text().matches(text).count() < times {
            assert!(begun.elapsed() < PATIENCE, "waited in vain for {text}:\n{}", self.text());
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }

    /// Types without ending the line.
    pub(crate) fn type_keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn type_line(&mut self, line: &str) {
        self.keyboard.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// What Ctrl-C does on a terminal that is somebody's.
    pub(crate) fn interrupt(&self) {
        kill_process(pid(&self.child), Signal::INT).unwrap();
    }

    pub(crate) fn send_signal(&self, signal: Signal) {
        kill_process(pid(&self.child), signal).unwrap();
    }

    pub(crate) fn process(&self) -> Pid {
        pid(&self.child)
    }

    /// What Ctrl-D does.
    pub(crate) fn end_input(&mut self) {
        self.keyboard.write_all(&[4]).unwrap();
    }

    /// Waits for its end, which shows `last`, and returns its exit code and all that it has shown.
    #[track_caller]
    pub(crate) fn finish(self, last: &str) -> (Option<i32>, String) {
        let code = finish(self.child).status.code();
        wait_for(last, || text(&self.shown).contains(last).then_some(()));
        (code, text(&self.shown))
    }
}

fn text(shown: &Mutex<Vec<u8>>) -> String {
    String::from_utf8_lossy(&shown.lock().unwrap()).into_owned()
}
