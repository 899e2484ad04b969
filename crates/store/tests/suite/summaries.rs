//! Summaries: what an agent must not forget is read in their commit, and what they hide is not
//! loaded any more.

use std::path::PathBuf;
use std::sync::mpsc;

use ikigai_conversation::{CommandId, Log, Message, MessageId, NewMessage, Summary};
use ikigai_store::{
    Change, CommandEnd, FileAccess, ForkContext, LogEntry, Next, Obligations, StartedCommand,
    State, StoredContent,
};
use ikigai_testkit::{PLENTY, TestAgent, TestStore, new_fork, said};

fn summary(up_to: MessageId, kept: Vec<MessageId>) -> NewMessage {
    let obligations = String::new();
    let data = Summary { up_to, kept, cut: None, obligations, before: 9, after: 1, elapsed_ms: 0 };
    NewMessage::summary("what happened", data)
}

/// Writes a summary, and returns what it could have said.
async fn sum_up(store: &TestStore, agent: &TestAgent, message: NewMessage) -> Obligations {
    let (tell, told) = mpsc::channel();
    let render = move |obligations: &Obligations| {
        tell.send(obligations.clone()).unwrap();
        vec![message]
    };
    let (lease, id) = (agent.lease.clone(), agent.id.clone());
    let outcome = store.append_summary(lease, id, render, Next::GrantedRequest).await.unwrap();
    assert_eq!(outcome.messages.len(), 1);
    told.recv().unwrap()
}

async fn say(store: &TestStore, agent: &TestAgent, text: &str) -> Message {
    let (lease, id) = (agent.lease.clone(), agent.id.clone());
    let done = store.append_user_input(lease, id, said(text, PLENTY)).await.unwrap();
    done.messages.last().unwrap().clone()
}

async fn change(store: &TestStore, agent: &TestAgent, path: &str) {
    let change = Change {
        path: path.into(),
        before: StoredContent::Absent,
        looks: path.to_owned(),
        hash: path.to_owned(),
        new_folders: 0,
    };
    let (lease, id) = (agent.lease.clone(), agent.id.clone());
    let file = Some(FileAccess::Changed(change));
    let entry = LogEntry { message: NewMessage::mark(None), file, ended: Vec::new() };
    store.append_entries(lease, id, vec![entry], Next::Tool).await.unwrap();
}

async fn start(store: &TestStore, agent: &TestAgent, line: &str) -> CommandId {
    let (lease, id) = (agent.lease.clone(), agent.id.clone());
    let command = StartedCommand { line: line.to_owned() };
    let render = |_| NewMessage::mark(None);
    let started = store.start_command(lease, id, command, render, Next::Request).await.unwrap();
    started.0.unwrap()
}

#[tokio::test]
async fn obligations_are_what_is_true_in_the_commit_of_the_summary() {
    let store = super::store();
    let (_, mut agents) = store.session_of(2).await;
    let [one, two] = &mut agents[..] else { panic!() };
    let first = say(&store, one, "go").await;
    let read = two.send(&store, &one.id, "read").await;
    // A short one would be read with its announcement.
    let long = "announced ".repeat(200);
    let announced = two.send(&store, &one.id, long.trim()).await;
    one.announce(&store).await.unwrap().unwrap();
    one.read(&store, read).await;
    two.send(&store, &one.id, "not announced yet").await;
    let child = one.fork(&store, new_fork(ForkContext::Fresh, Some("a task"))).await.unwrap();
    let killed = one.fork(&store, new_fork(ForkContext::Fresh, Some("dead"))).await.unwrap();
    one.kill(&store, &killed.id).await.unwrap();
    for path in ["/w/a", "/w/b", "/w/a"] {
        change(&store, one, path).await;
    }
    change(&store, two, "/w/other").await;
    let (ended, running) = (start(&store, one, "true").await, start(&store, one, "serve").await);
    let end = CommandEnd { exit_code: 0, tail: String::new() };
    store.end_command(one.lease.clone(), one.id.clone(), ended, end).await.unwrap();

    let Obligations { mail: (mail, all_mail), children, commands, files } =
        sum_up(&store, one, summary(first.id, Vec::new())).await;
    assert_eq!(commands, [(running, "serve".to_owned())]);
    assert_eq!((mail.iter().map(|mail| mail.id).collect(), all_mail), (vec![announced], 1));
    assert_eq!(mail[0].body, long.trim());
    let children: Vec<_> = children.into_iter().map(|child| (child.id, child.state)).collect();
    assert_eq!(children, [(child.id, State::Waiting)]);
    assert_eq!(files, (vec![PathBuf::from("/w/a"), PathBuf::from("/w/b")], 2));
    // It marks nothing.
    let again = sum_up(&store, one, summary(first.id, Vec::new())).await;
    assert_eq!((again.mail.1, again.files.1), (1, 2));
    let untold = "SELECT untold FROM agents WHERE id = '0/'";
    assert_eq!(store.number(untold), 1);
}

#[tokio::test]
async fn only_what_a_summary_leaves_is_loaded() {
    let store = super::store();
    let (session, agents) = store.session_of(1).await;
    let agent = &agents[0];
    let system = agent.append(&store, NewMessage::system("prompt"), Next::Tool).await.unwrap();
    let kept = say(&store, agent, "kept").await;
    // More than is read at first.
    let text = "INSERT INTO messages (agent, kind, content, data, created_at)
        SELECT (SELECT min(key) FROM agents), 'user', 'hidden', '{}', 0 FROM";
    store.raw().script(&format!(
        "{text} (WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 3000)
            SELECT n FROM n) numbers"
    ));
    let last = say(&store, agent, "last").await;
    let load = || async { store.needed_log(session, agent.id.clone()).await.unwrap() };
    assert_eq!(load().await.len(), 3_003);
    sum_up(&store, agent, summary(last.id, vec![kept.id, last.id])).await;
    let ids = |log: &[Message]| log.iter().map(|message| message.id).collect::<Vec<_>>();
    let needed = load().await;
    assert_eq!(ids(&needed)[..2], [system.id, kept.id]);
    assert_eq!(needed.len(), 4);
    let whole = store.whole_log(session, agent.id.clone()).await.unwrap();
    assert_eq!(Log::new(&needed).view(), Log::new(&whole).view());
    // A rewind to before the summary needs everything again.
    store
        .rewind(agent.lease.clone(), agent.id.clone(), kept.id, NewMessage::rewind(kept.id, None))
        .await
        .unwrap();
    let (needed, whole) = (load().await, store.whole_log(session, agent.id.clone()).await.unwrap());
    assert_eq!(Log::new(&needed).view(), Log::new(&whole).view());
}

#[tokio::test]
async fn a_full_fork_loads_what_its_parents_summary_leaves() {
    let store = super::store();
    let (session, mut agents) = store.session_of(1).await;
    let agent = &mut agents[0];
    agent.append(&store, NewMessage::system("prompt"), Next::Tool).await.unwrap();
    let kept = say(&store, agent, "kept").await;
    let hidden = say(&store, agent, "hidden").await;
    sum_up(&store, agent, summary(hidden.id, vec![kept.id])).await;
    say(&store, agent, "after").await;
    agent.answer(&store, "done").await;
    let child = agent.fork(&store, new_fork(ForkContext::Full, Some("a task"))).await.unwrap();
    for _ in 0..2 {
        let needed = store.needed_log(session, child.id.clone()).await.unwrap();
        let whole = store.whole_log(session, child.id.clone()).await.unwrap();
        assert!(!needed.iter().any(|message| message.content == "hidden"));
        let split = |log: &[Message]| log.partition_point(|message| message.agent != child.id);
        let (needed_inherited, needed_own) = needed.split_at(split(&needed));
        let (inherited, own) = whole.split_at(split(&whole));
        assert_eq!(
            Log::forked(needed_inherited, needed_own).view(),
            Log::forked(inherited, own).view()
        );
        // The next time with a summary of its own, that keeps its parent's and its own message.
        let task = own.iter().find(|message| message.content == "a task").unwrap();
        sum_up(&store, &child, summary(task.id, vec![kept.id, task.id])).await;
    }
}
