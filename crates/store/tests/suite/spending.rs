//! What requests used and cost: each is accounted for once, by the message that caused it.

use std::time::Duration;

use ikigai_conversation::{NewMessage, ResponseId, Usage};
use ikigai_store::{Budget, Ending, Input, Next, Process, Spending};
use ikigai_testkit::{TestAgent, TestStore, new_fork, send_to};

use crate::support::agent;

const PLENTY: Budget = Budget { wakes: 9, requests: 99 };

fn usage(cost: Option<u64>) -> NewMessage {
    NewMessage::usage(Usage {
        input_tokens: 100,
        output_tokens: 10,
        cache_read_tokens: Some(80),
        cache_write_tokens: None,
        reasoning_tokens: None,
        cost,
        unreported: None,
        model: "openai/m".to_owned(),
        response: ResponseId::new("r"),
    })
}

/// The user says something, and a request follows.
async fn say(store: &TestStore, to: &TestAgent, text: &str) {
    let messages = vec![NewMessage::user(text)];
    let input = Input { messages, budget: PLENTY, model: "openai/m".to_owned() };
    store.append_user_input(to.lease.clone(), to.id.clone(), input).await.unwrap();
}

/// A response with a call arrives, and another request follows.
async fn go_on(store: &TestStore, agent: &TestAgent, cost: Option<u64>) {
    let (lease, id) = (agent.lease.clone(), agent.id.clone());
    store.append(lease, id, vec![usage(cost)], Next::Request).await.unwrap();
}

async fn answer(store: &TestStore, agent: &TestAgent, cost: Option<u64>) {
    let (lease, id) = (agent.lease.clone(), agent.id.clone());
    let text = NewMessage::assistant("done", ResponseId::new("r"));
    store.end_turn(lease, id, vec![usage(cost), text], Ending::Answered).await.unwrap();
}

/// Per row: what caused it, the agent, requests, unreported ones, cost.
async fn spending(store: &TestStore) -> Vec<(String, String, u64, u64, u64)> {
    let all = store.spending(None, Process::current()).await.unwrap();
    let row = |spending: Spending| {
        let cause = spending.cause.map_or("earlier".to_owned(), |cause| cause.title);
        let Spending { agent, requests, unreported, cost, .. } = spending;
        (cause, agent.to_string(), requests, unreported, cost)
    };
    all.into_iter().map(row).collect()
}

fn row(cause: &str, agent: &str, counts: (u64, u64, u64)) -> (String, String, u64, u64, u64) {
    (cause.to_owned(), agent.to_owned(), counts.0, counts.1, counts.2)
}

#[tokio::test]
async fn requests_belong_to_the_message_that_caused_them_also_those_of_other_agents() {
    let store = super::store();
    let (session, mut agents) = store.session_of(2).await;
    say(&store, &agents[0], "first").await;
    go_on(&store, &agents[0], Some(5)).await;
    let fork = new_fork(ikigai_store::ForkContext::Fresh, Some("help"));
    let child = agents[0].fork(&store, fork).await.unwrap();
    store.resume(child.lease.clone(), child.id.clone(), None).await.unwrap();
    answer(&store, &child, Some(7)).await;
    // The child has reported to its parent, so the parent has mail.
    answer(&store, &agents[0], Some(11)).await;
    let to = agents[1].id.clone();
    agents[0].call(&store, send_to(&to, "look")).await.unwrap();
    let (lease, id) = (agents[1].lease.clone(), agents[1].id.clone());
    let told = store.announce(lease, id, None, |unread| {
        NewMessage::notification("mail", unread.all_new.clone())
    });
    assert_eq!(told.await.unwrap().len(), 1);
    answer(&store, &agents[1], None).await;
    say(&store, &agents[0], "second").await;
    answer(&store, &agents[0], Some(13)).await;
    let expected = [
        row("first", "0/", (2, 0, 16)),
        row("first", "0/0/", (1, 0, 7)),
        row("first", "1/", (1, 0, 0)),
        row("second", "0/", (1, 0, 13)),
    ];
    assert_eq!(spending(&store).await, expected);
    let all = store.spending(Some(session), Process::current()).await.unwrap();
    assert_eq!(all.iter().map(|one| one.unpriced).collect::<Vec<_>>(), [0, 0, 1, 0]);
    assert_eq!((all[0].input_tokens, all[0].cached_tokens, all[0].output_tokens), (200, 160, 20));
    let spent = store.spent(session, agents[0].id.clone()).await.unwrap();
    assert_eq!((spent.message, spent.session), (13, 36));
    let spent = store.spent(session, agent("1/")).await.unwrap();
    assert_eq!(spent.message, 23);
}

#[tokio::test]
async fn a_request_that_dies_with_its_process_is_unreported_once() {
    let store = super::store();
    let (session, agents) = store.session_of(1).await;
    say(&store, &agents[0], "go").await;
    // It is on its way.
    assert_eq!(spending(&store).await, []);
    // The process is gone: nobody holds the lease.
    store.advance(Duration::from_secs(3600));
    let lost = [row("go", "0/", (0, 1, 0))];
    assert_eq!(spending(&store).await, lost);
    let again = TestAgent::claim(&store, session, agent("0/")).await.unwrap();
    assert_eq!(spending(&store).await, lost);
    say(&store, &again, "again").await;
    answer(&store, &again, Some(3)).await;
    let expected = [lost[0].clone(), row("again", "0/", (1, 0, 3))];
    assert_eq!(spending(&store).await, expected);
}

#[tokio::test]
async fn a_request_that_was_not_sent_is_not_counted() {
    let store = super::store();
    let (session, agents) = store.session_of(1).await;
    say(&store, &agents[0], "go").await;
    // The user adds something before the request, and it fails without being billed.
    say(&store, &agents[0], "and this").await;
    let (lease, id) = (agents[0].lease.clone(), agents[0].id.clone());
    let failed = Ending::Failed("no connection".to_owned());
    store.end_turn(lease, id, vec![], failed).await.unwrap();
    TestAgent::claim(&store, session, agent("0/")).await.unwrap();
    assert_eq!(spending(&store).await, []);
}

#[tokio::test]
async fn a_request_of_a_killed_agent_is_unreported() {
    let store = super::store();
    let (_, mut agents) = store.session_of(1).await;
    say(&store, &agents[0], "go").await;
    answer(&store, &agents[0], Some(1)).await;
    let fork = new_fork(ikigai_store::ForkContext::Fresh, Some("help"));
    let child = agents[0].fork(&store, fork).await.unwrap();
    store.resume(child.lease.clone(), child.id.clone(), None).await.unwrap();
    agents[0].kill(&store, &child.id).await.unwrap();
    let expected = [row("go", "0/", (1, 0, 1)), row("go", "0/0/", (0, 1, 0))];
    // The killer's own request after its call is on its way.
    assert_eq!(spending(&store).await, expected);
}

#[tokio::test]
async fn a_request_without_a_report_is_settled_with_what_it_lost() {
    let store = super::store();
    let (session, agents) = store.session_of(1).await;
    say(&store, &agents[0], "go").await;
    let (lease, id) = (agents[0].lease.clone(), agents[0].id.clone());
    store.settle_request(lease.clone(), id.clone(), 3).await.unwrap();
    store.settle_request(lease, id, 0).await.unwrap();
    TestAgent::claim(&store, session, agent("0/")).await.unwrap();
    assert_eq!(spending(&store).await, [row("go", "0/", (0, 3, 0))]);
}

#[tokio::test]
async fn a_copy_and_a_removal_take_the_spending_along() {
    let (store, other) = (super::store(), super::store());
    let (session, agents) = store.session_of(1).await;
    say(&store, &agents[0], "go").await;
    answer(&store, &agents[0], Some(5)).await;
    store.release(agents[0].lease.clone()).await.unwrap();
    store.copy_session(session, &other, Process::current()).await.unwrap();
    store.remove_session(session, Process::current()).await.unwrap();
    assert_eq!(spending(&store).await, []);
    assert_eq!(spending(&other).await, [row("go", "0/", (1, 0, 5))]);
}
