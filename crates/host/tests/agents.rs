//! Several agents in a session: fork, open, mail and kill; and joining from another terminal.

use std::sync::Arc;

use ikigai_conversation::{AgentId, Correspondent};
use ikigai_host::{AgentSlot, ServiceEnd, SessionOptions};
use ikigai_protocol::{Command, CommandError, Reply, Runner, render_reply};
use ikigai_testkit::{ModelServer, Reply as ModelReply};

use crate::support::{Home, TestSession, mail};

fn agent(id: &str) -> AgentId {
    AgentId::parse(id).unwrap()
}

fn open(target: &str) -> Command {
    Command::Open { target: Some(target.to_owned()) }
}

fn kill(target: &str) -> Command {
    Command::Kill { target: Some(target.to_owned()) }
}

async fn started(home: &Home) -> TestSession {
    let mut session = home.open().await;
    session.ask("0/", "hello").await;
    session
}

fn answering() -> ModelServer {
    ModelServer::choosing(|request| {
        ModelReply::text(&format!("I am {}", request.agent().unwrap_or_default()))
    })
}

#[tokio::test]
async fn a_child_is_forked_visited_and_killed() {
    let home = Home::new(answering());
    let mut session = started(&home).await;
    let fork = session.execute("0/", Command::Fork { prompt: None }).await;
    assert_eq!(fork, Ok(Reply::Forked(agent("0/0/"))));
    let Ok(Reply::Opened { agent: opened, .. }) = session.execute("0/", open("0/0")).await else {
        panic!("not opened")
    };
    assert_eq!(opened, agent("0/0/"));
    assert_eq!(session.ask("0/0/", "who are you?").await.text, "I am 0/0/");
    let Ok(Reply::Agents(agents)) = session.execute("0/", Command::Agents).await else {
        panic!("no list")
    };
    let listed: Vec<_> = agents.iter().map(|agent| (agent.id.to_string(), agent.runner)).collect();
    let here = Runner::ThisProcess;
    assert_eq!(listed, [("0/".to_owned(), here), ("0/0/".to_owned(), here)]);
    assert_eq!(session.execute("0/", kill("0/0/")).await, Ok(Reply::Killed(vec![agent("0/0/")])));
    let dead = session.execute("0/", open("0/0")).await;
    assert_eq!(dead, Err(CommandError::AgentDead(agent("0/0/"))));
    let unknown = session.execute("0/", open("7")).await;
    assert_eq!(unknown, Err(CommandError::AgentNotFound("7/".to_owned())));
    let last = session.execute("0/", Command::Kill { target: None }).await;
    assert!(matches!(last, Err(CommandError::Refused(_))), "{last:?}");
    session.leave().await;
}

#[tokio::test]
async fn mail_is_sent_listed_and_read() {
    let home = Home::new(answering());
    let session = started(&home).await;
    session.execute("0/", Command::Fork { prompt: None }).await.unwrap();
    // The mail would wake the child.
    assert_eq!(session.execute("0/0/", Command::HoldMail).await, Ok(Reply::Done));
    let sent = session.execute("0/", mail("send 0/0/ look at this")).await;
    assert_eq!(sent, Ok(Reply::MailSent { to: agent("0/0/").into() }));
    let inbox = session.execute("0/0/", mail("")).await.unwrap();
    let text = render_reply(&inbox, &agent("0/0/"), &home.project()).unwrap();
    assert!(text.ends_with("[unread] from user - \"look at this\""), "{text}");
    let Ok(Reply::Mail(read)) = session.execute("0/0/", mail("read 1")).await else {
        panic!("not read")
    };
    assert_eq!((read.from, read.body.as_str()), (Correspondent::User, "look at this"));
    assert_eq!(read.read_for, Some(agent("0/0/").into()));
    let usage = session.execute("0/", mail("read")).await;
    let expected = CommandError::Usage("Missing argument. Use /mail read ID".to_owned());
    assert_eq!(usage, Err(expected));
    let unknown = session.execute("0/", mail("send 9/ x")).await;
    assert_eq!(unknown, Err(CommandError::Refused("Agent 9/ not found".to_owned())));
    session.leave().await;
}

#[tokio::test]
async fn another_front_end_joins_the_session_that_runs() {
    let home = Home::new(answering());
    let first = started(&home).await;
    let session = first.session.slot().session();
    let mut second = home.open().await;
    assert_eq!(second.session.slot().session(), session);
    assert_eq!(second.session.slot().agent(), &agent("1/"));
    assert_eq!(second.ask("1/", "who are you?").await.text, "I am 1/");
    second.leave().await;
    first.leave().await;
}

#[tokio::test]
async fn a_front_end_whose_agent_is_taken_continues_with_another() {
    let home = Home::new(answering());
    let first = started(&home).await;
    let slot = first.session.slot().clone();
    first
        .session
        .execute(ikigai_protocol::Request {
            agent: agent("0/"),
            command: Command::Fork { prompt: None },
        })
        .await
        .unwrap();
    let second = home.open().await;
    assert_eq!(
        second.execute("1/", kill("0/")).await,
        Ok(Reply::Killed(vec![agent("0/0/"), agent("0/")]))
    );
    assert!(matches!(first.end().await, ServiceEnd::AgentLost(_)));
    let next = slot.claim_another().await.unwrap();
    assert_eq!(next.agent(), &agent("2/"));
    let third = TestSession::start(next).await;
    third.leave().await;
    second.leave().await;
}

#[tokio::test]
async fn what_is_named_and_does_not_exist_cannot_be_claimed() {
    let home = Home::new(answering());
    let refusal = async |session: Option<&str>, agent: Option<&str>| {
        let mut environment = home.environment();
        environment.selection.session = session.map(str::to_owned);
        environment.selection.agent = agent.map(str::to_owned);
        let claim = AgentSlot::claim(&Arc::new(environment), SessionOptions::INTERACTIVE).await;
        claim.err().unwrap().to_string()
    };
    let no_session = "Session 7 not found: 'ikigai sessions' lists them";
    assert_eq!(refusal(Some("7"), None).await, no_session);
    assert_eq!(refusal(None, Some("7")).await, "a new session has only agent 0/, not 7/");
}
