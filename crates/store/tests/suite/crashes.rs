//! M8: whichever process is killed at any moment, every accepted message exists once, and every
//! mark is true.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use ikigai_testkit::Random;
use ikigai_testkit::driver::{Fault, Plan, Point};

use crate::support::{Running, check_database, child, driver_process, free_agents, verdict};

/// Agents that write to each other, each in its own process.
const WRITERS: u32 = 3;
/// Kills between two runs of the checker, and between two databases: its work grows with the logs.
const BETWEEN_CHECKS: u32 = 30;
const PER_DATABASE: u32 = 300;

#[tokio::test]
async fn m8_kill_9_at_any_moment_loses_and_duplicates_nothing() {
    let cycles = std::env::var("STORE_CRASH_CYCLES").map_or(102, |cycles| cycles.parse().unwrap());
    let mut random = Random::new(8);
    let mut left: u32 = cycles;
    while left > 0 {
        let kills = left.min(PER_DATABASE);
        crash_one_database(&mut random, kills).await;
        left -= kills;
    }
}

/// Kills that many writers of one database. Each time another process takes over the agent.
async fn crash_one_database(random: &mut Random, kills: u32) {
    let store = super::store();
    let session = free_agents(&store, WRITERS).await;
    let acknowledged = store.folder().join("acknowledged");
    let start = |agent: u32, random: &mut Random| {
        let mut plan = Plan::new(store.database(), session, WRITERS, agent);
        plan.seed = random.below(u64::MAX);
        plan.steps = 1_000;
        let point =
            *random.one_of(&[Point::Opened, Point::Submitted, Point::Closed, Point::Submitted]);
        plan.death = Some((u32::try_from(random.below(10)).unwrap(), point));
        driver_process(&plan, &acknowledged)
    };
    let mut writers: Vec<(u32, Running)> =
        (0..WRITERS).map(|agent| (agent, start(agent, random))).collect();
    for kill in 1..=kills {
        let at = usize::try_from(random.below(WRITERS.into())).unwrap();
        let (agent, writer) = writers.swap_remove(at);
        // At the point it chose, or at any point now.
        let status = if random.below(3) > 0 { writer.end() } else { writer.kill() };
        assert_eq!(status.signal(), Some(9), "agent {agent}/ ended by itself: {status}");
        writers.push((agent, start(agent, random)));
        if kill % BETWEEN_CHECKS == 0 {
            // Others continue to write meanwhile.
            check_database(store.database(), std::slice::from_ref(&acknowledged));
        }
    }
    writers.into_iter().for_each(|(_, writer)| drop(writer));
    check_database(store.database(), &[acknowledged]);
    assert!(store.number("SELECT count(*) FROM mail") > i64::from(kills) / 2);
}

/// Runs a writer that dies in its fourth step, and then another that repairs its log.
async fn crash_once(fault: Fault, point: Point) -> Vec<String> {
    let store = super::store();
    let session = free_agents(&store, 2).await;
    let acknowledged: PathBuf = store.folder().join("acknowledged");
    let mut plan = Plan { fault, ..Plan::new(store.database(), session, 2, 0) };
    plan.death = Some((3, point));
    assert_eq!(driver_process(&plan, &acknowledged).end().signal(), Some(9));
    let next = Plan::new(store.database(), session, 2, 0);
    assert_eq!(driver_process(&next, &acknowledged).end().code(), Some(0));
    verdict(store.database(), &[acknowledged])
}

#[tokio::test]
async fn m8_the_checker_notices_a_commit_torn_in_two() {
    let faults = crash_once(Fault::Torn, Point::Submitted).await;
    // The fourth mail has no sender. Of the three before, the logs are right but the rows are not.
    assert!(
        faults.contains(&"mail 4: exists, and no log says that it was sent".to_owned()),
        "{faults:?}"
    );
    assert!(
        faults.iter().any(|fault| fault.starts_with("0/ says in 2: sent mail 1 to ")),
        "{faults:?}"
    );
}

#[tokio::test]
async fn m8_each_point_of_death_leaves_a_consistent_database() {
    for point in [Point::Opened, Point::Submitted, Point::Closed] {
        let store = super::store();
        let session = free_agents(&store, 2).await;
        let acknowledged: PathBuf = store.folder().join("acknowledged");
        for seed in 0..3 {
            let mut plan = Plan::new(store.database(), session, 2, 0);
            (plan.seed, plan.death) = (seed, Some((3, point)));
            assert_eq!(driver_process(&plan, &acknowledged).end().signal(), Some(9));
        }
        check_database(store.database(), &[acknowledged]);
    }
}

/// A process is suspended with an open call, while another takes over its agent, writes, and ends.
async fn resume_after_takeover(fault: Fault) -> (Option<i32>, Vec<String>) {
    let store = super::store();
    let session = free_agents(&store, 2).await;
    let acknowledged = store.folder().join("acknowledged");
    let mut plan = Plan { fault, ..Plan::new(store.database(), session, 2, 0) };
    (plan.pause, plan.steps) = (Some(3), 4);
    let mut driver = child("driver", &plan.arguments());
    let mut suspended = Running::start(driver.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut lines = BufReader::new(suspended.0.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "paused"));
    // By this process's clock, the lease has expired. While the first process lives, it could not
    // be taken over otherwise.
    let mut heir = Plan::new(store.database(), session, 2, 0);
    assert_eq!(driver_process(&heir, &acknowledged).end().code(), Some(4));
    heir.ahead = Duration::from_secs(60);
    assert_eq!(driver_process(&heir, &acknowledged).end().code(), Some(0));
    suspended.0.stdin.take().unwrap().write_all(b"go on\n").unwrap();
    let code = suspended.end().code();
    (code, verdict(store.database(), &[acknowledged]))
}

#[tokio::test]
async fn m8_a_process_that_lost_its_agent_writes_nothing_more() {
    assert_eq!(resume_after_takeover(Fault::None).await, (Some(3), Vec::new()));
}

#[tokio::test]
async fn m8_the_checker_notices_that_the_fence_is_gone() {
    let (_, faults) = resume_after_takeover(Fault::Unfenced).await;
    let expected = |fault: &String| {
        fault.starts_with("0/: result ") && fault.ends_with(" closes no open call")
    };
    assert!(faults.iter().any(expected), "{faults:?}");
}
