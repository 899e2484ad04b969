//! Sessions on the full screen: a new one, returning to another one, and what the list can do.

use ikigai_testkit::{ModelServer, Reply};

use crate::support::Workspace;
use crate::support::screen::{DOWN, ESCAPE, Screen, UP, command};

fn talkative() -> ModelServer {
    ModelServer::choosing(|asked| {
        let said = asked.last_user_text().unwrap_or_default();
        Reply::text(&format!("Answer to {}.", said.lines().last().unwrap_or_default()))
    })
}

#[test]
fn a_new_session_starts_empty_and_the_list_leads_back() {
    let server = talkative();
    let workspace = Workspace::new();
    let mut screen = Screen::open(&workspace, &server);
    screen.asks("the first task", "● Answer to the first task.");
    screen.wait_until_idle();
    screen.says("/new");
    screen.wait_until_gone("the first task");
    screen.wait_for("ikigai 0.1");
    screen.asks("the second task", "● Answer to the second task.");
    screen.wait_until_idle();
    assert!(!server.requests().pop().unwrap().text().contains("first task"));
    screen.asks("/sessions", "Sessions of this folder 2");
    screen.types(DOWN);
    screen.wait_for("● Answer to the first task.");
    screen.types("\r");
    screen.wait_until_gone("the second task");
    screen.wait_for("● Answer to the first task.");
    screen.asks("and on", "● Answer to and on.");
    screen.wait_until_idle();
    assert!(server.requests().pop().unwrap().text().contains("the first task"));
    let left = screen.leave();
    assert!(left.shown.contains("● Answer to and on."), "{}", left.shown);
}

#[test]
fn a_session_is_renamed_and_deleted_in_the_list() {
    let server = talkative();
    let workspace = Workspace::new();
    let mut screen = Screen::open(&workspace, &server);
    screen.asks("old title", "● Answer to old title.");
    screen.wait_until_idle();
    screen.says("/new");
    screen.wait_until_gone("old title");
    screen.asks("open", "● Answer to open.");
    screen.wait_until_idle();
    screen.asks("/sessions", "Sessions of this folder 2");
    screen.types(DOWN);
    screen.wait_for("❯ old title");
    screen.types("\x12");
    screen.wait_for("Enter renames");
    screen.types("\x15better title\r");
    screen.wait_for("❯ better title");
    assert!(workspace.print(["sessions"]).contains("better title"));
    // The open session cannot be deleted.
    screen.types(UP);
    screen.types("\x04\r");
    screen.types(ESCAPE);
    screen.wait_for("This session is open.");
    screen.asks("/sessions", "Sessions of this folder 2");
    screen.types("better");
    screen.wait_for("Sessions of this folder 1 of 2");
    screen.types("\x04");
    screen.wait_for("Enter deletes for good");
    screen.types("\r");
    screen.wait_for("Sessions of this folder 0 of 1");
    assert!(!workspace.print(["sessions"]).contains("better title"));
}

#[test]
fn every_size_has_room_for_the_list() {
    let server = talkative();
    for ((width, height), no_color) in
        [(40, 10), (80, 24), (200, 60)].into_iter().flat_map(|size| [(size, ""), (size, "1")])
    {
        let workspace = Workspace::new();
        let mut command = command(&workspace, &server);
        let mut screen = Screen::start(command.env("NO_COLOR", no_color), width, height);
        screen.asks("a task", "● Answer to a task.");
        screen.wait_until_idle();
        screen.asks("/sessions", "Sessions of this folder 1");
        let shown = screen.text();
        let row = shown.lines().find(|row| row.starts_with("❯ a task")).unwrap();
        assert!(row.ends_with("messages · open"), "{shown}");
        assert_eq!(row.chars().count(), usize::from(width), "{shown}");
        assert_eq!(screen.has_colours(), no_color.is_empty(), "{shown}");
        screen.types(ESCAPE);
        screen.wait_until_gone("Sessions of");
        assert_eq!(screen.leave().code, Some(0));
    }
}
