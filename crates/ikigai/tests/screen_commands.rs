//! What is typed with a slash.

use ikigai_testkit::{ModelServer, Reply};
use serde_json::json;

use crate::support::Workspace;
use crate::support::screen::{CONTROL_HOME, Screen, command};
use crate::support::story::kinds;

fn talkative() -> ModelServer {
    ModelServer::choosing(|asked| {
        let said = asked.last_user_text().unwrap_or_default();
        Reply::text(&format!("Answer to {}.", said.lines().last().unwrap_or_default()))
    })
}

#[test]
fn help_lists_every_command_and_the_keys() {
    let workspace = Workspace::new();
    let server = talkative();
    let mut screen = Screen::start(&mut command(&workspace, &server), 100, 100);
    screen.asks("/help", "show this table");
    let shown = screen.text();
    for name in [
        "help", "clear", "model", "mail", "fork", "agents", "agent", "kill", "mark", "rewind",
        "sessions", "export", "tools", "mode", "undo", "redo", "usage", "copy", "config", "exit",
    ] {
        assert!(shown.contains(&format!("  /{name} ")), "{name} in {shown}");
    }
}

#[test]
fn an_unknown_command_is_told_with_the_nearest_and_a_wrong_use_with_the_usage() {
    let server = talkative();
    let mut screen = Screen::alone(&server);
    screen.asks("/mial", "Unknown command '/mial'. Did you mean /mail? /help lists all commands");
    screen.asks("/exp talk.md", "There is no message yet");
    screen.asks("/ex a", "'/ex' could be /export, /exit");
    screen.asks("/agent", "Usage: /agent ID. /agents lists all agents");
    screen.asks("/export", "Usage: /export FILE");
    screen.asks(
        "/mode fast",
        "There is no mode 'fast'. The modes are read, work and full: /mode work",
    );
    screen.asks("/mail send", "/mail send");
    screen.asks("/rewind nowhere", "No such mark. /mark sets one");
    screen.asks("/mark", "There is no message yet");
    screen.asks("/copy", "There is no answer to copy yet");
    screen.asks("/export a.md", "There is no message yet");
}

#[test]
fn looking_in_leaves_nothing_behind() {
    let workspace = Workspace::new();
    let server = talkative();
    let mut screen = Screen::open(&workspace, &server);
    screen.asks("/usage", "No tokens used yet");
    screen.asks("/sessions", "No sessions yet");
    screen.types("\x03");
    screen.wait_until_gone("No sessions yet");
    screen.says("/exit");
    let left = screen.ended();
    assert_eq!((left.code, left.shown.trim()), (Some(0), ""));
    assert_eq!(workspace.print(["sessions"]), "No sessions yet\n");
}

#[test]
fn a_mark_can_be_returned_to_and_what_came_after_is_dim_and_hidden_from_the_model() {
    let server = talkative();
    let workspace = Workspace::new();
    let mut screen = Screen::start(&mut command(&workspace, &server), 80, 50);
    screen.asks("one", "● Answer to one.");
    screen.wait_until_idle();
    screen.asks("/mark here", "── mark here ──");
    screen.asks("two", "● Answer to two.");
    screen.wait_until_idle();
    assert!(!screen.cell_of("Answer to two").dim());
    screen.asks("/rewind nowhere", "No such mark. /mark sets one");
    screen.asks("/rewind here", "── rewound to here ──");
    screen.wait_until("dim text", |_| screen.cell_of("Answer to two").dim());
    assert!(!screen.cell_of("Answer to one").dim());
    screen.asks("three", "● Answer to three.");
    let last = server.requests().pop().unwrap();
    assert!(last.text().contains("Answer to one") && !last.text().contains("Answer to two"));
    screen.wait_until_idle();
    screen.leave();
    let mut screen = Screen::start(command(&workspace, &server).arg("-c"), 80, 24);
    screen.wait_for("● Answer to three.");
    screen.types(CONTROL_HOME);
    screen.wait_for("● Answer to two.");
    assert!(screen.cell_of("Answer to two").dim(), "also after a restart");
}

/// Going back past the message that showed a mail makes it news again (M10).
#[test]
fn m10_a_rewind_past_a_mail_makes_the_agent_hear_of_it_again() {
    let server = ModelServer::start([
        Reply::text("Hi."),
        Reply::call("c1", "mail", json!({"action": "read", "id": 1})),
        Reply::text("Read it."),
        Reply::call("c2", "mail", json!({"action": "read", "id": 1})),
        Reply::text("Read it again."),
    ]);
    let workspace = Workspace::new();
    let mut screen = Screen::open(&workspace, &server);
    screen.asks("hello", "● Hi.");
    screen.wait_until_idle();
    screen.asks("/mark", "Marked. /rewind returns here");
    screen.asks("/mail send 0/ some news", "● Read it.");
    screen.wait_until_idle();
    screen.asks("/rewind", "Rewind to before a message 2");
    screen.types("\r");
    screen.wait_for("Conversation and files");
    screen.types("2");
    screen.wait_for("● Read it again.");
    let log = workspace.log("0/");
    let kinds: Vec<&str> = kinds(&log);
    let news = kinds.iter().filter(|kind| **kind == "notification").count();
    assert_eq!(news, 2, "{kinds:?}");
}

#[test]
fn a_fresh_context_hides_what_was_said_from_the_model() {
    let server = talkative();
    let mut screen = Screen::alone(&server);
    screen.asks("one", "● Answer to one.");
    screen.wait_until_idle();
    screen.asks("/clear", "Started a fresh context.");
    assert!(!screen.text().contains("Answer to one"), "{}", screen.text());
    screen.asks("two", "● Answer to two.");
    assert!(!server.requests()[1].text().contains("Answer to one"));
}

#[test]
fn a_conversation_is_written_as_markdown_or_as_lines_of_json_and_nothing_is_overwritten() {
    let workspace = Workspace::new();
    let server = talkative();
    let mut screen = Screen::open(&workspace, &server);
    screen.asks("one", "● Answer to one.");
    screen.wait_until_idle();
    screen.asks("/export talk.md", "Wrote ");
    let markdown = workspace.read_text("talk.md");
    assert_eq!(
        markdown,
        "# Conversation with agent 0/\n\n## You\n\none\n\n## Agent\n\nAnswer to one.\n"
    );
    screen.says("/export talk.jsonl");
    screen.wait_until("both", |shown| shown.matches("Wrote ").count() == 2);
    assert_eq!(workspace.read_text("talk.jsonl"), workspace.print(["log", "--json"]));
    screen.asks("/export talk.md", "already exists. Choose another name");
}

/// Whoever shows the file on a terminal would run what a model wrote.
#[test]
fn an_exported_conversation_has_no_control_characters() {
    let workspace = Workspace::new();
    let server = ModelServer::start([Reply::text("\u{1b}]0;title\u{7}\u{9b}31mred\u{7f}")]);
    let mut screen = Screen::open(&workspace, &server);
    screen.asks("one", "red");
    screen.wait_until_idle();
    screen.asks("/export talk.md", "Wrote ");
    assert!(workspace.read_text("talk.md").contains("\u{fffd}]0;title\u{fffd}\u{fffd}31mred"));
    screen.says("/export talk.jsonl");
    screen.wait_until("both", |shown| shown.matches("Wrote ").count() == 2);
    assert!(workspace.read_text("talk.jsonl").contains(r"\u009b31mred\u007f"));
    for file in ["talk.md", "talk.jsonl"] {
        let text = workspace.read_text(file);
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    }
}

#[test]
fn changes_are_taken_back_and_made_again() {
    let server = ModelServer::start([
        Reply::call("c1", "file_write", json!({"path": "a.txt", "content": "x\n"})),
        Reply::text("Written."),
    ]);
    let workspace = Workspace::new();
    let mut screen = Screen::open(&workspace, &server);
    screen.asks("/undo", "Nothing to undo");
    screen.asks("write", "● Written.");
    screen.wait_until_idle();
    screen.asks("/undo", "removed   a.txt");
    screen.wait_for("Commands are not undone.");
    assert!(!workspace.path("a.txt").exists());
    let shown = screen.from("❯ write").join("\n");
    assert_eq!(shown.matches("/undo").count(), 1, "{shown}");
    screen.asks("/redo", "written   a.txt");
    assert_eq!(workspace.read_text("a.txt"), "x\n");
}

#[test]
fn commands_that_tell_do_so() {
    let workspace = Workspace::new();
    let server = talkative();
    let mut screen = Screen::start(&mut command(&workspace, &server), 100, 60);
    screen.asks("one", "● Answer to one.");
    screen.wait_until_idle();
    screen.asks("/usage", "1     10      0%       5     -");
    screen.asks("/agents", "* 0/ idle");
    screen.asks("/tools", "file_read   ");
    screen.asks("/context", "Context: ");
    screen.asks("/config", "history_size = 10000");
    screen.asks("/mode read", "Switched to mode read");
    screen.asks("/clear", "Started a fresh context.");
    screen.asks("/tools", "file_read   ");
}

#[test]
fn raw_shows_the_conversation_on_the_normal_screen_until_any_key() {
    let server = talkative();
    let mut screen = Screen::alone(&server);
    screen.asks("one", "● Answer to one.");
    screen.wait_until_idle();
    screen.asks("/raw", "Press any key to return");
    let is_alternate = |screen: &Screen| screen.terminal().screen().alternate_screen();
    assert!(!is_alternate(&screen) && screen.text().contains("● Answer to one."));
    // Control and C: it does not end the program.
    screen.types("\x03");
    screen.wait_until_gone("Press any key to return");
    assert!(is_alternate(&screen));
    screen.asks("two", "● Answer to two.");
    assert_eq!(screen.leave().code, Some(0));
}

#[test]
fn the_last_answer_goes_to_the_clipboard() {
    let server = talkative();
    let mut screen = Screen::alone(&server);
    screen.asks("one", "● Answer to one.");
    screen.wait_until_idle();
    screen.asks("/copy", "Copied the last answer");
    // The text in base 64.
    assert_eq!(screen.terminal().callbacks().copied, ["QW5zd2VyIHRvIG9uZS4="]);
}
