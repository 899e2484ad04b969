//! A conversation with an agent: messages, approvals, `/clear` during a turn, leaving and resuming.

use std::sync::Arc;

use ikigai_conversation::{Body, Decision};
use ikigai_host::{AgentSlot, DefaultSession, SessionOptions};
use ikigai_protocol::{
    ApprovalAnswer, ApprovalRequest, Command, CommandError, Event, EventKind, Nothing, QueuedUntil,
    Reply, UsageBy, UsageTable,
};
use ikigai_testkit::{Gate, ModelServer, Point, Reply as ModelReply};
use serde_json::json;

use crate::support::{Home, TestSession, read, say};

fn question(event: &Event) -> Option<ApprovalRequest> {
    match &event.kind {
        EventKind::ApprovalRequested(request) => Some(request.clone()),
        _ => None,
    }
}

#[tokio::test]
async fn a_front_end_may_start_its_session_with_the_first_message() {
    let home = Home::new(ModelServer::start([ModelReply::text("hello back")]));
    let options = SessionOptions { default: DefaultSession::New, ..SessionOptions::INTERACTIVE };
    let slot = AgentSlot::claim(&Arc::new(home.environment()), options).await.unwrap();
    let mut session = TestSession::start(slot).await;
    assert_eq!(session.execute("0/", Command::Agents).await, Err(CommandError::NotStarted));
    let usage = Command::Usage { by: UsageBy::Message };
    assert_eq!(session.execute("0/", usage).await, Ok(Reply::Usage(UsageTable::default())));
    assert!(!session.session.slot().is_session_started());
    assert_eq!(session.ask("0/", "hello").await.text, "hello back");
    assert!(session.session.slot().is_session_started());
    let Ok(Reply::Opened { agent, log }) =
        session.execute("0/", Command::Open { target: None }).await
    else {
        panic!("not opened")
    };
    let said: Vec<&str> = log
        .iter()
        .filter(|message| matches!(message.body, Body::User | Body::Assistant(_)))
        .map(|message| message.content.as_str())
        .collect();
    assert_eq!((agent.to_string().as_str(), said), ("0/", vec!["hello", "hello back"]));
    session.leave().await;
}

#[tokio::test]
async fn a_terminal_has_its_agent_before_its_first_message() {
    let home = Home::new(ModelServer::start([]));
    let session = home.open().await;
    assert!(session.session.slot().is_session_started());
    let Ok(Reply::Agents(agents)) = session.execute("0/", Command::Agents).await else {
        panic!("not listed")
    };
    let listed: Vec<String> = agents.iter().map(|agent| agent.id.to_string()).collect();
    assert_eq!(listed, ["0/"]);
    for command in [Command::Mark { label: None }, Command::Undo] {
        let answer = session.execute("0/", command.clone()).await;
        assert!(matches!(answer, Err(CommandError::NothingToDo(_))), "{command:?}: {answer:?}");
    }
    session.leave().await;
}

#[tokio::test]
async fn a_call_that_needs_approval_waits_for_the_answer_and_takes_one() {
    let write = json!({"path": "AGENTS.md", "content": "be kind"});
    let script = [ModelReply::call("c", "file_write", write), ModelReply::text("done")];
    let home = Home::new(ModelServer::start(script));
    let mut session = home.open().await;
    assert_eq!(session.execute("0/", say("write")).await, Ok(Reply::Done));
    let request = session.wait_for(question).await;
    let (call, hash) = (request.call.tool_call_id, request.hash);
    let file = home.project().join("AGENTS.md");
    assert!(!file.exists());
    let (decision, reason, save_rule) = (Decision::Once, None, None);
    let answer = ApprovalAnswer { call, hash, decision, reason, save_rule };
    let answered = session.execute("0/", Command::Answer(answer.clone())).await;
    assert_eq!(answered, Ok(Reply::Done));
    assert_eq!(session.turn_end("0/").await.text, "done");
    assert_eq!(read(&file), "be kind");
    let again = session.execute("0/", Command::Answer(answer)).await;
    assert_eq!(again, Err(CommandError::NothingToDo(Nothing::Approval)));
    session.leave().await;
}

#[tokio::test]
async fn clear_in_the_middle_of_a_turn_is_queued_until_the_turn_ends() {
    let gate = Gate::new();
    let script = [ModelReply::pieces(["one ", "two"]).hold_at(Point::Text, &gate)];
    let home = Home::new(ModelServer::start(script));
    let mut session = home.open().await;
    assert_eq!(session.execute("0/", say("count")).await, Ok(Reply::Done));
    let delta = |event: &Event| matches!(event.kind, EventKind::TextDelta(_)).then_some(());
    session.wait_for(delta).await;
    let cleared = session.execute("0/", Command::Clear).await;
    assert_eq!(cleared, Ok(Reply::Queued(QueuedUntil::TurnEnd)));
    gate.open();
    assert_eq!(session.turn_end("0/").await.text, "one two");
    let clear = |event: &Event| match &event.kind {
        EventKind::Message(message) => (message.body == Body::Clear).then_some(()),
        _ => None,
    };
    session.wait_for(clear).await;
    assert_eq!(session.execute("0/", Command::Clear).await, Ok(Reply::Cleared));
    session.leave().await;
}

#[tokio::test]
async fn a_mark_can_be_returned_to() {
    let home = Home::new(ModelServer::start([ModelReply::text("one"), ModelReply::text("two")]));
    let mut session = home.open().await;
    let label = Some("here".to_owned());
    let rewind = Command::Rewind { label: label.clone() };
    let no_mark = Err(CommandError::NothingToDo(Nothing::Mark));
    assert_eq!(session.execute("0/", rewind.clone()).await, no_mark);
    session.ask("0/", "1").await;
    let marked = session.execute("0/", Command::Mark { label: label.clone() }).await;
    assert_eq!(marked, Ok(Reply::Marked { label: label.clone() }));
    assert_eq!(session.execute("0/", rewind).await, Ok(Reply::Rewound { label }));
    session.ask("0/", "2").await;
    session.leave().await;
}

#[tokio::test]
async fn a_session_is_resumed_with_its_log() {
    let home = Home::new(ModelServer::start([ModelReply::text("one"), ModelReply::text("two")]));
    let mut first = home.open().await;
    first.ask("0/", "remember this").await;
    let id = first.session.slot().session();
    first.leave().await;
    let mut environment = home.environment();
    environment.selection.continues = true;
    let mut second = home.open_in(environment).await;
    assert_eq!(second.session.slot().session(), id);
    assert_eq!(second.ask("0/", "and now").await.text, "two");
    assert!(home.server().requests()[1].text().contains("remember this"));
    second.leave().await;
}
