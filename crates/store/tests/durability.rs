//! M1: what is acknowledged was flushed before, observed from outside the process.

use std::process::Command;

use ikigai_testkit::TestStore;
use ikigai_testkit::driver::{Fault, Plan};

use crate::support::{child, free_agents};

const STEPS: u32 = 20;

/// The number of a driver's acknowledgements, and how many of them came before their flush.
async fn trace_driver(fault: Fault) -> (usize, Vec<String>) {
    assert!(
        Command::new("strace").arg("-V").output().is_ok(),
        "strace is needed to see the order of flushes and answers: install the package strace"
    );
    let store = TestStore::new();
    let session = free_agents(&store, 2).await;
    let plan = Plan { fault, steps: STEPS, ..Plan::new(store.database(), session, 2, 0) };
    let driver = child("driver", &plan.arguments());
    let trace = store.folder().join("trace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-q", "-y", "-s", "64", "-e", "trace=write,pwrite64,fsync,fdatasync"]);
    strace.arg("-o").arg(&trace).arg(driver.get_program()).args(driver.get_args());
    strace.envs(driver.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = strace.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    unflushed(&std::fs::read_to_string(trace).unwrap())
}

/// Reads strace's lines (`PID call(FD<PATH>, …) = RESULT`, a call may be `unfinished` and `resumed`).
fn unflushed(trace: &str) -> (usize, Vec<String>) {
    // What was written to the write-ahead log since its last flush, and whether it was flushed
    // since the last acknowledgement.
    let (mut dirty, mut flushed) = (false, false);
    let mut flushing: Vec<&str> = Vec::new();
    let (mut acknowledged, mut early) = (0, Vec::new());
    for line in trace.lines() {
        let Some((pid, call)) = line.split_once(' ') else { continue };
        let call = call.trim_start();
        let on_log = call.contains("-wal>");
        let is_flush = call.starts_with("fsync(") || call.starts_with("fdatasync(");
        if call.starts_with("pwrite64(") && on_log {
            dirty = true;
        } else if is_flush && on_log && call.contains("unfinished") {
            flushing.push(pid);
        } else if (is_flush && on_log && call.ends_with("= 0"))
            || (call.contains("sync resumed") && call.ends_with("= 0") && flushing.contains(&pid))
        {
            flushing.retain(|other| *other != pid);
            (dirty, flushed) = (false, true);
        } else if call.starts_with("write(1") && call.contains("\"ack ") {
            acknowledged += 1;
            if dirty || !flushed {
                early.push(call.to_owned());
            }
            flushed = false;
        }
    }
    (acknowledged, early)
}

#[tokio::test]
async fn m1_the_flush_of_the_write_ahead_log_comes_before_the_answer() {
    let (acknowledged, early) = trace_driver(Fault::None).await;
    assert_eq!(early, Vec::<String>::new());
    assert!(acknowledged > STEPS as usize / 2, "only {acknowledged} answers");
}

#[tokio::test]
async fn m1_without_flushes_the_same_look_sees_answers_come_too_early() {
    let (acknowledged, early) = trace_driver(Fault::Unflushed).await;
    assert_eq!((acknowledged, early.len()), (STEPS as usize, STEPS as usize));
}
