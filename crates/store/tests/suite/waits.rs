//! Waiting: when a wait is over, what it reports, and cycles.

use ikigai_conversation::NewMessage;
use ikigai_store::{
    Ending, ForkContext, Lease, Next, Outcome, Process, Refusal, Sleep, StartedWait, Status, Step,
    Wait, WaitReport,
};
use ikigai_testkit::{
    PLENTY, TestAgent, TestStore, by_id, location, new_fork, output_of, said, wait_for,
};
use serde_json::json;

use crate::support::{agent, check_database, to_wake};

async fn begin(store: &TestStore, waiter: &TestAgent, wait: Wait) -> Result<StartedWait, Refusal> {
    store.start_wait(waiter.lease.clone(), waiter.id.clone(), wait).await.unwrap()
}

async fn is_over(store: &TestStore, waiter: &TestAgent, waiting: &StartedWait) -> bool {
    store.wait_is_over(waiter.session(), waiter.id.clone(), waiting.clone()).await.unwrap()
}

/// What the user sees of a wait.
async fn shown(store: &TestStore, waiter: &TestAgent, waiting: &StartedWait) -> WaitReport {
    let (session, id) = (waiter.session(), waiter.id.clone());
    let step = Step::EndWait(waiting.clone());
    match store.perform(session, id, step, Some(PLENTY)).await.unwrap() {
        Outcome::WaitEnded(waited) => waited,
        other => panic!("{other:?}"),
    }
}

fn statuses(waited: &WaitReport) -> Vec<Status> {
    waited.results.iter().map(|result| result.status.clone()).collect()
}

fn edges(store: &TestStore) -> i64 {
    store.number("SELECT count(*) FROM waits")
}

fn mail(store: &TestStore) -> Vec<(String, String)> {
    let sql = "SELECT s.id, m.body FROM mail m JOIN agents s ON s.key = m.sender ORDER BY m.id";
    store.raw().rows(sql, |row| (row.text(0).unwrap(), row.text(1).unwrap()))
}

async fn family(store: &TestStore) -> (TestAgent, TestAgent, TestAgent) {
    let (_, mut agents) = store.session_of(1).await;
    let mut root = agents.remove(0);
    let task = || new_fork(ForkContext::Fresh, Some("task"));
    let one = root.fork(store, task()).await.unwrap();
    let two = root.fork(store, task()).await.unwrap();
    (root, one, two)
}

#[tokio::test]
async fn a_wait_is_over_when_all_are_idle_or_dead() {
    let store = super::store();
    let (mut root, one, two) = family(&store).await;
    let waiting = begin(&store, &root, wait_for(&[])).await.unwrap();
    assert_eq!(edges(&store), 2, "all children");
    assert!(!is_over(&store, &root, &waiting).await, "they work from their first commit on");
    one.answer(&store, "the answer").await;
    assert!(!is_over(&store, &root, &waiting).await);
    let now = shown(&store, &root, &waiting).await;
    assert_eq!(statuses(&now), [Status::Answered("the answer".to_owned()), Status::Running]);
    assert_eq!(edges(&store), 2, "a user command removes no edges");
    let (lease, id) = (root.lease.clone(), root.id.clone());
    store.act(lease, id, Step::Kill(by_id(&two.id)), PLENTY).await.unwrap();
    assert!(is_over(&store, &root, &waiting).await);
    let result = root.call(&store, Step::EndWait(waiting)).await.unwrap();
    let expected =
        json!({"results": [["0/0/", "idle: the answer"], ["0/1/", "dead"]], "unread": 0});
    assert_eq!(output_of(&result)["data"], expected);
    assert_eq!(edges(&store), 0);
    assert_eq!(mail(&store), [], "the wait told it");
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn a_failed_turn_is_reported_by_its_error_until_the_next_one() {
    let store = super::store();
    let (root, one, _) = family(&store).await;
    let waiting = begin(&store, &root, wait_for(&[&one.id])).await.unwrap();
    let status = async || statuses(&shown(&store, &root, &waiting).await).remove(0);
    one.end(&store, Vec::new(), Ending::Failed("no model".to_owned())).await.unwrap();
    assert_eq!(status().await, Status::Failed("no model".to_owned()));
    let again =
        || store.append_user_input(one.lease.clone(), one.id.clone(), said("again", PLENTY));
    again().await.unwrap();
    one.end(&store, Vec::new(), Ending::Interrupted).await.unwrap();
    assert_eq!(status().await, Status::Failed("Interrupted".to_owned()));
    again().await.unwrap();
    assert_eq!(status().await, Status::Running);
    one.answer(&store, "at last").await;
    assert_eq!(status().await, Status::Answered("at last".to_owned()));
    // The answer is that of the last turn, and hidden answers do not count.
    again().await.unwrap();
    one.sleep(&store).await.unwrap();
    assert_eq!(status().await, Status::Answered(String::new()));
    let to = store.own_log(one.session(), one.id.clone(), None).await.unwrap()[0].id;
    again().await.unwrap();
    one.answer(&store, "rewound").await;
    one.rewind(&store, to).await.unwrap();
    assert_eq!(status().await, Status::Answered(String::new()));
}

#[tokio::test]
async fn unannounced_mail_ends_a_wait_and_is_announced_by_it() {
    let store = super::store();
    let (mut root, mut one, _) = family(&store).await;
    let waiting = begin(&store, &root, wait_for(&[&one.id])).await.unwrap();
    one.send(&store, &root.id, "a question").await;
    assert!(is_over(&store, &root, &waiting).await);
    let result = root.call(&store, Step::EndWait(waiting)).await.unwrap();
    let expected = json!({"results": [["0/0/", "running"]], "unread": 1});
    assert_eq!(output_of(&result)["data"], expected);
    let told: i64 = store.number("SELECT told_by FROM mail");
    assert_eq!(told, result.id.value(), "told by the result");
    assert!(root.announce(&store).await.unwrap().is_none(), "not twice");
    // It is still unread, but was announced.
    let waiting = begin(&store, &root, wait_for(&[&one.id])).await.unwrap();
    assert!(!is_over(&store, &root, &waiting).await);
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn an_idle_agent_that_mail_will_wake_is_at_work() {
    let store = super::store();
    let (mut root, one, _) = family(&store).await;
    one.answer(&store, "ready").await;
    root.look(&store).await;
    root.send(&store, &one.id, "one more thing").await;
    let waiting = begin(&store, &root, wait_for(&[&one.id])).await.unwrap();
    assert!(!is_over(&store, &root, &waiting).await);
    one.announce(&store).await.unwrap().unwrap();
    one.answer(&store, "done that").await;
    assert!(is_over(&store, &root, &waiting).await);
    let answered = Status::Answered("done that".to_owned());
    assert_eq!(statuses(&shown(&store, &root, &waiting).await), [answered]);
}

#[tokio::test]
async fn agents_never_wait_in_a_cycle() {
    let store = super::store();
    let (root, one, two) = family(&store).await;
    let check = async |waiter: &TestAgent, awaited: &TestAgent, text: &str| {
        let refused = begin(&store, waiter, wait_for(&[&awaited.id])).await.unwrap_err();
        assert_eq!(refused.to_string(), text);
    };
    check(&root, &root, "Agent 0/ cannot wait for itself").await;
    begin(&store, &root, wait_for(&[&one.id])).await.unwrap();
    check(&one, &root, "Waiting cycle: 0/0/ waits for 0/ waits for 0/0/").await;
    begin(&store, &one, wait_for(&[&two.id])).await.unwrap();
    let three = "Waiting cycle: 0/1/ waits for 0/ waits for 0/0/ waits for 0/1/";
    check(&two, &root, three).await;
    assert_eq!(edges(&store), 2, "what was refused leaves nothing");
    // Even if only one of several agents would close it, and for a user command too.
    let wait = || wait_for(&[&agent("0/"), &agent("0/0/")]);
    assert!(begin(&store, &two, wait()).await.is_err());
    let watched = store.watch(two.session(), two.id.clone(), wait()).await.unwrap();
    assert!(matches!(watched, Err(Refusal::Cycle(_))));
    // Two agents that wait for the same one are no cycle.
    begin(&store, &root, wait_for(&[&one.id, &two.id, &one.id])).await.unwrap();
    let unknown = begin(&store, &root, wait_for(&[&agent("9/")])).await.unwrap_err();
    assert_eq!(unknown.to_string(), "Agent 9/ not found");
}

/// Another process runs the other agent, which is only in the database.
#[tokio::test]
async fn a_cycle_is_seen_across_processes_and_dead_processes_do_not_count() {
    let store = super::store();
    let (session, agents) = store.session_of(1).await;
    let root = &agents[0];
    let other = store.open_again();
    let added = other.add_agent(session, None, location(), crate::support::ROOM).await.unwrap();
    let stranger = Process { machine: "elsewhere".to_owned(), pid: 1, ..Process::current() };
    let lease = other.claim(session, added.clone(), stranger).await.unwrap();
    other.start_wait(lease, added.clone(), wait_for(&[&root.id])).await.unwrap().unwrap();
    let refused = begin(&store, root, wait_for(&[&added])).await.unwrap_err();
    assert_eq!(refused.to_string(), "Waiting cycle: 0/ waits for 1/ waits for 0/");
    // The stranger's lease is not renewed, so what it left behind does not block waits.
    store.advance(Lease::DURATION);
    store.renew(root.lease.clone()).await.unwrap();
    begin(&store, root, wait_for(&[&added])).await.unwrap();
}

#[tokio::test]
async fn taking_over_an_agent_removes_the_edges_of_its_waits() {
    let store = super::store();
    let (root, one, _) = family(&store).await;
    begin(&store, &root, wait_for(&[&one.id])).await.unwrap();
    one.answer(&store, "done").await;
    assert_eq!(mail(&store), [], "its parent waits");
    TestAgent::claim(&store, root.session(), root.id.clone()).await.unwrap();
    assert_eq!(edges(&store), 0);
    // The wait will not report it any more, so it is mailed.
    assert_eq!(mail(&store), [("0/0/".to_owned(), "done".to_owned())]);
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn an_interrupted_wait_reports_nothing_and_loses_nothing() {
    let store = super::store();
    let (mut root, one, two) = family(&store).await;
    begin(&store, &root, wait_for(&[])).await.unwrap();
    one.answer(&store, "done").await;
    let result = root.call(&store, Step::AbandonWait).await.unwrap();
    assert_eq!(output_of(&result)["error"], "Interrupted");
    assert_eq!((edges(&store), mail(&store).len()), (0, 1));
    two.answer(&store, "done, too").await;
    assert_eq!(mail(&store).len(), 2);
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn a_report_is_sent_to_the_parent_exactly_once() {
    let store = super::store();
    let (root, one, _) = family(&store).await;
    assert_eq!(one.answer(&store, " the result\n").await, Sleep::Asleep);
    assert_eq!(mail(&store), [("0/0/".to_owned(), "the result".to_owned())]);
    let session = root.session();
    root.sleep(&store).await.unwrap();
    assert_eq!(to_wake(&store, session).await, [], "it did not fall asleep");
    root.announce(&store).await.unwrap().expect("it is told");
    // Not again.
    let again = said("again", PLENTY);
    store.append_user_input(one.lease.clone(), one.id.clone(), again).await.unwrap();
    one.answer(&store, "more").await;
    assert_eq!(mail(&store).len(), 1);
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn a_report_is_the_error_of_a_failed_turn_and_absent_after_an_interrupt() {
    let store = super::store();
    let (_, one, two) = family(&store).await;
    one.end(&store, Vec::new(), Ending::Failed("no model".to_owned())).await.unwrap();
    assert_eq!(mail(&store), [("0/0/".to_owned(), "Error: no model".to_owned())]);
    two.end(&store, vec![NewMessage::interrupted(None)], Ending::Interrupted).await.unwrap();
    store.resume(two.lease.clone(), two.id.clone(), Some(PLENTY)).await.unwrap();
    two.answer(&store, "later").await;
    assert_eq!(mail(&store).len(), 1, "an interrupt uses it up");
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn a_child_that_wrote_to_its_parent_owes_no_report() {
    let store = super::store();
    let (root, mut one, mut two) = family(&store).await;
    one.send(&store, &root.id, "here you are").await;
    one.answer(&store, "I have written").await;
    assert_eq!(mail(&store).len(), 1);
    // Mail to another agent does not count, and neither does mail from the user.
    two.send(&store, &one.id, "hello").await;
    let step = ikigai_testkit::send_to(&root.id, "user");
    store.perform(two.session(), two.id.clone(), step, Some(PLENTY)).await.unwrap();
    two.answer(&store, "the result").await;
    let last = mail(&store).pop().unwrap();
    assert_eq!(last, ("0/1/".to_owned(), "the result".to_owned()));
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn a_child_without_a_task_owes_no_report() {
    let store = super::store();
    let (_, mut agents) = store.session_of(1).await;
    let child = agents[0].fork(&store, new_fork(ForkContext::Full, None)).await.unwrap();
    let hello = said("hello", PLENTY);
    store.append_user_input(child.lease.clone(), child.id.clone(), hello).await.unwrap();
    child.answer(&store, "hello").await;
    assert_eq!(mail(&store), []);
}

#[tokio::test]
async fn a_wait_that_ended_too_early_leaves_the_report_owed() {
    let store = super::store();
    let (mut root, one, two) = family(&store).await;
    let waiting = begin(&store, &root, wait_for(&[])).await.unwrap();
    one.answer(&store, "heard").await;
    // As at its time limit.
    root.call(&store, Step::EndWait(waiting)).await.unwrap();
    two.answer(&store, "too late").await;
    assert_eq!(mail(&store), [("0/1/".to_owned(), "too late".to_owned())]);
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn a_waiting_sibling_does_not_keep_the_report_from_the_parent() {
    let store = super::store();
    let (_, one, mut two) = family(&store).await;
    let waiting = begin(&store, &two, wait_for(&[&one.id])).await.unwrap();
    one.answer(&store, "done").await;
    two.call(&store, Step::EndWait(waiting)).await.unwrap();
    assert_eq!(mail(&store), [("0/0/".to_owned(), "done".to_owned())]);
}

#[tokio::test]
async fn a_full_mailbox_postpones_the_report() {
    let store = super::fast_store();
    let (root, one, mut two) = family(&store).await;
    for _ in 0..ikigai_store::MAILBOX_LIMIT {
        let step = ikigai_testkit::send_to(&root.id, "user");
        store.perform(two.session(), two.id.clone(), step, Some(PLENTY)).await.unwrap();
    }
    assert_eq!(one.answer(&store, "no room").await, Sleep::Asleep);
    let by_one =
        "SELECT count(*) FROM mail m JOIN agents a ON a.key = m.sender WHERE a.id = '0/0/'";
    assert_eq!(store.number(by_one), 0);
    let mut reader = root.clone();
    reader.read(&store, ikigai_conversation::MailId::new(1).unwrap()).await;
    two.append(&store, NewMessage::user("x"), Next::Request).await.unwrap();
    one.answer(&store, "now").await;
    assert_eq!(store.number(by_one), 1);
    two.look(&store).await;
}

#[tokio::test]
async fn a_report_is_sent_when_the_child_is_idle_and_not_while_mail_keeps_it_awake() {
    let store = super::store();
    let (mut root, one, _) = family(&store).await;
    root.send(&store, &one.id, "one more thing").await;
    assert_eq!(one.answer(&store, "first").await, Sleep::MailWaits);
    assert_eq!(mail(&store).len(), 1, "only that of the parent");
    one.announce(&store).await.unwrap().unwrap();
    assert_eq!(one.answer(&store, "second").await, Sleep::Asleep);
    assert_eq!(mail(&store).pop().unwrap(), ("0/0/".to_owned(), "second".to_owned()));
    check_database(store.database(), &[]);
}
