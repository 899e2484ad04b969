//! Every list and popup at three sizes, with colours and without, compared with a picture as text.

use ikigai_testkit::{ModelServer, Reply};
use serde_json::json;

use crate::support::Workspace;
use crate::support::screen::{ESCAPE, Screen, command, without_folder};

/// What is shown, with dots for what differs from run to run.
#[track_caller]
fn snapshot(screen: &Screen, name: &str) -> String {
    let text = screen.settled(name, |shown| {
        // The status line depends on the machine.
        let rows: Vec<String> = shown.lines().map(without_folder).collect();
        rows[..rows.len() - 1].join("\n")
    });
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!(name, text);
    });
    text
}

/// Shows every list in turn.
fn shows(width: u16, height: u16, no_color: &str) {
    let write = json!({"path": "one.txt", "content": "text\n"});
    let server = ModelServer::start([
        Reply::call("c", "file_write", write),
        Reply::text("The file is there."),
        Reply::text("Nothing else."),
    ]);
    let workspace = Workspace::new();
    let mut command = command(&workspace, &server);
    let mut screen = Screen::start(command.env("NO_COLOR", no_color), width, height);
    screen.asks("make a file with one word", "● The file is there.");
    screen.wait_until_idle();
    screen.asks("anything else?", "● Nothing else.");
    screen.wait_until_idle();
    let name = |list: &str| format!("{list}_{width}x{height}");
    screen.types("/");
    screen.wait_for("  /help");
    snapshot(&screen, &name("completion"));
    screen.types("\x03?");
    screen.wait_for("Ctrl+J, Alt+Enter");
    snapshot(&screen, &name("keys"));
    screen.types(ESCAPE);
    screen.wait_until_gone("Ctrl+J, Alt+Enter");
    screen.types("\x12word");
    screen.wait_for("search 'word'");
    snapshot(&screen, &name("search"));
    screen.types(ESCAPE);
    screen.wait_until_gone("search 'word'");
    screen.asks("/rewind", "Rewind to before a message 2");
    snapshot(&screen, &name("rewind"));
    screen.types("word");
    screen.wait_for("1 of 2");
    screen.types("\r");
    screen.wait_for("4 Summarize up to here");
    snapshot(&screen, &name("rewind_parts"));
    screen.types("\x03");
    screen.wait_until_gone("4 Summarize up to here");
    screen.asks("/sessions", "Sessions of this folder 1");
    screen.wait_until("the preview", |shown| height < 24 || shown.contains("╌\n  ❯ make a file"));
    snapshot(&screen, &name("sessions"));
    screen.types("\x12");
    screen.wait_for("❯ make a file with one word");
    snapshot(&screen, &name("sessions_rename"));
    screen.types("\x03\x03");
    screen.wait_until_gone("Sessions of this folder");
    assert_eq!(screen.has_colours(), no_color.is_empty(), "{}", screen.text());
    assert_eq!(screen.leave().code, Some(0));
}

#[test]
fn every_list_fits_at_three_sizes_with_colours_and_without() {
    for (width, height) in [(80, 24), (40, 10), (200, 60)] {
        for no_color in ["", "1"] {
            shows(width, height, no_color);
        }
    }
}
