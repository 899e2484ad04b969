//! Ends commands, and what they left behind.

use std::io;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::process::{Signal, WaitOptions, getpid, kill_process, wait};

use super::groups::{Group, Sessions};
use super::protection::StrayWatch;
use super::start::{StartedCommand, Starter};
use super::{GRACE, LOOK};

/// How long processes that do not end are hunted. The exit of the program is never delayed longer.
const LONGEST_HUNT: Duration = Duration::from_secs(5);

/// Ends processes that have left the groups of landlock commands: first with SIGTERM, then with
/// SIGKILL. A chain of processes that only fork and exit must be caught between two forks.
pub(super) async fn end_strays(starter: &Starter, strays_watch: &StrayWatch) {
    for stray in strays_watch.strays() {
        let _ = kill_process(stray, Signal::TERM);
        let _ = kill_process(stray, Signal::CONT);
    }
    let all_gone = async {
        while !strays_watch.has_none() {
            tokio::time::sleep(LOOK).await;
        }
    };
    let _ = tokio::time::timeout(GRACE, all_gone).await;
    let begun = Instant::now();
    while !strays_watch.has_none() && begun.elapsed() < LONGEST_HUNT {
        for stray in strays_watch.strays() {
            let _ = kill_process(stray, Signal::KILL);
        }
        starter.reap_orphans();
        tokio::task::yield_now().await;
    }
}

/// Ends all processes of a command, first with SIGTERM, then with SIGKILL. Returns the leader's
/// status.
pub(super) async fn end(command: &mut StartedCommand) -> io::Result<ExitStatus> {
    let mut groups = command.groups_below();
    groups.push(command.group);
    terminate(&groups);
    let all_gone = async {
        let status = command.child.wait().await;
        until_gone(&groups).await;
        status
    };
    if let Ok(status) = tokio::time::timeout(GRACE, all_gone).await {
        return status;
    }
    groups.extend(command.groups_below());
    groups.iter().for_each(|group| group.signal(Signal::KILL));
    command.child.wait().await
}

/// Ends processes that left the groups of earlier commands, when the program is gone.
pub(super) async fn end_rest() {
    if has_no_children() {
        return;
    }
    let groups = Group::below(getpid(), Sessions::Own);
    terminate(&groups);
    let _ = tokio::time::timeout(GRACE, until_gone(&groups)).await;
    Group::below(getpid(), Sessions::Own).iter().for_each(|group| group.signal(Signal::KILL));
}

/// The usual case, detected without listing all processes.
fn has_no_children() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}

fn terminate(groups: &[Group]) {
    for group in groups {
        group.signal(Signal::TERM);
        // A stopped process would not handle SIGTERM.
        group.signal(Signal::CONT);
    }
}

pub(super) async fn until_gone(groups: &[Group]) {
    while groups.iter().any(|group| group.is_alive()) {
        tokio::time::sleep(LOOK).await;
    }
}
