//! `ikigai` on a terminal, line by line.

use ikigai_testkit::{Gate, ModelServer, Point, Reply};
use rustix::process::Signal;
use serde_json::json;

use crate::support::Workspace;
use crate::support::story::{contents, kinds};
use crate::support::terminal::{Terminal, start_talking, talking};

/// Lines as a terminal has them.
fn lines(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("{line}\r\n")).collect()
}

#[test]
fn a_conversation_shows_calls_results_and_answers_as_they_come() {
    let server = ModelServer::start([
        Reply::call("c1", "bash", json!({"command": "seq 5; exit 3"})),
        Reply::text("There are five."),
        Reply::text("Bye."),
    ]);
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("count");
    terminal.wait_for("● There are five.\r\n❯ ");
    terminal.type_line("thanks");
    terminal.wait_for("● Bye.\r\n❯ ");
    terminal.end_input();
    let (code, shown) = terminal.finish("--session");
    assert_eq!(code, Some(0));
    let expected = lines(&[
        "❯ count",
        "● Bash  seq 5; exit 3",
        "  ✗ exit 3",
        "  │ 1",
        "  │ 2",
        "  │ 3",
        "  │ 4",
        "  │ 5",
        "● There are five.",
        "❯ thanks",
        "● Bye.",
        "❯ ",
    ]);
    assert!(shown.contains(&expected), "{shown}");
    let session = workspace.open().session();
    assert!(shown.ends_with(&format!("Resume with: ikigai -c, or ikigai --session {session}\r\n")));
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn looking_in_leaves_nothing_behind() {
    let server = ModelServer::start([]);
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("/help");
    terminal.wait_for("/clear");
    terminal.type_line("/exit");
    assert_eq!(terminal.finish("/exit").0, Some(0));
    assert_eq!(workspace.print(["sessions"]), "No sessions yet\n");
}

#[test]
fn help_lists_the_commands_of_the_full_screen_that_work_here() {
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &ModelServer::start([]));
    terminal.type_line("/help");
    terminal.wait_for("Ctrl-D leaves.");
    let shown = terminal.text();
    for line in [
        "/help     Show this list",
        "/sessions List earlier sessions",
        "/usage    Show the tokens used",
    ] {
        assert!(shown.contains(&format!("  {line}")), "{line} in {shown}");
    }
    assert!(!shown.contains("/copy"), "{shown}");
    for name in ["agents", "mode", "mail", "model", "tools", "config", "usage"] {
        terminal.type_line(&format!("/{name}"));
    }
    terminal.type_line("/copy");
    terminal.wait_for("/copy needs the full screen");
    terminal.type_line("/exit");
    let (code, shown) = terminal.finish("/exit");
    assert_eq!((code, shown.contains("Unknown command")), (Some(0), false), "{shown}");
}

#[test]
fn what_is_typed_while_the_agent_works_goes_in_before_the_next_request() {
    let gate = Gate::new();
    let server = ModelServer::start([
        Reply::call("c1", "glob", json!({"pattern": "*"})).after(&gate),
        Reply::text("Both done."),
    ]);
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("first");
    server.wait_for_requests(1);
    terminal.type_line("second");
    terminal.wait_for("(queued for the next step)");
    gate.open();
    terminal.wait_for("● Both done.\r\n❯ ");
    terminal.end_input();
    let (_, shown) = terminal.finish("--session");
    assert!(shown.contains("  0 files\r\n❯ second\r\n● Both done."), "{shown}");
    let log = workspace.log("0/");
    let said: Vec<&str> =
        kinds(&log).into_iter().filter(|kind| !["usage", "system"].contains(kind)).collect();
    assert_eq!(said, ["user", "tool_call", "tool_result", "user", "assistant"]);
    assert_eq!(server.requests()[1].last_user_text().as_deref(), Some("second"));
}

/// It was waited for all the same, and the prompt never came back.
#[test]
fn what_was_not_taken_is_not_waited_for() {
    let gate = Gate::new();
    let server = ModelServer::start([Reply::text("Done.").after(&gate)]);
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("first");
    server.wait_for_requests(1);
    workspace.sql(
        "INSERT INTO queued_inputs (agent, content, created_at)
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
        SELECT agents.key, 'x', 0 FROM agents, n",
    );
    terminal.type_line("one more");
    terminal.wait_for("⚠ Too many messages are waiting, so this one was not sent: one more");
    workspace.sql("DELETE FROM queued_inputs");
    gate.open();
    terminal.wait_for("● Done.\r\n❯ ");
    terminal.end_input();
    assert_eq!(terminal.finish("--session").0, Some(0));
}

#[test]
fn an_interrupt_ends_the_turn_and_keeps_what_had_arrived() {
    let server = ModelServer::start([
        Reply::text("This is a long story").stall_at(Point::Text),
        Reply::text("Yes."),
    ]);
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("tell me");
    server.wait_for_stalls(1);
    terminal.wait_for("● ");
    terminal.interrupt();
    terminal.wait_for("✗ interrupted\r\n❯ ");
    terminal.type_line("still there?");
    terminal.wait_for("● Yes.\r\n❯ ");
    terminal.end_input();
    assert_eq!(terminal.finish("--session").0, Some(0));
    assert_eq!(contents(&workspace.log("0/"), "interrupted"), ["Interrupted"]);
}

#[test]
fn an_idle_interrupt_leaves_at_the_second_time() {
    let server = ModelServer::start([]);
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.interrupt();
    terminal.wait_for("Press Ctrl-C again to leave");
    terminal.type_line("");
    terminal.wait_for_times("❯ ", 3);
    terminal.interrupt();
    terminal.wait_for_times("Press Ctrl-C again to leave", 2);
    terminal.interrupt();
    assert_eq!(terminal.finish("❯ ").0, Some(0));
}

#[test]
fn being_ended_in_the_middle_of_a_turn_interrupts_it_and_gives_the_lease_back() {
    let server = ModelServer::start([
        Reply::text("This is a long story").stall_at(Point::Text),
        Reply::text("Here I am."),
    ]);
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("tell me");
    server.wait_for_stalls(1);
    terminal.send_signal(Signal::TERM);
    assert_eq!(terminal.finish("✗ interrupted").0, Some(130));
    let mut terminal = Terminal::start(talking(&workspace, &server).arg("-c"));
    terminal.wait_for("❯ tell me");
    terminal.wait_for("agent 0/");
    terminal.type_line("hello?");
    terminal.wait_for("● Here I am.\r\n❯ ");
    terminal.end_input();
    assert_eq!(terminal.finish("--session").0, Some(0));
}

#[test]
fn mail_that_comes_while_it_is_idle_wakes_the_agent() {
    let server = ModelServer::start([
        Reply::text("Hello."),
        Reply::call("c1", "mail", json!({"action": "inbox"})),
        Reply::text("I have read it."),
    ]);
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("hi");
    terminal.wait_for("● Hello.\r\n❯ ");
    workspace.print(["mail", "send", "0/", "wake up"]);
    terminal.wait_for(" → 0/   wake up\r\n");
    terminal.wait_for("● I have read it.\r\n❯ ");
    terminal.type_line("/mail");
    terminal.wait_for("Inbox for agent 0/:\r\n  #1 from user - \"wake up\"");
    terminal.type_line("/mail peek 1");
    terminal.wait_for("Time: just now\r\n\r\nwake up\r\n❯ ");
    terminal.type_line("/mail read 1");
    terminal.wait_for("Time: just now\r\n\r\nwake up\r\n\r\n(marked read for 0/)\r\n");
    terminal.type_line("/mail send 9/ hi");
    terminal.wait_for("error: Agent 9/ not found");
    terminal.end_input();
    assert_eq!(terminal.finish("--session").0, Some(0));
}

#[test]
fn a_cleared_context_is_a_fresh_one_and_the_log_keeps_all() {
    let server = ModelServer::start([Reply::text("One."), Reply::text("Two.")]);
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("apples");
    terminal.wait_for("● One.\r\n❯ ");
    terminal.type_line("/clear");
    terminal.wait_for("Started a fresh context.");
    terminal.type_line("pears");
    terminal.wait_for("● Two.\r\n❯ ");
    terminal.end_input();
    assert_eq!(terminal.finish("--session").0, Some(0));
    let request = server.requests()[1].text().into_owned();
    assert!(!request.contains("apples") && request.contains("pears"), "{request}");
    assert_eq!(contents(&workspace.log("0/"), "user"), ["apples", "pears"]);
}

#[test]
fn a_second_terminal_in_the_directory_joins_as_another_agent() {
    let server = ModelServer::choosing(|_| Reply::text("Hello."));
    let workspace = Workspace::new();
    let mut first = start_talking(&workspace, &server);
    first.type_line("hi");
    first.wait_for("● Hello.\r\n❯ ");
    let mut second = start_talking(&workspace, &server);
    second.wait_for("agent 1/");
    second.type_line("/mail send 0/ are you there?");
    second.wait_for("Mail sent to agent 0/");
    first.wait_for(" → 0/   are you there?\r\n");
    for mut terminal in [first, second] {
        terminal.end_input();
        assert_eq!(terminal.finish("❯ ").0, Some(0));
    }
    let alone = Terminal::start(&mut talking(&workspace, &server));
    alone.wait_for("agent 0/");
}

#[test]
fn a_wrong_command_is_answered_with_the_nearest_one() {
    let server = ModelServer::start([]);
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("/mial");
    terminal
        .wait_for("error: Unknown command '/mial'. Did you mean /mail? /help lists all commands");
    terminal.type_line("/mail");
    terminal.wait_for("Inbox for agent 0/:\r\n  (no messages)");
    terminal.end_input();
    assert_eq!(terminal.finish("❯ ").0, Some(0));
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn an_answer_cannot_steer_the_terminal() {
    let server = ModelServer::start([Reply::text("a\u{1b}[2Jb\u{7}c\u{9b}31md")]);
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("hi");
    terminal.wait_for("● a\u{fffd}[2Jb\u{fffd}c\u{fffd}31md\r\n❯ ");
    terminal.end_input();
    assert!(!terminal.finish("--session").1.contains('\u{1b}'));
}

#[test]
fn after_a_fault_enter_goes_on() {
    let server =
        ModelServer::start([Reply::error(400, "out of order"), Reply::text("It works again.")]);
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("hi");
    terminal.wait_for("out of order");
    terminal.wait_for("Press Enter to retry");
    terminal.type_line("");
    terminal.wait_for("● It works again.\r\n❯ ");
    terminal.end_input();
    assert_eq!(terminal.finish("--session").0, Some(0));
    assert_eq!(contents(&workspace.log("0/"), "user"), ["hi"]);
}

#[test]
fn without_a_model_it_offers_what_can_be_done() {
    let workspace = Workspace::new();
    let mut terminal = Terminal::start(workspace.ikigai().env("TERM", "dumb"));
    terminal.wait_for("Your choice (Enter leaves): ");
    terminal.type_line("x");
    terminal.wait_for("Not one of the choices.\r\nYour choice (Enter leaves): ");
    terminal.type_line("");
    let (code, shown) = terminal.finish("(Enter leaves): \r\n");
    assert_eq!(code, Some(0));
    assert!(!shown.contains("Talking to"), "{shown}");
}

#[test]
fn without_a_terminal_it_says_what_to_use_instead() {
    let (code, stdout, stderr) = Workspace::new().run([]);
    assert_eq!((code, &*stdout), (2, ""));
    let told = "ikigai: not a terminal: use 'ikigai run PROMPT', or see 'ikigai --help'\n";
    assert_eq!(stderr, told);
}
