//! The pending work of a process: which agents to wake, and which to take over.

use ikigai_conversation::AgentId;
use ikigai_store::{ForkContext, Lease, Location, PendingWork, Process, Store, TakeoverPolicy};
use ikigai_testkit::{TestAgent, TestStore, location, new_fork, send_to};

use crate::support::{ROOM, agent, fork_by_hand};

/// A process of another machine: whether it is alive cannot be seen here.
fn stranger() -> Process {
    Process { machine: "elsewhere".to_owned(), ..Process::current() }
}

async fn work(store: &Store, session: ikigai_conversation::SessionId) -> PendingWork {
    store
        .pending_work(session, location(), Process::current(), TakeoverPolicy::Immediate)
        .await
        .unwrap()
}

fn take_up(agents: &[&str]) -> PendingWork {
    let to_take_up = agents.iter().map(|id| agent(id)).collect();
    PendingWork { to_take_up, ..PendingWork::default() }
}

async fn person_writes(store: &TestStore, to: &AgentId, session: ikigai_conversation::SessionId) {
    store.perform(session, agent("0/"), send_to(to, "user"), None).await.unwrap();
}

#[tokio::test]
async fn m6_a_free_agent_with_mail_is_pending_for_a_process_at_its_location() {
    let store = super::store();
    let (session, agents) = store.session_of(1).await;
    let free = store.add_agent(session, None, location(), ROOM).await.unwrap();
    let elsewhere = Location { directory: "/other".to_owned(), ..location() };
    let far = store.add_agent(session, None, elsewhere, ROOM).await.unwrap();
    assert_eq!(work(&store, session).await, PendingWork::default());
    for to in [&agents[0].id, &free, &far] {
        person_writes(&store, to, session).await;
    }
    let found = work(&store, session).await;
    assert_eq!(found, PendingWork { to_wake: vec![agent("0/")], ..take_up(&["1/"]) });
    // Once a process that may be alive runs it, it is not pending for others.
    store.claim(session, free.clone(), stranger()).await.unwrap();
    assert_eq!(work(&store, session).await.to_take_up, []);
    store.advance(Lease::DURATION);
    assert_eq!(work(&store, session).await.to_take_up, [free]);
}

#[tokio::test]
async fn a_turn_of_a_dead_process_is_pending_after_its_lease_if_so_chosen() {
    let store = super::store();
    let (session, _) = store.session_of(1).await;
    let left = store.add_agent(session, None, location(), ROOM).await.unwrap();
    // A number that no process has.
    let dead = Process { pid: 4_194_304, ..Process::current() };
    let lease = store.claim(session, left.clone(), dead).await.unwrap();
    let said = ikigai_testkit::said("hello", ikigai_testkit::PLENTY);
    store.append_user_input(lease, left.clone(), said).await.unwrap();
    assert_eq!(work(&store, session).await, take_up(&["1/"]));
    let patient =
        || store.pending_work(session, location(), Process::current(), TakeoverPolicy::AfterLease);
    assert_eq!(patient().await.unwrap(), PendingWork::default());
    store.advance(Lease::DURATION);
    assert_eq!(patient().await.unwrap(), take_up(&["1/"]));
    // The process that takes it over resumes it.
    let taken = TestAgent::claim(&store, session, left).await.unwrap();
    assert_eq!(work(&store, session).await.at_work, [agent("1/")]);
    taken.sleep(&store).await.unwrap();
    assert_eq!(work(&store, session).await, PendingWork::default());
}

#[tokio::test]
async fn a_child_forked_by_the_user_is_pending_for_the_process_of_its_top_level_agent() {
    let store = super::store();
    let (session, agents) = store.session_of(1).await;
    let free = store.add_agent(session, None, location(), ROOM).await.unwrap();
    let task = || new_fork(ForkContext::Fresh, Some("task"));
    let of_ours = fork_by_hand(&store, &agents[0], task()).await.unwrap();
    let of_free = agents[0].child(free);
    let child = fork_by_hand(&store, &of_free, task()).await.unwrap();
    fork_by_hand(&store, &child, task()).await.unwrap();
    let found = work(&store, session).await;
    assert_eq!(found, PendingWork { at_work: vec![of_ours.id], ..take_up(&["1/"]) });
}
