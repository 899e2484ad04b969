//! What goes with a message: queued ones, files, and commands of the user's own.

use ikigai_testkit::{Gate, ModelServer, Point, Reply};

use crate::support::Workspace;
use crate::support::screen::{ESCAPE, Screen, UP};
use crate::support::story::contents;
use crate::support::terminal::start_talking;

#[test]
fn queued_messages_are_numbered_and_the_last_one_can_be_edited() {
    let gate = Gate::new();
    let server = ModelServer::start([
        Reply::text("One story.").hold_at(Point::Text, &gate),
        Reply::text("Another story."),
    ]);
    let workspace = Workspace::new();
    let mut screen = Screen::open(&workspace, &server);
    screen.asks("tell", "● One");
    screen.asks("first", "queued 1: first");
    screen.asks("secnod", "queued 2: secnod · ↑ edits the last one");
    screen.types(UP);
    screen.wait_for("❯ secnod");
    screen.wait_until_gone("queued 2");
    screen.types("\x15second\r");
    screen.wait_for("queued 2: second");
    gate.open();
    screen.wait_for("● Another story.");
    screen.wait_until_idle();
    assert_eq!(contents(&workspace.log("0/"), "user"), ["tell", "first", "second"]);
}

#[test]
fn esc_interrupts_and_sends_what_is_queued() {
    let server = ModelServer::start([
        Reply::text("A long story").stall_at(Point::Text),
        Reply::text("As you like."),
    ]);
    let mut screen = Screen::alone(&server);
    screen.says("tell");
    server.wait_for_stalls(1);
    screen.asks("stop that", "queued 1: stop that");
    screen.types(ESCAPE);
    screen.wait_for("● As you like.");
}

#[test]
fn a_file_of_the_tree_goes_with_the_message_and_is_shown_as_a_line() {
    let server = ModelServer::start([Reply::text("I see it."), Reply::text("No file.")]);
    let workspace = Workspace::new();
    workspace.write("src/a.rs", "fn a() {}\n").write("../outside", "beyond reach");
    let mut screen = Screen::open(&workspace, &server);
    screen.asks("look at @src/a.rs and @../outside now", "● I see it.");
    screen.wait_until_idle();
    screen.wait_for("  [Attached src/a.rs]");
    assert!(!screen.text().contains("fn a()"), "{}", screen.text());
    let request = server.requests().pop().unwrap();
    let text = request.text();
    let expected = "<attachment file=\\\"src/a.rs\\\">\\nfn a() {}\\n</attachment>";
    assert!(text.contains(expected) || text.contains(&expected.replace('\\', "")), "{text}");
    assert!(!text.contains("beyond reach"));
    // It is shown the same way in a resumed session.
    screen.leave();
    let mut screen =
        Screen::start(crate::support::screen::command(&workspace, &server).arg("-c"), 80, 24);
    screen.wait_for("[Attached src/a.rs]");
    screen.asks("and now", "● No file.");
    let last = server.requests().pop().unwrap();
    assert_eq!(last.text().matches("fn a()").count(), 1, "only with its message");
}

#[test]
fn the_users_own_command_runs_without_a_sandbox_and_its_output_goes_with_the_next_message() {
    let server = ModelServer::start([Reply::text("I see."), Reply::text("Nothing new.")]);
    let workspace = Workspace::new();
    let mut screen = Screen::open(&workspace, &server);
    // A folder that no sandbox could write to.
    screen.asks("!echo ma''de > ../beside; cat ../beside; false", "made\nexit 1\n");
    assert_eq!(server.requests().len(), 0, "it starts no turn");
    screen.asks("what happened?", "● I see.");
    screen.wait_until_idle();
    screen.wait_for("[Output of echo ma''de > ../beside; cat ../beside; false]");
    assert!(server.requests()[0].text().contains("exit_code="));
    screen.asks("and now?", "● Nothing new.");
    let last = server.requests().pop().unwrap();
    assert_eq!(last.text().matches("<attachment command").count(), 1);
}

#[test]
fn esc_ends_the_users_own_command() {
    let server = ModelServer::start([]);
    let mut screen = Screen::alone(&server);
    screen.asks("!echo begun; sleep 31415.8", "Your command is running");
    screen.types(ESCAPE);
    screen.wait_for("exit 130");
    screen.wait_until_gone("Your command is running");
}

#[test]
fn files_and_commands_work_line_by_line() {
    let server = ModelServer::start([Reply::text("I see both.")]);
    let workspace = Workspace::new();
    workspace.write("a.txt", "content of a\n");
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("!echo from the shell");
    terminal.wait_for_times("from the shell\r\n", 2);
    terminal.type_line("look at @a.txt");
    terminal.wait_for("● I see both.");
    let request = server.requests().pop().unwrap();
    let text = request.text();
    assert!(text.contains("content of a") && text.contains("from the shell"), "{text}");
}
