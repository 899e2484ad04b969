//! What is kept of changes to files, which message caused them, and how they are undone.

use std::path::PathBuf;
use std::time::Duration;

use ikigai_conversation::{
    AgentId, Body, MessageId, NewMessage, ResponseId, SessionId, Time, ToolCallId,
};
use ikigai_store::{
    Change, ChangeOutcome, ChangedBy, Content, Direction, FileAccess, ForkContext, Location,
    LogEntry, Next, Outcome, Process, SeenFile, Step, StoreError, StoredContent, Undo, UndoRange,
    UndoStart,
};
use ikigai_testkit::{PLENTY, Random, TestAgent, TestStore, new_fork, said, send_to};

use uuid::Uuid;

use crate::support::agent;

fn change(path: &str, before: StoredContent) -> FileAccess {
    FileAccess::Changed(Change {
        path: PathBuf::from(path),
        before,
        looks: format!("{path} looks"),
        hash: format!("{path} hash"),
        new_folders: 0,
    })
}

fn result() -> NewMessage {
    let id = ToolCallId::new("1");
    let call = NewMessage::tool_call(id, "file_write", "{}", ResponseId::new("r"));
    match call.body {
        Body::ToolCall(call) => NewMessage::tool_result(&call, r#"{"success":true}"#),
        _ => unreachable!("it is a call"),
    }
}

async fn touch(
    store: &TestStore,
    agent: &TestAgent,
    touched: FileAccess,
) -> Result<MessageId, StoreError> {
    let (lease, id) = (agent.lease.clone(), agent.id.clone());
    let entry = LogEntry { message: result(), file: Some(touched), ended: Vec::new() };
    let recorded = store.append_entries(lease, id, vec![entry], Next::Tool).await?;
    Ok(recorded.messages[0].id)
}

async fn write(store: &TestStore, agent: &TestAgent, path: &str) -> MessageId {
    touch(store, agent, change(path, StoredContent::Absent)).await.unwrap()
}

async fn say(store: &TestStore, agent: &TestAgent, text: &str) {
    let (lease, id) = (agent.lease.clone(), agent.id.clone());
    store.append_user_input(lease, id, said(text, PLENTY)).await.unwrap();
}

async fn fork(store: &TestStore, parent: &TestAgent, context: ForkContext) -> TestAgent {
    let step = Step::Fork(new_fork(context, Some("work")));
    let forked = store.perform(parent.session(), parent.id.clone(), step, None).await;
    match forked.unwrap() {
        Outcome::Forked(child) => parent.child(child),
        other => panic!("not forked: {other:?}"),
    }
}

/// What can be undone: the titles with the files.
async fn undoable(store: &TestStore, session: SessionId) -> Vec<(String, Vec<String>)> {
    let name = |path: PathBuf| path.to_str().unwrap().to_owned();
    let list = store.undoable(session).await.unwrap();
    let entry =
        |entry: ikigai_store::UndoEntry| (entry.title, entry.files.into_iter().map(name).collect());
    list.into_iter().map(entry).collect()
}

fn entry(title: &str, files: &[&str]) -> (String, Vec<String>) {
    (title.to_owned(), files.iter().map(|&file| file.to_owned()).collect())
}

async fn sleep_all(store: &TestStore, agents: &[&TestAgent]) {
    for agent in agents {
        agent.sleep(store).await.unwrap();
    }
}

#[track_caller]
fn begun(begun: UndoStart) -> Undo {
    match begun {
        UndoStart::Undo(undo) => undo,
        other => panic!("{other:?}"),
    }
}

async fn begin(store: &TestStore, session: SessionId, direction: Direction) -> UndoStart {
    store.start_undo(session, direction, Process::current()).await.unwrap()
}

async fn settle_all(store: &TestStore, undo: &Undo, settled: ChangeOutcome) {
    for id in &undo.changes {
        store.settle(undo, *id, settled).await.unwrap();
    }
}

#[tokio::test]
async fn a_result_and_its_change_are_one_commit() {
    let store = super::store();
    let (session, agents) = store.session_of(1).await;
    say(&store, &agents[0], "go").await;
    let content = StoredContent::Content(Content { bytes: vec![0, 255, 10], mode: 0o4755 });
    let message = touch(&store, &agents[0], change("/w/a", content.clone())).await.unwrap();
    assert_eq!(store.number("SELECT message FROM changes"), message.value());
    assert_eq!(store.number("SELECT message FROM sights"), message.value());
    agents[0].sleep(&store).await.unwrap();
    let undo = begun(begin(&store, session, Direction::Undo).await);
    let kept = store.change(undo.changes[0]).await.unwrap();
    let FileAccess::Changed(expected) = change("/w/a", content) else { unreachable!() };
    assert_eq!((kept.change, kept.after), (expected, None));
    // A process that has lost the agent writes neither.
    let newer = TestAgent::claim(&store, session, agent("0/")).await.unwrap();
    let count = "SELECT (SELECT count(*) FROM messages) * 1000000
        + (SELECT count(*) FROM changes) * 1000 + (SELECT count(*) FROM sights)";
    let before = store.number(count);
    let lost = touch(&store, &agents[0], change("/w/b", StoredContent::Absent)).await;
    assert!(matches!(lost, Err(StoreError::LeaseLost { .. })), "{lost:?}");
    assert_eq!(store.number(count), before);
    write(&store, &newer, "/w/b").await;
    assert_eq!(store.number(count), before + 1_001_001);
}

#[tokio::test]
async fn forks_and_mail_pass_on_the_message_that_caused_them() {
    let store = super::store();
    let (session, mut agents) = store.session_of(3).await;
    say(&store, &agents[0], "first").await;
    write(&store, &agents[0], "/w/a").await;
    let child = fork(&store, &agents[0], ForkContext::Fresh).await;
    let grandchild = fork(&store, &child, ForkContext::Fresh).await;
    agents[0].send(&store, &agent("1/"), "please").await;
    // The user's next message does not affect agents that are already at work.
    say(&store, &agents[0], "\n  second\nmore").await;
    write(&store, &grandchild, "/w/b").await;
    agents[1].announce(&store).await.unwrap().unwrap();
    write(&store, &agents[1], "/w/c").await;
    // And mail passes it on again.
    agents[1].send(&store, &agent("2/"), "you too").await;
    agents[2].announce(&store).await.unwrap().unwrap();
    write(&store, &agents[2], "/w/d").await;
    write(&store, &agents[0], "/w/e").await;
    write(&store, &agents[0], "/w/e").await;
    let first = entry("first", &["/w/a", "/w/b", "/w/c", "/w/d"]);
    assert_eq!(undoable(&store, session).await, [entry("second", &["/w/e"]), first]);
}

#[tokio::test]
async fn mail_from_the_user_is_a_cause() {
    let store = super::store();
    let (session, agents) = store.session_of(2).await;
    say(&store, &agents[0], "first").await;
    write(&store, &agents[0], "/w/a").await;
    for (budget, body) in [(Some(PLENTY), "by hand"), (None, "by a command")] {
        let step = send_to(&agent("1/"), body);
        store.perform(session, agent("0/"), step, budget).await.unwrap();
        agents[1].announce(&store).await.unwrap().unwrap();
        write(&store, &agents[1], &format!("/w/{body}")).await;
    }
    let expected = [
        entry("mail to 1/: by hand", &["/w/by hand"]),
        entry("first", &["/w/a", "/w/by a command"]),
    ];
    assert_eq!(undoable(&store, session).await, expected);
}

#[tokio::test]
async fn an_interrupted_undo_continues_and_can_be_redone() {
    let store = super::store();
    let (session, agents) = store.session_of(1).await;
    for (text, paths) in [("first", ["/w/a", "/w/b"]), ("second", ["/w/b", "/w/c"])] {
        say(&store, &agents[0], text).await;
        for path in paths {
            write(&store, &agents[0], path).await;
        }
    }
    sleep_all(&store, &[&agents[0]]).await;
    assert_eq!(begin(&store, session, Direction::Redo).await, UndoStart::Nothing);
    let undo = begun(begin(&store, session, Direction::Undo).await);
    assert_eq!((&*undo.title, undo.changes.len()), ("second", 2));
    // The latest first.
    let newest = store.change(undo.changes[0]).await.unwrap();
    assert_eq!(newest.change.path, PathBuf::from("/w/c"));
    let taken = StoredContent::Content(Content { bytes: b"taken".to_vec(), mode: 0o600 });
    store.keep_after(undo.changes[0], taken.clone()).await.unwrap();
    store.settle(&undo, undo.changes[0], ChangeOutcome::Undone).await.unwrap();
    let again = begun(begin(&store, session, Direction::Undo).await);
    assert_eq!(again.changes, undo.changes[1..]);
    store.settle(&again, again.changes[0], ChangeOutcome::Left).await.unwrap();
    assert_eq!(undoable(&store, session).await, [entry("first", &["/w/a", "/w/b"])]);
    let redo = begun(begin(&store, session, Direction::Redo).await);
    assert_eq!(redo.changes, undo.changes[..1]);
    assert_eq!(store.change(redo.changes[0]).await.unwrap().after, Some(taken));
    settle_all(&store, &redo, ChangeOutcome::Redone).await;
    store.end_redo(&redo).await.unwrap();
    assert_eq!(begin(&store, session, Direction::Redo).await, UndoStart::Nothing);
    // All of it, including what was left.
    let whole = begun(begin(&store, session, Direction::Undo).await);
    assert_eq!(whole.changes, undo.changes);
    settle_all(&store, &whole, ChangeOutcome::Undone).await;
    let first = begun(begin(&store, session, Direction::Undo).await);
    assert_eq!(&*first.title, "first");
    settle_all(&store, &first, ChangeOutcome::Undone).await;
    assert_eq!(begin(&store, session, Direction::Undo).await, UndoStart::Nothing);
    // What was undone last is redone first.
    assert_eq!(&*begun(begin(&store, session, Direction::Redo).await).title, "first");
}

#[tokio::test]
async fn a_range_has_the_later_messages_of_an_agent_and_its_descendants() {
    let store = super::store();
    let (session, agents) = store.session_of(2).await;
    let mut said_at = Vec::new();
    for (text, who) in [("first", 0), ("second", 0), ("aside", 1), ("third", 0)] {
        store.advance(Duration::from_secs(1));
        say(&store, &agents[who], text).await;
        said_at.push(store.number("SELECT max(created_at) FROM causes"));
        if text == "third" {
            let child = fork(&store, &agents[0], ForkContext::Fresh).await;
            write(&store, &child, "/w/third").await;
        } else {
            write(&store, &agents[who], &format!("/w/{text}")).await;
        }
    }
    let range = UndoRange { agent: agent("0/"), said_at: Time::from_millis(said_at[1]) };
    let by = Process::current();
    let working = store.start_undo_in(session, range.clone(), by.clone()).await.unwrap();
    assert!(matches!(working, UndoStart::AtWork(_)), "{working:?}");
    // A process that is gone does not work, whatever the registry says.
    store.advance(Duration::from_secs(16));
    let entries = store.undoable_in(session, range.clone()).await.unwrap();
    let titles: Vec<&str> = entries.iter().map(|entry| &*entry.title).collect();
    assert_eq!(titles, ["third", "second"]);
    for title in titles {
        let undo = begun(store.start_undo_in(session, range.clone(), by.clone()).await.unwrap());
        assert_eq!(undo.title, title);
        settle_all(&store, &undo, ChangeOutcome::Undone).await;
    }
    assert_eq!(store.start_undo_in(session, range, by).await.unwrap(), UndoStart::Nothing);
    // What was undone last is redone first.
    assert_eq!(&*begun(begin(&store, session, Direction::Redo).await).title, "second");
}

#[tokio::test]
async fn nothing_is_undone_while_a_live_process_works() {
    let store = super::store();
    let (session, agents) = store.session_of(1).await;
    say(&store, &agents[0], "go").await;
    write(&store, &agents[0], "/w/a").await;
    let child = fork(&store, &agents[0], ForkContext::Fresh).await;
    agents[0].sleep(&store).await.unwrap();
    // The child is at work under the lease of its top-level agent.
    let refused = begin(&store, session, Direction::Undo).await;
    assert_eq!(refused, UndoStart::AtWork(child.id.clone()));
    // A process that is gone does not work, whatever the registry says.
    store.advance(Duration::from_secs(16));
    begun(begin(&store, session, Direction::Undo).await);
}

#[tokio::test]
async fn agents_can_see_which_agent_changed_a_file() {
    let store = super::store();
    let (session, agents) = store.session_of(2).await;
    write(&store, &agents[0], "/w/a").await;
    store.advance(Duration::from_secs(40));
    let who = |id: &str, looks: &str| {
        let sight = SeenFile { path: PathBuf::from("/w/a"), looks: looks.to_owned() };
        store.changed_by(session, agent(id), sight)
    };
    let ChangedBy { agent: by, at, now } = who("1/", "/w/a looks").await.unwrap().unwrap();
    assert_eq!((by, now.as_millis() - at.as_millis()), (agent("0/"), 40_000));
    assert_eq!(who("0/", "/w/a looks").await.unwrap(), None);
    assert_eq!(who("1/", "other looks").await.unwrap(), None);
}

#[tokio::test]
async fn seen_files_are_remembered_and_inherited_by_a_full_fork() {
    let store = super::store();
    let (session, agents) = store.session_of(2).await;
    let sight =
        |path: &str, looks: &str| SeenFile { path: PathBuf::from(path), looks: looks.to_owned() };
    let saw = |path, looks| FileAccess::Saw(sight(path, looks));
    touch(&store, &agents[0], saw("/w/a", "old")).await.unwrap();
    touch(&store, &agents[0], saw("/w/a", "new")).await.unwrap();
    let full = fork(&store, &agents[0], ForkContext::Full).await;
    let fresh = fork(&store, &agents[0], ForkContext::Fresh).await;
    // After the fork, so the child does not inherit it.
    write(&store, &agents[0], "/w/b").await;
    touch(&store, &full, saw("/w/c", "own")).await.unwrap();
    let known = |id: AgentId| {
        let store = &store;
        async move {
            let mut sights = store.sights(session, id).await.unwrap();
            sights.sort_by(|a, b| a.path.cmp(&b.path));
            sights
        }
    };
    let expected = [sight("/w/a", "new"), sight("/w/b", "/w/b looks")];
    assert_eq!(known(agents[0].id.clone()).await, expected);
    assert_eq!(known(full.id).await, [sight("/w/a", "new"), sight("/w/c", "own")]);
    assert_eq!(known(fresh.id).await, []);
    assert_eq!(known(agents[1].id.clone()).await, []);
}

/// The longest path that a system accepts, made of incompressible characters.
#[tokio::test]
async fn a_path_of_4000_characters_works() {
    let store = super::store();
    let mut random = Random::new(7);
    let letters: Vec<char> = ('a'..='z').chain('A'..='Z').chain('0'..='9').collect();
    let path: String = (0..4_000).map(|_| *random.one_of(&letters)).collect();
    let long = Location { machine: "m".to_owned(), directory: format!("/{path}") };
    let new = SessionId::new(Uuid::now_v7());
    assert_eq!(store.session_at(long.clone(), new, PLENTY, Process::current()).await.unwrap(), new);
    assert_eq!(store.latest_session(long).await.unwrap(), Some(new));
    let (session, agents) = store.session_of(2).await;
    let sight = |looks: &str| SeenFile { path: PathBuf::from(&path), looks: looks.to_owned() };
    touch(&store, &agents[0], FileAccess::Saw(sight("old"))).await.unwrap();
    touch(&store, &agents[0], FileAccess::Saw(sight("new"))).await.unwrap();
    assert_eq!(store.sights(session, agent("0/")).await.unwrap(), [sight("new")]);
    write(&store, &agents[0], &path).await;
    let looks = format!("{path} looks");
    let changed = store.changed_by(session, agent("1/"), sight(&looks)).await.unwrap();
    assert_eq!(changed.map(|changed| changed.agent), Some(agent("0/")));
}

#[tokio::test]
async fn a_deleted_session_leaves_no_rows_about_files() {
    let store = super::store();
    let (session, mut agents) = store.session_of(2).await;
    say(&store, &agents[0], "go").await;
    write(&store, &agents[0], "/w/a").await;
    agents[0].send(&store, &agent("1/"), "mail").await;
    sleep_all(&store, &[&agents[0], &agents[1]]).await;
    let undo = begun(begin(&store, session, Direction::Undo).await);
    settle_all(&store, &undo, ChangeOutcome::Undone).await;
    for agent in agents {
        store.release(agent.lease).await.unwrap();
    }
    store.remove_session(session, Process::current()).await.unwrap();
    for table in ["causes", "changes", "sights", "undos", "mail", "agents"] {
        assert_eq!(store.number(&format!("SELECT count(*) FROM {table}")), 0, "{table}");
    }
}

/// A database of the previous version: its agents have no cause, and still work.
#[tokio::test]
async fn an_agent_from_a_version_without_causes_gets_one_when_needed() {
    let store = super::store();
    let (session, agents) = store.session_of(1).await;
    say(&store, &agents[0], "an old task").await;
    store.raw().script("UPDATE agents SET cause = NULL; DELETE FROM causes");
    write(&store, &agents[0], "/w/a").await;
    write(&store, &agents[0], "/w/b").await;
    assert_eq!(undoable(&store, session).await, [entry("an old task", &["/w/a", "/w/b"])]);
}
