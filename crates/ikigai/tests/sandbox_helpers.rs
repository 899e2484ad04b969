//! The helper that waits for the next command in a sandbox.

use std::fs;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::PATIENCE;
use crate::support::enclosed::{Enclosed, Walls, in_each_sandbox};

#[test]
fn a_helper_waits_for_the_next_command() {
    in_each_sandbox(|enclosed| {
        let watchdog = watchdog(&enclosed);
        assert_eq!(children(watchdog), [], "nobody asked for a sandbox");
        enclosed.prints("true");
        let first = waiting(watchdog);
        enclosed.prints("true");
        let second = waiting(watchdog);
        assert_ne!(first, second, "{}: one helper is one command", enclosed.kind);
    });
}

#[test]
fn a_helper_is_ready_before_a_long_command_ends() {
    in_each_sandbox(|enclosed| {
        let watchdog = watchdog(&enclosed);
        let path = enclosed.workspace.path("go");
        let seen = std::thread::spawn(move || {
            wait_for(|| children(watchdog).len() == 2);
            fs::write(path, "").unwrap();
        });
        enclosed.prints("until test -e go; do sleep 0.01; done");
        seen.join().unwrap();
    });
}

#[test]
fn a_helper_that_was_killed_is_not_missed() {
    in_each_sandbox(|enclosed| {
        let watchdog = watchdog(&enclosed);
        enclosed.prints("true");
        let helper = waiting(watchdog);
        kill_process(helper, Signal::KILL).unwrap();
        wait_for(|| !is_alive(helper));
        assert_eq!(enclosed.prints("echo ran"), "ran\n", "{}", enclosed.kind);
    });
}

#[test]
fn a_helper_ends_with_the_program_and_with_the_watchdog() {
    in_each_sandbox(|enclosed| {
        let first = watchdog(&enclosed);
        enclosed.prints("true");
        let helper = waiting(first);
        kill_process(first, Signal::KILL).unwrap();
        wait_for(|| !is_alive(helper));
        let second = watchdog(&enclosed);
        enclosed.prints("true");
        let helper = waiting(second);
        enclosed.close();
        assert!(!is_alive(helper) && !is_alive(second), "{}", enclosed.kind);
    });
}

/// A command's parent, outside.
fn watchdog(enclosed: &Enclosed) -> Pid {
    enclosed.close();
    let result = enclosed.bash("echo $PPID", Walls::Down);
    let output = result["data"]["output"].as_str().unwrap();
    Pid::from_raw(output.trim().parse().unwrap()).unwrap()
}

/// The one process that the watchdog has begun when no command runs.
#[track_caller]
fn waiting(watchdog: Pid) -> Pid {
    wait_for(|| children(watchdog).len() == 1);
    children(watchdog)[0]
}

#[track_caller]
fn wait_for(condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < PATIENCE, "it did not come to pass");
        std::thread::yield_now();
    }
}

fn children(parent: Pid) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").unwrap();
    let names = processes.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let pids = names.filter_map(|name| Pid::from_raw(name.parse().ok()?));
    let parent = parent.as_raw_nonzero().to_string();
    pids.filter(|pid| status(*pid).is_some_and(|(_, of)| of == parent) && is_alive(*pid)).collect()
}

fn is_alive(pid: Pid) -> bool {
    status(pid).is_some_and(|(state, _)| state != "Z" && state != "X")
}

/// The state of a process, and the number of its parent.
fn status(pid: Pid) -> Option<(String, String)> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ').map(str::to_owned);
    Some((fields.next()?, fields.next()?))
}
