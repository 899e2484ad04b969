//! Questions, and which keys answer them.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ikigai_conversation::{Decision, NewMessage, ToolCallId};
use ikigai_protocol::{ApprovalAnswer, ApprovalRequest, Command, EventKind};

use super::{Stage, agent, request};
use crate::app::Action;
use crate::question;
use crate::question::tests::command;
use crate::typed::Typed;
use crate::update::{Effect, Update};

pub(super) fn asking() -> EventKind {
    let request = question::tests::approval_request("bash", command("rm -r build"));
    let (why, cause) = ("it leaves the sandbox".to_owned(), "clean up".to_owned());
    EventKind::ApprovalRequested(ApprovalRequest { why, cause, ..request })
}

fn answer(decision: Decision, reason: Option<&str>) -> Action {
    let reason = reason.map(str::to_owned);
    request(
        "0/",
        Command::Answer(ApprovalAnswer {
            call: ToolCallId::new("c"),
            hash: "hash".to_owned(),
            decision,
            reason,
            save_rule: None,
        }),
    )
}

fn asked() -> Stage {
    let mut stage = Stage::new(80, 24);
    stage.starts("0/");
    stage.emits("0/", asking());
    stage
}

#[test]
fn a_question_is_answered_by_one_key() {
    let keys = [('y', Decision::Once), ('1', Decision::Once), ('a', Decision::Always)];
    for (key, decision) in keys.into_iter().chain([('2', Decision::Always)]) {
        let mut stage = asked();
        stage.has("╭ Agent 0/ wants to run a command ─");
        stage.has("│   rm -r build  ");
        stage.has("│ ❯ 1 Yes  ");
        stage.types(&key.to_string());
        assert_eq!(stage.actions(), [answer(decision, None)]);
        stage.lacks("wants to run");
    }
}

#[test]
fn arrows_select_a_choice_and_enter_takes_it() {
    let mut stage = asked();
    stage.key(KeyCode::Down);
    stage.has("│ ❯ 2 Yes, and don't ask again this session");
    stage.key(KeyCode::Enter);
    assert_eq!(stage.actions(), [answer(Decision::Always, None)]);
    let mut stage = asked();
    [KeyCode::Down; 9].into_iter().for_each(|key| stage.key(key));
    stage.key(KeyCode::Enter);
    stage.has("Why not?");
    stage.key(KeyCode::Esc);
    stage.key(KeyCode::Up);
    stage.has("│ ❯ 2 Yes");
    stage.types("4");
    assert_eq!(stage.actions(), [], "there is no fourth choice");
}

#[test]
fn a_rule_that_is_shown_is_saved_with_the_approval() {
    let EventKind::ApprovalRequested(mut asking) = asking() else { unreachable!("it is one") };
    let rule = "[[rules]]\ntool = \"bash\"".to_owned();
    asking.rule = Some(rule.clone());
    let mut stage = Stage::new(80, 24);
    stage.starts("0/");
    stage.emits("0/", EventKind::ApprovalRequested(asking));
    stage.lacks("[[rules]]");
    stage.key(KeyCode::Down);
    stage.key(KeyCode::Down);
    stage.has("│     [[rules]]");
    stage.key(KeyCode::Enter);
    let (call, decision) = (ToolCallId::new("c"), Decision::Always);
    let hash = "hash".to_owned();
    let answer = ApprovalAnswer { call, hash, decision, reason: None, save_rule: Some(rule) };
    assert_eq!(stage.actions(), [request("0/", Command::Answer(answer))]);
}

#[test]
fn a_denial_can_have_a_reason() {
    let mut stage = asked();
    stage.types("nuse make clean");
    stage.has("Why not? use make clean");
    stage.key(KeyCode::Enter);
    assert_eq!(stage.actions(), [answer(Decision::No, Some("use make clean"))]);
    let mut stage = asked();
    stage.types("n");
    stage.key(KeyCode::Enter);
    assert_eq!(stage.actions(), [answer(Decision::No, None)]);
}

#[test]
fn other_keys_and_pastes_do_not_answer() {
    let mut stage = asked();
    stage.types("xz9");
    stage.control('y');
    stage.app.press(Typed::Paste("y".to_owned()), stage.now);
    assert_eq!(stage.actions(), []);
    stage.has("wants to run");
}

#[test]
fn a_key_in_the_middle_of_a_word_approves_nothing() {
    let mut stage = Stage::new(80, 24);
    stage.starts("0/");
    stage.types("ma");
    stage.emits("0/", asking());
    stage.now += Duration::from_millis(100);
    let y = KeyEvent::new(KeyCode::Char('y'), KeyModifiers::NONE);
    stage.has("stop typing for a moment to answer");
    stage.app.press(Typed::Key(y), stage.now);
    assert_eq!(stage.actions(), []);
    stage.types("y");
    assert_eq!(stage.actions(), [answer(Decision::Once, None)]);
    stage.has("❯ may");
}

#[test]
fn a_question_can_be_set_aside() {
    let mut stage = asked();
    stage.key(KeyCode::Esc);
    stage.lacks("rm -r build");
    stage.has("Enter: the question");
    stage.enters("/help");
    stage.key(KeyCode::Enter);
    stage.types("y");
    assert_eq!(stage.actions(), [answer(Decision::Once, None)]);
}

#[test]
fn an_answer_in_the_log_or_the_end_of_the_turn_closes_a_question() {
    let mut stage = asked();
    stage.logs("0/", NewMessage::approval(ToolCallId::new("c"), Decision::Once, None));
    stage.lacks("wants to run");
    let mut stage = asked();
    stage.ends("0/", "x");
    stage.lacks("wants to run");
}

#[test]
fn a_question_of_another_agent_is_marked_and_rings_without_focus() {
    let mut stage = Stage::new(80, 24);
    stage.starts("0/1/");
    stage.app.press(Typed::FocusLost, stage.now);
    stage.emits("0/1/", asking());
    let text = "Agent 0/1/ needs approval for bash".to_owned();
    assert_eq!(stage.actions(), [Action::Ring(text)]);
    stage.has("? 0/1/ needs you");
    stage.lacks("rm -r build");
    stage.types("y");
    assert_eq!(stage.actions(), []);
}

#[test]
fn a_question_longer_than_the_screen_can_be_scrolled_to_its_end() {
    let mut stage = Stage::new(40, 10);
    let EventKind::ApprovalRequested(mut long) = asking() else { unreachable!("it is one") };
    long.preview = command(&(0..30).map(|n| format!("step{n}\n")).collect::<String>());
    stage.emits("0/", EventKind::ApprovalRequested(long));
    stage.has("more rows: PgDn");
    stage.has("1 yes");
    for step in 0..30 {
        // A page starts with the last row of the one before, so that no row is skipped.
        let row = format!("│   step{step} ");
        if !stage.rows().iter().any(|seen| seen.starts_with(&row)) {
            stage.key(KeyCode::PageDown);
            stage.has(&row);
        }
    }
    stage.has("1 yes");
    stage.types("y");
    assert_eq!(stage.actions(), [answer(Decision::Once, None)]);
}

/// Regression: one key approved a command whose end was out of sight.
#[test]
fn approving_something_unseen_needs_a_second_key() {
    let mut stage = Stage::new(80, 24);
    let EventKind::ApprovalRequested(mut long) = asking() else { unreachable!("it is one") };
    let command = format!("echo safe{}; touch ../outside", " ".repeat(3000));
    long.preview = question::tests::command(&command);
    stage.emits("0/", EventKind::ApprovalRequested(long));
    stage.types("y");
    assert_eq!(stage.actions(), []);
    stage.has("you have not seen all of it");
    stage.types("a");
    assert_eq!(stage.actions(), [answer(Decision::Always, None)]);
}

fn long_question(stage: &mut Stage) {
    let EventKind::ApprovalRequested(mut long) = asking() else { unreachable!("it is one") };
    let command: String = (0..100).map(|n| format!("step{n} {}\n", "w ".repeat(30))).collect();
    long.preview = question::tests::command(&command);
    stage.emits("0/", EventKind::ApprovalRequested(long));
}

#[track_caller]
fn check_not_seen(stage: &mut Stage) {
    stage.rows();
    stage.types("y");
    assert_eq!(stage.actions(), []);
    stage.has("you have not seen all of it");
}

/// The wheel, another width, or a lack of room lead to the end without showing the rest.
#[test]
fn skipped_rows_do_not_count_as_seen() {
    let mut stage = Stage::new(80, 24);
    long_question(&mut stage);
    stage.app.press(Typed::Wheel(300), stage.now);
    check_not_seen(&mut stage);

    let mut stage = Stage::new(40, 24);
    long_question(&mut stage);
    for _ in 0..40 {
        stage.app.press(Typed::Wheel(1), stage.now);
        stage.rows();
    }
    stage.terminal.backend_mut().resize(120, 24);
    check_not_seen(&mut stage);

    let mut stage = Stage::new(80, 5);
    long_question(&mut stage);
    stage.app.press(Typed::Wheel(30), stage.now);
    stage.types("y");
    assert_eq!(stage.actions(), []);
}

/// Regression: each of these changed the draft behind the question, or offered completions for it.
#[test]
fn no_key_changes_the_draft_that_a_question_covers() {
    let mut stage = Stage::new(80, 24);
    stage.app.update(Update::History { texts: vec!["earlier".to_owned()], size: 10 }, stage.now);
    stage.starts("0/");
    stage.types("one /he");
    stage.emits("0/", asking());
    for key in [KeyCode::Up, KeyCode::Down, KeyCode::Tab, KeyCode::Left, KeyCode::Backspace] {
        stage.key(key);
    }
    for key in ['j', 'u', 'w', 'k', 'g', 'r', 'a'] {
        stage.control(key);
    }
    stage.press(KeyCode::Enter, KeyModifiers::ALT);
    assert_eq!(stage.actions(), []);
    stage.control('c');
    assert_eq!(stage.actions(), [request("0/", Command::Interrupt)]);
    stage.key(KeyCode::Esc);
    stage.has("❯ one /he");
}

#[test]
fn the_wheel_scrolls_a_question() {
    let mut stage = Stage::new(40, 10);
    let EventKind::ApprovalRequested(mut long) = asking() else { unreachable!("it is one") };
    let command: String = (0..30).map(|n| format!("step{n}\n")).collect();
    long.preview = question::tests::command(&command);
    stage.emits("0/", EventKind::ApprovalRequested(long));
    stage.has("it leaves the sandbox");
    stage.app.press(Typed::Wheel(2), stage.now);
    stage.lacks("it leaves the sandbox");
    stage.app.press(Typed::Wheel(-2), stage.now);
    stage.has("it leaves the sandbox");
}

#[test]
fn global_keys_work_while_typing_a_reason() {
    let mut stage = asked();
    stage.starts("0/1/");
    stage.types("nbecause");
    stage.control('z');
    stage.control('l');
    assert_eq!(stage.actions(), [Action::Suspend, Action::Redraw]);
    stage.press(KeyCode::Enter, KeyModifiers::ALT);
    assert_eq!(stage.actions(), [], "only Enter alone says no");
    stage.control('t');
    stage.has("enter opens");
    stage.key(KeyCode::Esc);
    stage.control('a');
    stage.control('d');
    stage.has("Why not? ecause");
    stage.press(KeyCode::Down, KeyModifiers::ALT);
    stage.has("── 0/1/ ──");
}

/// Presses a key after `millis`.
fn soon(stage: &mut Stage, millis: u64, code: KeyCode, modifiers: KeyModifiers) {
    stage.now += Duration::from_millis(millis);
    stage.app.press(Typed::Key(KeyEvent::new(code, modifiers)), stage.now);
}

/// Regression: the question was old, and the first letters of a message answered it.
#[test]
fn typing_while_switching_to_a_question_does_not_answer_it() {
    let mut stage = Stage::new(80, 24);
    stage.starts("0/1/");
    stage.emits("0/1/", asking());
    stage.types("x");
    stage.actions();
    soon(&mut stage, 60_000, KeyCode::Down, KeyModifiers::ALT);
    for c in "yes, but a".chars() {
        soon(&mut stage, 200, KeyCode::Char(c), KeyModifiers::NONE);
    }
    stage.has("rm -r build");
    assert_eq!(stage.actions(), [Action::Effect(Effect::LoadLog(agent("0/1/")))]);
    stage.key(KeyCode::Esc);
    stage.has("❯ yes, but a");
}

#[test]
fn holding_a_key_down_answers_one_question() {
    let mut stage = asked();
    let EventKind::ApprovalRequested(mut second) = asking() else { unreachable!("it is one") };
    second.call.tool_call_id = ToolCallId::new("d");
    stage.emits("0/", EventKind::ApprovalRequested(second));
    stage.types("y");
    for _ in 0..60 {
        soon(&mut stage, 30, KeyCode::Char('y'), KeyModifiers::NONE);
    }
    assert_eq!(stage.actions(), [answer(Decision::Once, None)]);
    stage.has("wants to run");
    stage.key(KeyCode::Esc);
    stage.lacks("❯ y");
}
