//! Commands in a sandbox end, are ended and are reported like all others.

use std::fs;
use std::io::Read;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use ikigai_tools::SandboxKind;
use serde_json::{Value, json};

use crate::support::sandboxed::{Isolation, SandboxFixture, in_each_sandbox, open};
use crate::support::{PATIENCE, failure, success, wait_for};

fn ran(output: &str, exit_code: i32) -> Value {
    success(json!({"output": output, "exit_code": exit_code}))
}

#[track_caller]
fn check(fixture: &SandboxFixture, command: &str, output: &str, exit_code: i32) {
    let result = fixture.bash(command, Isolation::Sandboxed);
    assert_eq!(result, ran(output, exit_code), "{}: {command}", fixture.kind);
}

#[test]
fn exit_codes_and_signals_pass_through() {
    in_each_sandbox(|fixture| {
        check(&fixture, "exit 3", "", 3);
        check(&fixture, "exit 1", "", 1);
        check(&fixture, "kill -KILL $$", "", 137);
        check(&fixture, "kill -SEGV $$", "", 139);
        check(&fixture, "echo out; echo err >&2; exit 255", "out\nerr\n", 255);
        check(&fixture, "no-such-command 2>/dev/null", "", 127);
        check(&fixture, "-c 2>/dev/null", "", 127);
        check(&fixture, "cat; readlink /proc/self/fd/0", "/dev/null\n", 0);
        check(&fixture, "pwd | sed 's|.*/||'", "work\n", 0);
        check(&fixture, "yes | head -n 1", "y\n", 0);
        check(&fixture, "ls /proc/self/fd | wc -l", "4\n", 0);
    });
}

#[test]
fn at_its_time_limit_a_command_is_told_and_then_ended() {
    in_each_sandbox(|fixture| {
        let told = "trap 'echo told; exit' TERM; sleep 1000 & wait";
        let result = fixture.call(json!({"command": told, "timeout": 1}), Isolation::Sandboxed);
        let limit = "[Time limit of 1 s reached: the command was ended]";
        assert_eq!(result, ran(&format!("told\n{limit}"), 124), "{}", fixture.kind);
    });
}

#[test]
fn a_command_that_does_not_listen_is_ended_with_all_that_it_began() {
    in_each_sandbox(|fixture| {
        let ends = Lifeline::new(&fixture);
        let deaf = "exec 2>/dev/null 3>pipe; trap '' TERM; set -m; sleep 1000 & sleep 1000";
        let result = fixture.call(json!({"command": deaf, "timeout": 1}), Isolation::Sandboxed);
        let limit = "[Time limit of 1 s reached: the command was ended]";
        assert_eq!(result, ran(limit, 124), "{}", fixture.kind);
        assert_eq!(ends.next(), "", "{}", fixture.kind);
    });
}

#[test]
fn a_time_limit_also_ends_a_daemon() {
    in_each_sandbox(|fixture| {
        let ends = Lifeline::new(&fixture);
        let command = "(setsid bash -c 'exec 3>pipe; sleep 1000' &) && sleep 1000";
        let result = fixture.call(json!({"command": command, "timeout": 1}), Isolation::Sandboxed);
        let limit = "[Time limit of 1 s reached: the command was ended]";
        assert_eq!(result, ran(limit, 124), "{}", fixture.kind);
        assert_eq!(ends.next(), "", "{}", fixture.kind);
    });
}

/// A pipe in the tree, open for writing as long as any process of a command lives.
struct Lifeline(mpsc::Receiver<String>);

impl Lifeline {
    fn new(fixture: &SandboxFixture) -> Lifeline {
        fixture.workspace.fifo("pipe");
        let path = fixture.workspace.path("pipe");
        let (sender, said) = mpsc::channel();
        thread::spawn(move || {
            let mut pipe = fs::File::open(path).unwrap();
            let mut bytes = [0; 64];
            while let Ok(count) = pipe.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
                if sender.send(text).is_err() || count == 0 {
                    return;
                }
            }
        });
        Lifeline(said)
    }

    /// The next text that was written; nothing once all writers are gone.
    #[track_caller]
    fn next(&self) -> String {
        self.0.recv_timeout(PATIENCE).unwrap()
    }
}

/// Even while its sandbox is being set up, or before its start was reported.
#[test]
fn a_command_that_is_interrupted_while_it_begins_is_ended() {
    in_each_sandbox(|fixture| {
        let name = format!("sleeper-{}", std::process::id());
        let command = format!("exec -a {name} sleep 1000");
        for step in 0..40 {
            fixture.interrupt_after(Duration::from_micros(200) * step, &command);
        }
        wait_for("the end of what was begun", || {
            let found = Command::new("pgrep").args(["-f", &format!("^{name} ")]).output().unwrap();
            found.stdout.is_empty().then_some(())
        });
    });
}

#[test]
fn what_is_left_in_the_background_goes_on_until_the_program_ends() {
    in_each_sandbox(|fixture| {
        let lifeline = Lifeline::new(&fixture);
        let background = "(exec 3>pipe; until test -e go; do sleep 0.05; done; echo went >&3;
            sleep 1000) & disown; echo begun";
        check(&fixture, background, "begun\n", 0);
        fixture.workspace.touch(["go"]);
        assert_eq!(lifeline.next(), "went\n", "{}", fixture.kind);
        fixture.close();
        assert_eq!(lifeline.next(), "", "{}", fixture.kind);
    });
}

/// Outside the sandbox, a daemon in its own session stays.
#[test]
fn a_daemon_does_not_outlive_the_program() {
    in_each_sandbox(|fixture| {
        let lifeline = Lifeline::new(&fixture);
        check(&fixture, "setsid bash -c 'exec 3>pipe; sleep 1000' & disown; echo", "\n", 0);
        fixture.close();
        assert_eq!(lifeline.next(), "");
    });
}

/// Each process only starts the next one, is in its own session, and ignores signals. The chain
/// ends by itself after a while, and reports that.
const CHAIN: &str = "
    #include <signal.h>
    #include <time.h>
    #include <unistd.h>
    int main(void) {
        signal(SIGTERM, SIG_IGN);
        for (time_t begun = time(0); time(0) - begun < 20;) {
            if (fork() > 0) _exit(0);
            setsid();
        }
        return write(3, \"left\", 4) != 4;
    }";

#[test]
fn a_chain_of_processes_does_not_outlive_the_program() {
    in_each_sandbox(|fixture| {
        let (source, chain) = (fixture.workspace.path("chain.c"), fixture.workspace.path("chain"));
        fs::write(&source, CHAIN).unwrap();
        let built = Command::new("cc").arg(&source).arg("-o").arg(&chain).status().unwrap();
        assert!(built.success());
        let lifeline = Lifeline::new(&fixture);
        let command = "exec 3>pipe; for n in {1..12}; do ./chain & done; exec 3>&-; echo begun";
        check(&fixture, command, "begun\n", 0);
        fixture.close();
        assert_eq!(lifeline.next(), "", "{}", fixture.kind);
    });
}

#[test]
fn a_folder_that_is_not_there_is_a_failure_and_no_exit_code() {
    in_each_sandbox(|fixture| {
        fs::remove_dir(fixture.workspace.directory()).unwrap();
        let result = fixture.bash("true", Isolation::Sandboxed);
        assert_eq!(result["success"], false, "{result}");
        assert!(result["error"].as_str().unwrap().contains("was moved or replaced"), "{result}");
    });
}

#[test]
fn a_sandbox_that_cannot_be_set_up_is_a_failure_with_its_reason() {
    in_each_sandbox(|mut fixture| {
        // The folder around the secrets is writable.
        fixture.sandbox.write.push(open(&fixture.workspace.home()));
        let result = fixture.bash("cat ~/.ssh/id; echo ran", Isolation::Sandboxed);
        match fixture.kind {
            SandboxKind::Bubblewrap => {
                assert!(!result.to_string().contains("SECRET"), "{result}");
            }
            SandboxKind::Landlock => {
                let error = result["error"].as_str().unwrap();
                assert!(error.contains("landlock cannot hide"), "{result}");
            }
        }
    });
}

#[test]
fn bubblewraps_own_failure_is_told_from_the_commands() {
    in_each_sandbox(|mut fixture| {
        if fixture.kind != SandboxKind::Bubblewrap {
            return;
        }
        // The working directory is not visible.
        fixture.sandbox.write.clear();
        fixture.sandbox.read.clear();
        fixture.sandbox.hidden.push(fixture.root());
        let result = fixture.bash("echo ran", Isolation::Sandboxed);
        let error = result["error"].as_str().unwrap();
        assert!(error.contains("bubblewrap could not set up the sandbox: bwrap: "), "{result}");
    });
}

#[test]
fn the_best_kind_is_found_by_trying() {
    in_each_sandbox(|mut fixture| {
        fixture.sandbox.kind = None;
        // No trial was made yet: the command makes it.
        assert_eq!(fixture.prints("echo ran"), "ran\n");
        let works = fixture.works().unwrap();
        assert!(fixture.kind == SandboxKind::Landlock || works == SandboxKind::Bubblewrap);
        let pids = fixture.prints("ls -d /proc/[0-9]* | wc -l").trim().parse::<u32>().unwrap();
        assert_eq!(pids < 10, works == SandboxKind::Bubblewrap, "{pids} processes in sight");
    });
}

/// A command never runs without the sandbox that was requested.
#[test]
fn where_no_sandbox_works_nothing_runs_and_the_reasons_are_told() {
    in_each_sandbox(|mut fixture| {
        fixture.reopen_without_watchdog();
        fixture.sandbox.kind = None;
        let why = fixture.works().unwrap_err().to_string();
        assert!(why.starts_with("no sandbox works here (bubblewrap: "), "{why}");
        assert!(why.contains("; landlock: "), "{why}");
        let result = fixture.bash("echo ran", Isolation::Sandboxed);
        let place = fixture.workspace.directory();
        let error = format!("Cannot start bash in {}: {why}", place.display());
        assert_eq!(result, failure(error));
    });
}

/// Agents share `Commands`, and differ in what their own calls get.
#[test]
fn a_command_has_the_variables_of_its_context() {
    in_each_sandbox(|mut fixture| {
        fixture.reopen_with("SHARED", "all");
        let print = r#"echo "$SHARED $IKIGAI_AGENT $LD_BIND_NOW""#;
        for isolation in [Isolation::Sandboxed, Isolation::Unconfined] {
            let given = |name: &str| {
                let pair = |name: &str, value: &str| (name.into(), value.into());
                let variables = vec![
                    pair("IKIGAI_AGENT", name),
                    pair("LD_BIND_NOW", "1"),
                    pair("SHARED", "own"),
                ];
                fixture.bash_with(print, isolation, variables)
            };
            assert_eq!(given("1/"), ran("own 1/ 1\n", 0), "{}", fixture.kind);
            assert_eq!(given("1/2"), ran("own 1/2 1\n", 0), "{}", fixture.kind);
            assert_eq!(fixture.bash(print, isolation), ran("all  \n", 0), "{}", fixture.kind);
        }
    });
}
