//! The registry: limits, forks by reference, kills.

use ikigai_conversation::{AgentId, Body, Message, MessageId, NewMessage};
use ikigai_store::{
    AgentAddress, AgentLimits, ForkContext, MailAddress, NewFork, Next, Outcome, State, Step,
};
use ikigai_testkit::{TestAgent, TestStore, location, new_fork};

use crate::support::{ROOM, agent, check_database, fork_by_hand, kill_by_hand};

/// A child that the user forks from an agent outside a turn.
async fn fork(
    store: &TestStore,
    parent: &TestAgent,
    context: ForkContext,
    prompt: Option<&str>,
    limits: AgentLimits,
) -> Result<TestAgent, String> {
    fork_by_hand(store, parent, NewFork { limits, ..new_fork(context, prompt) }).await
}

async fn say(store: &TestStore, agent: &TestAgent, text: &str) -> MessageId {
    agent.append(store, NewMessage::user(text), Next::Request).await.unwrap().id
}

async fn kill(store: &TestStore, killer: &TestAgent, id: &str) -> Result<Vec<AgentId>, String> {
    kill_by_hand(store, killer, &agent(id)).await
}

/// The texts of a conversation, in order.
async fn texts(store: &TestStore, agent: &TestAgent) -> Vec<String> {
    let log = store.whole_log(agent.session(), agent.id.clone()).await.unwrap();
    let text = |message: Message| match message.body {
        Body::User => Some(message.content),
        _ => None,
    };
    log.into_iter().filter_map(text).collect()
}

#[tokio::test]
async fn working_agents_and_levels_are_limited() {
    let store = super::store();
    let (session, agents) = store.session_of(1).await;
    let limits = AgentLimits { agents: 3, depth: 2 };
    let task = Some("task");
    let child = fork(&store, &agents[0], ForkContext::Fresh, task, limits).await.unwrap();
    let deeper = fork(&store, &child, ForkContext::Fresh, None, limits).await.unwrap_err();
    assert_eq!(deeper, "Maximum agent depth (2) exceeded");
    store.add_agent(session, None, location(), limits).await.unwrap();
    let updated = store.sessions().await.unwrap()[0].updated_at;
    store.advance(std::time::Duration::from_secs(1));
    let one_more = store.add_agent(session, None, location(), limits).await.unwrap_err();
    assert_eq!(one_more.to_string(), "Maximum agents (3) reached");
    let one_more = fork(&store, &agents[0], ForkContext::Fresh, task, limits).await.unwrap_err();
    assert_eq!(one_more, "Maximum agents (3) reached");
    assert_eq!(
        store.sessions().await.unwrap()[0].updated_at,
        updated,
        "everything was rolled back"
    );
    // Idle children do not count.
    fork(&store, &agents[0], ForkContext::Fresh, None, limits).await.unwrap();
    child.answer(&store, "done").await;
    let next = fork(&store, &agents[0], ForkContext::Fresh, task, limits).await.unwrap();
    fork(&store, &agents[0], ForkContext::Fresh, task, limits).await.unwrap_err();
    // The dead make room, and their numbers are not used again.
    kill(&store, &agents[0], &next.id.to_string()).await.unwrap();
    let next = fork(&store, &agents[0], ForkContext::Fresh, task, limits).await.unwrap();
    assert_eq!(next.id, agent("0/3/"));
}

#[tokio::test]
async fn at_most_1000_agents_are_not_dead() {
    let store = super::store();
    let (session, agents) = store.session_of(1).await;
    store.raw().script(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 998)
        INSERT INTO agents (session, id, state, machine, directory, created_at)
        SELECT a.session, '0/' || (n.i + 100) || '/', 'idle', a.machine, a.directory, 0
        FROM agents a, n WHERE a.id = '0/'",
    );
    fork(&store, &agents[0], ForkContext::Fresh, None, ROOM).await.unwrap();
    let one_more = fork(&store, &agents[0], ForkContext::Fresh, None, ROOM).await.unwrap_err();
    assert_eq!(one_more, "Maximum agents (1000) reached");
    let one_more = store.add_agent(session, None, location(), ROOM).await.unwrap_err();
    assert_eq!(one_more.to_string(), "Maximum agents (1000) reached");
}

#[tokio::test]
async fn a_name_belongs_to_its_newest_bearer_and_an_idle_child_gives_it_up() {
    let store = super::store();
    let (session, mut agents) = store.session_of(1).await;
    let root = &mut agents[0];
    let tester = || NewFork {
        name: Some("tester".to_owned()),
        ..new_fork(ForkContext::Fresh, Some("test it"))
    };
    let first = root.fork(&store, tester()).await.unwrap();
    let taken = root.fork(&store, tester()).await.unwrap_err();
    assert_eq!(taken, "Agent 0/0/ is already called 'tester'");
    first.answer(&store, "done").await;
    root.fork(&store, tester()).await.unwrap();
    let names = async || -> Vec<Option<String>> {
        store.agents(session).await.unwrap().into_iter().map(|agent| agent.name).collect()
    };
    assert_eq!(names().await, [None, None, Some("tester".to_owned())]);
    let to = Step::Send {
        to: MailAddress::Agent(AgentAddress::Name("tester".to_owned())),
        given: "tester".to_owned(),
        body: "hello".to_owned(),
    };
    let sent = store.perform(session, agent("0/"), to, None).await.unwrap();
    assert!(matches!(sent, Outcome::Sent { to, .. } if to == agent("0/1/").into()));
    // A top-level agent keeps its name, working or not.
    let name = Some("lead".to_owned());
    store.add_agent(session, name.clone(), location(), ROOM).await.unwrap();
    let taken = store.add_agent(session, name, location(), ROOM).await.unwrap_err();
    assert_eq!(taken.to_string(), "Agent 1/ is already called 'lead'");
}

#[tokio::test]
async fn a_child_with_a_prompt_waits_for_the_model_from_its_first_commit() {
    let store = super::store();
    let (session, agents) = store.session_of(1).await;
    let limits = ROOM;
    fork(&store, &agents[0], ForkContext::Fresh, Some("do it\nnow"), limits).await.unwrap();
    fork(&store, &agents[0], ForkContext::Fresh, None, limits).await.unwrap();
    let children: Vec<_> = store.agents(session).await.unwrap().split_off(1);
    let found: Vec<_> =
        children.iter().map(|child| (child.id.to_string(), child.state, &*child.task)).collect();
    let expected =
        [("0/0/".to_owned(), State::Waiting, "do it"), ("0/1/".to_owned(), State::Idle, "")];
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_full_fork_sees_the_conversation_up_to_its_fork_and_a_fresh_one_nothing() {
    let store = super::store();
    let (_, agents) = store.session_of(2).await;
    let [parent, silent] = &agents[..] else { panic!() };
    say(&store, parent, "one").await;
    say(&store, parent, "two").await;
    let full = fork(&store, parent, ForkContext::Full, Some("task"), ROOM).await.unwrap();
    let fresh = fork(&store, parent, ForkContext::Fresh, Some("task"), ROOM).await.unwrap();
    let none = fork(&store, silent, ForkContext::Full, Some("task"), ROOM).await.unwrap();
    say(&store, parent, "three").await;
    assert_eq!(texts(&store, &full).await, ["one", "two", "task"]);
    assert_eq!(texts(&store, &fresh).await, ["task"]);
    assert_eq!(texts(&store, &none).await, ["task"]);
    // By reference: its own log only has its own messages.
    let own = store.own_log(full.session(), full.id.clone(), None).await.unwrap();
    assert_eq!(own.len(), 2, "the fork and the prompt");
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn a_chain_of_forks_reads_as_one_conversation() {
    let store = super::store();
    let (_, agents) = store.session_of(1).await;
    let mut chain = vec![agents[0].clone()];
    for level in 1..=4 {
        let parent = chain.last().unwrap();
        parent.sleep(&store).await.unwrap();
        say(&store, parent, &format!("kept {level}")).await;
        let task = format!("task {level}");
        let child = fork(&store, parent, ForkContext::Full, Some(&task), ROOM).await.unwrap();
        say(&store, parent, &format!("later {level}")).await;
        chain.push(child);
    }
    let last = chain.last().unwrap();
    let expected = ["kept 1", "task 1", "kept 2", "task 2", "kept 3", "task 3", "kept 4", "task 4"];
    assert_eq!(texts(&store, last).await, expected);
    let log = store.whole_log(last.session(), last.id.clone()).await.unwrap();
    assert!(log.is_sorted_by_key(|message| message.id));
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn later_messages_of_the_parent_do_not_affect_the_child() {
    let store = super::store();
    let (_, agents) = store.session_of(1).await;
    let parent = &agents[0];
    let mark = parent.mark(&store).await;
    say(&store, parent, "seen by the child").await;
    let child = fork(&store, parent, ForkContext::Full, Some("task"), ROOM).await.unwrap();
    let session = child.session();
    let before = store.whole_log(session, child.id.clone()).await.unwrap();
    parent.rewind(&store, mark).await.unwrap();
    parent.append(&store, NewMessage::clear(), Next::Request).await.unwrap();
    say(&store, parent, "another way").await;
    assert_eq!(store.whole_log(session, child.id.clone()).await.unwrap(), before);
    // Not even its death does.
    let other = store.add_agent(session, None, location(), ROOM).await.unwrap();
    let other = TestAgent::claim(&store, session, other).await.unwrap();
    kill(&store, &other, "0/").await.unwrap();
    assert_eq!(store.whole_log(session, child.id).await.unwrap(), before);
}

#[tokio::test]
async fn a_kill_ends_the_descendants_children_first_and_no_others() {
    let store = super::store();
    let (session, agents) = store.session_of(1).await;
    let root = &agents[0];
    let mut children = Vec::new();
    for _ in 0..12 {
        children.push(fork(&store, root, ForkContext::Fresh, None, ROOM).await.unwrap());
    }
    let grandchild = fork(&store, &children[1], ForkContext::Fresh, None, ROOM).await.unwrap();
    let deepest = fork(&store, &grandchild, ForkContext::Fresh, None, ROOM).await.unwrap();
    let dead = kill(&store, root, "0/1/").await.unwrap();
    assert_eq!(dead, [deepest.id, grandchild.id, agent("0/1/")]);
    let all = store.agents(session).await.unwrap();
    let died: Vec<_> = all.iter().filter(|agent| agent.state == State::Dead).collect();
    assert_eq!(died.len(), 3, "0/10/ and 0/11/ live");
    // The killer's log says so.
    let log = store.own_log(session, root.id.clone(), None).await.unwrap();
    assert!(matches!(&log.last().unwrap().body, Body::Kill(kill) if kill.killed == dead));
    for (id, text) in [("0/1/", "Agent 0/1/ is dead"), ("7/", "Agent 7/ not found")] {
        assert_eq!(kill(&store, root, id).await.unwrap_err(), text);
    }
}
