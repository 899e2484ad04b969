//! `bash`: output, exit codes, time limits, and what goes on in the background.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::full_disk::unshare;
use crate::support::{
    Workspace, failure, finish, is_running, line_of, pid, skip, success, wait_for_pid,
    wait_until_gone,
};

fn ran(output: &str, exit_code: i32) -> Value {
    success(json!({"output": output, "exit_code": exit_code}))
}

#[track_caller]
fn check(command: &str, output: &str, exit_code: i32) {
    Workspace::new().check("bash", json!({ "command": command }), ran(output, exit_code));
}

fn timed_out(seconds: u64) -> String {
    format!("[Time limit of {seconds} s reached: the command was ended]")
}

#[test]
fn a_command_that_fails_is_a_success_with_its_exit_code() {
    check("true", "", 0);
    check("echo done", "done\n", 0);
    check("exit 3", "", 3);
    check("echo gone; exit 255", "gone\n", 255);
    check("false", "", 1);
    check("", "", 0);
}

#[test]
fn a_command_that_does_not_exist_or_cannot_be_parsed_has_the_codes_of_bash() {
    check("no-such-command", "bash: line 1: no-such-command: command not found\n", 127);
    let result = Workspace::new().tool("bash", json!({"command": "if"}));
    assert!(result.contains("syntax error") && result.contains(r#""exit_code":2"#), "{result}");
}

#[test]
fn a_command_killed_by_a_signal_has_128_and_its_number() {
    check("kill -KILL $$", "", 137);
    check("kill -TERM $$", "", 143);
    check("kill -SEGV $$", "", 139);
    check("echo before; kill -INT $$; echo after", "before\n", 130);
}

#[test]
fn both_streams_come_in_the_order_in_which_they_were_written() {
    check("echo 1; echo 2 >&2; echo 3; echo 4 >&2", "1\n2\n3\n4\n", 0);
    let lines: String = (1..=500).map(|number| format!("{number}\n")).collect();
    check("for i in $(seq 1 2 500); do echo $i; echo $((i+1)) >&2; done", &lines, 0);
}

#[test]
fn standard_input_is_empty() {
    check("cat; echo end", "end\n", 0);
    check("read line || echo nothing", "nothing\n", 0);
    check("readlink /proc/self/fd/0", "/dev/null\n", 0);
}

#[test]
fn it_is_bash_in_the_working_directory() {
    check("[[ abc == a* ]] && echo ${BASH_VERSION:+bash}", "bash\n", 0);
    let workspace = Workspace::new();
    let here = format!("{0}\n{0}\n", workspace.text("").trim_end_matches('/'));
    workspace.check("bash", json!({"command": "/bin/pwd; echo $PWD"}), ran(&here, 0));
}

#[test]
fn a_command_has_a_process_group_of_its_own_and_no_terminal() {
    let check = |command: &str, output: &str| {
        Workspace::unconfined().check("bash", json!({ "command": command }), ran(output, 0));
    };
    check(r#"test "$(ps -o pgid= $$)" -eq $$ && echo own"#, "own\n");
    check("exec 2>/dev/null; : < /dev/tty || echo none", "none\n");
}

/// What ikigai ignores for itself must not be ignored in commands.
#[test]
fn a_broken_pipe_ends_a_command_as_usual() {
    check(r#"yes | head -1; echo "${PIPESTATUS[@]}""#, "y\n141 0\n", 0);
}

#[test]
fn bytes_that_are_no_utf8_are_shown_as_far_as_possible() {
    check(r"printf 'caf\xe9\n\xff\xfe\xc3'", "caf\u{fffd}\n\u{fffd}\u{fffd}\u{fffd}", 0);
    check(r"printf 'a\0b'", "a\0b", 0);
    check("printf '\u{1b}[1m😀\r\n'", "\u{1b}[1m😀\r\n", 0);
}

/// A character may arrive in pieces.
#[test]
fn a_character_that_comes_in_pieces_is_whole() {
    check(r"printf '\xf0\x9f'; sync -d .; printf '\x98\x80'", "😀", 0);
}

#[test]
fn a_command_is_stopped_at_its_time_limit() {
    #[track_caller]
    fn check(timeout: &Value, command: &str, output: &str) {
        let arguments = json!({"command": command, "timeout": timeout});
        Workspace::new().check("bash", arguments, ran(output, 124));
    }
    let told = timed_out(2);
    check(&json!(2), "sleep 3600", &told);
    check(&json!("2"), "echo begun; sleep 3600", &format!("begun\n{told}"));
    check(&json!(2), "printf begun; sleep 3600", &format!("begun\n{told}"));
}

#[test]
fn a_command_that_exits_124_by_itself_was_not_stopped() {
    check("echo by itself; exit 124", "by itself\n", 124);
}

#[test]
fn all_of_a_stopped_group_is_ended_even_if_it_ignores_being_told() {
    let workspace = Workspace::unconfined();
    let command = "trap '' TERM; (trap '' TERM; echo $BASHPID > child; while :; do sleep 0.01; done) & \
                   echo $$ > leader; while :; do sleep 0.01; done";
    let arguments = json!({"command": command, "timeout": 2});
    workspace.check("bash", arguments, ran(&timed_out(2), 124));
    for name in ["leader", "child"] {
        wait_until_gone(wait_for_pid(&workspace.path(name)));
    }
}

#[test]
fn a_background_process_in_a_group_of_its_own_ends_with_ikigai() {
    let workspace = Workspace::unconfined();
    wait_until_gone(background(&workspace, "set -m; sleep 31415.37 & echo $!"));
    wait_until_gone(background(
        &workspace,
        "(timeout 31415 sleep 31415.38 > /dev/null 2>&1 & echo $!)",
    ));
    let stubborn = "set -m; (trap '' TERM; exec sleep 31415.39) & echo $!";
    wait_until_gone(background(&workspace, stubborn));
}

/// Whoever makes a session of its own wants to outlive us.
#[test]
fn a_daemon_that_made_itself_a_session_goes_on() {
    let workspace = Workspace::unconfined();
    let command = "setsid bash -c 'echo $$ > daemon; exec sleep 31415.4' > /dev/null 2>&1 & \
                   until [ -s daemon ]; do sleep 0.01; done";
    workspace.check("bash", json!({ "command": command }), ran("", 0));
    let daemon = wait_for_pid(&workspace.path("daemon"));
    assert!(is_running(daemon));
    kill_process(daemon, Signal::KILL).unwrap();
}

#[test]
fn what_a_stopped_command_still_prints_is_shown() {
    let command = "trap 'echo cleaning up; exit 5' TERM; echo begun; sleep 3600 & wait";
    let arguments = json!({"command": command, "timeout": 2});
    let output = format!("begun\ncleaning up\n{}", timed_out(2));
    Workspace::new().check("bash", arguments, ran(&output, 124));
}

/// It ends while ikigai is kept from noticing until the time limit has passed as well. To tell the watchdog to
/// end what was gone already failed, and so did the call.
#[test]
fn a_command_that_ends_just_as_its_time_is_up_is_no_failure() {
    for _ in 0..3 {
        let workspace = Workspace::unconfined();
        let command = "ikigai=$(sed -n 's/^PPid:\t//p' /proc/$PPID/status); echo $$ > pid; kill -STOP $ikigai; exit 3";
        let started = Instant::now();
        let mut ikigai = workspace.tool_command("bash", json!({"command": command, "timeout": 1}));
        let ikigai = ikigai.spawn().unwrap();
        wait_until_gone(wait_for_pid(&workspace.path("pid")));
        let time_is_up = Duration::from_millis(1_500);
        std::thread::sleep(time_is_up.saturating_sub(started.elapsed()));
        kill_process(pid(&ikigai), Signal::CONT).unwrap();
        let result = line_of(finish(ikigai));
        let (by_itself, stopped) = (ran("", 3).to_string(), ran(&timed_out(1), 124).to_string());
        assert!(result == by_itself || result == stopped, "{result}");
    }
}

/// The time limit holds also for a stopped process, which does not notice TERM.
#[test]
fn a_stopped_process_is_ended_too() {
    let workspace = Workspace::unconfined();
    let command = "echo $$ > pid; kill -STOP $$";
    let arguments = json!({"command": command, "timeout": 2});
    workspace.check("bash", arguments, ran(&timed_out(2), 124));
    wait_until_gone(wait_for_pid(&workspace.path("pid")));
}

/// The number of a background process, from the output of the command that started it.
#[track_caller]
fn background(workspace: &Workspace, command: &str) -> Pid {
    let result: Value =
        serde_json::from_str(&workspace.tool("bash", json!({ "command": command }))).unwrap();
    let output = result["data"]["output"].as_str().unwrap();
    assert_eq!(result, ran(output, 0));
    Pid::from_raw(output.trim().parse().unwrap()).unwrap()
}

#[test]
fn a_background_process_that_holds_the_pipe_does_not_keep_the_call_and_ends_with_ikigai() {
    let workspace = Workspace::unconfined();
    wait_until_gone(background(&workspace, "sleep 31415.1 & echo $!"));
    wait_until_gone(background(&workspace, "(sleep 31415.2 & echo $!)"));
    wait_until_gone(background(&workspace, "nohup sleep 31415.3 2>/dev/null & echo $!"));
}

#[test]
fn a_background_process_that_let_go_of_the_pipe_ends_with_ikigai() {
    let command = "sleep 31415.45 > /dev/null 2>&1 & echo $!";
    wait_until_gone(background(&Workspace::unconfined(), command));
}

#[test]
fn a_background_process_that_ignores_being_told_ends_with_ikigai() {
    let command = "(trap '' TERM; exec sleep 31415.5) & echo $!";
    wait_until_gone(background(&Workspace::unconfined(), command));
}

#[test]
fn a_background_process_that_prints_without_end_does_not_keep_the_call() {
    let workspace = Workspace::unconfined();
    let result: Value = serde_json::from_str(
        &workspace.tool("bash", json!({"command": "yes & echo $! > pid; exit 3"})),
    )
    .unwrap();
    assert_eq!((&result["success"], &result["data"]["exit_code"]), (&json!(true), &json!(3)));
    wait_until_gone(wait_for_pid(&workspace.path("pid")));
}

/// Whatever else holds the pipe open: all of the command's own output is in it by its end.
#[test]
fn what_a_command_printed_before_its_end_is_shown_whole() {
    let expected = "x".repeat(40_000);
    for _ in 0..20 {
        check("printf 'x%.0s' {1..40000}; sleep 31415.6 &", &expected, 0);
    }
}

#[test]
fn the_end_of_a_long_output_is_shown_beside_its_beginning() {
    let workspace = Workspace::new();
    let all: String = (1..=100_000).map(|number| format!("{number}\n")).collect();
    let (head, tail) = (&all[..25_600], &all[all.len() - 25_600..]);
    let marker =
        format!("[Output truncated: showing first 25600 and last 25600 of {} bytes]", all.len());
    let separator = if head.ends_with('\n') { "" } else { "\n" };
    let output = format!("{head}{separator}{marker}\n{tail}");
    let expected = success(json!({"output": output, "exit_code": 0, "truncated": true}));
    workspace.check("bash", json!({"command": "seq 1 100000"}), expected);
}

/// The command itself looks, at its end, how much memory ikigai and its watchdog had at most.
#[test]
fn memory_stays_small_whatever_a_command_prints() {
    let command = "yes | head -c 1000000000; echo; \
        for pid in $PPID $(sed -n 's/^PPid:\t//p' /proc/$PPID/status); do \
            sed -n 's/^VmHWM:[ \t]*\\([0-9]*\\) kB/\\1/p' /proc/$pid/status; done";
    let result: Value =
        serde_json::from_str(&Workspace::unconfined().tool("bash", json!({ "command": command })))
            .unwrap();
    assert_eq!(result["data"]["exit_code"], 0);
    let output = result["data"]["output"].as_str().unwrap();
    assert!(
        output.contains("[Output truncated: showing first 25600 and last 25600 of 1000000"),
        "{output}"
    );
    let peaks: Vec<u64> =
        output.lines().rev().take(2).map(|kilobytes| kilobytes.parse().unwrap()).collect();
    assert!(peaks.iter().all(|&peak| peak < 64 * 1024), "{peaks:?} kB");
}

#[test]
fn a_command_too_long_for_the_system_is_refused() {
    let longest = 128 * 1024 - 1;
    let workspace = Workspace::new();
    let command = format!("echo ran #{}", "x".repeat(longest - 10));
    workspace.check("bash", json!({ "command": command }), ran("ran\n", 0));
    let error = format!(
        "Cannot start bash: the command is too long ({} bytes, at most {longest}): \
         put it in a file and run that",
        longest + 1
    );
    workspace.check("bash", json!({"command": format!("{command}x")}), failure(error));
}

#[test]
fn bash_that_cannot_be_started_is_a_failure() {
    let Some(options) = unshare() else {
        return skip("this system does not let the tests hide bash");
    };
    let workspace = Workspace::unconfined();
    let script = "for shell in /bin/bash /usr/bin/bash /usr/local/bin/bash; do
            test ! -e $shell || mount --bind /dev/null $shell || exit 1
        done
        exec \"$0\" \"$@\"";
    let mut command = workspace.under("unshare", &[&options[..], &["sh", "-c", script]].concat());
    command.args(["tool", "bash", r#"{"command":"echo ran"}"#]);
    let result = crate::support::result(&mut command);
    assert!(result.contains(": bash is in none of /bin/bash, "), "{result}");
}

#[test]
fn a_command_that_kills_its_watchdog_is_a_failure_and_no_hang() {
    let expected = failure("Cannot run bash: its watchdog was killed");
    Workspace::unconfined().check("bash", json!({"command": "kill -9 $PPID"}), expected);
}

#[test]
fn a_command_that_begins_with_a_dash_is_a_command() {
    let workspace = Workspace::new();
    let result = workspace.tool("bash", json!({"command": "-x 2>/dev/null; echo $?"}));
    assert_eq!(
        result,
        json!({"success": true, "data": {"output": "127\n", "exit_code": 0}}).to_string()
    );
}
