//! The undo menu: returning to an earlier message, with the files or without.

use std::fs;

use ikigai_testkit::{ModelServer, Reply};
use serde_json::json;

use crate::support::Workspace;
use crate::support::screen::{ESCAPE, Screen, UP};
use crate::support::terminal::start_talking;

/// Two messages, each of which writes a file.
fn writer() -> ModelServer {
    let write =
        |name: &str| Reply::call("c", "file_write", json!({"path": name, "content": "text\n"}));
    ModelServer::start([
        write("one.txt"),
        Reply::text("First is done."),
        write("two.txt"),
        Reply::text("Second is done."),
        Reply::text("Summed up, or answered."),
        Reply::text("Answered at last."),
    ])
}

fn talked(workspace: &Workspace, server: &ModelServer) -> Screen {
    let mut screen = Screen::open(workspace, server);
    screen.asks("make one", "● First is done.");
    screen.wait_until_idle();
    screen.asks("make two", "● Second is done.");
    screen.wait_until_idle();
    screen
}

/// Opens the menu and chooses the first of the two messages.
fn choose_first(screen: &mut Screen) {
    screen.types(ESCAPE);
    screen.wait_for("Esc once more: earlier messages");
    screen.types(ESCAPE);
    screen.wait_for("Rewind to before a message 2");
    screen.types(UP);
    screen.types("\r");
    screen.wait_for("4 Summarize up to here");
}

#[test]
fn esc_esc_returns_conversation_and_files_to_before_a_message() {
    let workspace = Workspace::new();
    let server = writer();
    let mut screen = talked(&workspace, &server);
    choose_first(&mut screen);
    assert!(screen.text().contains("2 changed files"), "{}", screen.text());
    screen.types("1");
    screen.wait_for("The model no longer sees what came after.");
    screen.wait_for("❯ make one");
    let files = ["one.txt", "two.txt"].map(|name| workspace.path(name).exists());
    assert_eq!(files, [false, false]);
    // The message can be sent again.
    screen.asks(" instead", "● Summed up, or answered.");
    let last = server.requests().pop().unwrap();
    assert!(last.text().contains("make one instead") && !last.text().contains("make two"));
}

#[test]
fn the_conversation_returns_without_the_files_and_the_files_without_the_conversation() {
    let workspace = Workspace::new();
    let server = writer();
    let mut screen = talked(&workspace, &server);
    choose_first(&mut screen);
    screen.types("3");
    screen.wait_for("removed   one.txt");
    assert!(!workspace.path("one.txt").exists() && !workspace.path("two.txt").exists());
    screen.asks("/redo", "Redid");
    screen.asks("/redo", "written   two.txt");
    assert!(workspace.path("one.txt").exists() && workspace.path("two.txt").exists());
    choose_first(&mut screen);
    screen.types("2");
    screen.wait_for("Files stay as they are");
    screen.wait_for("❯ make one");
    assert!(workspace.path("one.txt").exists());
    screen.asks("\r", "● Summed up, or answered.");
    let last = server.requests().pop().unwrap();
    assert!(!last.text().contains("make two") && !last.text().contains("First is done"));
}

#[test]
fn everything_before_a_message_becomes_a_summary() {
    let workspace = Workspace::new();
    let server = writer();
    let mut screen = talked(&workspace, &server);
    screen.says("/rewind");
    screen.wait_for("Rewind to before a message 2");
    screen.types("\r");
    screen.wait_for("4 Summarize up to here");
    screen.types("4");
    screen.wait_for("Context compacted");
    screen.wait_until_idle();
    let summarizing = server.requests().pop().unwrap();
    assert!(!summarizing.text().contains("make two"), "only what came before is summarized");
    screen.asks("go on", "● Answered at last.");
    let last = server.requests().pop().unwrap();
    let text = last.text();
    assert!(text.contains("Summed up") && text.contains("make two"), "{text}");
    assert!(text.contains("Second is done.") && !text.contains("First is done."), "{text}");
}

#[test]
fn the_menu_is_a_list_of_numbers_line_by_line() {
    let workspace = Workspace::new();
    let server = writer();
    let mut terminal = start_talking(&workspace, &server);
    for (line, answer) in
        [("make one", "● First is done.\r\n❯ "), ("make two", "● Second is done.\r\n❯ ")]
    {
        terminal.type_line(line);
        terminal.wait_for(answer);
    }
    terminal.type_line("/rewind");
    terminal.wait_for("/rewind NUMBER [all|conversation|files|summary]");
    let shown = terminal.text();
    let row = shown.lines().find(|row| row.contains(" make two (")).unwrap();
    assert!(row.contains("1 file changed since"), "{row}");
    let number = row.trim_start().split(' ').next().unwrap();
    terminal.type_line(&format!("/rewind {number}"));
    terminal.wait_for("removed   two.txt");
    assert!(fs::exists(workspace.path("one.txt")).unwrap());
    assert!(!fs::exists(workspace.path("two.txt")).unwrap());
}
