//! M2, M3, M9: the logs and the mailboxes agree about mail.

use ikigai_conversation::{AgentId, Body, Correspondent, Message};
use ikigai_store::{
    AgentAddress, ForkContext, InboxFilter, MAILBOX_LIMIT, MailAddress, NewFork, Outcome, Step,
};
use ikigai_testkit::{RawRow, TestStore, everything, new_fork, send_to};

use crate::support::{agent, check_database, kill_by_hand};

/// The log messages that sent, announced and read a mail, and whether it is unread.
pub(crate) type Marks = (Option<i64>, Option<i64>, Option<i64>, bool);

/// The marks of every mail, in the order of ids.
pub(crate) fn marks(store: &TestStore) -> Vec<Marks> {
    let sql = "SELECT sent_by, told_by, read_by, unread FROM mail ORDER BY id";
    let marks = |row: &RawRow<'_>| {
        (row.integer(0), row.integer(1), row.integer(2), row.integer(3) == Some(1))
    };
    store.raw().rows(sql, marks)
}

fn output(message: &Message) -> &str {
    match &message.body {
        Body::ToolResult(result) => &result.output,
        _ => panic!("no result: {message:?}"),
    }
}

#[tokio::test]
async fn m2_the_result_and_the_mail_are_one_commit() {
    let store = super::store();
    let (_, mut agents) = store.session_of(2).await;
    let to = agents[1].id.clone();
    let result = agents[0].call(&store, send_to(&to, "hello")).await.unwrap();
    assert_eq!(output(&result), r#"{"sent":true,"to":"1/","id":1}"#);
    assert_eq!(marks(&store), [(Some(result.id.value()), None, None, true)]);
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn m2_a_result_that_cannot_be_written_rolls_back_the_mail() {
    let store = super::store();
    let (_, mut agents) = store.session_of(2).await;
    let to = agents[1].id.clone();
    agents[0].send(&store, &to, "kept").await;
    // The database refuses the result in the middle of the unit, after the mail was inserted.
    store.raw().refuse("INSERT ON messages", "NEW.kind = 'tool_result'");
    let refused = agents[0].call(&store, send_to(&to, "never")).await.unwrap_err();
    assert_eq!(refused.to_string(), "Database error: refused");
    store.raw().allow("messages");
    assert_eq!(store.number("SELECT count(*) FROM mail"), 1);
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn m2_a_refused_send_leaves_a_result_and_no_mail() {
    let store = super::store();
    let (session, mut agents) = store.session_of(2).await;
    let result = agents[0].call(&store, send_to(&agent("9/"), "hello")).await.unwrap();
    assert_eq!(output(&result), r#"{"error":"Agent 9/ not found"}"#);
    for number in 0..MAILBOX_LIMIT {
        let step = send_to(&agents[1].id, &format!("user {number}"));
        store.perform(session, agents[1].id.clone(), step, None).await.unwrap();
    }
    let to = agents[1].id.clone();
    let result = agents[0].call(&store, send_to(&to, "one more")).await.unwrap();
    assert_eq!(output(&result), r#"{"error":"Mailbox of agent 1/ is full"}"#);
    assert_eq!(store.number("SELECT count(*) FROM mail"), i64::from(MAILBOX_LIMIT));
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn m3_the_result_and_the_read_mark_are_one_commit() {
    let store = super::store();
    let (_, mut agents) = store.session_of(2).await;
    let [sender, reader] = &mut agents[..] else { panic!() };
    let mail = sender.send(&store, &reader.id, "hello").await;
    let sent = marks(&store)[0].0;
    let read = reader.read(&store, mail).await;
    let (read, again) = (Some(read.id.value()), reader.read(&store, mail).await);
    assert_eq!(output(&again), r#"{"id":1,"body":"hello"}"#);
    assert_eq!(marks(&store), [(sent, read, read, false)], "the first reading is the one");
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn m3_a_result_that_cannot_be_written_rolls_back_the_read_mark() {
    let store = super::store();
    let (_, mut agents) = store.session_of(2).await;
    let [sender, reader] = &mut agents[..] else { panic!() };
    let mail = sender.send(&store, &reader.id, "hello").await;
    let before = marks(&store);
    store.raw().refuse("INSERT ON messages", "NEW.kind = 'tool_result'");
    reader.call(&store, Step::Read(mail.value())).await.unwrap_err();
    reader.call(&store, everything()).await.unwrap_err();
    assert_eq!(marks(&store), before);
}

#[tokio::test]
async fn m3_another_agents_mail_is_not_found_and_not_marked() {
    let store = super::store();
    let (_, mut agents) = store.session_of(2).await;
    let to = agents[1].id.clone();
    let mail = agents[0].send(&store, &to, "hello").await;
    let result = agents[0].read(&store, mail).await;
    assert_eq!(output(&result), r#"{"error":"Message #1 not found"}"#);
    let sent = marks(&store)[0].0;
    assert_eq!(marks(&store), [(sent, None, None, true)]);
}

#[tokio::test]
async fn m9_a_dead_agent_gets_no_mail_and_a_dead_senders_mail_stays_readable() {
    let store = super::store();
    let (session, mut agents) = store.session_of(2).await;
    let [killer, victim] = &mut agents[..] else { panic!() };
    let mail = victim.send(&store, &killer.id, "last words").await;
    kill_by_hand(&store, killer, &victim.id).await.unwrap();

    let result = killer.call(&store, send_to(&victim.id, "hello?")).await.unwrap();
    assert_eq!(output(&result), r#"{"error":"Agent 1/ is dead"}"#);
    let outcome =
        store.perform(session, killer.id.clone(), send_to(&victim.id, "user"), None).await.unwrap();
    assert_eq!(outcome, Outcome::Dead(victim.id.clone()));
    assert_eq!(output(&killer.read(&store, mail).await), r#"{"id":1,"body":"last words"}"#);
    assert_eq!(store.number("SELECT count(*) FROM mail"), 1);
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn mail_is_sent_by_id_to_the_parent_or_to_the_only_living_agent_with_a_name() {
    let store = super::store();
    let (session, mut agents) = store.session_of(1).await;
    let root = &mut agents[0];
    let mut children = Vec::new();
    for name in ["builder", "reviewer", "single"] {
        let fork = NewFork { name: Some(name.to_owned()), ..new_fork(ForkContext::Fresh, None) };
        children.push(root.fork(&store, fork).await.unwrap());
    }
    let send = async |from: &AgentId, to: AgentAddress| {
        let to = MailAddress::Agent(to);
        let step = Step::Send { to, given: "given".to_owned(), body: "user".to_owned() };
        match store.perform(session, from.clone(), step, None).await.unwrap() {
            Outcome::Sent { to, .. } => to.to_string(),
            Outcome::NoAgent(given) => format!("no agent {given}"),
            other => panic!("{other:?}"),
        }
    };
    let name = |name: &str| AgentAddress::Name(name.to_owned());
    assert_eq!(send(&children[0].id, AgentAddress::Parent).await, "0/");
    assert_eq!(send(&root.id, AgentAddress::Parent).await, "no agent given");
    assert_eq!(send(&root.id, AgentAddress::Id(agent("0/2/"))).await, "0/2/");
    assert_eq!(send(&root.id, name("single")).await, "0/2/");
    assert_eq!(send(&root.id, name("nobody")).await, "no agent given");
    // The name of a dead agent is free, and means the agent that has it now.
    root.kill(&store, &agent("0/0/")).await.unwrap();
    assert_eq!(send(&root.id, name("builder")).await, "no agent given");
    let fork = NewFork { name: Some("builder".to_owned()), ..new_fork(ForkContext::Fresh, None) };
    root.fork(&store, fork).await.unwrap();
    assert_eq!(send(&root.id, name("builder")).await, "0/3/");
}

#[tokio::test]
async fn m7_an_inbox_lists_unread_mail_first_and_then_the_latest() {
    let store = super::store();
    let (session, mut agents) = store.session_of(2).await;
    let [sender, reader] = &mut agents[..] else { panic!() };
    for number in 1..=6 {
        let from = if number % 2 == 0 { &mut *reader } else { &mut *sender };
        from.send(&store, &agent("1/"), &format!("mail {number}")).await;
    }
    for mail in [3, 6] {
        reader.call(&store, Step::Read(mail)).await.unwrap();
    }
    let list = async |unread, from: Option<&str>, limit, offset| {
        let from = from.map(agent);
        let filter = InboxFilter { unread, from: from.map(Correspondent::Agent), limit, offset };
        let step = Step::Inbox(filter);
        let Outcome::Inbox(page) = store.perform(session, agent("1/"), step, None).await.unwrap()
        else {
            panic!()
        };
        assert_eq!(page.unread, 4, "always of the whole mailbox");
        let ids: Vec<i64> = page.mail.iter().map(|mail| mail.id.value()).collect();
        (ids, page.more)
    };
    assert_eq!(list(None, None, 50, 0).await, (vec![5, 4, 2, 1, 6, 3], 0));
    assert_eq!(list(None, None, 2, 1).await, (vec![4, 2], 3));
    assert_eq!(list(Some(true), None, 50, 0).await, (vec![5, 4, 2, 1], 0));
    assert_eq!(list(Some(false), None, 1, 0).await, (vec![6], 1));
    assert_eq!(list(None, Some("0/"), 50, 0).await, (vec![5, 1, 3], 0));
    assert_eq!(list(Some(true), Some("1/"), 50, 0).await, (vec![4, 2], 0));
    assert_eq!(list(None, Some("9/"), 50, 0).await, (vec![], 0));
    assert_eq!(list(None, None, 50, u64::MAX).await, (vec![], 0));
}
