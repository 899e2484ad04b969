//! M4, M6: each mail is announced once, and found even if signals are lost. Wakes are budgeted.

use std::time::Duration;

use ikigai_conversation::{Body, Message};
use ikigai_store::{Budget, Ending, Next, Outcome, Requests, Sleep, Step};
use ikigai_testkit::driver::Plan;
use ikigai_testkit::{PLENTY, TestAgent, TestStore, result_of, said, send_to};

use super::mail::marks;
use crate::support::{PATIENCE, agent, check_database, child, free_agents, to_wake};

fn announced(message: &Message) -> Vec<i64> {
    match &message.body {
        Body::Notification(notification) => {
            notification.mail.iter().map(|mail| mail.value()).collect()
        }
        _ => panic!("no notification: {message:?}"),
    }
}

async fn end_turn(store: &TestStore, agent: &TestAgent, ending: Ending) -> Sleep {
    let (lease, id) = (agent.lease.clone(), agent.id.clone());
    store.end_turn(lease, id, Vec::new(), ending).await.unwrap().sleep
}

async fn person_says(store: &TestStore, agent: &TestAgent, budget: Budget) {
    let (lease, id) = (agent.lease.clone(), agent.id.clone());
    store.append_user_input(lease, id, said("go on", budget)).await.unwrap();
}

#[tokio::test]
async fn m4_each_mail_is_announced_once_and_only_what_is_new() {
    let store = super::store();
    let (_, mut agents) = store.session_of(2).await;
    let [sender, reader] = &mut agents[..] else { panic!() };
    for number in 0..7 {
        sender.send(&store, &reader.id, &format!("mail {number}")).await;
    }
    let first = reader.announce(&store).await.unwrap().unwrap();
    assert_eq!(announced(&first), [7, 6, 5, 4, 3, 2, 1]);
    assert!(reader.announce(&store).await.unwrap().is_none());
    sender.send(&store, &reader.id, "one more").await;
    let second = reader.announce(&store).await.unwrap().unwrap();
    assert_eq!(announced(&second), [8]);
    let told: Vec<_> = marks(&store).iter().map(|mark| mark.1).collect();
    let expected = [vec![Some(first.id.value()); 7], vec![Some(second.id.value())]].concat();
    assert_eq!(told, expected);
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn m4_the_notification_its_marks_and_its_wake_are_one_commit() {
    let store = super::store();
    let (_, mut agents) = store.session_of(2).await;
    let [sender, reader] = &mut agents[..] else { panic!() };
    sender.send(&store, &reader.id, "hello").await;
    let state = "SELECT (SELECT count(*) FROM messages) * 1000000 + wakes_left FROM sessions";
    let before = (store.number(state), marks(&store));
    store.raw().refuse("UPDATE OF wakes_left ON sessions", "1 = 1");
    reader.announce(&store).await.unwrap_err();
    assert_eq!((store.number(state), marks(&store)), before);
    store.raw().allow("sessions");
    assert_eq!(announced(&reader.announce(&store).await.unwrap().unwrap()), [1]);
    assert_eq!(store.number("SELECT wakes_left FROM sessions"), i64::from(PLENTY.wakes) - 1);
}

#[tokio::test]
async fn m4_what_the_agent_saw_first_is_not_announced() {
    let store = super::store();
    let (session, mut agents) = store.session_of(2).await;
    let [sender, reader] = &mut agents[..] else { panic!() };
    sender.send(&store, &reader.id, "listed").await;
    reader.look(&store).await;
    let read = sender.send(&store, &reader.id, "read").await;
    reader.read(&store, read).await;
    assert!(reader.announce(&store).await.unwrap().is_none());
    assert_eq!(end_turn(&store, reader, Ending::Answered).await, Sleep::Asleep);
    // Mail that only the user listed is still new for the model. Mail that the user read is not.
    sender.send(&store, &reader.id, "listed by the user").await;
    let by_user = sender.send(&store, &reader.id, "read by the user").await;
    for step in [ikigai_testkit::everything(), Step::Read(by_user.value())] {
        store.perform(session, reader.id.clone(), step, None).await.unwrap();
    }
    assert_eq!(announced(&reader.announce(&store).await.unwrap().unwrap()), [3]);
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn m4_unread_again_is_announced_again() {
    let store = super::store();
    let (session, mut agents) = store.session_of(2).await;
    let [sender, reader] = &mut agents[..] else { panic!() };
    let mail = sender.send(&store, &reader.id, "hello").await;
    reader.read(&store, mail).await;
    store.perform(session, reader.id.clone(), Step::Unread(mail.value()), None).await.unwrap();
    assert_eq!(announced(&reader.announce(&store).await.unwrap().unwrap()), [1]);
}

#[tokio::test]
async fn m4_pending_from_the_notification_until_the_agent_looks() {
    let store = super::store();
    let (session, mut agents) = store.session_of(2).await;
    let [sender, reader] = &mut agents[..] else { panic!() };
    let mail = sender.send(&store, &reader.id, &"x".repeat(1_001)).await;
    let pending = async || store.agents(session).await.unwrap()[1].notification_pending;
    assert!(!pending().await);
    reader.announce(&store).await.unwrap();
    assert!(pending().await);
    let to = reader.id.clone();
    reader.call(&store, send_to(&to, "to myself")).await.unwrap();
    reader.call(&store, Step::Read(99)).await.unwrap();
    assert!(pending().await, "sending and errors do not clear it");
    reader.read(&store, mail).await;
    assert!(!pending().await);
}

/// The marks `(told_by, read_by, unread)` of every mail, in the order of ids.
fn looks(store: &TestStore) -> Vec<(Option<i64>, Option<i64>, bool)> {
    marks(store).into_iter().map(|(_, told, read, unread)| (told, read, unread)).collect()
}

#[tokio::test]
async fn m3_what_a_notification_shows_whole_is_read_in_its_commit() {
    let store = super::store();
    let (session, mut agents) = store.session_of(2).await;
    let [sender, reader] = &mut agents[..] else { panic!() };
    sender.send(&store, &reader.id, &"x".repeat(1_000)).await;
    let before = looks(&store);
    store.raw().refuse("UPDATE OF wakes_left ON sessions", "1 = 1");
    reader.announce(&store).await.unwrap_err();
    assert_eq!(looks(&store), before, "nothing is told and nothing is read");
    store.raw().allow("sessions");
    let told = Some(reader.announce(&store).await.unwrap().unwrap().id.value());
    assert_eq!(looks(&store), [(told, told, false)]);
    let reader = &store.agents(session).await.unwrap()[1];
    assert_eq!((reader.unread, reader.notification_pending), (0, false));
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn m3_longer_mail_and_what_is_not_shown_is_only_announced() {
    let store = super::store();
    let (session, mut agents) = store.session_of(2).await;
    let [sender, reader] = &mut agents[..] else { panic!() };
    sender.send(&store, &reader.id, "short, but the sixth").await;
    sender.send(&store, &reader.id, &"x".repeat(1_001)).await;
    for number in 0..4 {
        sender.send(&store, &reader.id, &format!("short {number}")).await;
    }
    let told = Some(reader.announce(&store).await.unwrap().unwrap().id.value());
    let (unread, read) = ((told, None, true), (told, told, false));
    assert_eq!(looks(&store), [unread, unread, read, read, read, read]);
    let reader = &store.agents(session).await.unwrap()[1];
    assert_eq!((reader.unread, reader.notification_pending), (2, true));
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn m5_a_result_that_ends_the_turn_is_committed_with_its_end() {
    let store = super::store();
    let (session, mut agents) = store.session_of(2).await;
    let [sender, other] = &mut agents[..] else { panic!() };
    person_says(&store, sender, PLENTY).await;
    let end_by_sending = async |agent: &mut TestAgent, to: &TestAgent| {
        let call = agent.open(&store).await.unwrap();
        let render = move |outcome: &Outcome| result_of(&call, outcome).ending_turn();
        let (lease, id) = (agent.lease.clone(), agent.id.clone());
        store.close_call(lease, id, send_to(&to.id, "over to you"), render, Next::Request).await
    };
    let requests = || store.number("SELECT requests_left FROM sessions");
    let in_turn = || store.number("SELECT in_turn FROM agents WHERE id = '0/'");
    let (before, state) =
        (requests(), async |agent: usize| store.agents(session).await.unwrap()[agent].state.name());
    store.raw().refuse("UPDATE OF state ON agents", "NEW.state = 'idle'");
    end_by_sending(sender, other).await.unwrap_err();
    assert_eq!((store.number("SELECT count(*) FROM mail"), in_turn()), (0, 1));
    store.raw().allow("agents");
    let ended = end_by_sending(sender, other).await.unwrap();
    assert_eq!(ended.requests, Requests::NotNeeded(Sleep::Asleep));
    assert_eq!((requests(), in_turn(), state(0).await), (before, 0, "idle"));
    // If mail is waiting, the sender stays awake for it.
    person_says(&store, sender, PLENTY).await;
    other.send(&store, &sender.id, "hello").await;
    let ended = end_by_sending(sender, other).await.unwrap();
    assert_eq!(ended.requests, Requests::NotNeeded(Sleep::MailWaits));
    assert_eq!((in_turn(), state(0).await), (0, "tool"));
    assert!(sender.announce(&store).await.unwrap().is_some());
}

#[tokio::test]
async fn m5_an_agent_with_new_mail_does_not_go_idle() {
    let store = super::store();
    let (session, mut agents) = store.session_of(2).await;
    let [sender, reader] = &mut agents[..] else { panic!() };
    assert_eq!(end_turn(&store, reader, Ending::Answered).await, Sleep::Asleep);
    person_says(&store, reader, PLENTY).await;
    sender.send(&store, &reader.id, "hello").await;
    assert_eq!(end_turn(&store, reader, Ending::Answered).await, Sleep::MailWaits);
    assert_eq!(store.agents(session).await.unwrap()[1].state.name(), "waiting");
    reader.announce(&store).await.unwrap().unwrap();
    assert_eq!(end_turn(&store, reader, Ending::Answered).await, Sleep::Asleep);
}

#[tokio::test]
async fn m6_without_any_signal_one_query_finds_the_agents_to_wake() {
    let store = super::store();
    let session = free_agents(&store, 3).await;
    let mut plan = Plan::new(store.database(), session, 3, 0);
    // A driver with a fault only sends, which is all that is needed here.
    (plan.fault, plan.steps, plan.seed) = (ikigai_testkit::driver::Fault::Torn, 12, 3);
    assert!(child("driver", &plan.arguments()).status().unwrap().success());
    let waiting = "SELECT count(DISTINCT recipient) FROM mail WHERE recipient <> sender";
    assert_eq!(store.number(waiting), 2, "the other two were written to");
    let mut found = to_wake(&store, session).await;
    found.retain(|id| *id != agent("0/"));
    assert_eq!(found, [agent("1/"), agent("2/")]);
    // The driver ended in the middle of its turn, so its own agent is not idle.
    let one = TestAgent::claim(&store, session, agent("1/")).await.unwrap();
    one.announce(&store).await.unwrap().unwrap();
    let mut found = to_wake(&store, session).await;
    found.retain(|id| *id != agent("0/"));
    assert_eq!(found, [agent("2/")]);
}

#[tokio::test]
async fn m6_the_commit_of_another_process_is_noticed() {
    let store = super::store();
    let session = free_agents(&store, 2).await;
    let mut changes = store.changes(session).unwrap();
    // The changes of this process may be reported first.
    changes.wait(Duration::ZERO).await.unwrap();
    let plan = Plan::new(store.database(), session, 2, 0);
    let noticed = tokio::spawn(async move { changes.wait(10 * PATIENCE).await });
    assert!(child("driver", &plan.arguments()).status().unwrap().success());
    // It would otherwise wait ten times longer than this.
    tokio::time::timeout(PATIENCE, noticed).await.expect("noticed").unwrap().unwrap();
}

#[tokio::test]
async fn m6_a_change_is_not_forgotten_when_a_wait_is_dropped() {
    let store = super::store();
    let session = free_agents(&store, 2).await;
    let mut changes = store.changes(session).unwrap();
    changes.wait(Duration::ZERO).await.unwrap();
    let other = store.open_again();
    for _ in 0..3 {
        let step = send_to(&agent("1/"), "user");
        other.perform(session, agent("0/"), step, None).await.unwrap();
        {
            let mut dropped = Box::pin(changes.wait(10 * PATIENCE));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            if dropped.as_mut().poll(&mut context).is_ready() {
                continue;
            }
        }
        tokio::time::timeout(PATIENCE, changes.wait(10 * PATIENCE)).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn held_mail_is_reported_once_until_the_user_speaks() {
    let store = super::store();
    let (_, mut agents) = store.session_of(2).await;
    let [sender, reader] = &mut agents[..] else { panic!() };
    let none = Budget { wakes: 0, requests: 10 };
    for _ in 0..2 {
        person_says(&store, sender, none).await;
        let mut said = Vec::new();
        for _ in 0..2 {
            sender.send(&store, &reader.id, "news").await;
            let (lease, id) = (reader.lease.clone(), reader.id.clone());
            let ended = store.end_turn(lease, id, Vec::new(), Ending::Answered).await.unwrap();
            said.push((ended.sleep, ended.is_held));
        }
        assert_eq!(said, [(Sleep::Asleep, true), (Sleep::Asleep, false)]);
    }
}

#[tokio::test]
async fn wakes_run_out_then_mail_is_held_until_the_user_speaks() {
    let store = super::store();
    let (session, mut agents) = store.session_of(2).await;
    let [sender, reader] = &mut agents[..] else { panic!() };
    let two = Budget { wakes: 2, requests: 10 };
    person_says(&store, sender, two).await;
    assert_eq!(end_turn(&store, reader, Ending::Answered).await, Sleep::Asleep);
    for number in 0..3 {
        sender.send(&store, &reader.id, &format!("{number} {}", "thanks ".repeat(200))).await;
        let told = reader.announce(&store).await.unwrap();
        assert_eq!(told.is_some(), number < 2, "{number}");
        assert_eq!(end_turn(&store, reader, Ending::Answered).await, Sleep::Asleep);
    }
    assert!(to_wake(&store, session).await.is_empty());
    assert_eq!(store.agents(session).await.unwrap()[1].unread, 3, "held, not lost");
    // Inside an agent's command the sender is not the user.
    let step = send_to(&sender.id, "user, not really");
    store.perform(session, sender.id.clone(), step, None).await.unwrap();
    assert!(to_wake(&store, session).await.is_empty());
    // Mail from the user to any agent releases it, and so would a message.
    let step = send_to(&sender.id, "user");
    store.perform(session, sender.id.clone(), step, Some(two)).await.unwrap();
    assert_eq!(to_wake(&store, session).await, [agent("1/")]);
    assert_eq!(announced(&reader.announce(&store).await.unwrap().unwrap()), [3]);
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn mail_is_held_after_an_interrupted_turn_until_the_user_speaks_to_that_agent() {
    let store = super::store();
    let (session, mut agents) = store.session_of(2).await;
    let [sender, reader] = &mut agents[..] else { panic!() };
    sender.send(&store, &reader.id, "hello").await;
    assert_eq!(end_turn(&store, reader, Ending::Interrupted).await, Sleep::Asleep);
    assert!(to_wake(&store, session).await.is_empty());
    assert!(reader.announce(&store).await.unwrap().is_none());
    person_says(&store, sender, PLENTY).await;
    assert!(to_wake(&store, session).await.is_empty(), "that was another agent");
    person_says(&store, reader, PLENTY).await;
    assert_eq!(end_turn(&store, reader, Ending::Answered).await, Sleep::MailWaits);
    assert_eq!(announced(&reader.announce(&store).await.unwrap().unwrap()), [1]);
}
