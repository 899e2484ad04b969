//! What the terminal gets beside rows: notifications, the title, colours.

use crossterm::event::{KeyCode, KeyModifiers};
use ikigai_conversation::{Mode, NewMessage};
use ikigai_protocol::{Command, EventKind, StopReason, TurnEnd};

use super::{Stage, request};
use crate::app::Action;
use crate::style::{Background, Colours};
use crate::typed::Typed;

fn ring(text: &str) -> Action {
    Action::Ring(text.to_owned())
}

fn ended(stop: StopReason) -> EventKind {
    let (text, error) = (String::new(), None);
    EventKind::TurnEnded(TurnEnd { stop, text, error, can_continue: false })
}

#[test]
fn only_a_top_level_agent_that_finished_or_failed_without_focus_notifies() {
    let mut stage = Stage::new(80, 24);
    stage.ends("0/", "x");
    assert_eq!(stage.actions(), []);
    stage.app.press(Typed::FocusLost, stage.now);
    stage.ends("0/", "x");
    assert_eq!(stage.actions(), [ring("Agent 0/ has finished")]);
    stage.emits("0/", ended(StopReason::Error));
    assert_eq!(stage.actions(), [ring("Agent 0/ has failed")]);
    stage.emits("0/", ended(StopReason::Interrupted));
    stage.ends("0/0/", "x");
    assert_eq!(stage.actions(), []);
}

#[test]
fn the_title_is_the_first_message_with_a_mark_for_the_state() {
    let mut stage = Stage::new(80, 24);
    assert_eq!(stage.app.window_title(), "ikigai");
    stage.starts("0/");
    stage.logs("0/", NewMessage::user("\n fix the parser \nplease"));
    assert_eq!(stage.app.window_title(), "✳ fix the parser");
    stage.answers("0/", "Done.");
    stage.logs("0/", NewMessage::user("another"));
    assert_eq!(stage.app.window_title(), "fix the parser");
}

#[test]
fn the_colours_follow_the_background() {
    let mut stage = Stage::with(80, 24, Mode::Work, Colours::Many(Background::Dark));
    stage.app.press(Typed::Background(Background::Light), stage.now);
    assert_eq!(stage.app.colours, Colours::Many(Background::Light));
    stage.app.press(Typed::FocusGained, stage.now);
    assert_eq!(stage.actions(), [Action::AskBackground]);
    let mut stage = Stage::with(80, 24, Mode::Work, Colours::None);
    stage.app.press(Typed::Background(Background::Light), stage.now);
    assert_eq!(stage.app.colours, Colours::None);
}

#[test]
fn shift_tab_changes_between_work_and_read_and_never_to_full() {
    for (mode, next) in
        [(Mode::Work, Mode::Read), (Mode::Read, Mode::Work), (Mode::Full, Mode::Work)]
    {
        let mut stage = Stage::with(80, 24, mode, Colours::None);
        stage.press(KeyCode::BackTab, KeyModifiers::SHIFT);
        assert_eq!(stage.actions(), [request("0/", Command::Mode { mode: Some(next) })]);
    }
}

#[test]
fn enter_on_a_paste_expands_it() {
    let mut stage = Stage::new(80, 24);
    stage.app.press(Typed::Paste("line\n".repeat(12)), stage.now);
    stage.has("❯ [Pasted 12 lines]");
    stage.key(KeyCode::Left);
    stage.has("Enter expands the paste");
    stage.key(KeyCode::Enter);
    stage.lacks("[Pasted");
    assert_eq!(stage.actions(), []);
}
