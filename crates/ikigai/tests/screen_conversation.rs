//! A conversation on the full screen: what is shown, and how.

use ikigai_testkit::{Gate, ModelServer, Point, Reply};
use serde_json::json;

use crate::support::Workspace;
use crate::support::screen::{ESCAPE, Screen, still};
use crate::support::story::bash;

#[test]
fn what_is_said_called_and_answered_stands_behind_its_sign() {
    let server = ModelServer::start([
        Reply::text_and_calls(
            "I look.",
            [("c1", "grep", json!({"pattern": "TODO", "glob": "*.rs"}))],
        ),
        Reply::text("There is **one**."),
    ]);
    let workspace = Workspace::new();
    workspace.write("main.rs", "// TODO: more\n");
    let mut screen = Screen::open(&workspace, &server);
    screen.asks("look for work", "● There is one.");
    screen.wait_until_idle();
    let shown: Vec<String> = screen.from("❯ look").iter().map(|row| still(row)).collect();
    let expected = [
        "❯ look for work",
        "● I look.",
        "● Search  \"TODO\" in *.rs   1 match",
        "● There is one.",
        "────────────────────────────────────────────────────────────────────────────────",
        "❯ Type a message, / for commands, @ for files, ? for keys",
    ];
    assert_eq!(shown[..shown.len() - 1], expected);
    assert!(screen.cell_of("one.").bold(), "emphasis is rendered");
}

#[test]
fn a_long_result_shows_its_last_lines_and_a_key_unfolds_it() {
    let server = ModelServer::start([bash("c1", "seq 12"), Reply::text("Counted.")]);
    let mut screen = Screen::alone(&server);
    screen.asks("count", "● Counted.");
    let shown = screen.text();
    assert!(shown.contains("  │ … 7 more lines\n  │ 8\n"), "{shown}");
    screen.types("\x0f");
    screen.wait_for("  │ 1\n");
    screen.types("\x0f");
    screen.wait_for("… 7 more lines");
}

#[test]
fn a_running_command_shows_what_it_prints_and_how_to_interrupt_it() {
    let command = "echo compiling; until [ -e go ]; do sleep 0.01; done; echo compiled";
    let server = ModelServer::start([bash("c1", command), Reply::text("Built.")]);
    let workspace = Workspace::new();
    let mut screen = Screen::open(&workspace, &server);
    screen.asks("build", "  │ compiling\n");
    let shown = screen.text();
    assert!(
        shown.contains(" Bash  echo compiling") && shown.contains(" · esc to interrupt"),
        "{shown}"
    );
    workspace.write("go", "");
    screen.wait_for("● Built.");
    screen.wait_for("  │ compiling\n  │ compiled\n");
}

#[test]
fn an_interrupted_command_keeps_what_it_printed() {
    let server = ModelServer::start([bash("c1", "echo compiling; sleep 31415.3")]);
    let mut screen = Screen::alone(&server);
    screen.asks("build", "  │ compiling\n");
    screen.types(ESCAPE);
    screen.wait_for("✗ interrupted");
    screen.wait_until_idle();
    let shown = screen.text();
    assert!(shown.contains("  │ compiling\n  │ [Interrupted: the command was ended]\n"), "{shown}");
    assert!(shown.contains("✗ exit 130 · "), "{shown}");
}

#[test]
fn what_was_changed_in_a_file_is_a_coloured_diff_also_after_a_restart() {
    let server = ModelServer::start([
        Reply::call("c1", "file_read", json!({"path": "a.txt"})),
        Reply::call("c2", "file_write", json!({"path": "a.txt", "content": "one\n2\nthree\n"})),
        Reply::text("Changed."),
    ]);
    let workspace = Workspace::new();
    workspace.write("a.txt", "one\ntwo\nthree\n");
    let mut screen = Screen::open(&workspace, &server);
    screen.asks("change it", "● Changed.");
    screen.wait_for("     2 − two\n     2 + 2\n");
    screen.wait_until_idle();
    for (row, foreground, tint) in [("− two", 1, 52), ("+ 2", 2, 22)] {
        let cell = screen.cell_of(row);
        let expected = (vt100::Color::Idx(foreground), vt100::Color::Idx(tint));
        assert_eq!((cell.fgcolor(), cell.bgcolor()), expected, "{row}");
    }
    let before = screen.from("❯ change");
    screen.leave();
    let mut command = crate::support::screen::command(&workspace, &server);
    let screen = Screen::start(command.arg("-c"), 80, 24);
    screen.wait_for("     2 − two\n     2 + 2\n");
    // Only the tokens of the last request may come a moment later.
    screen.wait_for("● Changed.");
    let upper = |rows: &[String]| rows[..rows.len() - 1].to_vec();
    assert_eq!(
        upper(&screen.from("❯ change")),
        upper(&before),
        "a resumed session looks as it did"
    );
}

#[test]
fn an_answer_is_seen_while_it_streams_with_what_goes_on_and_how_to_end_it() {
    let gate = Gate::new();
    let server = ModelServer::start([
        Reply::text("# Title\n\nFirst part, and the rest").hold_at(Point::Text, &gate),
        Reply::text("x").stall_at(Point::Text),
    ]);
    let mut screen = Screen::alone(&server);
    screen.says("tell");
    screen.wait_for("First part");
    screen.wait_for("Answering · ");
    screen.wait_for(" · esc to interrupt");
    gate.open();
    screen.wait_for("and the rest");
    screen.wait_until_idle();
    screen.says("more");
    server.wait_for_stalls(1);
    screen.wait_for(" · esc to interrupt");
    screen.types(ESCAPE);
    screen.wait_for("✗ interrupted");
    screen.wait_until_idle();
}

#[test]
fn what_is_typed_meanwhile_is_shown_as_queued_and_goes_in_at_the_next_boundary() {
    let gate = Gate::new();
    let server = ModelServer::start([
        Reply::call("c1", "glob", json!({"pattern": "*"})).after(&gate),
        Reply::text("Both done."),
    ]);
    let mut screen = Screen::alone(&server);
    screen.says("first");
    server.wait_for_requests(1);
    screen.asks("second", "queued 1: second");
    gate.open();
    screen.wait_for("● Both done.");
    let shown = screen.from("❯ first");
    let at = |text: &str| shown.iter().position(|row| row.contains(text));
    assert!(at("0 files") < at("❯ second") && at("❯ second") < at("● Both"), "{shown:?}");
    assert!(!screen.text().contains("queued:"));
    assert_eq!(server.requests()[1].last_user_text().as_deref(), Some("second"));
}

#[test]
fn a_retry_is_told_with_its_reason_and_a_countdown() {
    let server = ModelServer::start([Reply::status(503).retry_after(30), Reply::text("never")]);
    let mut screen = Screen::alone(&server);
    screen.says("hello");
    screen.wait_until("a countdown", |shown| {
        shown.contains("Retrying in ") && shown.contains("s (1 of 5): ") && shown.contains("503")
    });
    screen.types(ESCAPE);
    screen.wait_for("✗ interrupted");
}

#[test]
fn a_fault_says_what_to_do_and_enter_tries_again() {
    let server =
        ModelServer::start([Reply::error(401, "no such key"), Reply::text("Here I am again.")]);
    let mut screen = Screen::alone(&server);
    screen.asks("hello", "no such key");
    screen.wait_for("Press Enter to retry");
    screen.types("\r");
    screen.wait_for("● Here I am again.");
}

#[test]
fn the_status_shows_model_mode_branch_and_tokens() {
    let server = ModelServer::start([Reply::text("Hi.").usage(30_000, 500)]);
    let workspace = Workspace::new();
    workspace.write(".git/HEAD", "ref: refs/heads/topic\n");
    let mut command = crate::support::screen::command(&workspace, &server);
    let mut screen = Screen::start(&mut command, 200, 24);
    screen.asks("hello", "● Hi.");
    screen.wait_for("30.5k");
    screen.wait_for(" · topic ");
    let status = screen.text().lines().last().unwrap().to_owned();
    assert!(status.contains("scripted · work (") && status.contains(" · topic "), "{status}");
    assert!(status.ends_with("  30.5k tokens"), "{status}");
    screen.asks("/mode full", "Switched to mode full");
    screen.wait_until("the mode", |shown| shown.lines().last().unwrap().contains(" · full · "));
    let cell = screen.cell_of("full · ");
    assert_eq!((cell.fgcolor(), cell.bold()), (vt100::Color::Idx(1), true), "full is red");
}
