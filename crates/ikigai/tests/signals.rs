//! Signals to the program while a command runs: nothing of the command is left.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Output};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::json;

use crate::support::{Workspace, finish, is_running, pid, wait_for_pid, wait_until_gone};

/// A leader, a child of it, one that let go of the pipe, one in a group of its own, one that ignores being
/// told; each tells its number.
const FAMILY: &str = "echo $BASHPID > leader; \
    (echo $BASHPID > child; sleep 31415.7; true) & \
    (echo $BASHPID > silent; exec sleep 31415.8 > /dev/null 2>&1) & \
    (timeout 31415 bash -c 'echo $$ > grouped; sleep 31415.85; true'; true) & \
    (trap '' TERM; echo $BASHPID > stubborn; while :; do sleep 0.01; done) & \
    wait";

const MEMBERS: [&str; 5] = ["leader", "child", "silent", "grouped", "stubborn"];

/// Starts a command and waits until all of it is running.
fn start(workspace: &Workspace, command: &str, names: &[&str]) -> (Child, Vec<Pid>) {
    let mut ikigai = workspace.tool_command("bash", json!({ "command": command }));
    let child = ikigai.process_group(0).spawn().unwrap();
    let processes = names.iter().map(|name| wait_for_pid(&workspace.path(name))).collect();
    (child, processes)
}

/// Sends a signal and waits for the end of the program and of all processes of its command.
#[track_caller]
fn check(signal: Signal) -> Output {
    let workspace = Workspace::unconfined();
    let (ikigai, family) = start(&workspace, FAMILY, &MEMBERS);
    assert!(family.iter().all(|&pid| is_running(pid)));
    kill_process(pid(&ikigai), signal).unwrap();
    let output = finish(ikigai);
    family.into_iter().for_each(wait_until_gone);
    output
}

#[track_caller]
fn check_interrupted(signal: Signal) {
    let output = check(signal);
    let told = (output.status.code(), output.stdout, String::from_utf8(output.stderr).unwrap());
    assert_eq!(told, (Some(130), Vec::new(), "ikigai: interrupted\n".to_owned()));
}

#[test]
fn an_interrupt_ends_the_command_and_all_that_it_started() {
    check_interrupted(Signal::INT);
}

#[test]
fn a_termination_ends_the_command_and_all_that_it_started() {
    check_interrupted(Signal::TERM);
}

#[test]
fn a_lost_terminal_ends_the_command_and_all_that_it_started() {
    check_interrupted(Signal::HUP);
}

#[test]
fn a_kill_ends_the_command_and_all_that_it_started() {
    assert_eq!(check(Signal::KILL).status.signal(), Some(9));
}

/// A shell or a container kills the whole group: the watchdog is not in it.
#[test]
fn a_kill_of_the_programs_group_ends_the_command_too() {
    let workspace = Workspace::unconfined();
    let (ikigai, family) = start(&workspace, FAMILY, &MEMBERS);
    kill_process_group(pid(&ikigai), Signal::KILL).unwrap();
    finish(ikigai);
    family.into_iter().for_each(wait_until_gone);
}

/// A terminal sends its interrupt to the whole group, and the command must not get it twice or before us.
#[test]
fn an_interrupt_to_the_programs_group_reaches_the_command_only_as_our_own() {
    let workspace = Workspace::unconfined();
    let command = "trap 'echo INT >> got' INT; trap 'echo TERM >> got; exit' TERM; echo $$ > leader; \
                   while :; do sleep 0.01; done";
    let (ikigai, family) = start(&workspace, command, &["leader"]);
    kill_process_group(pid(&ikigai), Signal::INT).unwrap();
    assert_eq!(finish(ikigai).status.code(), Some(130));
    family.into_iter().for_each(wait_until_gone);
    assert_eq!(workspace.read_text("got"), "TERM\n");
}

/// The command asks politely for a second signal: the person at the keyboard has lost patience.
#[test]
fn a_second_signal_is_survived_as_well() {
    let workspace = Workspace::unconfined();
    let command = "trap '' TERM; echo $$ > leader; while :; do sleep 0.01; done";
    let (ikigai, family) = start(&workspace, command, &["leader"]);
    for _ in 0..3 {
        let _ = kill_process(pid(&ikigai), Signal::INT);
    }
    assert_eq!(finish(ikigai).status.code(), Some(130));
    family.into_iter().for_each(wait_until_gone);
}

/// What an earlier command left in the background ends with a kill as well.
#[test]
fn a_kill_ends_what_runs_in_the_background_after_its_command() {
    let workspace = Workspace::unconfined();
    // The leader ends at once; a second process of the group goes on, a third keeps the call open.
    let command = "(echo $BASHPID > background; exec sleep 31415.9 > /dev/null 2>&1) & \
                   disown; echo $$ > leader; exec sleep 31415.95";
    let (ikigai, family) = start(&workspace, command, &["background", "leader"]);
    kill_process(pid(&ikigai), Signal::KILL).unwrap();
    finish(ikigai);
    family.into_iter().for_each(wait_until_gone);
}

#[test]
fn the_watchdog_outlives_who_tries_to_end_it() {
    let workspace = Workspace::new();
    let command = "for signal in TERM INT HUP QUIT; do kill -$signal $PPID; done; echo still here";
    workspace.check(
        "bash",
        json!({ "command": command }),
        json!({"success": true, "data": {"output": "still here\n", "exit_code": 0}}),
    );
}

#[test]
fn a_command_gets_its_signals_as_they_are_by_default() {
    let workspace = Workspace::new();
    // Ignored and caught ones; what lies above 31 belongs to the C library of whoever started us.
    let command = "sed -n 's/^Sig[IC].*:\t//p' /proc/self/status | while read mask; do \
        echo $((0x$mask & 0x7fffffff)); done; kill -TERM $$";
    workspace.check(
        "bash",
        json!({ "command": command }),
        json!({"success": true, "data": {"output": "0\n0\n", "exit_code": 143}}),
    );
}

#[test]
fn a_hangup_that_was_ignored_at_the_start_stays_ignored() {
    let workspace = Workspace::new();
    let script = "trap '' HUP; exec \"$IKIGAI\" tool bash \
        '{\"command\":\"echo $$ > leader; while [ ! -e go ]; do sleep 0.01; done; echo done\"}'";
    let child = workspace.script(script).spawn().unwrap();
    wait_for_pid(&workspace.path("leader"));
    kill_process(pid(&child), Signal::HUP).unwrap();
    workspace.touch(["go"]);
    let output = finish(child);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("done"));
}
