//! Removing a session: never while a process runs it, and then completely.

use std::time::Duration;

use ikigai_conversation::{NewMessage, SessionId};
use ikigai_store::{Lease, Next, Outcome, Process, RootFolder};
use ikigai_testkit::{Kind, location, send_to};
use uuid::Uuid;

use crate::support::agent;

const TABLES: [&str; 8] =
    ["sessions", "agents", "messages", "mail", "leases", "waits", "queued_inputs", "roots"];

#[tokio::test]
async fn a_session_can_get_another_title() {
    let store = super::store();
    let (session, _agents) = store.session_of(1).await;
    store.rename_session(session, "better".to_owned()).await.unwrap();
    assert_eq!(store.session_title(session).await.unwrap(), "better");
    let unknown = SessionId::new(Uuid::now_v7());
    assert!(store.rename_session(unknown, "x".to_owned()).await.is_err());
    assert!(store.session_title(unknown).await.is_err());
}

#[tokio::test]
async fn a_session_that_a_live_process_runs_is_not_removed() {
    let store = super::store();
    let (session, mut agents) = store.session_of(2).await;
    let to = agents[1].id.clone();
    agents[0].send(&store, &to, "hello").await;
    let stranger = Process { machine: "elsewhere".to_owned(), ..Process::current() };
    let refused = store.remove_session(session, stranger.clone()).await.unwrap_err();
    let text = format!("Agent 0/ is run by another process ({})", Process::current());
    assert_eq!(refused.to_string(), text);
    assert_eq!(store.number("SELECT count(*) FROM mail"), 1);
    // Released by one process, expired for the other.
    store.release(agents[0].lease.clone()).await.unwrap();
    assert!(store.remove_session(session, stranger.clone()).await.is_err());
    store.advance(Lease::DURATION);
    store.remove_session(session, stranger).await.unwrap();
}

#[tokio::test]
async fn removing_frees_everything_and_no_id_is_used_again() {
    let store = super::store();
    let (session, mut agents) = store.session_of(2).await;
    let kept = store.session_with(ikigai_testkit::PLENTY).await;
    let to = agents[1].id.clone();
    let mail = agents[0].send(&store, &to, "hello").await;
    let fork = ikigai_testkit::new_fork(ikigai_store::ForkContext::Full, Some("task"));
    let child = agents[0].fork(&store, fork).await.unwrap();
    let wait = ikigai_testkit::wait_for(&[&child.id]);
    let (lease, id) = (agents[0].lease.clone(), agents[0].id.clone());
    store.start_wait(lease.clone(), id.clone(), wait).await.unwrap().unwrap();
    let render = |_: &Outcome| NewMessage::mark(None);
    let step = send_to(&to, "once");
    store.close_call(lease, id, step, render, Next::Request).await.unwrap();
    let newest = store.number("SELECT max(id) FROM messages");
    let root = RootFolder { path: "/w".into(), device: Some(1), inode: Some(1) };
    store.keep_roots(session, Process::current(), vec![root]).await.unwrap();
    for agent in &agents {
        store.release(agent.lease.clone()).await.unwrap();
    }
    store.remove_session(session, Process::current()).await.unwrap();
    let left: Vec<_> =
        TABLES.map(|table| store.number(&format!("SELECT count(*) FROM {table}"))).to_vec();
    assert_eq!(left, [1, 1, 0, 0, 0, 0, 0, 0], "only the other session is left");
    let gone = store.agents(session).await.unwrap_err().to_string();
    assert_eq!(gone, format!("Session {session} not found: 'ikigai sessions' lists them"));
    if store.kind() == Kind::Sqlite {
        assert_eq!(store.number("SELECT count(*) FROM pragma_foreign_key_check"), 0);
    }

    let mut next = ikigai_testkit::TestAgent::claim(&store, kept, agent("0/")).await.unwrap();
    let (to, later) = (next.id.clone(), next.mark(&store).await);
    assert!(later.value() > newest);
    assert!(next.send(&store, &to, "to myself").await > mail);
}

#[tokio::test]
async fn a_session_is_found_by_machine_and_directory_and_created_once() {
    let store = super::store();
    let budget = ikigai_testkit::PLENTY;
    let new = || SessionId::new(Uuid::now_v7());
    let first = store.session_at(location(), new(), budget, Process::current()).await.unwrap();
    assert_eq!(
        store.session_at(location(), new(), budget, Process::current()).await.unwrap(),
        first
    );
    let elsewhere = ikigai_store::Location { machine: "another".to_owned(), ..location() };
    let other = store.session_at(elsewhere, new(), budget, Process::current()).await.unwrap();
    assert_ne!(other, first);
    store.advance(Duration::from_secs(1));
    let newer = store.create_session(location(), new(), budget).await.unwrap();
    assert_eq!(store.latest_session(location()).await.unwrap(), Some(newer));
    store.advance(Duration::from_secs(1));
    let step = send_to(&agent("0/"), "user");
    store.perform(first, agent("0/"), step, None).await.unwrap();
    assert_eq!(store.latest_session(location()).await.unwrap(), Some(first), "the last written to");
}
