//! M10: rewinding makes mail unread and unannounced again, in the same commit.

use ikigai_conversation::NewMessage;
use ikigai_store::{ForkContext, Next, Step};
use ikigai_testkit::{TestAgent, TestStore, new_fork};

use super::mail::marks;
use crate::support::{check_database, fork_by_hand};

/// Two agents, and a mail from the first to the second, which is announced and read.
async fn story(store: &TestStore) -> (Vec<TestAgent>, ikigai_conversation::MailId) {
    let (_, mut agents) = store.session_of(2).await;
    let to = agents[1].id.clone();
    let mail = agents[0].send(store, &to, "hello").await;
    (agents, mail)
}

#[tokio::test]
async fn m10_past_a_read_it_is_unread_and_untold() {
    let store = super::store();
    let (mut agents, mail) = story(&store).await;
    let reader = &mut agents[1];
    let mark = reader.mark(&store).await;
    reader.read(&store, mail).await;
    reader.rewind(&store, mark).await.unwrap();
    assert_eq!(marks(&store)[0], (marks(&store)[0].0, None, None, true));
    let told = reader.announce(&store).await.unwrap().expect("it wakes again");
    assert_eq!(marks(&store)[0].1, Some(told.id.value()));
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn m10_past_a_read_it_is_untold_even_if_the_notification_stays() {
    let store = super::store();
    let (_, mut agents) = store.session_of(2).await;
    let [sender, reader] = &mut agents[..] else { panic!() };
    let mail = sender.send(&store, &reader.id, &"x".repeat(1_001)).await;
    reader.announce(&store).await.unwrap().unwrap();
    let mark = reader.mark(&store).await;
    reader.read(&store, mail).await;
    reader.rewind(&store, mark).await.unwrap();
    assert_eq!((marks(&store)[0].1, marks(&store)[0].3), (None, true));
    assert!(reader.announce(&store).await.unwrap().is_some());
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn m10_past_a_notification_it_is_untold() {
    let store = super::store();
    let (mut agents, _) = story(&store).await;
    let reader = &mut agents[1];
    let mark = reader.mark(&store).await;
    reader.announce(&store).await.unwrap().unwrap();
    assert!(reader.announce(&store).await.unwrap().is_none());
    reader.rewind(&store, mark).await.unwrap();
    // The notification had also shown it whole.
    assert_eq!(marks(&store)[0], (marks(&store)[0].0, None, None, true));
    let again = reader.announce(&store).await.unwrap().unwrap().id.value();
    assert_eq!(marks(&store)[0], (marks(&store)[0].0, Some(again), Some(again), false));
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn m10_to_the_notification_itself_what_it_showed_stays_read() {
    let store = super::store();
    let (agents, _) = story(&store).await;
    let reader = &agents[1];
    let notification = reader.announce(&store).await.unwrap().unwrap().id;
    reader.mark(&store).await;
    let before = marks(&store);
    reader.rewind(&store, notification).await.unwrap();
    assert_eq!(marks(&store), before);
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn m10_past_a_list_it_is_untold() {
    let store = super::store();
    let (mut agents, _) = story(&store).await;
    let reader = &mut agents[1];
    let mark = reader.mark(&store).await;
    reader.look(&store).await;
    assert!(reader.announce(&store).await.unwrap().is_none(), "a list announces");
    reader.rewind(&store, mark).await.unwrap();
    assert!(reader.announce(&store).await.unwrap().is_some());
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn m10_mail_read_before_the_target_stays_read() {
    let store = super::store();
    let (mut agents, mail) = story(&store).await;
    let reader = &mut agents[1];
    reader.read(&store, mail).await;
    let before = marks(&store);
    let mark = reader.mark(&store).await;
    reader.look(&store).await;
    reader.rewind(&store, mark).await.unwrap();
    assert_eq!(marks(&store), before);
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn m10_nested_rewinds_each_undo_their_own_part() {
    let store = super::store();
    let (mut agents, first) = story(&store).await;
    let [sender, reader] = &mut agents[..] else { panic!() };
    let second = sender.send(&store, &reader.id, "again").await;
    let outer = reader.mark(&store).await;
    reader.read(&store, first).await;
    let inner = reader.mark(&store).await;
    reader.read(&store, second).await;
    let unread = |store: &TestStore| marks(store).iter().map(|mark| mark.3).collect::<Vec<_>>();
    reader.rewind(&store, inner).await.unwrap();
    assert_eq!(unread(&store), [false, true]);
    reader.read(&store, second).await;
    reader.rewind(&store, outer).await.unwrap();
    assert_eq!(unread(&store), [true, true]);
    check_database(store.database(), &[]);
    // Into the hidden part: announcing mail twice is better than never.
    reader.rewind(&store, inner).await.unwrap();
    assert_eq!(unread(&store), [true, true]);
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn m10_what_the_user_read_stays_read() {
    let store = super::store();
    let (mut agents, first) = story(&store).await;
    let [sender, reader] = &mut agents[..] else { panic!() };
    let second = sender.send(&store, &reader.id, "again").await;
    let mark = reader.mark(&store).await;
    let person_reads = |mail: ikigai_conversation::MailId| {
        store.perform(reader.session(), reader.id.clone(), Step::Read(mail.value()), None)
    };
    // The user before the model, and after it: the latter was once forgotten.
    person_reads(first).await.unwrap();
    let mut model = reader.clone();
    model.read(&store, first).await;
    model.read(&store, second).await;
    person_reads(second).await.unwrap();
    check_database(store.database(), &[]);
    model.rewind(&store, mark).await.unwrap();
    let after = marks(&store);
    assert_eq!(
        after.iter().map(|mark| (mark.1, mark.2, mark.3)).collect::<Vec<_>>(),
        [(None, None, false), (None, None, false)]
    );
    assert!(model.announce(&store).await.unwrap().is_none(), "read mail does not wake");
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn m10_a_rewind_that_hides_nothing_changes_no_mail() {
    let store = super::store();
    let (mut agents, _) = story(&store).await;
    let [sender, parent] = &mut agents[..] else { panic!() };
    let inherited = parent.mark(&store).await;
    let mut child = fork_by_hand(&store, parent, new_fork(ForkContext::Full, None)).await.unwrap();
    let mail = sender.send(&store, &child.id, "for the child").await;
    child.read(&store, mail).await;
    let before = marks(&store);
    // A rewind to before the agent's start has no effect on its view, so it
    // must not change marks either.
    let refused = child.rewind(&store, inherited).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!("Database error: agent 1/0/ has no message {inherited}")
    );
    assert_eq!(marks(&store), before);
    child.append(&store, NewMessage::user("go on"), Next::Request).await.unwrap();
    check_database(store.database(), &[]);
}
