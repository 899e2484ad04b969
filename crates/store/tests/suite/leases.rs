//! Leases: which process may run an agent, and that no other process changes anything.

use std::fs;
use std::time::Duration;

use ikigai_conversation::{MessageId, NewMessage};
use ikigai_store::{Ending, ForkContext, Lease, Next, Outcome, Process, Step, StoreError};
use ikigai_testkit::{TestAgent, TestStore, by_id, new_fork, send_to, wait_for};

use crate::support::{agent, free_agents, idle_process, kill_by_hand};

const MILLISECOND: Duration = Duration::from_millis(1);

/// A process of another machine: whether it is alive cannot be seen here.
fn stranger() -> Process {
    let current = Process::current();
    Process { machine: "elsewhere".to_owned(), host: "far".to_owned(), pid: 123, ..current }
}

/// All rows of all tables.
fn rows(store: &TestStore) -> Vec<String> {
    let raw = store.raw();
    let mut all = Vec::new();
    for table in ["sessions", "agents", "messages", "mail", "leases", "waits", "queued_inputs"] {
        all.extend(raw.dump(table).into_iter().map(|row| format!("{table}: {row}")));
    }
    all
}

#[tokio::test]
async fn a_held_agent_is_refused_and_the_text_names_the_holder() {
    let store = super::store();
    let session = free_agents(&store, 1).await;
    store.claim(session, agent("0/"), stranger()).await.unwrap();
    let before = rows(&store);
    let refused = store.claim(session, agent("0/"), Process::current()).await.unwrap_err();
    assert_eq!(refused.to_string(), "Agent 0/ is run by another process (pid 123 on far)");
    assert_eq!(rows(&store), before);
    assert_eq!(store.holder(session, agent("0/")).await.unwrap(), Some(stranger()));
}

#[tokio::test]
async fn a_lease_runs_out_after_15_seconds_unless_it_is_renewed() {
    let store = super::store();
    let session = free_agents(&store, 1).await;
    let lease = store.claim(session, agent("0/"), stranger()).await.unwrap();
    let claim = || store.claim(session, agent("0/"), Process::current());
    store.advance(Lease::DURATION - MILLISECOND);
    assert!(matches!(claim().await, Err(StoreError::LeaseHeld { .. })));
    store.renew(lease.clone()).await.unwrap();
    store.advance(Lease::DURATION - MILLISECOND);
    assert!(matches!(claim().await, Err(StoreError::LeaseHeld { .. })));
    store.advance(MILLISECOND);
    assert_eq!(store.holder(session, agent("0/")).await.unwrap(), None);
    // Expired, but not claimed by another process: the holder may continue.
    store.renew(lease.clone()).await.unwrap();
    store.advance(Lease::DURATION);
    claim().await.unwrap();
    let lost = store.renew(lease).await.unwrap_err().to_string();
    assert_eq!(
        lost,
        format!("Agent 0/ was taken over by another process ({})", Process::current())
    );
}

#[tokio::test]
async fn a_released_lease_is_free_at_once_and_writes_no_more() {
    let store = super::store();
    let session = free_agents(&store, 1).await;
    let mine = TestAgent::claim(&store, session, agent("0/")).await.unwrap();
    store.release(mine.lease.clone()).await.unwrap();
    let before = rows(&store);
    let refused = mine.append(&store, NewMessage::user("hi"), Next::Request).await.unwrap_err();
    assert_eq!(refused.to_string(), "Agent 0/ was taken over by another process (released since)");
    store.release(mine.lease).await.unwrap();
    assert_eq!(rows(&store), before);
    assert_eq!(store.holder(session, agent("0/")).await.unwrap(), None);
    store.claim(session, agent("0/"), stranger()).await.unwrap();
}

#[tokio::test]
async fn the_lease_of_a_dead_process_is_taken_over_at_once() {
    let store = super::store();
    let session = free_agents(&store, 1).await;
    let (child, process) = idle_process();
    store.claim(session, agent("0/"), process.clone()).await.unwrap();
    let refused = store.claim(session, agent("0/"), Process::current()).await.unwrap_err();
    let text =
        format!("Agent 0/ is run by another process (pid {} on {})", process.pid, process.host);
    assert_eq!(refused.to_string(), text);
    child.kill();
    store.claim(session, agent("0/"), Process::current()).await.unwrap();
}

/// A killed process keeps its number until its parent reaps it. It was once considered alive.
#[tokio::test]
async fn a_process_that_was_not_reaped_is_dead() {
    let (mut child, process) = idle_process();
    assert!(!Process::current().sees_dead(&process));
    child.0.kill().unwrap();
    let stat = format!("/proc/{}/stat", process.pid);
    while !fs::read_to_string(&stat).unwrap().contains(") Z ") {
        std::thread::yield_now();
    }
    assert!(Process::current().sees_dead(&process));
}

#[test]
fn another_process_with_the_same_number_is_not_the_holder() {
    let current = Process::current();
    assert!(!current.sees_dead(&current));
    assert!(current.sees_dead(&Process { start: current.start + 1, ..current.clone() }));
    assert!(current.sees_dead(&Process { boot: "another".to_owned(), ..current.clone() }));
    assert!(!current.sees_dead(&stranger()), "it cannot be seen from here");
    let (boot, host) = ("another".to_owned(), "a copy of this machine".to_owned());
    assert!(!current.sees_dead(&Process { boot, host, ..current.clone() }));
}

/// Every way to write, with an outdated lease.
async fn write_everything(store: &TestStore, stale: &TestAgent, to: MessageId) -> Vec<StoreError> {
    let (lease, id) = (stale.lease.clone(), stale.id.clone());
    let hi = || NewMessage::user("hi");
    let mark = |_: &Outcome| NewMessage::mark(None);
    let step = || send_to(&agent("1/"), "no");
    let mut errors = Vec::new();
    errors.extend(store.append(lease.clone(), id.clone(), vec![hi()], Next::Tool).await.err());
    let budget = ikigai_testkit::PLENTY;
    let input = ikigai_testkit::said("hi", budget);
    errors.extend(store.append_user_input(lease.clone(), id.clone(), input).await.err());
    errors.extend(store.queue_input(lease.clone(), id.clone(), "hi".to_owned()).await.err());
    let model = "test/model".to_owned();
    errors.extend(store.append_queued(lease.clone(), id.clone(), budget, model).await.err());
    errors.extend(store.resume(lease.clone(), id.clone(), Some(budget)).await.err());
    let wait = || wait_for(&[]);
    let steps = [
        step(),
        Step::Read(1),
        Step::Fork(new_fork(ForkContext::Full, Some("task"))),
        Step::Kill(by_id(&agent("1/"))),
        Step::Wait(wait()),
        Step::AbandonWait,
    ];
    for step in steps {
        let closed = store.close_call(lease.clone(), id.clone(), step, mark, Next::Request);
        errors.extend(closed.await.err());
    }
    errors.extend(stale.rewind(store, to).await.err());
    errors.extend(store.start_wait(lease.clone(), id.clone(), wait()).await.err());
    let kill = Step::Kill(by_id(&agent("1/")));
    errors.extend(store.act(lease.clone(), id.clone(), kill, budget).await.err());
    for ending in [Ending::Answered, Ending::Interrupted, Ending::Failed("no".to_owned())] {
        errors.extend(store.end_turn(lease.clone(), id.clone(), vec![hi()], ending).await.err());
    }
    errors.extend(stale.announce(store).await.err());
    errors.extend(store.renew(lease.clone()).await.err());
    assert_eq!(errors.len(), 19, "every one is refused: {errors:?}");
    store.release(lease).await.unwrap();
    errors
}

#[tokio::test]
async fn a_writer_that_lost_its_lease_changes_nothing() {
    let store = super::store();
    let (session, mut agents) = store.session_of(2).await;
    let [stale, other] = &mut agents[..] else { panic!() };
    other.send(&store, &stale.id, "mail that waits").await;
    let mark = stale.mark(&store).await;
    store.advance(Lease::DURATION);
    store.claim(session, stale.id.clone(), stranger()).await.unwrap();
    let before = rows(&store);
    for error in write_everything(&store, stale, mark).await {
        let text = "Agent 0/ was taken over by another process (pid 123 on far)";
        assert_eq!(error.to_string(), text);
    }
    assert_eq!(rows(&store), before);
}

#[tokio::test]
async fn a_killed_agent_in_another_process_changes_nothing_more() {
    let store = super::store();
    let (_, mut agents) = store.session_of(3).await;
    let victim = agents[1].clone();
    let to = victim.id.clone();
    agents[0].send(&store, &to, "mail that waits").await;
    let mark = victim.mark(&store).await;
    kill_by_hand(&store, &agents[0], &victim.id).await.unwrap();
    let before = rows(&store);
    for error in write_everything(&store, &victim, mark).await {
        assert_eq!(error.to_string(), "Agent 1/ is dead");
    }
    assert_eq!(rows(&store), before);
    let claimed = store.claim(victim.session(), victim.id, Process::current()).await;
    assert_eq!(claimed.unwrap_err().to_string(), "Agent 1/ is dead");
}

#[tokio::test]
async fn a_lease_is_for_its_own_agent_and_its_descendants_only() {
    let store = super::store();
    let (_, agents) = store.session_of(2).await;
    let mixed = agents[0].child(agent("1/"));
    let before = rows(&store);
    let refused = mixed.append(&store, NewMessage::user("hi"), Next::Request).await.unwrap_err();
    assert!(matches!(refused, StoreError::LeaseLost { .. }), "{refused}");
    assert_eq!(rows(&store), before);
}
