//! Terminals: each has its agent from the moment it opens, and leaves none behind that it never used.

use std::process::{Command, Stdio};
use std::sync::Arc;

use ikigai_conversation::{NewMessage, SessionId};
use ikigai_store::{
    ClaimedAgent, Ending, Lease, Next, Opening, Outcome, Process, RootFolder, Step, Store,
    StoreError,
};
use ikigai_testkit::{PLENTY, TestAgent, TestStore, by_id, location, opening, send_to, wait_for};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::support::{agent, idle_process};

fn here() -> Opening {
    opening(Process::current())
}

/// A process of another machine: whether it is alive cannot be seen here.
fn far() -> Process {
    Process { machine: "elsewhere".to_owned(), host: "far".to_owned(), ..Process::current() }
}

/// A process of this machine that has ended.
fn dead() -> Process {
    let mut child = Command::new("true").stdout(Stdio::null()).spawn().unwrap();
    let pid = child.id();
    child.wait().unwrap();
    Process { pid, start: 1, ..Process::current() }
}

async fn open(store: &Store, by: Process) -> Lease {
    store.open_running(SessionId::new(Uuid::now_v7()), opening(by)).await.unwrap()
}

async fn listed(store: &Store, session: SessionId) -> Vec<String> {
    store.agents(session).await.unwrap().iter().map(|agent| agent.id.to_string()).collect()
}

fn rows(store: &TestStore) -> [i64; 4] {
    ["sessions", "agents", "leases", "roots"]
        .map(|table| store.number(&format!("SELECT count(*) FROM {table}")))
}

#[tokio::test]
async fn two_terminals_are_two_agents_that_get_mail_before_they_are_used() {
    let store = super::store();
    let first = open(&store, Process::current()).await;
    let second = open(&store, far()).await;
    assert_eq!(first.session(), second.session());
    assert_eq!((first.top(), second.top()), (&agent("0/"), &agent("1/")));
    let session = *first.session();
    let found = store.agent_elsewhere(session, Process::current()).await.unwrap();
    assert_eq!(found, Some(agent("1/")));
    // Neither is listed, and there is nothing to continue.
    assert_eq!(store.sessions().await.unwrap(), []);
    assert_eq!(store.latest_session(location()).await.unwrap(), None);
    assert_eq!(listed(&store, session).await, Vec::<String>::new());
    // The command line finds the session that is open.
    let new = SessionId::new(Uuid::now_v7());
    let found = store.session_at(location(), new, PLENTY, Process::current()).await.unwrap();
    assert_eq!(found, session);
    let step = send_to(&agent("1/"), "hello");
    let sent = store.perform(session, agent("1/"), step, Some(PLENTY)).await.unwrap();
    assert!(matches!(sent, Outcome::Sent { .. }), "{sent:?}");
    assert_eq!(listed(&store, session).await, ["1/"]);
    assert_eq!(store.latest_session(location()).await.unwrap(), Some(session));
    assert_eq!(store.sessions().await.unwrap()[0].agents, 1);
    store.release(first).await.unwrap();
    store.release(second).await.unwrap();
    assert_eq!(rows(&store), [1, 1, 1, 0], "1/ has mail");
}

#[tokio::test]
async fn closing_an_unused_terminal_removes_its_agent_and_its_number_is_not_used_again() {
    let store = super::store();
    let root = RootFolder { path: "/w".into(), device: Some(1), inode: Some(1) };
    let new = SessionId::new(Uuid::now_v7());
    let mine = Opening { roots: vec![root], ..here() };
    let first = store.open_running(new, mine).await.unwrap();
    assert_eq!(rows(&store), [1, 1, 1, 1]);
    store.release(first.clone()).await.unwrap();
    assert_eq!(rows(&store), [0, 0, 0, 0]);
    // It is no error to release it twice, or what is gone.
    let error = store.renew(first.clone()).await.unwrap_err();
    assert!(matches!(error, StoreError::SessionNotFound(_)), "{error}");

    let first = open(&store, Process::current()).await;
    let second = open(&store, far()).await;
    let session = *first.session();
    let said = NewMessage::user("hi");
    let (lease, top) = (first.clone(), first.top().clone());
    store.append(lease, top, vec![said], Next::Request).await.unwrap();
    store.release(second).await.unwrap();
    assert_eq!(listed(&store, session).await, ["0/"]);
    let third = open(&store, far()).await;
    assert_eq!(third.top(), &agent("2/"));
    store.release(first).await.unwrap();
    // The first terminal has closed; its agent stays, and the third one is still there.
    assert_eq!(rows(&store), [1, 2, 2, 0]);
    store.release(third).await.unwrap();
    assert_eq!(rows(&store), [1, 1, 1, 0]);
}

#[tokio::test]
async fn every_kind_of_use_keeps_an_agent() {
    for use_of in ["message", "mail to it", "mail from it", "child", "queued input"] {
        let store = super::store();
        let other = open(&store, far()).await;
        let lease = open(&store, Process::current()).await;
        let (session, id) = (*lease.session(), lease.top().clone());
        let mut own = TestAgent::with(lease.clone(), id.clone());
        match use_of {
            "message" => drop(own.mark(&store).await),
            "mail to it" | "mail from it" => {
                let (from, to) = match use_of {
                    "mail to it" => ("0/", "1/"),
                    _ => ("1/", "0/"),
                };
                let step = send_to(&agent(to), "hello");
                store.perform(session, agent(from), step, None).await.unwrap();
            }
            "child" => {
                let fork = ikigai_testkit::new_fork(ikigai_store::ForkContext::Fresh, Some("go"));
                own.fork(&store, fork).await.unwrap();
            }
            _ => store.queue_input(lease.clone(), id.clone(), "later".to_owned()).await.unwrap(),
        }
        assert!(listed(&store, session).await.contains(&"1/".to_owned()), "{use_of}");
        store.release(lease).await.unwrap();
        assert!(listed(&store, session).await.contains(&"1/".to_owned()), "{use_of}");
        store.release(other).await.unwrap();
    }
}

#[tokio::test]
async fn the_next_opening_removes_what_a_killed_terminal_left_behind() {
    let store = super::store();
    let left = open(&store, dead()).await;
    let used = open(&store, dead()).await;
    assert_ne!(left.session(), used.session(), "the dead run nothing");
    let step = send_to(used.top(), "hello");
    store.perform(*used.session(), used.top().clone(), step, None).await.unwrap();
    let first = open(&store, Process::current()).await;
    assert_eq!(store.number("SELECT count(*) FROM sessions"), 2, "the used one and the new one");
    // One that cannot be seen is gone when its lease has run out.
    let second = open(&store, far()).await;
    assert_eq!(second.session(), first.session());
    store.advance(Lease::DURATION);
    store.renew(first.clone()).await.unwrap();
    let third = open(&store, Process::current()).await;
    assert_eq!(third.top(), &agent("2/"));
    assert_eq!(store.number("SELECT count(*) FROM agents WHERE id = '1/'"), 0);
    let lost = store.renew(second.clone()).await.unwrap_err();
    assert!(matches!(lost, StoreError::AgentNotFound(_)), "{lost}");
}

/// A terminal that was stopped for a minute continues as the agent that it was.
#[tokio::test]
async fn a_stopped_terminal_keeps_its_unused_agent() {
    let store = super::store();
    let (child, process) = idle_process();
    let stopped = open(&store, process).await;
    store.advance(Lease::DURATION * 4);
    let other = open(&store, Process::current()).await;
    assert_ne!(other.session(), stopped.session(), "it does not count as running");
    store.renew(stopped.clone()).await.unwrap();
    child.kill();
    store.release(other).await.unwrap();
    open(&store, Process::current()).await;
    let gone = store.renew(stopped.clone()).await.unwrap_err();
    assert!(matches!(gone, StoreError::SessionNotFound(_)), "{gone}");
}

#[tokio::test]
async fn an_unused_agent_is_no_agent_for_the_limits_and_can_be_killed() {
    let store = super::store();
    let lease = open(&store, Process::current()).await;
    let session = *lease.session();
    let mut limited = opening(far());
    limited.limits.agents = 1;
    let add = || store.open_session(session, ClaimedAgent::New, limited.clone());
    let second = add().await.unwrap();
    let own = TestAgent::with(lease.clone(), agent("0/"));
    own.mark(&store).await;
    own.end(&store, Vec::new(), Ending::Answered).await.unwrap();
    let refused = add().await.unwrap_err().to_string();
    assert_eq!(refused, "Maximum agents (1) reached");
    let kill = Step::Kill(by_id(&agent("1/")));
    let killed = store.perform(session, agent("0/"), kill, Some(PLENTY)).await.unwrap();
    assert_eq!(killed, Outcome::Killed(vec![agent("1/")]));
    store.release(second).await.unwrap();
}

#[tokio::test]
async fn a_free_agent_is_opened_first_and_a_replaced_folder_changes_nothing() {
    let store = super::store();
    let session = store.session_with(PLENTY).await;
    let root = |inode| RootFolder { path: "/w".into(), device: Some(1), inode: Some(inode) };
    let with = |inode| Opening { roots: vec![root(inode)], ..here() };
    let free = store.open_session(session, ClaimedAgent::Free, with(1)).await.unwrap();
    assert_eq!(free.top(), &agent("0/"));
    let before = rows(&store);
    let refused = store.open_session(session, ClaimedAgent::New, with(2)).await.unwrap_err();
    assert!(matches!(refused, StoreError::RootReplaced { .. }), "{refused}");
    let refused = store.open_running(SessionId::new(Uuid::now_v7()), with(2)).await.unwrap_err();
    assert!(matches!(refused, StoreError::RootReplaced { .. }), "{refused}");
    assert_eq!(rows(&store), before);
}

#[tokio::test]
async fn an_agent_that_is_waited_for_is_removed_by_a_later_opening() {
    let store = super::store();
    let first = open(&store, Process::current()).await;
    let second = open(&store, far()).await;
    let mut own = TestAgent::with(first.clone(), agent("0/"));
    own.mark(&store).await;
    let wait = wait_for(&[second.top()]);
    store.start_wait(first.clone(), agent("0/"), wait).await.unwrap().unwrap();
    store.release(second).await.unwrap();
    assert_eq!(store.number("SELECT count(*) FROM agents"), 2);
    own.call(&store, Step::AbandonWait).await.unwrap();
    store.release(first.clone()).await.unwrap();
    store.open_session(*first.session(), ClaimedAgent::Free, here()).await.unwrap();
    assert_eq!(store.number("SELECT count(*) FROM agents"), 1);
}

/// Whichever comes first: the mail is kept with its agent, or its sender is told that there is none.
#[tokio::test]
async fn mail_that_arrives_while_a_terminal_closes_is_delivered_or_refused() {
    let store = super::store();
    let (mut kept, mut refused) = (0, 0);
    for round in 0..60 {
        let keeper = open(&store, Process::current()).await;
        let session = *keeper.session();
        TestAgent::with(keeper.clone(), keeper.top().clone()).mark(&store).await;
        let closing = open(&store, far()).await;
        let to = closing.top().clone();
        let other = store.open_again();
        let send = other.perform(session, keeper.top().clone(), send_to(&to, "hello"), None);
        // Both orders are tried, and what lies between them.
        let (sent, closed) = match round % 2 {
            0 => tokio::join!(send, store.release(closing)),
            _ => {
                let (closed, sent) = tokio::join!(store.release(closing), send);
                (sent, closed)
            }
        };
        closed.unwrap();
        let mail = format!(
            "SELECT count(*) FROM mail m JOIN agents a ON a.key = m.recipient WHERE a.id = '{to}'"
        );
        match sent.unwrap() {
            Outcome::Sent { .. } => {
                assert_eq!(store.number(&mail), 1);
                kept += 1;
            }
            Outcome::NoAgent(_) => {
                assert_eq!(store.number(&mail), 0);
                refused += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(kept + refused, 60);
}

/// Each opens, and closes again at once, while the others do: the session comes and goes.
#[tokio::test]
async fn terminals_that_open_and_close_at_the_same_moment_never_share_an_agent() {
    const TERMINALS: usize = 6;
    let store = super::store();
    let stores: Vec<_> = (0..TERMINALS).map(|_| Arc::new(store.open_again())).collect();
    for _ in 0..8 {
        let mut opened = JoinSet::new();
        for store in stores.iter().cloned() {
            opened.spawn(async move { (open(&store, Process::current()).await, store) });
        }
        let opened = opened.join_all().await;
        let leases: Vec<&Lease> = opened.iter().map(|(lease, _)| lease).collect();
        let mut tops: Vec<String> = leases.iter().map(|lease| lease.top().to_string()).collect();
        tops.sort();
        tops.dedup();
        assert_eq!(tops.len(), TERMINALS, "{leases:?}");
        assert!(leases.iter().all(|lease| lease.session() == leases[0].session()));
        let mut closed = JoinSet::new();
        for (lease, store) in opened {
            closed.spawn(async move { store.release(lease).await.unwrap() });
        }
        closed.join_all().await;
        assert_eq!(rows(&store), [0, 0, 0, 0]);
    }
}
