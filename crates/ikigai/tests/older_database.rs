//! A database that an earlier build wrote opens, is shown, and resumes.

use std::fs;

use ikigai_testkit::{ModelServer, Reply};
use serde_json::Value;

use crate::support::model::{Format, assert_strict};
use crate::support::screen::{Screen, command};
use crate::support::story::{assert_whole, contents};
use crate::support::{Workspace, failure};

const SESSION: &str = "--session=01a1eff8-f156-77b5-a526-555244431eb5";

/// A workspace with that database, as if its session had worked in the workspace's own directory.
fn workspace() -> Workspace {
    let workspace = Workspace::new();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/databases/2026-11-18.sql");
    let (before, now) = ("/home/user/project", workspace.text(""));
    let now = now.trim_end_matches('/');
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02X}")).collect::<String>();
    let dump = fs::read_to_string(file).unwrap();
    let dump = dump.replace(before, now).replace(&hex(before), &hex(now));
    fs::create_dir_all(workspace.database().parent().unwrap()).unwrap();
    workspace.sql(&dump);
    fs::write(workspace.path("a.txt"), "one\n2\nthree\n").unwrap();
    workspace
}

#[test]
fn its_session_resumes_and_the_open_call_is_closed() {
    let (workspace, server) = (workspace(), ModelServer::start([Reply::text("Back.")]));
    let ended = workspace.run_model(&server, Format::Chat, [SESSION, "go on"]);
    assert_eq!((ended.0, &*ended.1), (0, "Back.\n"), "{}", ended.2);
    assert_strict(&server.requests());
    let closed = failure(
        "Interrupted: the program ended before the call did; the command may have had effects",
    );
    assert_eq!(server.requests()[0].tool_output("c12"), closed);
    let log: Vec<Value> = workspace
        .print(["log", "--json", SESSION])
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_whole(&log);
    assert_eq!(contents(&log, "assistant"), ["Everything is **done**.", "Back."]);
}

#[test]
fn its_mail_is_there_and_its_changes_are_undone() {
    let workspace = workspace();
    let inbox = workspace.json(["mail", "inbox", "--json", SESSION]);
    assert_eq!(inbox["unread_count"], 2, "{inbox}");
    // Its newest message changed nothing, so the one before it is undone.
    let (code, stdout, stderr) = workspace.run(["undo", SESSION]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(!workspace.path("a.txt").exists(), "{stdout}{stderr}");
}

#[test]
fn its_conversation_is_on_the_screen() {
    let (workspace, server) = (workspace(), ModelServer::choosing(|_| Reply::text("Back.")));
    let screen = Screen::start(command(&workspace, &server).arg(SESSION), 100, 60);
    screen.wait_for("Back.");
    screen.wait_until_idle();
    let text = screen.text();
    for shown in ["❯ Do everything", "exit 3", "forked 0/0/", "● Everything is done."] {
        assert!(text.contains(shown), "{shown}\n{text}");
    }
    screen.leave();
}
