//! The helpers that wait for the next commands in bubblewrap.

use std::fs;
use std::time::Instant;

use ikigai_tools::SandboxKind;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::PATIENCE;
use crate::support::enclosed::{Enclosed, Walls, in_sandbox};

/// How many wait.
const AHEAD: usize = 2;

#[test]
fn helpers_wait_for_the_next_commands() {
    in_sandbox(SandboxKind::Bubblewrap, |enclosed| {
        let watchdog = watchdog(&enclosed);
        assert_eq!(children(watchdog), [], "nobody asked for a sandbox");
        enclosed.prints("true");
        let before = waiting(watchdog);
        enclosed.prints("true");
        let after = waiting(watchdog);
        let left = before.iter().filter(|helper| after.contains(helper)).count();
        assert_eq!(left, AHEAD - 1, "one helper is one command");
    });
}

#[test]
fn helpers_are_ready_before_a_long_command_ends() {
    in_sandbox(SandboxKind::Bubblewrap, |enclosed| {
        let watchdog = watchdog(&enclosed);
        let path = enclosed.workspace.path("go");
        let seen = std::thread::spawn(move || {
            wait_for(|| children(watchdog).len() == AHEAD + 1);
            fs::write(path, "").unwrap();
        });
        enclosed.prints("until test -e go; do sleep 0.01; done");
        seen.join().unwrap();
    });
}

#[test]
fn helpers_that_were_killed_are_not_missed() {
    in_sandbox(SandboxKind::Bubblewrap, |enclosed| {
        let watchdog = watchdog(&enclosed);
        enclosed.prints("true");
        for helper in waiting(watchdog) {
            kill_process(helper, Signal::KILL).unwrap();
            wait_for(|| !is_alive(helper));
        }
        assert_eq!(enclosed.prints("echo ran"), "ran\n");
    });
}

#[test]
fn helpers_end_with_the_program_and_with_the_watchdog() {
    in_sandbox(SandboxKind::Bubblewrap, |enclosed| {
        let first = watchdog(&enclosed);
        enclosed.prints("true");
        let helpers = waiting(first);
        kill_process(first, Signal::KILL).unwrap();
        wait_for(|| !helpers.iter().copied().any(is_alive));
        let second = watchdog(&enclosed);
        enclosed.prints("true");
        let helpers = waiting(second);
        enclosed.close();
        assert!(!helpers.into_iter().any(is_alive) && !is_alive(second));
    });
}

/// A command's parent, outside.
fn watchdog(enclosed: &Enclosed) -> Pid {
    enclosed.close();
    let result = enclosed.bash("echo $PPID", Walls::Down);
    let output = result["data"]["output"].as_str().unwrap();
    Pid::from_raw(output.trim().parse().unwrap()).unwrap()
}

/// The processes that the watchdog has begun when no command runs.
#[track_caller]
fn waiting(watchdog: Pid) -> Vec<Pid> {
    wait_for(|| children(watchdog).len() == AHEAD);
    children(watchdog)
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
