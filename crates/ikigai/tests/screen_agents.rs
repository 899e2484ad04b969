//! Several agents on one screen: who is in view, who asks, who has mail.

use ikigai_testkit::{AgentScripts, Gate, ModelServer, Point, Reply};
use serde_json::json;

use crate::support::Workspace;
use crate::support::screen::{
    ALT_DOWN, ALT_LEFT, ALT_RIGHT, ALT_UP, ESCAPE, Screen, command, on_terminal,
};
use crate::support::story::contents;

#[test]
fn the_separator_and_alt_arrows_lead_through_the_family() {
    let server = ModelServer::choosing(|_| Reply::text("Yes."));
    let mut screen = Screen::alone(&server);
    screen.asks("hello", "● Yes.");
    screen.wait_until_idle();
    screen.asks("/fork", "Forked agent 0/0/. Talk to it with /agent 0/0/");
    screen.asks("/fork", "Forked agent 0/1/");
    screen.wait_for("✓ 0/1/");
    screen.types(ALT_DOWN);
    screen.wait_for("── 0/1/ ──");
    screen.types(ALT_LEFT);
    screen.wait_for("── 0/0/ ──");
    screen.types(ALT_RIGHT);
    screen.wait_for("── 0/1/ ──");
    screen.types(ALT_UP);
    screen.wait_for("── 0/ ──");
    // Ctrl does the same while the input is empty.
    screen.types("\x1b[1;5B");
    screen.wait_for("── 0/1/ ──");
    screen.asks("/agent 0", "── 0/ ──");
    screen.asks("/agent 7", "Agent 7 not found. /agents lists all");
}

#[test]
fn switching_in_the_middle_of_streams_never_mixes_them() {
    let (first, second) = (Gate::new(), Gate::new());
    let server = AgentScripts::new()
        .role(
            "0/",
            [
                Reply::call("c1", "fork", json!({"prompt": "sing"})),
                Reply::text("father father father end").hold_at(Point::Text, &first),
            ],
        )
        .role("0/0/", [Reply::text("child child child end").hold_at(Point::Text, &second)])
        .start();
    let mut screen = Screen::alone(&server);
    screen.asks("go", "● father");
    screen.wait_for("0/0/");
    for _ in 0..3 {
        screen.types(ALT_DOWN);
        screen.wait_for("● child");
        assert!(!screen.text().contains("father"), "{}", screen.text());
        screen.types(ALT_UP);
        screen.wait_for("● father");
        assert!(!screen.text().contains("child child"), "{}", screen.text());
    }
    first.open();
    screen.wait_for("● father father father end");
    screen.types(ALT_DOWN);
    second.open();
    screen.wait_for("● child child child end");
    assert!(!screen.text().contains("father"), "{}", screen.text());
}

#[test]
fn the_team_is_a_list_that_leads_to_its_agents() {
    let server = AgentScripts::new()
        .role(
            "0/",
            [
                Reply::call("c1", "fork", json!({"prompt": "count the files", "name": "counter"})),
                Reply::text("Begun."),
            ],
        )
        .role("0/0/", [Reply::text("one file and another").stall_at(Point::Text)])
        .start();
    let mut screen = Screen::alone(&server);
    screen.asks("go", "● Begun.");
    screen.wait_until_idle();
    screen.types("\x14");
    screen.wait_for("enter opens · p peeks · m mails · k kills · a answers · esc closes");
    screen.wait_for("0/0/ counter waiting");
    assert!(screen.text().contains("count the files"));
    screen.types(ESCAPE);
    screen.wait_until_gone("enter opens");
    screen.types("\x14");
    screen.wait_for("enter opens");
    screen.types("2");
    screen.wait_for("── counter 0/0/ ──");
    screen.wait_for("● one");
    screen.asks("/kill", "Killed: 0/0/");
    screen.wait_until_gone("counter 0/0/ ──");
}

#[test]
fn an_agent_in_the_background_that_asks_is_marked_and_rings() {
    let server = AgentScripts::new()
        .role("0/", [Reply::call("c1", "fork", json!({"prompt": "do"})), Reply::text("Begun.")])
        .role(
            "0/0/",
            [
                Reply::call("c2", "bash", json!({"command": "echo out", "sandbox": false})),
                Reply::text("Did it."),
            ],
        )
        .start();
    let mut screen = Screen::alone(&server);
    // The terminal says that it lost the focus.
    screen.types("\x1b[O");
    screen.asks("go", "? 0/0/ needs you");
    assert!(screen.terminal().callbacks().bells > 0);
    screen.types(ALT_DOWN);
    screen.wait_for("Agent 0/0/ wants to run a command");
    screen.wait_for("│ the command asks to leave the sandbox ");
    screen.wait_for("│   echo out ");
    screen.answers("y");
    screen.wait_for("● Did it.");
    assert!(!screen.text().contains("needs you"));
}

#[test]
fn a_no_has_a_reason_that_the_model_is_told() {
    let server = ModelServer::start([
        Reply::call("c1", "bash", json!({"command": "rm -r x", "sandbox": false})),
        Reply::text("Then not."),
    ]);
    let mut screen = Screen::alone(&server);
    screen.says("clean up");
    screen.answers("n");
    screen.wait_for("Why not?");
    screen.types("it is mine\r");
    screen.wait_for("● Then not.");
    let requests = server.requests();
    assert!(requests[1].text().contains("denied by the user: it is mine"));
}

/// It looked like a new file, as if nothing were lost; and a text of some size was not shown at all.
#[test]
fn what_a_write_would_replace_and_all_of_its_text_is_shown() {
    let text: String = (0..60_000).map(|line| format!("line {line}\n")).collect();
    let write = json!({"path": ".ikigai/tool", "content": text});
    let server =
        ModelServer::start([Reply::call("c1", "file_write", write), Reply::text("Then not.")]);
    let workspace = Workspace::new();
    workspace.write(".ikigai/tool", b"\xff\xfe\x00");
    let mut screen = Screen::open(&workspace, &server);
    screen.asks("write", ".ikigai/tool: all 3 bytes of the file are replaced by");
    screen.wait_for(" + line 0");
    screen.answers("n");
    screen.types("\r");
    screen.wait_for("● Then not.");
    assert_eq!(workspace.read(".ikigai/tool"), b"\xff\xfe\x00");
}

#[test]
fn mail_waits_while_the_person_writes_and_wakes_the_agent_when_they_are_done() {
    let server = ModelServer::start([Reply::text("Hi."), Reply::text("I have mail.")]);
    let workspace = Workspace::new();
    let mut screen = Screen::open(&workspace, &server);
    screen.asks("hello", "● Hi.");
    screen.wait_until_idle();
    screen.types("I am wri");
    screen.wait_for("❯ I am wri");
    let long = format!("look here {}", "x".repeat(1_000));
    workspace.print(["mail", "send", "0/", &long]);
    screen.wait_for("1 unread, delivered after your next message");
    assert_eq!(server.requests().len(), 1);
    screen.types("\x03");
    screen.wait_for(" → 0/   look here ");
    screen.wait_for("● I have mail.");
    screen.wait_for("── [mail:1] ──");
    screen.asks("/mail", "[unread] from user - \"look here");
    screen.asks("/mail read 1", "look here x");
    screen.wait_until_gone("── [mail:1] ──");
}

#[test]
fn two_terminals_in_one_folder_are_two_agents_that_mail_each_other() {
    let server = AgentScripts::new()
        .role("0/", [Reply::text("Hi."), Reply::text("Thank you, 1/.")])
        .role("1/", [Reply::text("Hello.")])
        .start();
    let workspace = Workspace::new();
    let mut first = Screen::open(&workspace, &server);
    first.asks("hello", "● Hi.");
    first.wait_until_idle();
    let mut second = Screen::open(&workspace, &server);
    second.wait_for("· agent 1/");
    second.wait_for("── 1/ ──");
    second.asks("hello", "● Hello.");
    second.wait_until_idle();
    second.asks("/agent 0/", "── 0/ (read only) ──");
    second.wait_for("● Hi.");
    second.asks("hey", "Agent 0/ is run by another terminal. Write to it: /mail send 0/ TEXT");
    // What was not sent stays in the input.
    second.types("\x15");
    second.asks("/mail send 0/ the tests pass", "Mail sent to agent 0/");
    first.wait_for(" → 0/   the tests pass");
    first.wait_for("● Thank you, 1/.");
    first.wait_for("✓ 1/");
    second.wait_for("● Thank you, 1/.");
    second.leave();
    first.leave();
}

#[test]
fn terminals_are_agents_of_one_session_before_a_line_is_typed() {
    let server = AgentScripts::new()
        .role("0/", [Reply::text("Hi."), Reply::text("Thank you, 1/.")])
        .role("1/", [Reply::text("Hello.")])
        .start();
    let workspace = Workspace::new();
    let mut first = Screen::open(&workspace, &server);
    let mut second = Screen::open(&workspace, &server);
    second.wait_for("· agent 1/");
    second.wait_for("Also open in another terminal");
    first.asks("hello", "● Hi.");
    second.wait_for("── 1/ ──");
    second.asks("hello", "● Hello.");
    second.asks("/mail send 0/ the tests pass", "Mail sent to agent 0/");
    first.wait_for("● Thank you, 1/.");
    assert!(second.leave().shown.contains("ikigai -c --agent 1/"));
    first.leave();
    assert_eq!(workspace.json(["sessions", "--json"]).as_array().unwrap().len(), 1);
}

/// Regression: only the terminal of the agent could answer, and the others did not show that it
/// waits.
#[test]
fn a_question_can_be_answered_in_every_terminal_and_the_first_answer_wins() {
    let leave =
        |id, command| Reply::call(id, "bash", json!({"command": command, "sandbox": false}));
    let server = AgentScripts::new()
        .role("0/", [leave("c1", "echo one"), leave("c2", "echo two"), Reply::text("Both ran.")])
        .role("1/", [Reply::text("Hello.")])
        .start();
    let workspace = Workspace::new();
    let mut first = Screen::open(&workspace, &server);
    let mut second = Screen::open(&workspace, &server);
    second.asks("hello", "● Hello.");
    first.asks("go", "Agent 0/ wants to run a command");
    second.wait_for("? 0/ needs you");
    second.types("\x18");
    second.wait_for("Agent 0/ wants to run a command");
    second.wait_for("│   echo one ");
    second.answers("y");
    for screen in [&first, &second] {
        screen.wait_for("│   echo two ");
    }
    first.answers("y");
    first.wait_for("● Both ran.");
    second.wait_until_gone("wants to run a command");
    second.wait_for("● Both ran.");
    assert_eq!(workspace.number("SELECT count(*) FROM questions WHERE answer IS NOT NULL"), 1);
    second.leave();
    first.leave();
}

#[test]
fn an_agent_that_is_gone_offers_another_one() {
    let server = AgentScripts::new()
        .role("0/", [Reply::text("Hi.")])
        .role("1/", [Reply::text("New here.")])
        .role("2/", [Reply::text("Newer still.")])
        .start();
    let workspace = Workspace::new();
    let mut first = Screen::open(&workspace, &server);
    first.asks("hello", "● Hi.");
    first.wait_until_idle();
    let mut second = Screen::open(&workspace, &server);
    second.wait_for("agent 1/");
    second.asks("hello", "● New here.");
    second.wait_until_idle();
    first.asks("/mode read", "Switched to mode read");
    second.asks("/kill", "This ends agent 1/ and its children. To confirm, type /kill 1/");
    second.asks("/kill 0/", "Killed: 0/");
    first.wait_for("Enter starts a new agent of the session, Ctrl+D leaves");
    first.types("\r");
    first.wait_for("── 2/ ──");
    // What was chosen still holds.
    first.asks("/mode", "Mode read\n");
    first.asks("again", "● Newer still.");
    assert_eq!(first.leave().code, Some(0));
    assert_eq!(contents(&workspace.log("2/"), "user"), ["again"]);
}

#[test]
fn without_a_model_three_ways_are_offered() {
    let workspace = Workspace::new();
    let mut screen = Screen::spawn(&mut on_terminal(&workspace), 80, 24);
    screen.wait_for("Your choice");
    let shown = screen.text();
    assert!(shown.contains("no model is connected"), "{shown}");
    assert!(shown.contains("  k  paste a key") && shown.contains("  t  take the tour"), "{shown}");
    screen.types("t\n");
    screen.wait_for("tour (scripted)");
    assert_eq!(screen.leave().code, Some(0));
}

#[test]
fn another_model_answers_from_the_next_request_on() {
    let server = ModelServer::choosing(|asked| {
        let model = asked.json()["model"].as_str().unwrap().to_owned();
        Reply::text(&format!("I am {model}."))
    });
    let workspace = Workspace::new();
    let mut screen = Screen::start(&mut command(&workspace, &server), 80, 24);
    screen.asks("who?", "● I am scripted.");
    screen.wait_until_idle();
    screen.asks("/model other", "Switched to openai/other");
    screen.wait_until("the status", |shown| shown.lines().last().unwrap().contains("other · "));
    screen.asks("and now?", "● I am other.");
    screen.asks("/model nobody/x", "'nobody' is not a provider");
}
