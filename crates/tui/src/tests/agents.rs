//! Several agents.

use crossterm::event::{KeyCode, KeyModifiers};
use ikigai_conversation::NewMessage;
use ikigai_protocol::{AgentState, EventKind, Runner, StopReason, TurnEnd};

use super::{Stage, agent, say};
use crate::app::Action;
use crate::team::Member;
use crate::typed::Typed;
use crate::update::{Effect, Update};

fn member(id: &str, state: AgentState) -> Member {
    let (name, cost) = (None, None);
    Member {
        id: agent(id),
        name,
        state,
        task: "a task".to_owned(),
        unread: 0,
        cost,
        runner: Runner::ThisProcess,
    }
}

fn stage() -> Stage {
    let mut stage = Stage::new(80, 24);
    let members = vec![
        member("0/", AgentState::Idle),
        member("0/0/", AgentState::Tool),
        member("0/1/", AgentState::Asking),
    ];
    stage.app.update(Update::Team(members), stage.now);
    stage
}

#[test]
fn alt_and_arrows_walk_the_tree() {
    let mut stage = stage();
    for (key, view) in [
        (KeyCode::Down, "0/1/"),
        (KeyCode::Left, "0/0/"),
        (KeyCode::Left, "0/0/"),
        (KeyCode::Right, "0/1/"),
        (KeyCode::Up, "0/"),
    ] {
        stage.press(key, KeyModifiers::ALT);
        stage.has(&format!("[{view}]"));
    }
    let recalls = ["0/1/", "0/0/"].map(|id| Action::Effect(Effect::LoadLog(agent(id))));
    assert_eq!(stage.actions(), recalls);
}

#[test]
fn control_and_arrows_do_the_same_without_text() {
    let mut stage = stage();
    stage.press(KeyCode::Down, KeyModifiers::CONTROL);
    stage.has("[0/1/]");
    stage.types("one two");
    stage.press(KeyCode::Left, KeyModifiers::CONTROL);
    stage.has("[0/1/]");
}

#[test]
fn each_agent_has_its_own_conversation_and_draft() {
    let mut stage = stage();
    stage.types("for the parent");
    stage.streams("0/1/", "from the child");
    stage.lacks("from the child");
    stage.press(KeyCode::Down, KeyModifiers::ALT);
    stage.has("● from the child");
    stage.lacks("for the parent");
    stage.enters("hello");
    stage.press(KeyCode::Up, KeyModifiers::ALT);
    stage.has("❯ for the parent");
    let actions = stage.actions();
    assert!(actions.contains(&say("0/1/", "hello")), "{actions:?}");
}

#[test]
fn a_screen_that_missed_output_reloads_the_logs() {
    let mut stage = stage();
    stage.answers("0/", "before");
    stage.types("a draft");
    stage.app.update(Update::Dropped, stage.now);
    stage.lacks("before");
    assert_eq!(stage.actions(), [Action::Effect(Effect::LoadLog(agent("0/")))]);
    let answer = NewMessage::assistant("meanwhile", ikigai_conversation::ResponseId::new("r"));
    let log = vec![stage.message("0/", answer)];
    stage.app.update(Update::Log { agent: agent("0/"), log }, stage.now);
    stage.has("● meanwhile");
    stage.has("❯ a draft");
}

#[test]
fn the_team_list_shows_questions_first_and_switches_agents() {
    let mut stage = stage();
    stage.logs(
        "0/0/",
        NewMessage::tool_call(
            ikigai_conversation::ToolCallId::new("c"),
            "bash",
            r#"{"command":"make"}"#,
            ikigai_conversation::ResponseId::new("r"),
        ),
    );
    stage.control('t');
    stage.has("1 0/1/ asking: a task\n2 0/ idle: a task\n3 0/0/ tool: a task · bash  make");
    stage.types("3");
    stage.has("[0/0/]");
    stage.control('t');
    stage.key(KeyCode::Up);
    stage.key(KeyCode::Enter);
    stage.has("[0/]");
}

#[test]
fn agents_are_listed_and_visited_by_command() {
    let mut stage = stage();
    stage.enters("/agents");
    stage.has("* 0/ idle: a task\n    0/0/ tool: a task\n    0/1/ asking: a task");
    stage.enters("/agent 0/1");
    stage.has("[0/1/]");
    stage.enters("/agent 9");
    stage.has("Agent 9 not found. /agents lists all");
}

#[test]
fn an_agent_of_another_terminal_cannot_be_viewed() {
    let mut stage = stage();
    let mut other = member("1/", AgentState::Idle);
    other.runner = Runner::OtherProcess;
    stage.app.update(Update::Team(vec![member("0/", AgentState::Idle), other]), stage.now);
    stage.press(KeyCode::Right, KeyModifiers::ALT);
    stage.has("Agent 1/ is run by another terminal. Write to it: /mail send 1/ TEXT");
    stage.has("[0/]");
}

#[test]
fn an_agent_without_a_terminal_shows_how_to_open_one() {
    let mut stage = stage();
    let mut other = member("1/", AgentState::Idle);
    other.runner = Runner::None;
    stage.app.update(Update::Team(vec![member("0/", AgentState::Idle), other]), stage.now);
    stage.control('t');
    stage.has("1/ idle (no terminal): a task");
    stage.key(KeyCode::Esc);
    stage.press(KeyCode::Right, KeyModifiers::ALT);
    stage.has("No terminal runs agent 1/. Open one for it: ikigai -c --agent 1/");
}

#[test]
fn messages_to_a_lost_agent_are_not_shown_as_queued() {
    let mut stage = stage();
    stage.starts("0/");
    stage.enters("before");
    stage.has("queued 1: before");
    stage.emits("0/", EventKind::AgentLost("Agent 0/ is dead".to_owned()));
    stage.lacks("queued");
    stage.enters("after");
    stage.lacks("queued");
}

/// Regression: they stayed busy and asking forever, since no process reports on them any more.
#[test]
fn losing_an_agent_loses_its_children() {
    let mut stage = stage();
    for id in ["0/", "0/1/", "1/"] {
        stage.starts(id);
    }
    stage.emits("0/1/", super::asking::asking());
    stage.has("[0/1/ asks]");
    stage.emits("0/", EventKind::AgentLost("Agent 0/ was taken over".to_owned()));
    stage.lacks("asks]");
    stage.lacks("esc to interrupt");
    stage.control('t');
    stage.has("1 0/ idle: a task");
    stage.has("0/1/ idle: a task");
    stage.has("1/ waiting");
    stage.key(KeyCode::Esc);
    stage.press(KeyCode::Down, KeyModifiers::ALT);
    stage.has("[0/1/]");
    stage.lacks("rm -r build");
    stage.lacks("esc to interrupt");
}

#[test]
fn the_wheel_moves_the_selection_in_the_team_list() {
    let mut stage = Stage::new(40, 10);
    for number in 0..50 {
        stage.logs("0/", NewMessage::user(format!("line {number}")));
    }
    stage.app.update(
        Update::Team(["0/", "0/0/", "0/1/"].map(|id| member(id, AgentState::Idle)).to_vec()),
        stage.now,
    );
    stage.control('t');
    stage.app.press(Typed::Wheel(-3), stage.now);
    stage.app.press(Typed::Wheel(1), stage.now);
    stage.key(KeyCode::Enter);
    stage.has("[0/0/]");
    stage.press(KeyCode::Up, KeyModifiers::ALT);
    stage.has("line 49");
}

#[test]
fn unread_mail_is_counted_and_waits_for_the_draft() {
    let mut stage = Stage::new(80, 24);
    let mut own = member("0/", AgentState::Idle);
    own.unread = 2;
    stage.app.update(Update::Team(vec![own]), stage.now);
    stage.has("── [mail:2] ──");
    stage.types("x");
    stage.has("── 2 unread, delivered after your next message ──");
}

#[test]
fn mail_that_does_not_wake_an_interrupted_agent_says_so() {
    let mut stage = Stage::new(80, 24);
    let mut own = member("0/", AgentState::Idle);
    own.unread = 1;
    stage.app.update(Update::Team(vec![own]), stage.now);
    stage.starts("0/");
    let (text, error) = (String::new(), None);
    let done = TurnEnd { stop: StopReason::Interrupted, text, error, can_continue: false };
    stage.emits("0/", EventKind::TurnEnded(done));
    stage.has("── 1 unread, delivered after your next message ──");
    stage.starts("0/");
    stage.has("── [mail:1] ──");
}
