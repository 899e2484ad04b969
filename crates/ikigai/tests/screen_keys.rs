//! What keys do.

use std::process::Command;

use ikigai_testkit::{ModelServer, Point, Reply};
use rustix::process::Signal;

use crate::support::Workspace;
use crate::support::screen::{
    CONTROL_END, CONTROL_HOME, DOWN, ESCAPE, PAGE_UP, Screen, UP, command, is_separator,
};
use crate::support::story::{bash, contents};

/// The input, as far as it is seen.
fn input(screen: &Screen) -> Vec<String> {
    let shown = screen.text();
    let rows: Vec<&str> = shown.lines().collect();
    // There is none while somebody else has the terminal.
    let separator = rows.iter().rposition(|row| is_separator(row));
    let Some(separator) = separator else { return Vec::new() };
    // The status line is below it, and with several agents the team row.
    let below = &rows[separator + 1..];
    let status = below.iter().rposition(|row| row.contains("work")).unwrap_or(below.len() - 1);
    below[..status].iter().map(|row| (*row).to_owned()).collect()
}

/// The input without text.
const EMPTY: &str = "❯ Type a message, / for commands, @ for files, ? for keys";

#[track_caller]
fn wait_for_input(screen: &Screen, expected: &[&str]) {
    screen.wait_until(&format!("{expected:?} in the input"), |_| input(screen) == expected);
}

fn nobody() -> ModelServer {
    ModelServer::start([])
}

#[test]
fn several_lines_are_typed_and_sent_as_one_text() {
    let server = ModelServer::start([Reply::text("Good.")]);
    let workspace = Workspace::new();
    let mut screen = Screen::open(&workspace, &server);
    // Ctrl+J, Alt+Enter, Shift+Enter as terminals send it that can.
    screen.types("one\ntwo\x1b\rthree\x1b[13;2ufour");
    wait_for_input(&screen, &["❯ one", "  two", "  three", "  four"]);
    screen.types("\r");
    screen.wait_for("● Good.");
    assert_eq!(contents(&workspace.log("0/"), "user"), ["one\ntwo\nthree\nfour"]);
}

#[test]
fn the_input_grows_up_to_a_third_of_the_screen() {
    let mut screen = Screen::alone(&nobody());
    screen.types(&(0..30).map(|line| format!("line {line}\n")).collect::<String>());
    screen.wait_for("  line 29");
    assert_eq!(input(&screen).len(), 8);
}

#[test]
fn a_line_is_edited_as_in_readline() {
    let mut screen = Screen::alone(&nobody());
    screen.types("one two three");
    screen.types("\x17");
    wait_for_input(&screen, &["❯ one two"]);
    screen.types("\x01zero \x05\x19");
    wait_for_input(&screen, &["❯ zero one two three"]);
    screen.types("\x1bb\x1bb\x0b");
    wait_for_input(&screen, &["❯ zero one"]);
    screen.types("\x01\x1bf\x1bd");
    wait_for_input(&screen, &["❯ zero"]);
    screen.types("\x05\x15");
    wait_for_input(&screen, &[EMPTY]);
}

#[test]
fn history_is_kept_across_sessions_without_duplicates_and_searched() {
    let server = ModelServer::choosing(|_| Reply::text("Yes."));
    let workspace = Workspace::new();
    let mut screen = Screen::open(&workspace, &server);
    for text in ["alpha", "beta", "alpha"] {
        screen.says(text);
        screen.wait_until(text, |shown| shown.lines().any(|row| row == format!("❯ {text}")));
        screen.wait_until_idle();
    }
    screen.leave();
    let mut screen = Screen::start(command(&workspace, &server).arg("--new"), 80, 24);
    screen.types("draft");
    wait_for_input(&screen, &["❯ draft"]);
    for expected in ["❯ alpha", "❯ beta"] {
        screen.types(UP);
        wait_for_input(&screen, &[expected]);
    }
    for expected in ["❯ alpha", "❯ draft"] {
        screen.types(DOWN);
        wait_for_input(&screen, &[expected]);
    }
    screen.types("\x12be");
    screen.wait_for("search 'be': beta");
    screen.types("\x01");
    wait_for_input(&screen, &["❯ beta"]);
}

#[test]
fn a_large_paste_is_one_line_and_is_sent_whole() {
    let server = ModelServer::start([Reply::text("Read.")]);
    let workspace = Workspace::new();
    let mut screen = Screen::open(&workspace, &server);
    let text: String = (0..12).map(|line| format!("line {line}\n")).collect();
    screen.types(&format!("see \x1b[200~{text}\x1b[201~"));
    screen.wait_for("❯ see [Pasted 12 lines]");
    screen.types("\r");
    screen.wait_for("● Read.");
    assert_eq!(contents(&workspace.log("0/"), "user"), [format!("see {text}").trim_end()]);
}

#[test]
fn tab_completes_commands_arguments_and_files_that_git_does_not_ignore() {
    let workspace = Workspace::new();
    workspace
        .write(".gitignore", "target/\n")
        .write("src/main.rs", "")
        .write("src/mail.rs", "")
        .write("target/made.rs", "");
    let mut screen = Screen::open(&workspace, &nobody());
    screen.types("/too\t");
    wait_for_input(&screen, &["❯ /tools"]);
    screen.types("\x15/mode w\t");
    wait_for_input(&screen, &["❯ /mode work"]);
    screen.types("\x15look at @ma\t");
    screen.wait_for("src/main.rs");
    let shown = screen.text();
    assert!(shown.contains("src/mail.rs") && !shown.contains("target"), "{shown}");
    screen.types("in\r");
    wait_for_input(&screen, &["❯ look at @src/main.rs"]);
    screen.types("\x15/e");
    screen.wait_for("  /export ");
    screen.types(ESCAPE);
    screen.wait_until_gone("  /export ");
}

#[test]
fn a_list_under_the_input_offers_completions_which_arrows_choose_and_enter_accepts() {
    let workspace = Workspace::new();
    workspace.write("src/main.rs", "").write("notes.md", "");
    let server = ModelServer::start([Reply::text("A long story").stall_at(Point::Text)]);
    let mut screen = Screen::open(&workspace, &server);
    screen.says("tell");
    server.wait_for_stalls(1);
    screen.types("look at @");
    wait_for_input(&screen, &["❯ look at @", "  notes.md", "  src/", "  src/main.rs"]);
    screen.types(DOWN);
    screen.types("\r");
    wait_for_input(&screen, &["❯ look at @src/", "  src/", "  src/main.rs"]);
    screen.types("ma");
    wait_for_input(&screen, &["❯ look at @src/ma", "  src/main.rs"]);
    screen.types("\r");
    wait_for_input(&screen, &["❯ look at @src/main.rs"]);
    screen.types("\x15/usag");
    wait_for_input(
        &screen,
        &[
            "❯ /usag",
            "  /usage  Show the tokens used and their cost; also /usage agent, /usage day",
        ],
    );
    screen.types(ESCAPE);
    wait_for_input(&screen, &["❯ /usag"]);
    assert!(!screen.text().contains("✗ interrupted"));
    screen.types(ESCAPE);
    screen.wait_for("✗ interrupted");
    screen.types("e");
    wait_for_input(
        &screen,
        &[
            "❯ /usage",
            "  /usage  Show the tokens used and their cost; also /usage agent, /usage day",
        ],
    );
    screen.types("\r");
    wait_for_input(&screen, &[EMPTY]);
    screen.wait_for("❯ /usage");
}

#[test]
fn a_question_mark_shows_the_keys_on_every_size_of_screen() {
    let workspace = Workspace::new();
    let server = nobody();
    for (width, height) in [(80, 24), (40, 10), (200, 60)] {
        let mut screen = Screen::start(&mut command(&workspace, &server), width, height);
        screen.types("?");
        screen.wait_for("Ctrl+J, Alt+Enter");
        screen.types(UP);
        screen.types(&"\x1b[6~".repeat(12));
        screen.wait_for("show this table");
        screen.types(ESCAPE);
        screen.wait_until_gone("show this table");
        screen.types("why?");
        wait_for_input(&screen, &["❯ why?"]);
        screen.types("\x15");
        screen.wait_for("❯ Type a message");
        screen.leave();
    }
}

#[test]
fn control_c_clears_then_interrupts_then_leaves() {
    let server = ModelServer::start([Reply::text("A long story").stall_at(Point::Text)]);
    let mut screen = Screen::alone(&server);
    screen.says("tell");
    server.wait_for_stalls(1);
    screen.types("half a line");
    wait_for_input(&screen, &["❯ half a line"]);
    screen.types("\x03");
    wait_for_input(&screen, &["❯ Type what to do next"]);
    assert!(!screen.text().contains("✗ interrupted"));
    screen.types("\x03");
    screen.wait_for("✗ interrupted");
    screen.wait_until_idle();
    screen.types("\x03");
    screen.wait_for("Ctrl+C once more: leave");
    screen.types("x\x03");
    wait_for_input(&screen, &[EMPTY]);
    screen.types("\x03");
    screen.wait_for("Ctrl+C once more: leave");
    screen.types("\x03");
    assert_eq!(screen.ended().code, Some(0));
}

#[test]
fn pages_the_wheel_and_both_ends_scroll_and_a_single_arrow_does_not() {
    let server = ModelServer::start([bash("c1", "seq 1000 1100"), Reply::text("Counted.")]);
    let mut screen = Screen::alone(&server);
    screen.asks("count", "● Counted.");
    screen.wait_until_idle();
    screen.types("\x0f");
    screen.wait_for("│ 1100");
    screen.types(PAGE_UP);
    screen.wait_until_gone("● Counted.");
    screen.wait_for("Ctrl+End: to the end");
    screen.types(CONTROL_HOME);
    screen.wait_for("❯ count");
    screen.types(CONTROL_END);
    screen.wait_for("● Counted.");
    // A wheel is a burst of arrow keys in one write.
    screen.types(&UP.repeat(3));
    screen.wait_for("Ctrl+End: to the end");
    assert_eq!(input(&screen), [EMPTY]);
    screen.types(&DOWN.repeat(3));
    screen.wait_until_gone("Ctrl+End: to the end");
    screen.types(UP);
    wait_for_input(&screen, &["❯ count"]);
}

#[test]
fn a_captured_mouse_scrolls() {
    let server = ModelServer::start([bash("c1", "seq 1000 1100"), Reply::text("Counted.")]);
    let workspace = Workspace::new();
    let mut screen = Screen::start(command(&workspace, &server).arg("--mouse"), 80, 24);
    assert_ne!(screen.terminal().screen().mouse_protocol_mode(), vt100::MouseProtocolMode::None);
    screen.asks("count", "● Counted.");
    screen.wait_until_idle();
    screen.types("\x0f");
    screen.wait_for("│ 1100");
    screen.types("\x1b[<64;5;5M");
    screen.wait_for("Ctrl+End: to the end");
    assert_eq!(screen.leave().code, Some(0));
}

#[test]
fn control_g_edits_in_the_editor() {
    let workspace = Workspace::new();
    let script = "#!/bin/sh\n[ -z \"$OPENAI_API_KEY\" ] && printf '%s\\nmore\\n' \"$(cat \"$2\")\" > \"$2\"\n";
    workspace.write("editor", script);
    let editor = workspace.path("editor");
    let mut screen = Screen::start(
        command(&workspace, &nobody()).env("EDITOR", format!("sh {} --wait", editor.display())),
        80,
        24,
    );
    screen.types("begun\x07");
    wait_for_input(&screen, &["❯ begun", "  more"]);
    assert!(screen.terminal().screen().alternate_screen());
    screen.types("\x03");
    wait_for_input(&screen, &[EMPTY]);
    workspace.write("editor", "exit 3\n");
    screen.types("kept\x07");
    screen.wait_for("the editor '");
    wait_for_input(&screen, &["❯ kept"]);
}

/// The editor runs outside the sandbox, so it must not be a program that an agent has put into the tree.
#[test]
fn an_editor_that_was_planted_in_the_tree_is_not_run() {
    let workspace = Workspace::new();
    for (program, text) in [("bin/my-editor", "planted"), ("../home/bin/my-editor", "genuine")] {
        workspace.write(program, format!("#!/bin/sh\necho {text} > \"$1\"\n"));
        workspace.set_mode(program, 0o755);
    }
    let (planted, genuine) = (workspace.text("bin"), workspace.home().join("bin"));
    let path = format!("{planted}:{}:/usr/bin:/bin", genuine.display());
    let mut command = command(&workspace, &nobody());
    let mut screen = Screen::start(command.env("EDITOR", "my-editor").env("PATH", path), 80, 24);
    screen.types("begun\x07");
    wait_for_input(&screen, &["❯ genuine"]);
}

/// A screen whose editor is this script.
fn with_editor(command: &mut Command, workspace: &Workspace, script: &str) -> Screen {
    workspace.write("editor", script);
    let editor = format!("sh {}", workspace.path("editor").display());
    Screen::start(command.env("EDITOR", editor), 80, 24)
}

/// Only the editor was ended.
#[test]
fn a_signal_ends_the_program_while_the_editor_is_open() {
    let workspace = Workspace::new();
    let script = "stty raw -echo; echo editing; read x\n";
    let mut screen = with_editor(&mut command(&workspace, &nobody()), &workspace, script);
    screen.types("begun\x07");
    screen.wait_for("editing");
    screen.signal(Signal::TERM);
    assert_eq!(screen.ended().code, Some(130));
}

/// The screen waited for the editor, which was closed with the agent.
#[test]
fn an_agent_that_is_killed_while_the_editor_is_open_brings_the_screen_back() {
    let server = ModelServer::choosing(|_| Reply::text("Hello."));
    let workspace = Workspace::with_agents(2);
    workspace.sql("UPDATE agents SET state = 'idle'");
    let mut command = command(&workspace, &server);
    let mut screen = with_editor(command.arg("-c"), &workspace, "echo editing; read x\n");
    screen.asks("hi", "● Hello.");
    screen.wait_until_idle();
    screen.types("begun\x07");
    screen.wait_for("editing");
    let killed = workspace.json(["tool", "kill", r#"{"agent":"0/"}"#, "--agent", "1/"]);
    assert_eq!(killed["data"]["killed"], serde_json::json!(["0/"]));
    screen.wait_for("Enter starts a new agent");
    wait_for_input(&screen, &["❯ begun"]);
    screen.types("\r");
    screen.wait_for("── 2/ ──");
}

#[test]
fn control_l_draws_anew_what_others_have_spoilt() {
    let mut screen = Screen::alone(&nobody());
    screen.terminal().process(b"\x1b[2J\x1b[Hspoilt");
    screen.types("\x0c");
    screen.wait_until_gone("spoilt");
    screen.wait_for("ikigai 0.1");
}
