//! How a conversation is shown.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyModifiers};
use ikigai_conversation::{
    Body, CallSummary, EffectKind, FileDiff, Hunk, MessageId, Mode, NewMessage, ResponseId,
    ResultState, ResultSummary, ToolCallId,
};
use ikigai_protocol::{EventKind, RECALLED, StopReason, TurnEnd};
use ratatui_core::style::{Color, Modifier};

use super::{Stage, agent};
use crate::app::Action;
use crate::style::Colours;
use crate::update::Update;

#[test]
fn a_turn_shows_the_message_the_call_the_result_and_the_answer() {
    let mut stage = Stage::new(80, 24);
    stage.starts("0/");
    stage.logs("0/", NewMessage::user("Which TODOs are there?"));
    stage.calls(
        "0/",
        "grep",
        r#"{"pattern":"TODO"}"#,
        r#"{"success":true,"data":{"output":"a:1\nb:2\nc:3\nd:4\ne:5\nf:6","count":6}}"#,
    );
    stage.streams("0/", "There are **five**:\n\n- a\n- b\n");
    stage.shows(&[
        "❯ Which TODOs are there?",
        "",
        "● grep  TODO",
        "  │ … 1 more line",
        "  │ b:2",
        "  │ c:3",
        "  │ d:4",
        "  │ e:5",
        "  │ f:6",
        "",
        "● There are five:",
        "",
        "  • a",
        "  • b",
        "",
        "⠋ Answering · 0s · esc to interrupt",
        &"─".repeat(80),
        "❯ Type what to do next",
        &format!("gpt-5 · work (landlock) · main{}$0.12", " ".repeat(45)),
    ]);
    let text = |stage: &mut Stage| {
        let rows = stage.rows().into_iter();
        rows.filter(|row| !row.is_empty() && !row.starts_with(['⠋', '❯'])).collect::<Vec<_>>()
    };
    let streamed = text(&mut stage);
    stage.answers("0/", "There are **five**:\n\n- a\n- b\n");
    assert_eq!(text(&mut stage), streamed);
}

#[test]
fn a_small_screen_shows_the_end() {
    let mut stage = Stage::new(40, 10);
    stage.answers("0/", &"one two three four five six seven eight nine ten\n\n".repeat(4));
    stage.shows(&[
        "  eight nine ten",
        "",
        "  one two three four five six seven",
        "  eight nine ten",
        "",
        "  one two three four five six seven",
        "  eight nine ten",
        "────────────────────────────────────────",
        "❯ Type a message, / for commands, @ for…",
        "gpt-5 · work (landlock) · main     $0.12",
    ]);
}

#[test]
fn a_retry_discards_the_streamed_text() {
    let mut stage = Stage::new(80, 24);
    stage.starts("0/");
    stage.streams("0/", "half\n\nan answ");
    let delay = Duration::from_secs(3);
    stage.emits(
        "0/",
        EventKind::Retry { attempt: 1, of: 5, reason: "overloaded".to_owned(), delay },
    );
    stage.lacks("half");
    stage.has("⠋ Retrying in 3s (1 of 5): overloaded · esc to interrupt");
    stage.streams("0/", "whole");
    stage.has("● whole");
}

#[test]
fn results_unfold_and_fold() {
    let mut stage = Stage::new(80, 24);
    stage.calls(
        "0/",
        "bash",
        r#"{"command":"x"}"#,
        r#"{"success":true,"data":{"output":"1\n2\n3\n4\n5\n6\n7","exit_code":0}}"#,
    );
    stage.has("│ … 2 more lines\n  │ 3");
    stage.control('o');
    stage.has("│ 1\n  │ 2\n  │ 3");
    stage.control('o');
    stage.has("… 2 more lines");
}

#[test]
fn a_selected_block_unfolds_alone() {
    let mut stage = Stage::new(80, 24);
    for name in ["one", "two"] {
        let output = (1..=7).map(|line| format!("{name} {line}")).collect::<Vec<_>>().join("\\n");
        let result = format!(r#"{{"success":true,"data":{{"output":"{output}","exit_code":0}}}}"#);
        stage.calls("0/", "bash", &format!(r#"{{"command":"{name}"}}"#), &result);
    }
    stage.press(KeyCode::Up, KeyModifiers::ALT);
    stage.press(KeyCode::Up, KeyModifiers::ALT);
    stage.key(KeyCode::Enter);
    stage.has("  │ one 1");
    stage.lacks("  │ two 1");
    stage.press(KeyCode::Down, KeyModifiers::ALT);
    stage.key(KeyCode::Enter);
    stage.has("  │ two 1");
    let reversed = |stage: &mut Stage| {
        stage.rows();
        let cells = &stage.terminal.backend().buffer().content;
        cells.iter().any(|cell| cell.modifier.contains(Modifier::REVERSED))
    };
    assert!(reversed(&mut stage));
    stage.key(KeyCode::Esc);
    assert!(!reversed(&mut stage));
    assert_eq!(stage.actions(), [], "nothing was sent or interrupted");
}

#[test]
fn mail_is_a_card_with_its_first_line_and_unfolds() {
    let mut stage = Stage::new(60, 24);
    let text = "[Notification: You have 1 unread message in your inbox]\n\
                #3 from 0/1/: \"Looked at src/parser.py; two remarks.\\n1. Names are fine.\"";
    stage.logs("0/", NewMessage::notification(text, Vec::new()));
    stage.has("✉ 0/1/ → 0/   Looked at src/parser.py; two remarks.\n");
    stage.lacks("Names");
    stage.control('o');
    stage.has("  1. Names are fine.");
}

#[test]
fn a_pasted_message_is_folded() {
    let mut stage = Stage::new(60, 40);
    let lines: Vec<String> = (1..=12).map(|line| format!("line {line}")).collect();
    stage.logs("0/", NewMessage::user(lines[..10].join("\n")));
    stage.has("line 10");
    stage.logs("0/", NewMessage::user(lines.join("\n")));
    stage.has("❯ line 1\n  line 2\n  line 3\n  … 9 more lines\n");
    stage.control('o');
    stage.has("  line 12\n");
}

/// Regression: the old text and the old meter stayed.
#[test]
fn clear_empties_the_view_and_the_meter_live_and_resumed() {
    let usage = |input_tokens| ikigai_conversation::Usage {
        input_tokens,
        output_tokens: 0,
        cache_read_tokens: None,
        cache_write_tokens: None,
        reasoning_tokens: None,
        cost: None,
        unreported: None,
        model: "m".to_owned(),
        response: ResponseId::new("r"),
    };
    let log = [
        NewMessage::user("before"),
        NewMessage { content: String::new(), body: Body::Usage(usage(20_000)) },
        NewMessage { content: String::new(), body: Body::Clear },
        NewMessage::user("after"),
    ];
    let mut live = Stage::new(120, 24);
    for message in log[..2].iter().cloned() {
        live.logs("0/", message);
    }
    live.has("10% context");
    for message in log[2..].iter().cloned() {
        live.logs("0/", message);
    }
    let mut resumed = Stage::new(120, 24);
    let log = log.map(|message| resumed.message("0/", message)).into();
    resumed.app.update(Update::Log { agent: agent("0/"), log }, resumed.now);
    for mut stage in [live, resumed] {
        stage.has("❯ after");
        stage.lacks("before");
        stage.lacks("% context");
    }
}

#[test]
fn raw_shows_the_conversation_as_plain_text_and_copy_code_the_last_code() {
    let mut stage = Stage::new(30, 24);
    let code = "fn main() {}\n".repeat(250);
    let answer = format!("A line that is wider than the screen.\n\n```rust\n{code}```\nend");
    stage.logs("0/", NewMessage::user("go"));
    stage.calls("0/", "glob", r#"{"pattern":"*"}"#, r#"{"success":true,"data":{"output":"a"}}"#);
    stage.answers("0/", &answer);
    stage.enters("/raw");
    let expected = format!("❯ go\n\n● glob  *  a\n\n● {answer}\n\n❯ /raw\n");
    assert_eq!(stage.actions(), [Action::ShowPlain(expected)]);
    stage.enters("/copy code");
    assert_eq!(stage.actions(), [Action::Copy(code)]);
    stage.enters("/copy that");
    stage.has("Usage: /copy, or /copy code");
}

/// The message contains everything that is shown, so no file has to be read, live or from the log.
#[test]
fn a_file_change_is_a_diff_live_and_from_the_log() {
    let lines = [" one", "-two", "+2"].map(|line| line.to_owned().into()).into();
    let hunks = vec![Hunk { old: 41, new: 41, lines }];
    let diff = FileDiff { path: "f".to_owned(), added: 1, removed: 1, hunks, omitted: 0 };
    let shown = ResultSummary::new("+1 −1", ResultState::Succeeded, Some(diff), None);
    let call = NewMessage::tool_call(ToolCallId::new("c"), "x", "{}", ResponseId::new("r"));
    let call = call.with_shown(vec![EffectKind::Write], CallSummary::new("Edit", "f"));
    let Body::ToolCall(body) = call.body.clone() else { unreachable!("it is one") };
    let result = NewMessage::shown_result(&body, "{}".to_owned(), true, "Replaced", shown);
    let row = format!("● Edit  f{}+1 −1", " ".repeat(66));
    let expected = &format!("{row}\n    41   one\n    42 − two\n    42 + 2");

    let mut live = Stage::new(80, 24);
    live.logs("0/", call.clone());
    live.logs("0/", result.clone());
    live.has(expected);
    assert_eq!(live.actions(), []);

    let mut later = Stage::new(80, 24);
    let log = [call, result].map(|message| later.message("0/", message)).into();
    later.app.update(Update::Log { agent: agent("0/"), log }, later.now);
    later.has(expected);
    assert_eq!(later.actions(), []);
}

#[test]
fn a_log_that_is_loaded_in_part_names_the_full_log() {
    let mut stage = Stage::new(80, 24);
    let said = |stage: &mut Stage, number| {
        stage.message("0/", NewMessage::user(format!("number {number}")))
    };
    let mut log: Vec<_> = (0..RECALLED).map(|number| said(&mut stage, number)).collect();
    let rest = "earlier messages are in the log: ikigai log";
    for is_cut in [true, false] {
        stage.app.update(Update::Dropped, stage.now);
        stage.app.update(Update::Log { agent: agent("0/"), log: log.clone() }, stage.now);
        stage.press(crossterm::event::KeyCode::Home, crossterm::event::KeyModifiers::CONTROL);
        assert_eq!(stage.rows().join("\n").contains(rest), is_cut);
        log.pop();
    }
}

#[test]
fn the_log_comes_before_later_events() {
    let mut stage = Stage::new(80, 24);
    let old = stage.message("0/", NewMessage::user("earlier"));
    let both = stage.message("0/", NewMessage::user("now"));
    stage.emits("0/", EventKind::Message(both.clone()));
    stage.app.update(Update::Log { agent: agent("0/"), log: vec![old, both] }, stage.now);
    let said: Vec<String> = stage.rows().into_iter().filter(|row| row.starts_with("❯ ")).collect();
    assert_eq!(said[..2], ["❯ earlier", "❯ now"]);
    assert_eq!(said.len(), 3, "the last one is the input");
}

#[test]
fn rewound_messages_and_notifications_are_dim() {
    for (colours, news) in [(Colours::Sixteen, true), (Colours::None, false)] {
        let mut stage = Stage::with(80, 24, Mode::Work, colours);
        stage.logs("0/", NewMessage::mark(Some("here".to_owned())));
        stage.logs("0/", NewMessage::user("hidden"));
        let to = MessageId::new(1).unwrap();
        stage.logs("0/", NewMessage::rewind(to, Some("here".to_owned())));
        stage.logs("0/", NewMessage::notification("[Notification: mail]", Vec::new()));
        let rows = stage.rows();
        for (text, is_dim) in [("❯ hidden", true), ("[Notification: mail]", news)] {
            let y = rows.iter().position(|row| row == text).unwrap();
            let cell = &stage.terminal.backend().buffer()[(2, y as u16)];
            assert_eq!(cell.modifier.contains(Modifier::DIM), is_dim, "{text}");
        }
    }
}

#[test]
fn full_mode_is_red_unless_colours_are_off() {
    for (colours, expected) in [(Colours::Sixteen, Color::Red), (Colours::None, Color::Reset)] {
        let mut stage = Stage::with(80, 24, Mode::Full, colours);
        let last = stage.rows().pop().unwrap();
        let x = last.find("full").unwrap();
        let x = last[..x].chars().count() as u16;
        assert_eq!(stage.terminal.backend().buffer()[(x, 23)].fg, expected);
    }
}

#[test]
fn a_failed_turn_shows_the_error_and_can_be_continued() {
    let mut stage = Stage::new(80, 24);
    let done = TurnEnd {
        stop: StopReason::Error,
        text: String::new(),
        error: Some("no key".to_owned()),
        can_continue: true,
    };
    stage.emits("0/", EventKind::TurnEnded(done));
    stage.has("✗ no key");
    stage.has("Press Enter to retry");
    stage.key(crossterm::event::KeyCode::Enter);
    assert_eq!(stage.actions(), [super::request("0/", ikigai_protocol::Command::Continue)]);
}

#[test]
fn scrolling_stays_where_it_is_while_more_arrives() {
    let mut stage = Stage::new(40, 10);
    for number in 0..50 {
        stage.logs("0/", NewMessage::user(format!("line {number}")));
    }
    stage.has("line 49");
    stage.press(crossterm::event::KeyCode::PageUp, crossterm::event::KeyModifiers::NONE);
    stage.press(crossterm::event::KeyCode::PageUp, crossterm::event::KeyModifiers::NONE);
    let before = stage.rows();
    stage.lacks("line 49");
    stage.streams("0/", "more\n\nand more\n\n");
    // One row less is visible because of the activity line.
    assert_eq!(stage.rows()[..6], before[..6]);
    stage.press(crossterm::event::KeyCode::Home, crossterm::event::KeyModifiers::CONTROL);
    stage.has("line 0");
    stage.press(crossterm::event::KeyCode::End, crossterm::event::KeyModifiers::CONTROL);
    stage.has("and more");
    for _ in 0..100 {
        stage.press(crossterm::event::KeyCode::PageUp, crossterm::event::KeyModifiers::NONE);
    }
    stage.has("line 0");
    for _ in 0..100 {
        stage.press(crossterm::event::KeyCode::PageDown, crossterm::event::KeyModifiers::NONE);
    }
    stage.has("and more");
}

#[test]
fn the_status_line_shows_tokens_and_their_share() {
    let mut stage = Stage::new(120, 24);
    let usage = ikigai_conversation::Usage {
        input_tokens: 20_000,
        output_tokens: 1_000,
        cache_read_tokens: None,
        cache_write_tokens: None,
        reasoning_tokens: None,
        cost: None,
        unreported: None,
        model: "m".to_owned(),
        response: ResponseId::new("r"),
    };
    stage.logs("0/", NewMessage { content: String::new(), body: Body::Usage(usage) });
    stage.has("  10% context · $0.12");
}

#[test]
fn a_large_screen_fills_from_the_bottom() {
    let mut stage = Stage::new(200, 60);
    stage.answers("0/", &format!("```rust\n{}```\n", "let x = 1; // one\n".repeat(300)));
    let rows = stage.rows();
    assert_eq!(rows.iter().filter(|row| *row == "  let x = 1; // one").count(), 57);
}

#[test]
fn an_interrupt_is_shown_once() {
    let mut stage = Stage::new(80, 24);
    stage.starts("0/");
    stage.streams("0/", "half");
    stage.logs("0/", NewMessage::assistant("half", ResponseId::new("r")));
    stage.logs("0/", NewMessage::interrupted(None));
    let (stop, text) = (StopReason::Interrupted, "half".to_owned());
    stage.emits(
        "0/",
        EventKind::TurnEnded(TurnEnd { stop, text, error: None, can_continue: false }),
    );
    assert_eq!(stage.rows().join("\n").matches("✗ interrupted").count(), 1);
}

#[test]
fn an_answer_that_failed_does_not_join_the_next_one() {
    let mut stage = Stage::new(80, 24);
    stage.streams("0/", "half");
    let done = TurnEnd {
        stop: StopReason::Error,
        text: String::new(),
        error: Some("gone".to_owned()),
        can_continue: true,
    };
    stage.emits("0/", EventKind::TurnEnded(done));
    stage.streams("0/", "whole");
    stage.has("● half");
    stage.has("● whole");
}

/// Regression: without a turn no event ends the wait, and the agent seemed busy forever.
#[test]
fn a_busy_database_outside_a_turn_is_shown_and_leaves_the_agent_idle() {
    let mut stage = Stage::new(80, 24);
    stage.emits("0/", EventKind::DatabaseUnavailable("the database is busy".to_owned()));
    stage.has("⚠ the database is busy; waiting");
    stage.lacks("esc to interrupt");
    stage.starts("0/");
    stage.emits("0/", EventKind::DatabaseUnavailable("the database is busy".to_owned()));
    stage.has("⠋ the database is busy; waiting · 0s · esc to interrupt");
}
