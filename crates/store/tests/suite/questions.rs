//! Questions: every terminal of the session can answer, and the first answer wins.

use ikigai_conversation::NewMessage;
use ikigai_store::{AnswerOutcome, AnswersFrom, NewQuestion, Next, QuestionId, Respondent, Store};
use ikigai_testkit::{TestAgent, TestStore};

use crate::support::{agent, check_database, kill_by_hand};

fn question(hash: &str, answers_from: AnswersFrom) -> NewQuestion {
    let request = format!("request {hash}");
    NewQuestion { hash: hash.to_owned(), request, asker: Respondent::current(), answers_from }
}

async fn ask(store: &Store, agent: &TestAgent, question: NewQuestion) -> QuestionId {
    store.ask(agent.lease.clone(), agent.id.clone(), question).await.unwrap()
}

async fn answer(
    store: &TestStore,
    agent: &TestAgent,
    hash: &str,
    text: &str,
    by: Respondent,
) -> AnswerOutcome {
    let (hash, text) = (hash.to_owned(), text.to_owned());
    store.answer(agent.session(), agent.id.clone(), hash, text, by).await.unwrap()
}

#[track_caller]
fn is_taken(outcome: &AnswerOutcome) {
    assert!(matches!(outcome, AnswerOutcome::Taken(_)), "{outcome:?}");
}

#[tokio::test]
async fn the_first_answer_wins_and_the_process_that_asks_gets_it() {
    let store = super::store();
    let (session, agents) = store.session_of(2).await;
    let id = ask(&store, &agents[1], question("h", AnswersFrom::SameUser)).await;
    let open = store.questions(session).await.unwrap();
    assert_eq!((open.len(), &open[0].agent, &*open[0].request), (1, &agent("1/"), "request h"));
    assert_eq!(store.agents(session).await.unwrap()[1].state.name(), "asking");
    assert_eq!(store.answer_to(id).await.unwrap(), None);
    is_taken(&answer(&store, &agents[1], "h", "yes", Respondent::current()).await);
    let late = answer(&store, &agents[1], "h", "no", Respondent::current()).await;
    assert_eq!(late, AnswerOutcome::TooLate);
    assert_eq!(store.answer_to(id).await.unwrap().as_deref(), Some("yes"));
    assert_eq!(store.questions(session).await.unwrap(), []);
    check_database(store.database(), &[]);
}

/// A dialog may still show what the agent asked before.
#[tokio::test]
async fn an_answer_counts_for_exactly_the_request_that_was_shown() {
    let store = super::store();
    let (session, agents) = store.session_of(1).await;
    ask(&store, &agents[0], question("one", AnswersFrom::SameUser)).await;
    let id = ask(&store, &agents[0], question("two", AnswersFrom::SameUser)).await;
    let stale = answer(&store, &agents[0], "one", "yes", Respondent::current()).await;
    assert_eq!(stale, AnswerOutcome::NoQuestion);
    assert_eq!(store.answer_to(id).await.unwrap(), None);
    assert_eq!(store.questions(session).await.unwrap().len(), 1);
    is_taken(&answer(&store, &agents[0], "two", "yes", Respondent::current()).await);
}

#[tokio::test]
async fn others_may_answer_only_if_the_asking_user_allows_it() {
    let store = super::store();
    let (_, agents) = store.session_of(2).await;
    let current = Respondent::current;
    let other_user = || Respondent { user: current().user + 1, ..current() };
    let mut other_machine = current();
    "another".clone_into(&mut other_machine.process.machine);
    ask(&store, &agents[0], question("h", AnswersFrom::SameUser)).await;
    for stranger in [other_user(), other_machine] {
        let refused = answer(&store, &agents[0], "h", "yes", stranger).await;
        assert_eq!(refused, AnswerOutcome::NotAllowed);
    }
    ask(&store, &agents[1], question("h", AnswersFrom::Everywhere)).await;
    is_taken(&answer(&store, &agents[1], "h", "yes", other_user()).await);
}

#[tokio::test]
async fn a_question_is_over_when_its_agent_does_not_ask_any_more() {
    let store = super::store();
    let (session, agents) = store.session_of(2).await;
    for asking in &agents {
        ask(&store, asking, question("h", AnswersFrom::SameUser)).await;
    }
    let note = NewMessage::user("interrupted");
    agents[1].append(&store, note, Next::Tool).await.unwrap();
    assert_eq!(store.questions(session).await.unwrap().len(), 1);
    let late = answer(&store, &agents[1], "h", "yes", Respondent::current()).await;
    assert_eq!(late, AnswerOutcome::NoQuestion);
    kill_by_hand(&store, &agents[1], &agent("0/")).await.unwrap();
    assert_eq!(store.questions(session).await.unwrap(), []);
    let dead = answer(&store, &agents[0], "h", "yes", Respondent::current()).await;
    assert_eq!(dead, AnswerOutcome::NoQuestion);
}

#[tokio::test]
async fn a_process_that_lost_its_agent_cannot_ask() {
    let store = super::store();
    let (session, agents) = store.session_of(1).await;
    store.release(agents[0].lease.clone()).await.unwrap();
    let (lease, id) = (agents[0].lease.clone(), agents[0].id.clone());
    let asked = store.ask(lease, id, question("h", AnswersFrom::SameUser)).await;
    assert!(asked.is_err(), "{asked:?}");
    assert_eq!(store.questions(session).await.unwrap(), []);
}
