//! For any input in any order at any size: no panic, and no cell that could control the terminal.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ikigai_conversation::{Body, NewMessage, Preview, ResponseId, ToolCallId};
use ikigai_protocol::{ApprovalRequest, EventKind};
use proptest::prelude::*;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use super::{Stage, agent};
use crate::typed::Typed;
use crate::update::Update;

#[derive(Debug, Clone)]
enum Step {
    Key(KeyCode, KeyModifiers),
    Paste(String),
    Wheel(isize),
    Text(String),
    Said(String),
    Call(String, String),
    Asks(String),
    Told(String),
    Listed(Vec<String>),
    Retry(String),
    Done(String),
    Draw(u16, u16),
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a-z`*_#>|\\-\\n \\t\u{1b}\u{7}\u{202e}\u{200b}\u{301}é日👩]{0,80}",
        Just("x".repeat(3_000)),
        Just("\u{1b}]52;c;AAAA\u{7}\u{9b}2J\r\u{85}".to_owned()),
    ]
}

fn key() -> impl Strategy<Value = Step> {
    let code = prop_oneof![
        any::<char>().prop_map(KeyCode::Char),
        "[a-z/@0-9]".prop_map(|text| KeyCode::Char(text.chars().next().unwrap_or('x'))),
        prop::sample::select(vec![
            KeyCode::Enter,
            KeyCode::Esc,
            KeyCode::Tab,
            KeyCode::BackTab,
            KeyCode::Up,
            KeyCode::Down,
            KeyCode::Left,
            KeyCode::Right,
            KeyCode::Home,
            KeyCode::End,
            KeyCode::PageUp,
            KeyCode::PageDown,
            KeyCode::Backspace,
            KeyCode::Delete,
            KeyCode::F(1),
        ]),
    ];
    let modifiers = prop::sample::select(vec![
        KeyModifiers::NONE,
        KeyModifiers::NONE,
        KeyModifiers::CONTROL,
        KeyModifiers::ALT,
        KeyModifiers::SHIFT,
    ]);
    (code, modifiers).prop_map(|(code, modifiers)| Step::Key(code, modifiers))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => key(),
        1 => text().prop_map(Step::Paste),
        1 => (-20isize..20).prop_map(Step::Wheel),
        3 => text().prop_map(Step::Text),
        1 => text().prop_map(Step::Said),
        1 => (prop_oneof![Just("bash".to_owned()), Just("file_edit".to_owned()), Just("file_write".to_owned()), text()], text())
            .prop_map(|(name, output)| Step::Call(name, output)),
        1 => text().prop_map(Step::Asks),
        1 => text().prop_map(Step::Told),
        1 => prop::collection::vec(text(), 0..4).prop_map(Step::Listed),
        1 => text().prop_map(Step::Retry),
        1 => text().prop_map(Step::Done),
        3 => (0u16..90, 0u16..30).prop_map(|(width, height)| Step::Draw(width, height)),
    ]
}

fn perform(stage: &mut Stage, step: Step) {
    stage.now += Duration::from_millis(900);
    match step {
        Step::Key(code, modifiers) => {
            stage.app.press(Typed::Key(KeyEvent::new(code, modifiers)), stage.now);
        }
        Step::Paste(text) => stage.app.press(Typed::Paste(text), stage.now),
        Step::Wheel(rows) => stage.app.press(Typed::Wheel(rows), stage.now),
        Step::Text(text) => stage.streams("0/", &text),
        Step::Said(text) => stage.logs("0/", NewMessage::user(text)),
        Step::Call(name, text) => {
            let arguments = serde_json::json!({"path": text, "command": text, "content": text, "old_string": text, "new_string": "y"});
            let output = serde_json::json!({"success": true, "data": {"output": text}});
            stage.calls("0/", &name, &arguments.to_string(), &output.to_string());
        }
        Step::Asks(text) => {
            let arguments = serde_json::json!({"command": text}).to_string();
            let call = NewMessage::tool_call(
                ToolCallId::new(&*text),
                "bash",
                arguments,
                ResponseId::new("r"),
            );
            let Body::ToolCall(call) = call.body else { unreachable!("it is one") };
            let preview = Preview::Command { command: text.clone() };
            let (why, rule) = (text.clone(), Some(text.clone()));
            let asking =
                ApprovalRequest { call, preview, why, rule, cause: text, hash: String::new() };
            stage.emits("0/", EventKind::ApprovalRequested(asking));
        }
        Step::Told(text) => stage.app.update(Update::Note { agent: agent("0/"), text }, stage.now),
        Step::Listed(names) => {
            stage.app.update(Update::List(crate::completion::Listing::Files, names), stage.now);
        }
        Step::Retry(reason) => {
            let delay = Duration::from_secs(1);
            stage.emits("0/", EventKind::Retry { attempt: 1, of: 5, reason, delay });
        }
        Step::Done(text) => stage.answers("0/", &text),
        Step::Draw(width, height) => drop(draw(stage, width, height)),
    }
}

fn draw(stage: &mut Stage, width: u16, height: u16) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    let cursor = stage.app.draw(&mut buffer, stage.now);
    assert!(cursor.is_none_or(|cursor| cursor.x < width && cursor.y < height));
    for cell in &buffer.content {
        assert!(
            !cell.symbol().chars().any(|c| c.is_control() || c == '\u{202e}'),
            "{:?}",
            cell.symbol()
        );
    }
    buffer
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_input_breaks_the_screen(steps in prop::collection::vec(step(), 0..60)) {
        let mut stage = Stage::new(80, 24);
        for step in steps {
            perform(&mut stage, step);
        }
        for (width, height) in [(80, 24), (40, 10), (200, 60), (1, 1), (3, 2), (0, 0)] {
            draw(&mut stage, width, height);
        }
    }

    #[test]
    fn a_stream_looks_the_same_with_deltas_of_any_size(text in "[ab`~#*| \\n-]{0,200}", cuts in prop::collection::vec(0usize..200, 0..8)) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let mut pieces = Stage::new(80, 24);
        pieces.streams("0/", "");
        for pair in cuts.windows(2) {
            pieces.streams("0/", &text[pair[0]..pair[1]]);
            pieces.rows();
        }
        let mut whole = Stage::new(80, 24);
        whole.streams("0/", &text);
        prop_assert_eq!(pieces.rows(), whole.rows());
        pieces.answers("0/", &text);
        let retry = EventKind::Retry { attempt: 1, of: 5, reason: String::new(), delay: Duration::ZERO };
        whole.app.pane(&agent("0/")).transcript.handle(&retry);
        whole.answers("0/", &text);
        prop_assert_eq!(pieces.rows(), whole.rows());
    }
}

#[test]
fn a_line_of_100_000_characters_is_shown_and_scrolled() {
    let mut stage = Stage::new(80, 24);
    stage.answers("0/", &"x".repeat(100_000));
    stage.has(&"x".repeat(78));
    stage.press(KeyCode::Home, KeyModifiers::CONTROL);
    stage.has("● xxx");
}
