//! Forking and killing by a call: what is refused, and what a child has from its first commit on.

use ikigai_conversation::{AgentId, Body, Log, NewMessage, ResponseId, Seen, ToolCallId};
use ikigai_store::{
    AgentAddress, AgentLimits, Ending, ForkContext, NamedAgent, NewFork, Next, Outcome, State, Step,
};
use ikigai_testkit::{
    PLENTY, TestAgent, TestStore, by_id, location, new_fork, output_of, said, wait_for,
};

use crate::support::{ROOM, agent, check_database, fork_by_hand, kill_by_hand};

fn named(name: &str) -> NewFork {
    NewFork { name: Some(name.to_owned()), ..new_fork(ForkContext::Fresh, Some("task")) }
}

async fn say(store: &TestStore, agent: &TestAgent, text: &str) {
    let input = said(text, PLENTY);
    store.append_user_input(agent.lease.clone(), agent.id.clone(), input).await.unwrap();
}

/// What a model sees of an agent's conversation, as text.
async fn seen(store: &TestStore, of: &TestAgent) -> Vec<String> {
    let log = store.whole_log(of.session(), of.id.clone()).await.unwrap();
    let own = log.partition_point(|message| message.agent != of.id);
    let (inherited, own) = log.split_at(own);
    let view = Log::forked(inherited, own).view();
    let text = |seen: Seen<'_>| match seen {
        Seen::User(text) | Seen::System(text) => Some(text.to_owned()),
        Seen::Assistant { text, .. } => Some(text.to_owned()),
        Seen::ToolCall(call) => Some(format!("call {}", call.name)),
        Seen::Identity(_)
        | Seen::Notification(_)
        | Seen::Summary(_)
        | Seen::Obligations(_)
        | Seen::ToolResult { .. } => None,
    };
    view.into_iter().filter_map(text).collect()
}

#[tokio::test]
async fn a_refused_fork_says_why() {
    let store = super::store();
    let (session, mut agents) = store.session_of(2).await;
    let root = &mut agents[0];
    let mut check = async |fork: NewFork, text: &str| {
        let rows = "SELECT count(*) FROM agents";
        let before = store.number(rows);
        assert_eq!(root.fork(&store, fork).await.unwrap_err(), text);
        assert_eq!(store.number(rows), before);
    };
    let task = || new_fork(ForkContext::Fresh, Some("task"));
    let limits = AgentLimits { agents: 2, depth: 4 };
    check(NewFork { limits, ..task() }, "Maximum agents (2) reached").await;
    let limits = AgentLimits { agents: 20, depth: 1 };
    check(NewFork { limits, ..task() }, "Maximum agent depth (1) exceeded").await;
    let rule =
        "use up to 32 letters, digits, '-', '_' and '.', but not only digits, 'parent' or 'user'";
    for name in ["", "1", "parent", "user", "a b", "a/"] {
        check(named(name), &format!("'{name}' is not a valid agent name: {rule}")).await;
    }
    let long = "x".repeat(100);
    check(named(&long), &format!("'{}' is not a valid agent name: {rule}", &long[..64])).await;
    let child = agents[0].fork(&store, named("builder")).await.unwrap();
    let taken = "Agent 0/0/ is already called 'builder'";
    assert_eq!(agents[1].fork(&store, named("builder")).await.unwrap_err(), taken);
    let added = store.add_agent(session, Some("builder".to_owned()), location(), ROOM).await;
    assert_eq!(added.unwrap_err().to_string(), taken);
    // The dead need no name.
    agents[0].kill(&store, &child.id).await.unwrap();
    agents[1].fork(&store, named("builder")).await.unwrap();
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn the_log_says_forked_if_and_only_if_the_child_is_there() {
    let store = super::store();
    let (session, mut agents) = store.session_of(1).await;
    let root = &mut agents[0];
    let call = root.open(&store).await.unwrap();
    let step = Step::Fork(new_fork(ForkContext::Fresh, Some("task")));
    let (lease, id) = (root.lease.clone(), root.id.clone());
    let panics = |_: &Outcome| panic!("no result can be made");
    store.close_call(lease, id, step.clone(), panics, Next::Request).await.unwrap_err();
    assert_eq!(store.agents(session).await.unwrap().len(), 1, "rolled back with its result");
    let result = root.close(&store, call, step).await.unwrap();
    assert_eq!(output_of(&result)["data"]["agent"], "0/0/");
    assert_eq!(store.agents(session).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_fresh_child_begins_with_the_prompt_of_its_session_and_its_task() {
    let store = super::store();
    let (session, mut agents) = store.session_of(2).await;
    let first = new_fork(ForkContext::Fresh, Some("task"));
    let limits = AgentLimits::DEFAULT;
    let Step::Fork(first) = Step::Fork(first).within(limits, || "made up".to_owned()) else {
        panic!()
    };
    assert_eq!((first.limits, first.system.as_deref()), (limits, Some("made up")));
    let child = agents[0].fork(&store, first.clone()).await.unwrap();
    assert_eq!(seen(&store, &child).await, ["made up", "task"], "the session had none yet");
    let kinds = "SELECT kind FROM messages m JOIN agents a ON a.key = m.agent
        WHERE a.id = '0/0/' ORDER BY m.id";
    let kinds = store.raw().rows(kinds, |row| row.text(0).unwrap());
    assert_eq!(kinds, ["fork", "system", "user"]);
    let second = agents[1].fork(&store, NewFork { system: None, ..first }).await.unwrap();
    assert_eq!(seen(&store, &second).await, ["made up", "task"]);
    let all = store.agents(session).await.unwrap();
    assert_eq!((all[1].state, all[1].task.as_str(), all[1].unread), (State::Waiting, "task", 0));
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn a_child_uses_the_model_of_its_parent() {
    let store = super::store();
    let (session, mut agents) = store.session_of(1).await;
    say(&store, &agents[0], "hello").await;
    agents[0].fork(&store, new_fork(ForkContext::Fresh, None)).await.unwrap();
    let all = store.agents(session).await.unwrap();
    assert_eq!(all[1].model.as_deref(), Some("test/model"));
    assert_eq!(all[1].state, State::Idle);
}

/// A response with text and two calls, of which the second one forks.
#[tokio::test]
async fn a_full_fork_of_a_call_ends_before_the_response_that_called() {
    let store = super::store();
    let (_, mut agents) = store.session_of(1).await;
    let root = &mut agents[0];
    say(&store, root, "one").await;
    root.call(&store, ikigai_testkit::everything()).await.unwrap();
    let response = ResponseId::new("the one that forks");
    let usage = ikigai_conversation::Usage {
        input_tokens: 1,
        output_tokens: 1,
        cache_read_tokens: None,
        cache_write_tokens: None,
        reasoning_tokens: None,
        cost: None,
        unreported: None,
        model: "m".to_owned(),
        response: response.clone(),
    };
    let text = NewMessage::assistant("let me see", response.clone());
    for message in [NewMessage::usage(usage), text] {
        root.append(&store, message, Next::Tool).await.unwrap();
    }
    // More calls than one page of the backward scan.
    for number in 0..40 {
        let id = ToolCallId::new(format!("c:{number}"));
        let call = NewMessage::tool_call(id, "mail", "{}", response.clone());
        let Body::ToolCall(call) = root.append(&store, call, Next::Tool).await.unwrap().body else {
            panic!()
        };
        root.close(&store, call, ikigai_testkit::everything()).await.unwrap();
    }
    let call = NewMessage::tool_call(ToolCallId::new("c:last"), "fork", "{}", response);
    let Body::ToolCall(call) = root.append(&store, call, Next::Tool).await.unwrap().body else {
        panic!()
    };
    let step = Step::Fork(new_fork(ForkContext::Full, Some("task")));
    let output = output_of(&root.close(&store, call, step).await.unwrap());
    let child = root.child(agent(output["data"]["agent"].as_str().unwrap()));
    assert_eq!(seen(&store, &child).await, ["one", "call mail", "task"]);
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn a_child_inherits_the_parents_view_at_the_fork_even_three_levels_down() {
    let store = super::store();
    let (_, mut agents) = store.session_of(1).await;
    let root = &mut agents[0];
    say(&store, root, "one").await;
    root.answer(&store, "first").await;
    let mark = root.mark(&store).await;
    say(&store, root, "hidden").await;
    root.answer(&store, "second").await;
    root.rewind(&store, mark).await.unwrap();
    say(&store, root, "two").await;
    let mut child = root.fork(&store, new_fork(ForkContext::Full, Some("task 1"))).await.unwrap();
    let mut grandchild =
        child.fork(&store, new_fork(ForkContext::Full, Some("task 2"))).await.unwrap();
    let last = grandchild.fork(&store, new_fork(ForkContext::Full, Some("task 3"))).await.unwrap();
    let expected = ["one", "first", "two", "task 1", "task 2", "task 3"];
    assert_eq!(seen(&store, &last).await, expected);
    // Whatever happens above later.
    root.rewind(&store, mark).await.unwrap();
    say(&store, root, "three").await;
    child.append(&store, NewMessage::clear(), Next::Request).await.unwrap();
    assert_eq!(seen(&store, &last).await, expected);
    assert_eq!(seen(&store, root).await, ["one", "first", "three"]);
    // And it cannot rewind to before its start.
    last.rewind(&store, mark).await.unwrap_err();
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn a_users_fork_in_the_middle_of_a_turn_inherits_up_to_before_that_turn() {
    let store = super::store();
    let (_, mut agents) = store.session_of(1).await;
    let root = &mut agents[0];
    say(&store, root, "one").await;
    root.answer(&store, "first").await;
    let full = || new_fork(ForkContext::Full, None);
    say(&store, root, "two").await;
    root.call(&store, ikigai_testkit::everything()).await.unwrap();
    // Typed meanwhile: it belongs to the same turn.
    say(&store, root, "and this").await;
    let during = fork_by_hand(&store, root, full()).await.unwrap();
    assert_eq!(seen(&store, &during).await, ["one", "first"]);
    root.end(&store, Vec::new(), Ending::Failed("no".to_owned())).await.unwrap();
    let failed = fork_by_hand(&store, root, full()).await.unwrap();
    assert_eq!(seen(&store, &failed).await, ["one", "first", "two", "call mail", "and this"]);
    // Resuming continues that turn, and a new message starts another.
    store.resume(root.lease.clone(), root.id.clone(), Some(PLENTY)).await.unwrap();
    let resumed = fork_by_hand(&store, root, full()).await.unwrap();
    assert_eq!(seen(&store, &resumed).await, ["one", "first"]);
    root.answer(&store, "second").await;
    let after = fork_by_hand(&store, root, full()).await.unwrap();
    assert_eq!(seen(&store, &after).await.last().unwrap(), "second");
    // A child in its first turn has no earlier messages yet.
    let child = root.fork(&store, new_fork(ForkContext::Full, Some("task"))).await.unwrap();
    let of_child = fork_by_hand(&store, &child, full()).await.unwrap();
    let expected = ["one", "first", "two", "call mail", "and this", "second"];
    assert_eq!(seen(&store, &of_child).await, expected);
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn a_model_may_not_kill_itself_nor_its_ancestors_nor_top_level_agents() {
    let store = super::store();
    let (_, mut agents) = store.session_of(2).await;
    let mut child = agents[0].fork(&store, new_fork(ForkContext::Fresh, None)).await.unwrap();
    let mut grandchild = child.fork(&store, new_fork(ForkContext::Fresh, None)).await.unwrap();
    let mut check = async |victim: &str, text: &str| {
        assert_eq!(grandchild.kill(&store, &agent(victim)).await.unwrap_err(), text);
    };
    check("0/0/0/", "Agent 0/0/0/ cannot kill itself").await;
    check("0/0/", "Agent 0/0/ cannot be killed by its descendant").await;
    check("0/", "Agent 0/ cannot be killed by its descendant").await;
    check("1/", "Agent 1/ is a top-level agent: only the user can kill it").await;
    check("7/", "Agent 7/ not found").await;
    let parent = NamedAgent { address: AgentAddress::Parent, given: "parent".to_owned() };
    let result = grandchild.call(&store, Step::Kill(parent)).await.unwrap();
    let text = "Agent 0/0/ cannot be killed by its descendant";
    assert_eq!(output_of(&result)["error"], text);
    // A command of an agent acts as that agent.
    let (session, id) = (child.session(), child.id.clone());
    let by_command = store.perform(session, id, Step::Kill(by_id(&agent("0/"))), None).await;
    assert!(matches!(by_command.unwrap(), Outcome::Refused(_)));
    // Another agent's child may be killed, and the killer's log says so after the result.
    let dead = agents[1].kill(&store, &agent("0/0/")).await.unwrap();
    assert_eq!(dead, [agent("0/0/0/"), agent("0/0/")]);
    let log = store.own_log(session, agents[1].id.clone(), None).await.unwrap();
    let [.., result, kill] = &log[..] else { panic!() };
    assert!(matches!(result.body, Body::ToolResult(_)));
    assert!(matches!(&kill.body, Body::Kill(kill) if kill.killed == dead));
    assert_eq!(agents[1].kill(&store, &agent("0/0/")).await.unwrap_err(), "Agent 0/0/ is dead");
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn the_user_may_kill_any_but_the_last_top_level_agent() {
    let store = super::store();
    let (session, mut agents) = store.session_of(2).await;
    let child = agents[1].fork(&store, new_fork(ForkContext::Fresh, Some("task"))).await.unwrap();
    let dead = kill_by_hand(&store, &agents[0], &agent("1/")).await.unwrap();
    assert_eq!(dead, [child.id, agent("1/")]);
    let refused = kill_by_hand(&store, &agents[0], &agent("0/")).await.unwrap_err();
    assert_eq!(refused, "Agent 0/ is the last top-level agent");
    // A kill from the command line is in no log. A third agent replaces the last one.
    store.add_agent(session, None, location(), ROOM).await.unwrap();
    let before = store.number("SELECT count(*) FROM messages");
    let step = Step::Kill(by_id(&agent("0/")));
    let outcome = store.perform(session, agent("0/"), step, Some(PLENTY)).await.unwrap();
    assert_eq!(outcome, Outcome::Killed(vec![agent("0/")]));
    assert_eq!(store.number("SELECT count(*) FROM messages"), before);
}

#[tokio::test]
async fn killed_agents_have_nothing_that_only_the_living_have() {
    let store = super::store();
    let (session, mut agents) = store.session_of(1).await;
    let root = &mut agents[0];
    let mut child = root.fork(&store, new_fork(ForkContext::Fresh, Some("task"))).await.unwrap();
    let grandchild = child.fork(&store, new_fork(ForkContext::Fresh, Some("task"))).await.unwrap();
    for (waiter, awaited) in [(&child, &grandchild.id), (root, &child.id)] {
        let wait = wait_for(&[awaited]);
        let (lease, id) = (waiter.lease.clone(), waiter.id.clone());
        store.start_wait(lease, id, wait).await.unwrap().unwrap();
    }
    store.queue_input(child.lease.clone(), child.id.clone(), "wait!".to_owned()).await.unwrap();
    root.kill(&store, &child.id.clone()).await.unwrap();
    for table in ["waits", "queued_inputs"] {
        assert_eq!(store.number(&format!("SELECT count(*) FROM {table}")), 0, "{table}");
    }
    assert_eq!(store.number("SELECT count(*) FROM agents WHERE owes_report = 1"), 0);
    // Commands that a dead agent left running can neither fork nor kill.
    let steps = [
        Step::Fork(new_fork(ForkContext::Fresh, None)),
        Step::Kill(by_id(&grandchild.id)),
        Step::Wait(wait_for(&[])),
    ];
    for step in steps {
        let outcome = store.perform(session, child.id.clone(), step, None).await.unwrap();
        assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
    }
    assert_eq!(store.agents(session).await.unwrap().len(), 3, "their logs stay readable");
    assert!(!store.own_log(session, child.id, None).await.unwrap().is_empty());
}

#[tokio::test]
async fn the_registry_lists_the_living() {
    let store = super::store();
    let (session, mut agents) = store.session_of(1).await;
    agents[0].fork(&store, named("builder")).await.unwrap();
    let dead = agents[0].fork(&store, new_fork(ForkContext::Fresh, None)).await.unwrap();
    agents[0].kill(&store, &dead.id).await.unwrap();
    let outcome = store.perform(session, agent("0/"), Step::Agents, None).await.unwrap();
    let Outcome::Agents(living) = outcome else { panic!("{outcome:?}") };
    let shown: Vec<(AgentId, Option<&str>)> =
        living.iter().map(|agent| (agent.id.clone(), agent.name.as_deref())).collect();
    assert_eq!(shown, [(agent("0/"), None), (agent("0/0/"), Some("builder"))]);
}
