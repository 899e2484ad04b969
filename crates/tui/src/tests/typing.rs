//! Typing, and what it does.

use crossterm::event::{KeyCode, KeyModifiers};
use ikigai_conversation::{Mode, NewMessage};
use ikigai_protocol::{AgentState, Command, EventKind, Request, Runner, UsageBy};

use super::{Stage, agent, request, say};
use crate::app::Action;
use crate::completion::Listing;
use crate::team::Member;
use crate::typed::Typed;
use crate::update::{Drafting, Effect, Update};

#[test]
fn enter_sends_and_other_enters_start_a_new_line() {
    let mut stage = Stage::new(80, 24);
    stage.types("one");
    stage.control('j');
    stage.types("two");
    stage.press(KeyCode::Enter, KeyModifiers::ALT);
    stage.enters("three");
    assert_eq!(stage.actions(), [say("0/", "one\ntwo\nthree")]);
}

#[test]
fn a_message_to_a_busy_agent_is_queued_until_it_is_in_the_log() {
    let mut stage = Stage::new(80, 24);
    stage.starts("0/");
    stage.enters("and the tests");
    stage.has("queued 1: and the tests");
    stage.logs("0/", NewMessage::user("and the tests"));
    stage.lacks("queued");
    stage.has("❯ and the tests");
}

#[test]
fn up_takes_the_last_queued_message_back() {
    let mut stage = Stage::new(80, 24);
    stage.starts("0/");
    stage.enters("first");
    stage.enters("second");
    stage.has("queued 2: second · ↑ edits the last one");
    stage.actions();
    stage.key(KeyCode::Up);
    assert_eq!(stage.actions(), [request("0/", Command::Unqueue)]);
    let text = "second".to_owned();
    stage.app.update(Update::Unqueued { agent: agent("0/"), text }, stage.now);
    stage.has("❯ second");
    stage.lacks("queued 2");
    stage.has("queued 1: first");
}

#[test]
fn an_exclamation_mark_runs_a_command_of_the_user_that_esc_ends() {
    let mut stage = Stage::new(80, 24);
    stage.enters("! make all");
    let line = "make all".to_owned();
    assert_eq!(stage.actions(), [request("0/", Command::Shell { line })]);
    stage.has("Your command is running, Esc ends it");
    stage.key(KeyCode::Esc);
    assert_eq!(stage.actions(), [request("0/", Command::Interrupt)]);
    stage.app.update(Update::ShellEnded(agent("0/")), stage.now);
    stage.lacks("is running");
    stage.enters("!");
    assert_eq!(stage.actions(), [say("0/", "!")]);
}

#[test]
fn a_rejected_message_returns_to_the_draft() {
    let mut stage = Stage::new(80, 24);
    stage.enters("too much");
    stage.emits("0/", EventKind::InputRejected("too much".to_owned()));
    stage.lacks("queued");
    stage.has("❯ too much");
}

#[test]
fn control_c_clears_then_interrupts_then_leaves() {
    let mut stage = Stage::new(80, 24);
    stage.starts("0/");
    stage.types("draft");
    stage.control('c');
    assert_eq!(stage.actions(), []);
    stage.control('c');
    assert_eq!(stage.actions(), [request("0/", Command::Interrupt)]);
    stage.ends("0/", "x");
    stage.control('c');
    assert_eq!(stage.actions(), []);
    stage.has("Ctrl+C once more: leave");
    stage.key(KeyCode::Left);
    stage.control('c');
    assert_eq!(stage.actions(), []);
    stage.control('c');
    assert_eq!(stage.actions(), [Action::Leave]);
}

#[test]
fn control_d_leaves_only_without_text() {
    let mut stage = Stage::new(80, 24);
    stage.types("x");
    stage.key(KeyCode::Left);
    stage.control('d');
    assert_eq!(stage.actions(), []);
    stage.control('d');
    assert_eq!(stage.actions(), [Action::Leave]);
}

#[test]
fn escape_interrupts_only_a_busy_agent() {
    let mut stage = Stage::new(80, 24);
    stage.key(KeyCode::Esc);
    assert_eq!(stage.actions(), []);
    stage.starts("0/");
    stage.key(KeyCode::Esc);
    assert_eq!(stage.actions(), [request("0/", Command::Interrupt)]);
}

fn knows(stage: &mut Stage, texts: &[&str]) {
    let texts = texts.iter().map(|text| (*text).to_owned()).collect();
    stage.app.update(Update::History { texts, size: 10 }, stage.now);
}

#[test]
fn up_and_down_step_through_the_history() {
    let mut stage = Stage::new(80, 24);
    knows(&mut stage, &["old"]);
    stage.enters("new");
    stage.types("draft");
    stage.key(KeyCode::Up);
    stage.has("❯ new");
    stage.key(KeyCode::Up);
    stage.has("❯ old");
    stage.key(KeyCode::Down);
    stage.key(KeyCode::Down);
    stage.has("❯ draft");
}

/// Regression: Down brought the draft of another agent, or one that had been discarded.
#[test]
fn the_position_in_the_history_is_reset_with_the_draft() {
    let leaves: [fn(&mut Stage); 4] = [
        |stage| {
            stage.starts("0/1/");
            stage.press(KeyCode::Down, KeyModifiers::ALT);
        },
        |stage| stage.control('c'),
        |stage| {
            stage.control('g');
            stage.app.update(Update::Edited(Some("other".to_owned())), stage.now);
        },
        |stage| {
            stage.control('r');
            stage.types("old");
            stage.key(KeyCode::Enter);
        },
    ];
    for leave in leaves {
        let mut stage = Stage::new(80, 24);
        knows(&mut stage, &["old", "new"]);
        stage.types("draft");
        stage.key(KeyCode::Up);
        leave(&mut stage);
        stage.key(KeyCode::Down);
        stage.lacks("draft");
    }
}

#[test]
fn control_r_searches_the_history() {
    let mut stage = Stage::new(80, 24);
    knows(&mut stage, &["fix the test", "other"]);
    stage.control('r');
    stage.types("tes");
    stage.has("search 'tes': fix the test");
    stage.key(KeyCode::Enter);
    stage.has("❯ fix the test");
    assert_eq!(stage.actions(), []);
}

#[test]
fn the_wheel_scrolls_and_does_not_touch_the_input() {
    let mut stage = Stage::new(40, 10);
    for number in 0..50 {
        stage.logs("0/", NewMessage::user(format!("line {number}")));
    }
    stage.types("draft");
    stage.app.press(Typed::Wheel(-3), stage.now);
    stage.lacks("line 49");
    stage.has("❯ draft");
}

#[test]
fn a_long_paste_is_a_placeholder() {
    let mut stage = Stage::new(80, 24);
    stage.app.press(Typed::Paste("x\n".repeat(12)), stage.now);
    stage.has("❯ [Pasted 12 lines]");
    stage.key(KeyCode::Enter);
    assert_eq!(stage.actions(), [say("0/", "x\n".repeat(12).trim())]);
}

#[test]
fn the_input_grows_to_a_third_and_shows_the_cursor() {
    let mut stage = Stage::new(80, 24);
    for number in 0..12 {
        stage.types(&format!("line {number}"));
        stage.control('j');
    }
    let rows = stage.rows();
    assert!(rows[14].starts_with("───") || rows[14].starts_with("── "), "{}", rows.join("\n"));
    stage.lacks("line 4");
    stage.has("line 11");
}

#[test]
fn tab_completes_commands_agents_and_files() {
    let mut stage = Stage::new(80, 24);
    stage.types("/hel");
    stage.key(KeyCode::Tab);
    stage.has("❯ /help");
    stage.control('u');
    stage.types("see @ma");
    stage.key(KeyCode::Tab);
    assert_eq!(stage.actions(), [Action::Effect(Effect::LoadList(Listing::Files))]);
    lists(&mut stage, &["src/main.rs", "Makefile"]);
    stage.has("  src/main.rs");
    stage.types("in");
    stage.lacks("Makefile");
    stage.key(KeyCode::Enter);
    stage.has("❯ see @src/main.rs");
    assert_eq!(stage.actions(), []);
}

fn lists(stage: &mut Stage, names: &[&str]) {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    stage.app.update(Update::List(Listing::Files, names), stage.now);
}

const SEPARATOR: &str =
    "────────────────────────────────────────────────────────────────────────────────";

#[test]
fn typing_a_slash_offers_commands_with_their_descriptions() {
    let mut stage = Stage::new(80, 24);
    stage.types("/");
    let hint = "gpt-5 · work (landlock) · main · Tab accepts · Esc closes";
    let status = &*format!("{hint}{:>23}", "$0.12");
    stage.shows(&[
        SEPARATOR,
        "❯ /",
        "  /help      Show this list",
        "  /new       Start a new session; /sessions returns to this one",
        "  /clear     Start a fresh context; the log keeps everything",
        "  /compact   Make room in the context: /compact, /compact FOCUS",
        "  /context   Show what fills the context",
        "  /model     Show the model, or choose another one: /model NAME",
        status,
    ]);
    stage.types("mode");
    stage.shows(&[
        SEPARATOR,
        "❯ /mode",
        "  /mode   Show the mode, or change it: /mode read, /mode work, /mode full",
        "  /model  Show the model, or choose another one: /model NAME",
        status,
    ]);
    stage.types(" ");
    stage.shows(&[SEPARATOR, "❯ /mode", "  read", "  work", "  full", status]);
    stage.control('u');
    stage.types("/etc/hosts");
    stage.lacks("  /");
}

#[test]
fn a_small_screen_keeps_its_input_and_shows_fewer_offers() {
    let mut stage = Stage::new(40, 10);
    stage.types("/");
    let rows = stage.rows();
    assert_eq!(
        rows[5..9],
        [
            "❯ /",
            "  /help      Show this list",
            "  /new       Start a new session; /sess…",
            "  /clear     Start a fresh context; the…"
        ]
    );
    let mut stage = Stage::new(10, 2);
    stage.types("/");
    stage.has("❯ /");
}

#[test]
fn arrows_choose_from_the_list_and_tab_or_enter_accepts() {
    let mut stage = Stage::new(80, 24);
    knows(&mut stage, &["old"]);
    for accept in [KeyCode::Tab, KeyCode::Enter] {
        stage.types("/mo");
        stage.has("  /mode   Show the mode");
        stage.key(KeyCode::Down);
        stage.key(accept);
        stage.has("❯ /model\n");
        assert_eq!(stage.actions(), []);
        stage.control('u');
    }
    stage.types("/mo");
    stage.key(KeyCode::Up);
    stage.key(KeyCode::Tab);
    stage.has("❯ /model\n");
}

#[test]
fn enter_sends_a_command_that_is_typed_to_its_end() {
    let mut stage = Stage::new(80, 24);
    stage.enters("/usage");
    assert_eq!(stage.actions(), [request("0/", Command::Usage { by: UsageBy::Message })]);
    stage.enters("/mode");
    assert_eq!(stage.actions(), [request("0/", Command::Mode { mode: None })]);
    stage.types("/mode ");
    stage.has("❯ /mode\n  read\n  work\n  full");
    stage.key(KeyCode::Enter);
    assert_eq!(stage.actions(), [request("0/", Command::Mode { mode: None })], "no argument");
    stage.types("/mode ");
    stage.key(KeyCode::Down);
    stage.key(KeyCode::Enter);
    stage.has("❯ /mode read\n");
    stage.key(KeyCode::Enter);
    let mode = Some(Mode::Read);
    assert_eq!(stage.actions(), [request("0/", Command::Mode { mode })]);
}

#[test]
fn a_recalled_command_has_no_list_so_arrows_keep_moving_in_the_history() {
    let mut stage = Stage::new(80, 24);
    knows(&mut stage, &["old", "/mode"]);
    stage.types("x");
    stage.key(KeyCode::Up);
    stage.has("❯ /mode\n");
    stage.lacks("  /mode");
    stage.key(KeyCode::Up);
    stage.has("❯ old");
}

#[test]
fn escape_closes_the_list_until_the_word_changes_and_then_interrupts() {
    let mut stage = Stage::new(80, 24);
    stage.starts("0/");
    stage.types("/mo");
    stage.has("Esc closes");
    stage.key(KeyCode::Esc);
    stage.lacks("  /mode");
    assert_eq!(stage.actions(), []);
    stage.key(KeyCode::Esc);
    assert_eq!(stage.actions(), [request("0/", Command::Interrupt)]);
    stage.types("d");
    stage.has("  /mode");
    stage.key(KeyCode::Esc);
    stage.key(KeyCode::Tab);
    stage.has("  /mode");
}

#[test]
fn a_question_mark_on_an_empty_input_shows_the_keys() {
    let mut stage = Stage::new(80, 24);
    stage.types("really?");
    stage.lacks("Ctrl+D");
    stage.control('u');
    stage.types("?");
    stage.has(" Ctrl+D               leave, if the input is empty");
    stage.types("x");
    stage.lacks("Ctrl+D");
    stage.has("❯ x");
    let mut stage = Stage::new(40, 10);
    stage.types("?");
    stage.lacks("if the input is empty");
    for _ in 0..50 {
        stage.key(KeyCode::PageDown);
    }
    stage.has("show this table");
    stage.key(KeyCode::PageUp);
    stage.lacks("show this table");
    stage.key(KeyCode::Esc);
    stage.shows(&[
        "────────────────────────────────────────",
        "❯ Type a message, / for commands, @ for…",
        "gpt-5 · work (landlock) · main     $0.12",
    ]);
}

#[test]
fn agents_are_offered_by_id_and_name() {
    let mut stage = Stage::new(80, 24);
    let member = |id: &str, name: Option<&str>| Member {
        id: agent(id),
        name: name.map(str::to_owned),
        state: AgentState::Idle,
        task: String::new(),
        unread: 0,
        cost: None,
        runner: Runner::ThisProcess,
        age: None,
    };
    let members = vec![member("0/", None), member("0/1/", Some("tester"))];
    stage.app.update(Update::Team(members), stage.now);
    stage.types("/kill te");
    stage.has("  0/1/  tester · idle");
    stage.key(KeyCode::Tab);
    stage.has("❯ /kill 0/1/");
    stage.control('u');
    stage.enters("/kill tester");
    let target = Some("tester".to_owned());
    assert_eq!(stage.actions(), [request("0/", Command::Kill { target })]);
}

#[test]
fn files_are_listed_once_per_word_and_narrowed_with_every_key() {
    let mut stage = Stage::new(80, 24);
    let list = || Action::Effect(Effect::LoadList(Listing::Files));
    stage.types("see @m");
    assert_eq!(stage.actions(), [list()]);
    lists(&mut stage, &["Makefile", "src/main.rs", "src/other.rs"]);
    stage.has("❯ see @m\n  Makefile\n  src/main.rs");
    stage.types("ai");
    stage.key(KeyCode::Backspace);
    stage.types("in");
    stage.has("❯ see @main\n  src/main.rs\ngpt-5");
    assert_eq!(stage.actions(), []);
    stage.types(" and @");
    assert_eq!(stage.actions(), [list()]);
    stage.has("  src/other.rs");
    stage.control('u');
    stage.types("@");
    assert_eq!(stage.actions(), [], "the list is being made");
    stage.key(KeyCode::Esc);
    lists(&mut stage, &["late.rs"]);
    stage.lacks("late.rs");
}

/// Regression: it looked as if a missing file were attached.
#[test]
fn a_missing_file_is_announced_as_sent_verbatim() {
    let note = "No such file; sent as typed";
    let mut stage = Stage::new(80, 24);
    stage.types("see @mian");
    stage.lacks(note);
    lists(&mut stage, &["src/main.rs"]);
    stage.has("❯ see @mian\n  No such file; sent as typed\ngpt-5");
    lists(&mut stage, &["src/main.rs", "src/mian.rs"]);
    stage.has("❯ see @mian\n  src/mian.rs\ngpt-5");
    stage.control('u');
    stage.types("is it in @main.rs?)");
    stage.lacks(note);
    stage.control('u');
    stage.types("/nothing");
    stage.lacks(note);
    stage.control('u');
    stage.enters("see @moon");
    assert_eq!(stage.actions().pop(), Some(say("0/", "see @moon")));
    stage.lacks(note);
}

#[test]
fn text_that_was_not_typed_has_no_list() {
    let mut stage = Stage::new(80, 24);
    stage.app.update(Update::Suggestion { agent: agent("0/"), text: "/mo".to_owned() }, stage.now);
    stage.key(KeyCode::PageUp);
    stage.lacks("  /mode");
    stage.control('g');
    stage.app.update(Update::Edited(Some("/und".to_owned())), stage.now);
    stage.lacks("  /undo");
    stage.types("o");
    stage.has("  /undo");
    stage.app.update(Update::Edited(None), stage.now);
    stage.has("  /undo");
    stage.app.update(Update::View(agent("1/")), stage.now);
    stage.lacks("  /undo");
}

/// Regression: the selection went back to the first offer, and Enter took another file.
#[test]
fn a_late_list_keeps_the_selection() {
    let mut stage = Stage::new(80, 24);
    lists(&mut stage, &["b", "c"]);
    stage.types("@");
    stage.key(KeyCode::Down);
    lists(&mut stage, &["a", "b", "c"]);
    stage.key(KeyCode::Enter);
    stage.has("❯ @c");
    stage.control('u');
    stage.types("@");
    stage.app.press(Typed::Wheel(1), stage.now);
    stage.key(KeyCode::Enter);
    stage.has("❯ @b");
}

#[test]
fn a_paste_that_is_too_long_is_an_error() {
    let mut stage = Stage::new(80, 24);
    stage.types("draft");
    stage.app.press(Typed::Paste("x\n".repeat(1024 * 1024)), stage.now);
    stage.has("The pasted text is too long. Put it into a file and mention the file");
    stage.has("❯ draft");
}

#[test]
fn a_paste_into_a_search_is_limited() {
    let mut stage = Stage::new(250, 24);
    knows(&mut stage, &["fix the test", "other"]);
    stage.control('r');
    stage.app.press(Typed::Paste("tes\nmore".to_owned()), stage.now);
    stage.has("search 'tes': fix the test");
    stage.app.press(Typed::Paste("x".repeat(1_000)), stage.now);
    stage.has(&format!("search 'tes{}': (nothing)", "x".repeat(197)));
}

#[test]
fn other_commands_are_passed_on() {
    let mut stage = Stage::new(80, 24);
    stage.enters("/mail send 1/ hello");
    let command = Command::Mail { line: "send 1/ hello".to_owned() };
    assert_eq!(
        stage.actions(),
        [Action::Effect(Effect::Request(Request { agent: agent("0/"), command }))]
    );
    stage.app.update(
        Update::Note { agent: agent("0/"), text: "Mail sent to agent 1/".to_owned() },
        stage.now,
    );
    stage.has("❯ /mail send 1/ hello\n\nMail sent to agent 1/");
}

#[test]
fn an_unknown_command_is_an_error_and_a_path_is_a_message() {
    let mut stage = Stage::new(80, 24);
    stage.enters("/mial");
    stage.has("Unknown command '/mial'. Did you mean /mail?");
    stage.enters("/etc/hosts is odd");
    assert_eq!(stage.actions(), [say("0/", "/etc/hosts is odd")]);
}

#[test]
fn copy_takes_the_last_answer() {
    let mut stage = Stage::new(80, 24);
    stage.enters("/copy");
    stage.has("There is no answer to copy yet");
    stage.answers("0/", "**answer**");
    stage.enters("/copy");
    assert_eq!(stage.actions(), [Action::Copy("**answer**".to_owned())]);
    assert_eq!(stage.app.exit_summary().last_answer.as_deref(), Some("**answer**"));
}

#[test]
fn the_editor_gets_the_draft_and_returns_it() {
    let mut stage = Stage::new(80, 24);
    stage.types("draft");
    stage.control('g');
    assert_eq!(stage.actions(), [Action::Effect(Effect::OpenEditor("draft".to_owned()))]);
    stage.app.update(Update::Edited(Some("better\n".to_owned())), stage.now);
    stage.has("❯ better");
}

/// Regression: the text went to the agent in view.
#[test]
fn edited_text_returns_to_the_agent_that_it_is_for() {
    let mut stage = Stage::new(80, 24);
    stage.types("draft");
    stage.control('g');
    stage.app.update(Update::View(agent("1/")), stage.now);
    stage.app.update(Update::Edited(Some("better\n".to_owned())), stage.now);
    stage.lacks("better");
    stage.app.update(Update::View(agent("0/")), stage.now);
    stage.has("❯ better");
}

#[test]
fn a_suggestion_waits_until_the_input_is_empty() {
    let mut stage = Stage::new(80, 24);
    let offer = || Update::Suggestion { agent: agent("0/"), text: "offered".to_owned() };
    stage.app.update(offer(), stage.now);
    stage.has("❯ offered");
    stage.control('c');
    stage.has("❯ Type a message");
    stage.types("mine");
    stage.app.update(offer(), stage.now);
    stage.has("❯ mine");
    stage.key(KeyCode::Enter);
    stage.has("❯ offered");
    assert_eq!(stage.actions(), [say("0/", "mine")]);
}

#[test]
fn a_draft_is_reported_when_it_starts_and_ends() {
    let mut stage = Stage::new(80, 24);
    stage.types("ab");
    stage.control('u');
    let told: Vec<Action> = stage.app.take_actions();
    let expected = [Drafting::Started, Drafting::Ended];
    assert_eq!(
        told,
        expected.map(|draft| Action::Effect(Effect::Drafting { agent: agent("0/"), draft }))
    );
}

#[test]
fn escape_right_after_enter_interrupts_before_the_turn_starts() {
    let mut stage = Stage::new(80, 24);
    stage.enters("go");
    stage.key(KeyCode::Esc);
    assert_eq!(stage.actions(), [say("0/", "go"), request("0/", Command::Interrupt)]);
}
