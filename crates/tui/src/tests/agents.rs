//! Several agents.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyModifiers};
use ikigai_conversation::NewMessage;
use ikigai_protocol::{AgentState, Command, EventKind, Runner, StopReason, TurnEnd};

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
        age: Some(Duration::from_secs(75)),
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
        stage.has(&format!("── {view} ──"));
    }
    let recalls = ["0/1/", "0/0/"].map(|id| Action::Effect(Effect::LoadLog(agent(id))));
    assert_eq!(stage.actions(), recalls);
}

#[test]
fn control_and_arrows_do_the_same_without_text() {
    let mut stage = stage();
    stage.press(KeyCode::Down, KeyModifiers::CONTROL);
    stage.has("── 0/1/ ──");
    stage.types("one two");
    stage.press(KeyCode::Left, KeyModifiers::CONTROL);
    stage.has("── 0/1/ ──");
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
    let rows = stage.rows().join("\n");
    let [first, second, third] =
        ["?   0/1/ asking", "✓ 0/     idle", "⠹   0/0/ tool"].map(|row| rows.find(row));
    assert!(first.is_some() && first < second && second < third, "{rows}");
    stage.has("bash  make");
    stage.types("3");
    stage.has("── 0/0/ ──");
    stage.control('t');
    stage.key(KeyCode::Down);
    stage.key(KeyCode::Enter);
    stage.has("── 0/ ──");
}

#[test]
fn agents_are_listed_and_visited_by_command() {
    let mut stage = stage();
    stage.enters("/agents");
    stage.has("* 0/ idle: a task\n    0/0/ tool: a task\n    0/1/ asking: a task");
    stage.enters("/agent 0/1");
    stage.has("── 0/1/ ──");
    stage.enters("/agent 9");
    stage.has("Agent 9 not found. /agents lists all");
}

fn beside(runner: Runner) -> Stage {
    let mut stage = Stage::new(80, 24);
    let other = Member { runner, ..member("1/", AgentState::Idle) };
    stage.app.update(Update::Team(vec![member("0/", AgentState::Idle), other]), stage.now);
    stage
}

#[test]
fn an_agent_of_another_terminal_is_read_live_and_not_talked_to() {
    let mut stage = beside(Runner::OtherProcess);
    stage.press(KeyCode::Right, KeyModifiers::ALT);
    stage.has("── 1/ (read only) ──");
    assert_eq!(stage.actions(), [Action::Effect(Effect::Follow(agent("1/")))]);
    let said = stage.message("1/", NewMessage::user("said elsewhere"));
    stage.app.update(Update::Log { agent: agent("1/"), log: vec![said] }, stage.now);
    let answer = NewMessage::assistant("news", ikigai_conversation::ResponseId::new("r"));
    let messages = vec![stage.message("1/", answer)];
    stage.app.update(Update::Followed { agent: agent("1/"), messages }, stage.now);
    stage.has("said elsewhere");
    stage.has("● news");
    stage.enters("hello");
    stage.has("Agent 1/ is run by another terminal. Write to it: /mail send 1/ TEXT");
    stage.has("❯ hello");
    assert_eq!(stage.actions(), []);
    stage.press(KeyCode::Left, KeyModifiers::ALT);
    assert_eq!(stage.actions(), [Action::Effect(Effect::Unfollow)]);
    stage.has("── 0/ ──");
}

#[test]
fn an_agent_without_a_terminal_shows_how_to_open_one() {
    let mut stage = beside(Runner::None);
    stage.control('t');
    stage.has("1/ no term.");
    stage.key(KeyCode::Esc);
    stage.press(KeyCode::Right, KeyModifiers::ALT);
    stage.enters("hello");
    stage.has("No terminal runs agent 1/. Open one for it: ikigai -c --agent 1/");
}

/// Regression: the cursor was on the agent in view, and Enter led nowhere.
#[test]
fn the_team_list_opens_on_the_agent_that_asks_and_nothing_moves_under_the_cursor() {
    let mut stage = stage();
    stage.control('t');
    stage.has("❯1?   0/1/ asking");
    let members = ["0/", "0/0/", "0/1/"].map(|id| member(id, AgentState::Idle)).to_vec();
    stage.app.update(Update::Team(members), stage.now);
    stage.has("❯1✓   0/1/ idle");
    stage.key(KeyCode::Enter);
    stage.has("── 0/1/ ──");
}

#[test]
fn an_agent_is_killed_only_after_a_confirmation() {
    let mut stage = stage();
    stage.control('t');
    stage.types("k");
    stage.has("Kill 0/1/ and its children? y kills");
    stage.types("n");
    assert_eq!(stage.actions(), []);
    stage.types("ky");
    let target = Some("0/1/".to_owned());
    assert_eq!(stage.actions(), [super::request("0/", Command::Kill { target })]);
}

#[test]
fn an_agent_can_be_peeked_at_and_written_to_from_the_team_list() {
    let mut stage = stage();
    stage.answers("0/1/", "its last line");
    stage.control('t');
    stage.key(KeyCode::Down);
    stage.key(KeyCode::Down);
    stage.types("p");
    stage.has("● its last line");
    stage.streams("0/1/", "and what it says now");
    stage.has("● and what it says now");
    stage.key(KeyCode::Esc);
    stage.lacks("its last line");
    stage.types("m");
    stage.has("❯ /mail send 0/1/");
}

#[test]
fn the_oldest_question_opens_from_every_view() {
    let mut stage = stage();
    stage.control('x');
    stage.has("No agent needs approval");
    stage.emits("0/1/", super::asking::asking());
    stage.now += Duration::from_secs(1);
    stage.emits("0/0/", super::asking::asking());
    stage.control('x');
    stage.has("Agent 0/1/ wants to run a command");
    stage.key(KeyCode::Esc);
    stage.lacks("wants to run a command");
    stage.control('x');
    stage.has("Agent 0/1/ wants to run a command");
}

#[test]
fn a_question_of_another_terminal_is_answered_here_and_goes_when_it_is_settled() {
    let mut stage = beside(Runner::OtherProcess);
    let EventKind::ApprovalRequested(request) = super::asking::asking() else { unreachable!() };
    let open = vec![(agent("1/"), request)];
    stage.app.press(Typed::FocusLost, stage.now);
    stage.app.update(Update::Questions(open.clone()), stage.now);
    let text = "Agent 1/ needs approval for bash".to_owned();
    assert_eq!(stage.actions(), [Action::Ring(text)]);
    stage.control('x');
    stage.has("Agent 1/ wants to run a command");
    stage.app.update(Update::Questions(open), stage.now);
    stage.types("1");
    let actions = stage.actions();
    let is_answer = |action: &Action| {
        matches!(action, Action::Effect(Effect::Request(request))
            if request.agent == agent("1/") && matches!(request.command, Command::Answer(_)))
    };
    assert!(actions.iter().any(is_answer), "{actions:?}");
    stage.app.update(Update::Questions(Vec::new()), stage.now);
    stage.lacks("wants to run a command");
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
    stage.has("? 0/1/ needs you");
    stage.emits("0/", EventKind::AgentLost("Agent 0/ was taken over".to_owned()));
    stage.lacks("needs you");
    stage.lacks("esc to interrupt");
    stage.control('t');
    stage.has("✓ 0/     idle");
    stage.has("0/1/ idle");
    stage.has("1/     waiting");
    stage.key(KeyCode::Esc);
    stage.press(KeyCode::Down, KeyModifiers::ALT);
    stage.has("── 0/1/ ──");
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
    stage.has("── 0/0/ ──");
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
