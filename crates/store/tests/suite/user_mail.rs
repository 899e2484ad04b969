//! The user's mailbox: mail from the user and to the user, with the guarantees of all mail.

use ikigai_conversation::{Body, Correspondent, SessionId};
use ikigai_store::{
    AgentLimits, InboxFilter, InboxPage, MAILBOX_LIMIT, Outcome, Sleep, Step, Store, StoreError,
};
use ikigai_testkit::{
    PLENTY, TestStore, by_id, checker, everything, location, send_to, send_to_user,
};

use super::mail::marks;
use crate::support::{agent, check_database, kill_by_hand};

const USER: Correspondent = Correspondent::User;

async fn by_user(store: &Store, session: SessionId, step: Step) -> Outcome {
    store.perform(session, USER, step, Some(PLENTY)).await.unwrap()
}

#[track_caller]
fn page(outcome: Outcome) -> InboxPage {
    match outcome {
        Outcome::Inbox(page) => page,
        other => panic!("{other:?}"),
    }
}

/// Regression: mail that the user sent from a shell was from agent 0/, also when it was for 0/.
#[tokio::test]
async fn m8_mail_of_the_user_is_from_the_user_and_wakes_its_recipient() {
    let store = super::store();
    let (session, agents) = store.session_of(2).await;
    let step = send_to(&agent("0/"), "user one");
    let sent = by_user(&store, session, step).await;
    assert!(matches!(sent, Outcome::Sent { to, .. } if to == agent("0/").into()));
    let announced = agents[0].announce(&store).await.unwrap().unwrap();
    assert!(announced.content.ends_with("\n#1 from user: \"user one\""), "{}", announced.content);
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn m2_m7_mail_to_the_user_is_one_commit_with_its_result_and_keeps_its_order() {
    let store = super::store();
    let (session, mut agents) = store.session_of(2).await;
    for text in ["agent one", "agent two"] {
        let result = agents[0].call(&store, send_to_user(text)).await.unwrap();
        let Body::ToolResult(result) = &result.body else { panic!("{result:?}") };
        assert!(result.output.starts_with(r#"{"sent":true,"to":"user","id":"#), "{result:?}");
    }
    let listed = page(by_user(&store, session, everything()).await);
    let texts: Vec<&str> = listed.mail.iter().map(|mail| mail.body.as_str()).collect();
    assert_eq!((listed.unread, texts), (2, vec!["agent two", "agent one"]));
    assert!(listed.mail.iter().all(|mail| mail.from == agent("0/").into() && mail.unread));
    // A result that cannot be written takes the mail back.
    store.raw().refuse("INSERT ON messages", "NEW.kind = 'tool_result'");
    agents[1].call(&store, send_to_user("never")).await.unwrap_err();
    store.raw().allow("messages");
    assert_eq!(store.number("SELECT count(*) FROM mail"), 2);
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn m5_mail_to_the_user_wakes_no_agent_and_is_read_once() {
    let store = super::store();
    let (session, mut agents) = store.session_of(1).await;
    agents[0].call(&store, send_to_user("agent one")).await.unwrap();
    assert_eq!(agents[0].sleep(&store).await.unwrap(), Sleep::Asleep);
    checker_finds_nothing_undone(&store);
    let Outcome::Read(mail) = by_user(&store, session, Step::Read(1)).await else { panic!() };
    assert_eq!((mail.from, mail.body.as_str()), (agent("0/").into(), "agent one"));
    assert_eq!(page(by_user(&store, session, everything()).await).unread, 0);
    assert!(!marks(&store)[0].3);
    // It is in no agent's mailbox.
    let missing = store.perform(session, agent("0/"), Step::Read(1), None).await.unwrap();
    assert_eq!(missing, Outcome::NoMail(1));
    by_user(&store, session, Step::Unread(1)).await;
    assert_eq!(page(by_user(&store, session, everything()).await).unread, 1);
    check_database(store.database(), &[]);
}

#[track_caller]
fn checker_finds_nothing_undone(store: &TestStore) {
    assert_eq!(checker::check_settled(store.database()), Vec::<String>::new());
}

#[tokio::test]
async fn a_mailbox_is_filtered_by_mail_from_the_user() {
    let store = super::store();
    let (session, mut agents) = store.session_of(2).await;
    let filter = InboxFilter { unread: None, from: Some(USER), limit: 50, offset: 0 };
    let inbox = || store.perform(session, agent("1/"), Step::Inbox(filter.clone()), None);
    agents[0].send(&store, &agent("1/"), "agent one").await;
    assert_eq!(page(inbox().await.unwrap()).mail.len(), 0, "the user has sent nothing");
    by_user(&store, session, send_to(&agent("1/"), "user two")).await;
    let found = page(inbox().await.unwrap());
    let texts: Vec<&str> = found.mail.iter().map(|mail| mail.body.as_str()).collect();
    assert_eq!((texts, found.unread), (vec!["user two"], 2));
}

/// The row that keeps the user's mailbox is in the table of agents.
#[tokio::test]
async fn the_user_is_no_agent() {
    let store = super::store();
    let (session, mut agents) = store.session_of(2).await;
    by_user(&store, session, send_to_user("user to user")).await;
    by_user(&store, session, send_to(&agent("1/"), "user")).await;
    agents[0].call(&store, send_to_user("agent")).await.unwrap();
    let listed: Vec<String> =
        store.agents(session).await.unwrap().iter().map(|agent| agent.id.to_string()).collect();
    assert_eq!(listed, ["0/", "1/"]);
    assert_eq!(store.sessions().await.unwrap()[0].agents, 2);
    let named = store.add_agent(session, Some("user".to_owned()), location(), AgentLimits::DEFAULT);
    assert!(matches!(named.await, Err(StoreError::Refused(_))), "no agent is named like the user");
    let limits = AgentLimits { agents: 3, depth: 4 };
    store.add_agent(session, None, location(), limits).await.unwrap();
    for other in ["1/", "2/"] {
        kill_by_hand(&store, &agents[0], &agent(other)).await.unwrap();
    }
    // Not even the last one counts the user as another.
    let kill = Step::Kill(by_id(&agent("0/")));
    let last = store.perform(session, agent("0/"), kill, Some(PLENTY)).await.unwrap();
    assert!(matches!(last, Outcome::Refused(_)), "{last:?}");
    assert_eq!(store.number("SELECT count(*) FROM agents WHERE state = 'user'"), 1);
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn a_refused_send_of_the_user_leaves_nothing() {
    let store = super::store();
    let (session, _agents) = store.session_of(1).await;
    let refused = by_user(&store, session, send_to(&agent("9/"), "user")).await;
    assert_eq!(refused, Outcome::NoAgent("9/".to_owned()));
    assert_eq!(by_user(&store, session, Step::Peek(1)).await, Outcome::NoMail(1));
    assert_eq!(page(by_user(&store, session, everything()).await).mail, []);
    assert_eq!(store.number("SELECT count(*) FROM agents WHERE state = 'user'"), 0);
    for number in 0..MAILBOX_LIMIT {
        let step = send_to_user(&format!("user {number}"));
        assert!(matches!(by_user(&store, session, step).await, Outcome::Sent { .. }));
    }
    assert_eq!(by_user(&store, session, send_to_user("user")).await, Outcome::Full(USER));
    check_database(store.database(), &[]);
}

/// A message of the user lets agents wake each other again, by mail as well.
#[tokio::test]
async fn mail_of_the_user_refills_the_wakes() {
    let store = super::store();
    let (session, mut agents) = store.session_of(2).await;
    store.raw().script("UPDATE sessions SET wakes_left = 0");
    agents[0].send(&store, &agent("1/"), "agent one").await;
    assert_eq!(agents[1].announce(&store).await.unwrap(), None);
    by_user(&store, session, send_to_user("user")).await;
    assert!(agents[1].announce(&store).await.unwrap().is_some());
}
