//! Readers that leave, do not read, or are terminals.

use std::fs::File;
use std::io::{BufRead, BufReader, PipeWriter, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::Duration;

use ikigai_testkit::{Gate, ModelServer, Reply};
use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl, open};
use rustix::process::{Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::json;

use crate::support::model::{Format, Running, events};
use crate::support::story::{WELL_AGAIN, bash, check_goes_on, kinds};
use crate::support::{Workspace, ended, finish, pid, wait_for, wait_for_pid, wait_until_gone};

/// `ikigai run --json | head -1`, with a server that answers only after `head` is gone.
#[test]
fn a_reader_that_leaves_ends_the_run() {
    for format in Format::BOTH {
        let gate = Gate::new();
        let command = json!({"command": "echo $$ > leader; sleep 31415.5"});
        let reply = Reply::text_and_calls("I look.", [("c1", "bash", command)]).after(&gate);
        let server = ModelServer::start([reply, Reply::text(WELL_AGAIN)]);
        let workspace = Workspace::new();
        let mut run = workspace.run_command(&server, format, ["--json", "go"]).spawn().unwrap();
        let mut first = String::new();
        let mut reader = BufReader::new(run.stdout.take().unwrap());
        reader.read_line(&mut first).unwrap();
        assert_eq!(events(&first)[0]["type"], "session");
        drop(reader);
        gate.open();
        let output = finish(run);
        assert_eq!((output.status.code(), &*output.stderr), (Some(130), &b""[..]));
        let log = check_goes_on(&workspace, &server, format);
        assert!(kinds(&log).contains(&"interrupted"), "{log:?}");
    }
}

/// It waited for its first answer.
#[test]
fn a_reader_that_was_never_there_ends_the_run_before_the_model_is_asked() {
    let server = ModelServer::start([Reply::text(WELL_AGAIN)]);
    let workspace = Workspace::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = workspace.run_command(&server, Format::Chat, ["--json", "go"]);
    let (code, _, stderr) = ended(command.stdout(writer));
    assert_eq!((code, &*stderr), (130, ""));
    assert_eq!(server.requests().len(), 0);
    let log = check_goes_on(&workspace, &server, Format::Chat);
    assert_eq!(kinds(&log), ["user", "interrupted", "user", "assistant"]);
}

#[test]
fn an_answer_that_nobody_reads_is_an_answer() {
    let server = ModelServer::start([Reply::text("hello"), Reply::text(WELL_AGAIN)]);
    let workspace = Workspace::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = workspace.run_command(&server, Format::Chat, ["go"]);
    assert_eq!(ended(command.stdout(writer)), (0, String::new(), String::new()));
    let log = check_goes_on(&workspace, &server, Format::Chat);
    assert_eq!(kinds(&log), ["user", "assistant", "user", "assistant"]);
}

/// A pipe without room for another byte.
fn full_pipe() -> (std::io::PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let flags = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    while writer.write(&[b'\n'; 4096]).is_ok() {}
    while writer.write(b"\n").is_ok() {}
    fcntl_setfl(&writer, flags).unwrap();
    (reader, writer)
}

#[test]
fn a_reader_that_does_not_read_cannot_keep_us_from_ending() {
    for signal in [Signal::INT, Signal::TERM] {
        let server = ModelServer::start([Reply::text("hello")]);
        let workspace = Workspace::new();
        let (_reader, writer) = full_pipe();
        let mut command = workspace.run_command(&server, Format::Chat, ["--json", "go"]);
        let mut run = command.stdout(writer).spawn().unwrap();
        wait_for("somebody who listens to signals", || catches_interrupts(run.id()).then_some(()));
        // The second one that arrives ends it; two at once may arrive as one.
        let status = wait_for("the end", || {
            let _ = kill_process(pid(&run), signal);
            run.try_wait().unwrap()
        });
        assert_eq!(status.code(), Some(130));
    }
}

/// Whether the process has a handler for SIGINT, which is signal 2.
fn catches_interrupts(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t")).unwrap();
    u64::from_str_radix(mask, 16).unwrap() & 0b10 != 0
}

#[test]
fn two_signals_end_a_run_whose_command_does_not_want_to_end() {
    let command = "trap '' TERM; echo $$ > leader; while :; do sleep 0.01; done";
    let server = ModelServer::start([bash("c1", command), Reply::text(WELL_AGAIN)]);
    let workspace = Workspace::unconfined();
    let mut run = workspace.run_command(&server, Format::Chat, ["go"]).spawn().unwrap();
    let leader = wait_for_pid(&workspace.path("leader"));
    let status = wait_for("the end", || {
        let _ = kill_process(pid(&run), Signal::INT);
        run.try_wait().unwrap()
    });
    assert_eq!(status.code(), Some(130));
    wait_until_gone(leader);
    check_goes_on(&workspace, &server, Format::Chat);
}

#[test]
fn an_output_that_cannot_be_written_is_told() {
    let server = ModelServer::start([Reply::text("hello"), Reply::text(WELL_AGAIN)]);
    let workspace = Workspace::new();
    let full = || File::create("/dev/full").unwrap();
    let mut command = workspace.run_command(&server, Format::Chat, ["go"]);
    let (code, _, stderr) = ended(command.stdout(full()));
    let told = "ikigai: cannot write to standard output: No space left on device (os error 28)\n";
    assert_eq!((code, &*stderr), (1, told));
    let mut command = workspace.run_command(&server, Format::Chat, ["-c", "--json", "go"]);
    let (code, _, stderr) = ended(command.stdout(full()));
    assert_eq!((code, &*stderr), (1, told));
    assert_eq!(server.requests().len(), 1, "nobody is asked whose answer cannot be told");
    check_goes_on(&workspace, &server, Format::Chat);
}

#[test]
fn closed_outputs_do_no_harm() {
    for closing in [">&-", "2>&-", ">&- 2>&-", "2>/dev/full"] {
        let script = [bash("c1", "echo one"), Reply::text("hello"), Reply::text(WELL_AGAIN)];
        let server = ModelServer::start(script);
        let workspace = Workspace::new();
        let run = workspace.run_command(&server, Format::Chat, []);
        let mut command = workspace.script(&format!("exec \"$IKIGAI\" run go {closing}"));
        command.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let (code, stdout, _) = ended(&mut command);
        assert_eq!(code, 0, "{closing}");
        assert_eq!(stdout, if closing.starts_with('>') { "" } else { "hello\n" }, "{closing}");
        check_goes_on(&workspace, &server, Format::Chat);
    }
}

/// What a command prints on a terminal.
fn on_terminal(command: &mut Command) -> (i32, String) {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let path = ptsname(&controller, Vec::new()).unwrap();
    let terminal: OwnedFd = open(path, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let run = command.stdout(Stdio::from(terminal)).spawn().unwrap();
    // The command holds the terminal as well, and with it the reading would never end.
    command.stdout(Stdio::null());
    let reading = std::thread::spawn(move || {
        let mut printed = Vec::new();
        // The end of the last process at a terminal is an error to whoever reads from it.
        let _ = File::from(controller).read_to_end(&mut printed);
        printed
    });
    let code = finish(run).status.code().unwrap();
    (code, String::from_utf8(reading.join().unwrap()).unwrap())
}

/// A model can be made to say anything, by a page that it reads for example. To a file goes all of it.
#[test]
fn an_answer_on_a_terminal_cannot_move_its_cursor_nor_change_it() {
    let nasty = "\u{1b}[2J\u{1b}]52;c;eA==\u{7}\u{9b}31m\r\u{7f}\tend\nmore";
    for format in Format::BOTH {
        let server = ModelServer::start([Reply::text(nasty), Reply::text(nasty)]);
        let workspace = Workspace::new();
        let (code, printed) = on_terminal(&mut workspace.run_command(&server, format, ["go"]));
        // The terminal itself makes a line feed of ours two characters.
        assert_eq!(
            (code, &*printed),
            (
                0,
                "\u{fffd}[2J\u{fffd}]52;c;eA==\u{fffd}\u{fffd}31m\u{fffd}\u{fffd}\tend\r\nmore\r\n"
            )
        );
        let mut command = workspace.run_command(&server, format, ["-c", "--json", "go"]);
        let (code, printed) = on_terminal(&mut command);
        let is_harmless = |c: char| !c.is_control() || matches!(c, '\r' | '\n');
        assert!(code == 0 && printed.chars().all(is_harmless), "{printed:?}");
    }
}

/// A reply that goes on for seconds, and a run that nobody reads soon.
#[test]
fn a_reader_that_leaves_in_the_middle_of_an_answer_ends_the_run() {
    let reply = Reply::text(&"one two three ".repeat(200)).drip(Duration::from_millis(10));
    let server = ModelServer::start([reply, Reply::text(WELL_AGAIN)]);
    let workspace = Workspace::new();
    let mut run = workspace.run_command(&server, Format::Chat, ["--json", "go"]).spawn().unwrap();
    let mut reader = BufReader::new(run.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("two") {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0, "no text came");
    }
    drop(reader);
    assert_eq!(finish(run).status.code(), Some(130));
    let log = check_goes_on(&workspace, &server, Format::Chat);
    assert_eq!(kinds(&log)[..2], ["user", "assistant"]);
}

#[test]
fn what_a_running_command_prints_is_passed_on_before_its_result() {
    let command = "printf 'comp'; echo iling; until [ -e go ]; do sleep 0.01; done; echo done";
    let server = ModelServer::start([bash("c1", command), Reply::text("Built.")]);
    let workspace = Workspace::new();
    let mut command = workspace.run_command(&server, Format::Chat, ["--json", "build"]);
    let run = Running::start(&mut command);
    let output = run.next_output();
    let expected = json!({
        "type": "tool_output", "agent": "0/", "id": "c1", "delta": "compiling\n", "skipped": 0,
    });
    assert_eq!(output, expected);
    workspace.write("go", "");
    let result = run.until("tool_result").pop().unwrap();
    assert_eq!(result["result"]["data"]["output"], "compiling\ndone\n");
    assert_eq!(run.finish().0, 0);
}
