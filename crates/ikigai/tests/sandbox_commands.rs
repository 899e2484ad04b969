//! Commands in a sandbox end, are ended and are told about like all others.

use std::fs;
use std::io::Read;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use ikigai_tools::SandboxKind;
use serde_json::{Value, json};

use crate::support::enclosed::{Enclosed, Walls, in_each_sandbox, open};
use crate::support::{PATIENCE, failure, success, wait_for};

fn ran(output: &str, exit_code: i32) -> Value {
    success(json!({"output": output, "exit_code": exit_code}))
}

#[track_caller]
fn check(enclosed: &Enclosed, command: &str, output: &str, exit_code: i32) {
    let result = enclosed.bash(command, Walls::Up);
    assert_eq!(result, ran(output, exit_code), "{}: {command}", enclosed.kind);
}

#[test]
fn exit_codes_and_signals_pass_through() {
    in_each_sandbox(|enclosed| {
        check(&enclosed, "exit 3", "", 3);
        check(&enclosed, "exit 1", "", 1);
        check(&enclosed, "kill -KILL $$", "", 137);
        check(&enclosed, "kill -SEGV $$", "", 139);
        check(&enclosed, "echo out; echo err >&2; exit 255", "out\nerr\n", 255);
        check(&enclosed, "no-such-command 2>/dev/null", "", 127);
        check(&enclosed, "-c 2>/dev/null", "", 127);
        check(&enclosed, "cat; readlink /proc/self/fd/0", "/dev/null\n", 0);
        check(&enclosed, "pwd | sed 's|.*/||'", "work\n", 0);
        check(&enclosed, "yes | head -n 1", "y\n", 0);
        check(&enclosed, "ls /proc/self/fd | wc -l", "4\n", 0);
    });
}

#[test]
fn at_its_time_limit_a_command_is_told_and_then_ended() {
    in_each_sandbox(|enclosed| {
        let told = "trap 'echo told; exit' TERM; sleep 1000 & wait";
        let result = enclosed.call(json!({"command": told, "timeout": 1}), Walls::Up);
        let limit = "[Time limit of 1 s reached: the command was ended]";
        assert_eq!(result, ran(&format!("told\n{limit}"), 124), "{}", enclosed.kind);
    });
}

#[test]
fn a_command_that_does_not_listen_is_ended_with_all_that_it_began() {
    in_each_sandbox(|enclosed| {
        let ends = Lifeline::new(&enclosed);
        let deaf = "exec 2>/dev/null 3>pipe; trap '' TERM; set -m; sleep 1000 & sleep 1000";
        let result = enclosed.call(json!({"command": deaf, "timeout": 1}), Walls::Up);
        let limit = "[Time limit of 1 s reached: the command was ended]";
        assert_eq!(result, ran(limit, 124), "{}", enclosed.kind);
        assert_eq!(ends.next(), "", "{}", enclosed.kind);
    });
}

#[test]
fn a_time_limit_also_ends_a_daemon() {
    in_each_sandbox(|enclosed| {
        let ends = Lifeline::new(&enclosed);
        let command = "(setsid bash -c 'exec 3>pipe; sleep 1000' &) && sleep 1000";
        let result = enclosed.call(json!({"command": command, "timeout": 1}), Walls::Up);
        let limit = "[Time limit of 1 s reached: the command was ended]";
        assert_eq!(result, ran(limit, 124), "{}", enclosed.kind);
        assert_eq!(ends.next(), "", "{}", enclosed.kind);
    });
}

/// A pipe in the tree, open for writing as long as anything of a command lives.
struct Lifeline(mpsc::Receiver<String>);

impl Lifeline {
    fn new(enclosed: &Enclosed) -> Lifeline {
        enclosed.workspace.fifo("pipe");
        let path = enclosed.workspace.path("pipe");
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

    /// What was written next; nothing when all that could write is gone.
    #[track_caller]
    fn next(&self) -> String {
        self.0.recv_timeout(PATIENCE).unwrap()
    }
}

/// Also while its walls are put up, or when nobody was told yet that it runs.
#[test]
fn a_command_that_is_interrupted_while_it_begins_is_ended() {
    in_each_sandbox(|enclosed| {
        let name = format!("sleeper-{}", std::process::id());
        let command = format!("exec -a {name} sleep 1000");
        for step in 0..40 {
            enclosed.interrupt_after(Duration::from_micros(200) * step, &command);
        }
        wait_for("the end of what was begun", || {
            let found = Command::new("pgrep").args(["-f", &format!("^{name} ")]).output().unwrap();
            found.stdout.is_empty().then_some(())
        });
    });
}

#[test]
fn what_is_left_in_the_background_goes_on_until_the_program_ends() {
    in_each_sandbox(|enclosed| {
        let lifeline = Lifeline::new(&enclosed);
        let background = "(exec 3>pipe; until test -e go; do sleep 0.05; done; echo went >&3;
            sleep 1000) & disown; echo begun";
        check(&enclosed, background, "begun\n", 0);
        enclosed.workspace.touch(["go"]);
        assert_eq!(lifeline.next(), "went\n", "{}", enclosed.kind);
        enclosed.close();
        assert_eq!(lifeline.next(), "", "{}", enclosed.kind);
    });
}

/// Outside the sandbox, a daemon that made itself a session stays.
#[test]
fn a_daemon_does_not_outlive_the_program() {
    in_each_sandbox(|enclosed| {
        let lifeline = Lifeline::new(&enclosed);
        check(&enclosed, "setsid bash -c 'exec 3>pipe; sleep 1000' & disown; echo", "\n", 0);
        enclosed.close();
        assert_eq!(lifeline.next(), "");
    });
}

/// Each process of it only starts the next one, is in a session of its own, and does not listen. It ends by itself
/// after a while, and says so.
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
    in_each_sandbox(|enclosed| {
        let (source, chain) =
            (enclosed.workspace.path("chain.c"), enclosed.workspace.path("chain"));
        fs::write(&source, CHAIN).unwrap();
        let built = Command::new("cc").arg(&source).arg("-o").arg(&chain).status().unwrap();
        assert!(built.success());
        let lifeline = Lifeline::new(&enclosed);
        let command = "exec 3>pipe; for n in {1..12}; do ./chain & done; exec 3>&-; echo begun";
        check(&enclosed, command, "begun\n", 0);
        enclosed.close();
        assert_eq!(lifeline.next(), "", "{}", enclosed.kind);
    });
}

#[test]
fn a_folder_that_is_not_there_is_a_failure_and_no_exit_code() {
    in_each_sandbox(|enclosed| {
        fs::remove_dir(enclosed.workspace.directory()).unwrap();
        let result = enclosed.bash("true", Walls::Up);
        assert_eq!(result["success"], false, "{result}");
        assert!(result["error"].as_str().unwrap().contains("was moved or replaced"), "{result}");
    });
}

#[test]
fn a_sandbox_that_cannot_be_set_up_is_a_failure_with_its_reason() {
    in_each_sandbox(|mut enclosed| {
        // All that lies around the secrets is to be written.
        enclosed.sandbox.write.push(open(&enclosed.workspace.home()));
        let result = enclosed.bash("cat ~/.ssh/id; echo ran", Walls::Up);
        match enclosed.kind {
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
    in_each_sandbox(|mut enclosed| {
        if enclosed.kind != SandboxKind::Bubblewrap {
            return;
        }
        // The folder to work in is not in sight.
        enclosed.sandbox.write.clear();
        enclosed.sandbox.read.clear();
        enclosed.sandbox.hidden.push(enclosed.root());
        let result = enclosed.bash("echo ran", Walls::Up);
        let error = result["error"].as_str().unwrap();
        assert!(error.contains("bubblewrap could not set up the sandbox: bwrap: "), "{result}");
    });
}

#[test]
fn the_best_kind_is_found_by_trying() {
    in_each_sandbox(|mut enclosed| {
        enclosed.sandbox.kind = None;
        // Nobody has tried yet: the command does.
        assert_eq!(enclosed.prints("echo ran"), "ran\n");
        let works = enclosed.works().unwrap();
        assert!(enclosed.kind == SandboxKind::Landlock || works == SandboxKind::Bubblewrap);
        let pids = enclosed.prints("ls -d /proc/[0-9]* | wc -l").trim().parse::<u32>().unwrap();
        assert_eq!(pids < 10, works == SandboxKind::Bubblewrap, "{pids} processes in sight");
    });
}

/// A command is never run without the sandbox that was asked for.
#[test]
fn where_no_sandbox_works_nothing_runs_and_the_reasons_are_told() {
    in_each_sandbox(|mut enclosed| {
        enclosed.reopen_without_watchdog();
        enclosed.sandbox.kind = None;
        let why = enclosed.works().unwrap_err().to_string();
        assert!(why.starts_with("no sandbox works here (bubblewrap: "), "{why}");
        assert!(why.contains("; landlock: "), "{why}");
        let result = enclosed.bash("echo ran", Walls::Up);
        let place = enclosed.workspace.directory();
        let error = format!("Cannot start bash in {}: {why}", place.display());
        assert_eq!(result, failure(error));
    });
}

/// Agents share their commands, and are told apart by what their own are given.
#[test]
fn a_command_has_the_variables_of_its_context() {
    in_each_sandbox(|mut enclosed| {
        enclosed.reopen_with("SHARED", "all");
        let print = r#"echo "$SHARED $IKIGAI_AGENT $LD_BIND_NOW""#;
        for walls in [Walls::Up, Walls::Down] {
            let given = |name: &str| {
                let pair = |name: &str, value: &str| (name.into(), value.into());
                let variables = vec![
                    pair("IKIGAI_AGENT", name),
                    pair("LD_BIND_NOW", "1"),
                    pair("SHARED", "own"),
                ];
                enclosed.bash_with(print, walls, variables)
            };
            assert_eq!(given("1/"), ran("own 1/ 1\n", 0), "{}", enclosed.kind);
            assert_eq!(given("1/2"), ran("own 1/2 1\n", 0), "{}", enclosed.kind);
            assert_eq!(enclosed.bash(print, walls), ran("all  \n", 0), "{}", enclosed.kind);
        }
    });
}
