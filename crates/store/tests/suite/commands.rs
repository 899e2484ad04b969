//! Background commands: each end is told once, wakes like mail, and is never missed.

use std::sync::{Arc, Mutex};

use ikigai_conversation::{Body, CommandId, Message, NewMessage};
use ikigai_store::{
    AwaitedCommand, Budget, CommandEnd, Ending, ForkContext, LogEntry, MatchedLine, Next, Outcome,
    Refusal, Sleep, StartedCommand, Step, StoreError, Unread, Wait, WaitReport,
};
use ikigai_testkit::{PLENTY, TestAgent, TestStore, new_fork, said, wait_for};

use crate::support::{check_database, to_wake};

/// Starts a command, and returns its number unless it is refused.
async fn try_start(store: &TestStore, agent: &TestAgent) -> Result<CommandId, Refusal> {
    let render = |started: Result<CommandId, Refusal>| match started {
        Ok(id) => NewMessage::user(format!("started {id}")),
        Err(refusal) => NewMessage::user(refusal.to_string()),
    };
    let command = StartedCommand { line: "make".to_owned() };
    let (lease, id) = (agent.lease.clone(), agent.id.clone());
    let started = store.start_command(lease, id, command, render, Next::Request).await.unwrap();
    let said = started.1.messages.last().unwrap().content.clone();
    started.0.ok_or_else(|| {
        assert_eq!(said, "Maximum background commands of the session (64) reached");
        Refusal::TooManyCommands(64)
    })
}

async fn start(store: &TestStore, agent: &TestAgent) -> CommandId {
    try_start(store, agent).await.unwrap()
}

async fn end(store: &TestStore, agent: &TestAgent, id: CommandId) -> Result<(), StoreError> {
    let end = CommandEnd { exit_code: 3, tail: "last line".to_owned() };
    store.end_command(agent.lease.clone(), agent.id.clone(), id, end).await
}

/// The commands that a notification tells of.
fn told(message: &Message) -> Vec<i64> {
    match &message.body {
        Body::Notification(notification) => {
            notification.commands.iter().map(|id| id.value()).collect()
        }
        other => panic!("no notification: {other:?}"),
    }
}

async fn rest(store: &TestStore, agent: &TestAgent) -> Sleep {
    agent.sleep(store).await.unwrap()
}

#[tokio::test]
async fn numbers_are_unique_in_a_session_and_never_reused() {
    let store = super::store();
    let (_, agents) = store.session_of(2).await;
    let first = start(&store, &agents[0]).await;
    let second = start(&store, &agents[1]).await;
    end(&store, &agents[1], second).await.unwrap();
    let third = start(&store, &agents[1]).await;
    assert_eq!([first, second, third].map(CommandId::value), [1, 2, 3]);
}

#[tokio::test]
async fn m4_each_end_is_told_once_with_a_wake_in_one_commit() {
    let store = super::store();
    let (_, agents) = store.session_of(1).await;
    let agent = &agents[0];
    let (one, two) = (start(&store, agent).await, start(&store, agent).await);
    assert!(agent.announce(&store).await.unwrap().is_none());
    end(&store, agent, one).await.unwrap();
    let state = "SELECT (SELECT count(*) FROM messages) * 1000000 + wakes_left FROM sessions";
    let before = store.number(state);
    store.raw().refuse("UPDATE OF wakes_left ON sessions", "1 = 1");
    agent.announce(&store).await.unwrap_err();
    assert_eq!(store.number(state), before);
    assert_eq!(store.number("SELECT count(*) FROM commands WHERE told_by IS NOT NULL"), 0);
    store.raw().allow("sessions");
    let first = agent.announce(&store).await.unwrap().unwrap();
    assert_eq!(told(&first), [1]);
    assert_eq!(store.number("SELECT wakes_left FROM sessions"), i64::from(PLENTY.wakes) - 1);
    assert!(agent.announce(&store).await.unwrap().is_none());
    end(&store, agent, two).await.unwrap();
    // An end that is reported twice counts once.
    end(&store, agent, two).await.unwrap();
    assert_eq!(told(&agent.announce(&store).await.unwrap().unwrap()), [2]);
    assert_eq!(rest(&store, agent).await, Sleep::Asleep);
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn m5_no_agent_goes_idle_while_an_end_is_untold() {
    let store = super::store();
    let (session, agents) = store.session_of(1).await;
    let agent = &agents[0];
    let id = start(&store, agent).await;
    assert_eq!(rest(&store, agent).await, Sleep::Asleep);
    assert!(to_wake(&store, session).await.is_empty());
    end(&store, agent, id).await.unwrap();
    assert_eq!(to_wake(&store, session).await, std::slice::from_ref(&agent.id));
    assert_eq!(rest(&store, agent).await, Sleep::MailWaits);
    agent.announce(&store).await.unwrap().unwrap();
    assert_eq!(rest(&store, agent).await, Sleep::Asleep);
    assert!(to_wake(&store, session).await.is_empty());
}

#[tokio::test]
async fn an_end_is_held_like_mail() {
    let store = super::store();
    let (session, agents) = store.session_of(1).await;
    let agent = &agents[0];
    let id = start(&store, agent).await;
    agent.end(&store, Vec::new(), Ending::Interrupted).await.unwrap();
    end(&store, agent, id).await.unwrap();
    assert!(to_wake(&store, session).await.is_empty());
    // The next turn releases it. Without wakes it is held again.
    let none = Budget { wakes: 0, ..PLENTY };
    let (lease, own) = (agent.lease.clone(), agent.id.clone());
    store.append_user_input(lease.clone(), own.clone(), said("go on", none)).await.unwrap();
    assert_eq!(rest(&store, agent).await, Sleep::Asleep);
    assert!(to_wake(&store, session).await.is_empty());
    store.append_user_input(lease, own, said("go on", PLENTY)).await.unwrap();
    assert_eq!(rest(&store, agent).await, Sleep::MailWaits);
}

#[tokio::test]
async fn a_rewind_past_what_told_an_end_repeats_nothing() {
    let store = super::store();
    let (_, agents) = store.session_of(1).await;
    let agent = &agents[0];
    let id = start(&store, agent).await;
    let mark = agent.mark(&store).await;
    end(&store, agent, id).await.unwrap();
    agent.announce(&store).await.unwrap().unwrap();
    agent.rewind(&store, mark).await.unwrap();
    assert!(agent.announce(&store).await.unwrap().is_none());
    assert_eq!(rest(&store, agent).await, Sleep::Asleep);
}

#[tokio::test]
async fn a_result_that_shows_an_end_tells_it_but_only_if_the_command_has_ended() {
    let store = super::store();
    let (_, agents) = store.session_of(1).await;
    let agent = &agents[0];
    let (one, two) = (start(&store, agent).await, start(&store, agent).await);
    end(&store, agent, one).await.unwrap();
    let ended = vec![one, two];
    let entry = LogEntry { message: NewMessage::user("seen"), file: None, ended };
    let (lease, own) = (agent.lease.clone(), agent.id.clone());
    store.append_entries(lease, own, vec![entry], Next::Request).await.unwrap();
    assert!(agent.announce(&store).await.unwrap().is_none());
    end(&store, agent, two).await.unwrap();
    assert_eq!(told(&agent.announce(&store).await.unwrap().unwrap()), [two.value()]);
}

#[tokio::test]
async fn a_wait_ends_with_the_end_of_a_command_and_tells_it() {
    let store = super::store();
    let (session, mut agents) = store.session_of(2).await;
    let [waiter, other] = &mut agents[..] else { panic!() };
    let id = start(&store, waiter).await;
    store
        .append_user_input(other.lease.clone(), other.id.clone(), said("go", PLENTY))
        .await
        .unwrap();
    let call = waiter.open(&store).await.unwrap();
    let (lease, own) = (waiter.lease.clone(), waiter.id.clone());
    let waiting = store.start_wait(lease.clone(), own.clone(), wait_for(&[&other.id])).await;
    let waiting = waiting.unwrap().unwrap();
    let is_over = async || store.wait_is_over(session, own.clone(), waiting.clone()).await.unwrap();
    assert!(!is_over().await);
    end(&store, waiter, id).await.unwrap();
    assert!(is_over().await);
    let report = Arc::new(Mutex::new(None::<WaitReport>));
    let seen = report.clone();
    let render = move |outcome: &Outcome| {
        if let Outcome::WaitEnded(waited) = outcome {
            *seen.lock().unwrap() = Some(waited.clone());
        }
        NewMessage::tool_result(&call, "{}")
    };
    let step = Step::EndWait(waiting.clone());
    store.close_call(lease, own.clone(), step, render, Next::Request).await.unwrap();
    let report = report.lock().unwrap().take().unwrap();
    let ended = AwaitedCommand { id, is_running: false, exit_code: Some(3) };
    assert_eq!(report.commands, [ended]);
    assert!(waiter.announce(&store).await.unwrap().is_none());
}

#[tokio::test]
async fn a_wait_for_commands_ends_when_all_of_them_have_ended() {
    let store = super::store();
    let (session, mut agents) = store.session_of(2).await;
    let [waiter, other] = &mut agents[..] else { panic!() };
    let id = start(&store, waiter).await;
    let (lease, own) = (waiter.lease.clone(), waiter.id.clone());
    let unknown = start(&store, other).await;
    let wait = |id| Wait { commands: vec![id], ..wait_for(&[]) };
    let refused = store.start_wait(lease.clone(), own.clone(), wait(unknown)).await.unwrap();
    assert_eq!(refused, Err(Refusal::NoCommand(unknown)));
    let waiting = store.start_wait(lease, own.clone(), wait(id)).await.unwrap().unwrap();
    let over = async || store.wait_is_over(session, own.clone(), waiting.clone()).await.unwrap();
    assert!(!over().await);
    end(&store, waiter, id).await.unwrap();
    waiter.announce(&store).await.unwrap().unwrap();
    assert!(over().await);
}

#[tokio::test]
async fn what_ran_when_its_process_ended_is_told_with_the_next_turn_and_wakes_no_one() {
    let store = super::store();
    let (session, agents) = store.session_of(1).await;
    let agent = &agents[0];
    let id = start(&store, agent).await;
    rest(&store, agent).await;
    // Another process takes the agent over.
    let again = TestAgent::claim(&store, session, agent.id.clone()).await.unwrap();
    assert!(to_wake(&store, session).await.is_empty());
    assert!(matches!(end(&store, agent, id).await, Err(StoreError::LeaseLost { .. })));
    assert!(store.has_lost_commands(session, agent.id.clone()).await.unwrap());
    let (lease, own) = (again.lease.clone(), again.id.clone());
    let message = store.tell_lost_commands(lease.clone(), own.clone()).await.unwrap().unwrap();
    assert_eq!(message.content, "Command #1 was ended with ikigai (it may have had effects)");
    assert_eq!(told(&message), [1]);
    assert!(store.tell_lost_commands(lease, own).await.unwrap().is_none());
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn a_clean_exit_ends_them_too_and_so_does_a_kill() {
    let store = super::store();
    let (session, agents) = store.session_of(1).await;
    let agent = &agents[0];
    start(&store, agent).await;
    store.release(agent.lease.clone()).await.unwrap();
    let states = "SELECT count(*) FROM commands WHERE state = 'lost' AND ended_at IS NOT NULL";
    assert_eq!(store.number(states), 1);
    let mut again = TestAgent::claim(&store, session, agent.id.clone()).await.unwrap();
    let fork = new_fork(ForkContext::Fresh, Some("work"));
    let child = again.fork(&store, fork).await.unwrap();
    start(&store, &child).await;
    again.kill(&store, &child.id).await.unwrap();
    assert_eq!(store.number(states), 2);
}

#[tokio::test]
async fn a_session_runs_at_most_64() {
    let store = super::store();
    let (_, agents) = store.session_of(2).await;
    for number in 0..64 {
        start(&store, &agents[number % 2]).await;
    }
    assert_eq!(try_start(&store, &agents[0]).await, Err(Refusal::TooManyCommands(64)));
    end(&store, &agents[1], CommandId::new(2).unwrap()).await.unwrap();
    assert_eq!(start(&store, &agents[0]).await.value(), 65);
}

#[tokio::test]
async fn a_line_wakes_once_and_its_notification_is_one_commit_with_the_mark() {
    let store = super::store();
    let (session, agents) = store.session_of(1).await;
    let agent = &agents[0];
    let id = start(&store, agent).await;
    assert_eq!(rest(&store, agent).await, Sleep::Asleep);
    for line in ["listening", "listening again"] {
        let matched = MatchedLine { id, line: line.to_owned() };
        let (lease, own) = (agent.lease.clone(), agent.id.clone());
        store.note_matched_line(lease, own, matched).await.unwrap();
    }
    assert_eq!(to_wake(&store, session).await, std::slice::from_ref(&agent.id));
    assert_eq!(rest(&store, agent).await, Sleep::MailWaits);
    let lines = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&lines);
    let render = move |unread: &Unread| {
        seen.lock().unwrap().extend(unread.matched.clone());
        NewMessage::notification("a line", Vec::new())
    };
    let (lease, own) = (agent.lease.clone(), agent.id.clone());
    assert_eq!(store.announce(lease, own, None, render).await.unwrap().len(), 1);
    assert_eq!(*lines.lock().unwrap(), [MatchedLine { id, line: "listening".to_owned() }]);
    assert_eq!(rest(&store, agent).await, Sleep::Asleep);
    assert!(agent.announce(&store).await.unwrap().is_none());
}
