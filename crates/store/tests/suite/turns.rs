//! The start of a turn: a new session, queued input, a budget of requests.

use ikigai_conversation::{AgentId, Body, Kind, NewMessage, SessionId};
use ikigai_store::{
    AgentLimits, Budget, ClaimedAgent, Input, Next, Opening, Process, Requests, State, StoreError,
};
use ikigai_testkit::{PLENTY, TestAgent, opening, said};
use uuid::Uuid;

fn kinds(messages: &[ikigai_conversation::Message]) -> Vec<Kind> {
    messages.iter().map(|message| message.body.kind()).collect()
}

/// A process of another machine: whether it is alive cannot be seen here.
fn neighbour() -> Process {
    Process { machine: "another".to_owned(), ..Process::current() }
}

#[tokio::test]
async fn a_session_starts_with_its_agent_its_lease_and_its_first_messages() {
    let store = super::store();
    let id = SessionId::new(Uuid::now_v7());
    let messages = vec![NewMessage::system("be good"), NewMessage::user("first line\nsecond")];
    let input = Input { messages, budget: PLENTY, model: "a/b".to_owned() };
    let (lease, recorded) =
        store.start_session(id, &opening(Process::current()), input).await.unwrap();
    assert_eq!(kinds(&recorded.messages), [Kind::System, Kind::User]);
    assert_eq!(recorded.requests, Requests::Granted);
    assert_eq!((lease.session(), lease.top()), (&id, &AgentId::top_level(0)));

    let agents = store.agents(id).await.unwrap();
    assert_eq!(agents[0].state, State::Waiting);
    assert_eq!(agents[0].model.as_deref(), Some("a/b"));
    assert_eq!(agents[0].task, "first line");
    let sessions = store.sessions().await.unwrap();
    let session = sessions.iter().find(|session| session.id == id).unwrap();
    assert_eq!(session.title, "first line");
    assert_eq!(store.system_prompt(id).await.unwrap().as_deref(), Some("be good"));
}

#[tokio::test]
async fn the_first_free_agent_is_claimed_or_a_new_one_created() {
    let store = super::store();
    let session = store.session_with(PLENTY).await;
    let claim = |process| store.open_session(session, ClaimedAgent::Free, opening(process));
    let first = claim(Process::current()).await.unwrap();
    assert_eq!(first.top(), &AgentId::top_level(0));
    let second = claim(neighbour()).await.unwrap();
    assert_eq!(second.top(), &AgentId::top_level(1));
    store.release(first).await.unwrap();
    let third = claim(neighbour()).await.unwrap();
    assert_eq!(third.top(), &AgentId::top_level(0));
}

#[tokio::test]
async fn a_full_session_creates_no_agent() {
    let store = super::store();
    let session = store.session_with(PLENTY).await;
    let limits = AgentLimits { agents: 1, depth: 4 };
    let claim = |process| {
        let opening = Opening { limits, ..opening(process) };
        store.open_session(session, ClaimedAgent::Free, opening)
    };
    claim(neighbour()).await.unwrap();
    let refused = claim(Process::current()).await.unwrap_err();
    assert_eq!(refused.to_string(), "Maximum agents (1) reached");
    assert_eq!(store.agents(session).await.unwrap().len(), 1);
}

#[tokio::test]
async fn requests_are_granted_until_the_budget_is_used_up_and_the_user_refills_it() {
    let store = super::store();
    let session = store.session_with(PLENTY).await;
    let agent = TestAgent::claim(&store, session, AgentId::top_level(0)).await.unwrap();
    let (lease, id) = (agent.lease.clone(), agent.id.clone());
    let two = Budget { wakes: 5, requests: 2 };
    let say = || store.append_user_input(lease.clone(), id.clone(), said("go", two));
    let ask =
        || store.append(lease.clone(), id.clone(), vec![NewMessage::mark(None)], Next::Request);

    assert_eq!(say().await.unwrap().requests, Requests::Granted);
    assert_eq!(ask().await.unwrap().requests, Requests::Granted);
    let third = ask().await.unwrap();
    assert_eq!(third.requests, Requests::UsedUp);
    assert_eq!(
        kinds(&third.messages),
        [Kind::Mark],
        "what was to be said is in the log all the same"
    );
    assert_eq!(store.resume(lease.clone(), id.clone(), None).await.unwrap(), Requests::UsedUp);
    assert_eq!(
        store.resume(lease.clone(), id.clone(), Some(two)).await.unwrap(),
        Requests::Granted
    );
    assert_eq!(ask().await.unwrap().requests, Requests::Granted);
    assert_eq!(ask().await.unwrap().requests, Requests::UsedUp);
    assert_eq!(say().await.unwrap().requests, Requests::Granted);
}

#[tokio::test]
async fn running_a_tool_takes_no_request() {
    let store = super::store();
    let session = store.session_with(PLENTY).await;
    let agent = TestAgent::claim(&store, session, AgentId::top_level(0)).await.unwrap();
    let (lease, id) = (agent.lease.clone(), agent.id.clone());
    let one = Budget { wakes: 5, requests: 1 };
    store.append_user_input(lease.clone(), id.clone(), said("go", one)).await.unwrap();
    let call = vec![NewMessage::mark(None)];
    let recorded = store.append(lease, id, call, Next::Tool).await.unwrap();
    assert_eq!(recorded.requests, Requests::Granted);
    assert_eq!(store.agents(session).await.unwrap()[0].state, State::Tool);
}

#[tokio::test]
async fn the_last_queued_input_can_be_taken_back() {
    let store = super::store();
    let session = store.session_with(PLENTY).await;
    let agent = TestAgent::claim(&store, session, AgentId::top_level(0)).await.unwrap();
    let (lease, id) = (agent.lease.clone(), agent.id.clone());
    for text in ["one", "two"] {
        store.queue_input(lease.clone(), id.clone(), text.to_owned()).await.unwrap();
    }
    let take_back = || store.unqueue_input(lease.clone(), id.clone());
    assert_eq!(take_back().await.unwrap().as_deref(), Some("two"));
    let taken = store.append_queued(lease.clone(), id.clone(), PLENTY, "a/b".to_owned()).await;
    let taken = taken.unwrap().unwrap().messages;
    assert_eq!(taken.iter().map(|message| &*message.content).collect::<Vec<_>>(), ["one"]);
    assert_eq!(take_back().await.unwrap(), None);
}

#[tokio::test]
async fn queued_input_is_appended_once_and_in_order() {
    let store = super::store();
    let session = store.session_with(PLENTY).await;
    let agent = TestAgent::claim(&store, session, AgentId::top_level(0)).await.unwrap();
    let (lease, id) = (agent.lease.clone(), agent.id.clone());
    for text in ["one", "two"] {
        store.queue_input(lease.clone(), id.clone(), text.to_owned()).await.unwrap();
    }
    assert_eq!(store.own_log(session, id.clone(), None).await.unwrap(), []);
    let take = || store.append_queued(lease.clone(), id.clone(), PLENTY, "a/b".to_owned());
    let taken = take().await.unwrap().unwrap().messages;
    let texts: Vec<&str> = taken.iter().map(|message| message.content.as_str()).collect();
    assert_eq!(texts, ["one", "two"]);
    assert!(taken.iter().all(|message| message.body == Body::User));
    assert_eq!(take().await.unwrap(), None);
    assert_eq!(store.own_log(session, id.clone(), None).await.unwrap(), taken);
}

#[tokio::test]
async fn the_queue_is_limited() {
    let store = super::store();
    let session = store.session_with(PLENTY).await;
    let agent = TestAgent::claim(&store, session, AgentId::top_level(0)).await.unwrap();
    let queue = || store.queue_input(agent.lease.clone(), agent.id.clone(), "x".to_owned());
    for _ in 0..1_000 {
        queue().await.unwrap();
    }
    let refused = queue().await.unwrap_err();
    assert!(
        matches!(&refused, StoreError::Limit(text) if text == "Too many queued messages for agent 0/ (1000)")
    );
}

#[tokio::test]
async fn the_end_of_a_log_is_its_latest_messages_in_order() {
    let store = super::store();
    let (session, mut agents) = store.session_of(2).await;
    for number in 0..3 {
        for agent in &mut agents {
            let said = said(&format!("{number}"), PLENTY);
            let (lease, id) = (agent.lease.clone(), agent.id.clone());
            store.append_user_input(lease, id, said).await.unwrap();
        }
    }
    for (most, expected) in [(0, vec![]), (2, vec!["1", "2"]), (9, vec!["0", "1", "2"])] {
        let newest = store.latest_messages(session, agents[0].id.clone(), most).await.unwrap();
        let texts: Vec<&str> = newest.iter().map(|message| message.content.as_str()).collect();
        assert_eq!(texts, expected, "{most}");
    }
}
