//! Several agents on a terminal, line by line: one is in view, the others go on behind it.

use ikigai_testkit::{AgentScripts, Gate, Point, Reply, assert_prefix};
use serde_json::{Value, json};

use crate::support::scene::{fork, send};
use crate::support::story::{bash, contents, kinds};
use crate::support::terminal::{leave, start_talking};
use crate::support::{Workspace, wait_for};

/// Waits until the registry says so of an agent.
#[track_caller]
fn wait_for_state(workspace: &Workspace, agent: &str, state: &str) {
    wait_for(&format!("{agent} to be {state}"), || {
        // At first there may be no session.
        let (_, agents, _) = workspace.run(["agents", "--json"]);
        let agents: Value = serde_json::from_str(&agents).ok()?;
        let found = agents.as_array().unwrap().iter().find(|found| found["id"] == agent)?;
        (found["state"] == state).then_some(())
    });
}

#[test]
fn a_person_forks_looks_and_talks_to_the_child() {
    let server = AgentScripts::new()
        .role("0/", [Reply::text("Noted."), Reply::text("Forty-two.")])
        .role("0/0/", [Reply::text("I know.")])
        .start();
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("remember 42");
    terminal.wait_for("● Noted.\r\n❯ ");
    terminal.type_line("/fork");
    terminal.wait_for("Forked agent 0/0/. Talk to it with /agent 0/0/");
    terminal.type_line("/agents");
    terminal.wait_for("* 0/ idle (10 tokens in, 5 out): remember 42\r\n");
    terminal.wait_for("    0/0/ idle\r\n");
    terminal.type_line("/agent 0/0");
    terminal.wait_for("Switched to agent 0/0/");
    terminal.type_line("what was it?");
    terminal.wait_for("● I know.\r\n0/0/ ❯ ");
    terminal.type_line("/agent 0/");
    terminal.wait_for("Switched to agent 0/");
    terminal.type_line("and you?");
    terminal.wait_for("● Forty-two.\r\n0/ ❯ ");
    terminal.type_line("/agent 7/");
    terminal.wait_for("error: Agent 7/ not found. /agents lists all");
    let shown = leave(terminal);
    assert!(!shown.contains("[0/"), "{shown}");
    let asked = server.requests_of("0/0/").swap_remove(0);
    assert!(asked.text().contains("remember 42"), "{}", asked.text());
    assert!(asked.last_user_text().unwrap().ends_with("\n\nwhat was it?"));
    assert_eq!(kinds(&workspace.log("0/0/")), ["fork", "user", "assistant"]);
    // An idle child owes nobody anything.
    assert_eq!(contents(&workspace.log("0/"), "notification"), Vec::<&str>::new());
}

#[test]
fn a_fork_with_a_task_works_behind_the_one_in_view() {
    let (streaming, background) = (Gate::new(), Gate::new());
    let server = AgentScripts::new()
        .role(
            "0/",
            [
                Reply::text("Hello."),
                Reply::pieces(["front one ", "front two ", "front three"])
                    .hold_at(Point::Text, &streaming),
                Reply::text("I was told."),
            ],
        )
        .role("0/0/", [Reply::pieces(["back one ", "back two"]).after(&background)])
        .start();
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("hi");
    terminal.wait_for("● Hello.\r\n❯ ");
    terminal.type_line("/fork count");
    terminal.wait_for("Forked agent 0/0/. Talk to it with /agent 0/0/");
    terminal.type_line("talk");
    terminal.wait_for("● front one front two ");
    background.open();
    terminal.wait_for("[0/0/] ● back one back two\r\n");
    streaming.open();
    terminal.wait_for("● I was told.\r\n0/ ❯ ");
    let shown = leave(terminal);
    // Nothing of the one stands in a line of the other.
    for line in shown.lines() {
        assert!(!(line.contains("front") && line.contains("back")), "{shown}");
    }
    let told = "✉ 0/0/ → 0/   back one back two\r\n";
    assert!(shown.contains(told), "{shown}");
    let answers = ["Hello.", "front one front two front three", "I was told."];
    assert_eq!(contents(&workspace.log("0/"), "assistant"), answers);
    assert_eq!(contents(&workspace.log("0/0/"), "assistant"), ["back one back two"]);
}

/// Who comes in the middle of an answer sees all of it, and who goes leaves none of it behind.
#[test]
fn a_switch_in_the_middle_of_a_stream_shows_each_answer_once_and_whole() {
    let (here, there) = (Gate::new(), Gate::new());
    let server = AgentScripts::new()
        .role(
            "0/",
            [
                Reply::text("Hello."),
                Reply::pieces(["front one ", "front two ", "front three"])
                    .hold_at(Point::Text, &here),
                Reply::text("I was told."),
            ],
        )
        .role(
            "0/0/",
            [Reply::pieces(["back one ", "back two ", "back three"]).hold_at(Point::Text, &there)],
        )
        .start();
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("hi");
    terminal.wait_for("● Hello.\r\n❯ ");
    terminal.type_line("/fork count");
    terminal.wait_for("Forked agent 0/0/. Talk to it with /agent 0/0/");
    terminal.type_line("talk");
    terminal.wait_for("● front one front two ");
    server.wait_for_requests(3);
    terminal.type_line("/agent 0/0/");
    terminal.wait_for("Switched to agent 0/0/");
    terminal.wait_for("back one back two ");
    here.open();
    terminal.wait_for("[0/] ● front one front two front three\r\n");
    there.open();
    terminal.wait_for("three\r\n0/0/ ❯ ");
    terminal.wait_for("[0/] ● I was told.\r\n");
    let shown = leave(terminal);
    let after_switch = shown.split("Switched to agent 0/0/").nth(1).unwrap();
    assert_eq!(after_switch.matches("● back one").count(), 1, "{shown}");
    for line in shown.lines() {
        assert!(!(line.contains("front") && line.contains("back")), "{shown}");
    }
}

#[test]
fn a_person_kills_a_child_that_is_at_work_and_not_the_last_agent() {
    let server = AgentScripts::new()
        .role("0/", [Reply::text("Hello.")])
        .role("0/0/", [fork("f", "hang"), Reply::silence()])
        .role("0/0/0/", [Reply::silence()])
        .start();
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("hi");
    terminal.wait_for("● Hello.\r\n❯ ");
    terminal.type_line("/fork hang");
    server.wait_for_stalls(2);
    terminal.type_line("/kill 0/0/");
    terminal.wait_for("Killed: 0/0/0/, 0/0/");
    server.wait_for_departures(2);
    terminal.wait_for("[0/0/] ✗ interrupted: the agent was killed");
    terminal.wait_for("[0/0/0/] ✗ interrupted: the agent was killed");
    terminal.type_line("/kill");
    terminal.wait_for("error: Agent 0/ is the last top-level agent");
    terminal.type_line("/kill 0/0/");
    terminal.wait_for("error: Agent 0/0/ is dead");
    terminal.type_line("/agent 0/0/");
    terminal.wait_for_times("error: Agent 0/0/ is dead", 2);
    terminal.type_line("/mail send 0/0/ hello");
    terminal.wait_for_times("error: Agent 0/0/ is dead", 3);
    leave(terminal);
    assert_eq!(kinds(&workspace.log("0/")), ["user", "assistant", "kill"]);
}

#[test]
fn a_question_of_an_agent_in_the_background_is_asked_and_answered() {
    let touch = json!({"command": "touch ../outside/made", "sandbox": false});
    let server = AgentScripts::new()
        .role("0/", [Reply::text("Hello."), Reply::text("I was told.")])
        .role("0/0/", [Reply::call("c1", "bash", touch), Reply::text("Made.")])
        .start();
    let workspace = Workspace::new();
    workspace.folder("../outside");
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("hi");
    terminal.wait_for("● Hello.\r\n❯ ");
    terminal.type_line("/fork make it");
    terminal.wait_for("? agent 0/0/ asks for bash: the command asks to leave the sandbox");
    terminal.wait_for("y/a/n ❯ ");
    wait_for_state(&workspace, "0/0/", "asking");
    assert!(!workspace.path("../outside/made").exists());
    terminal.type_line("y");
    terminal.wait_for("[0/0/] ● Made.\r\n");
    terminal.wait_for("● I was told.\r\n0/ ❯ ");
    leave(terminal);
    assert!(workspace.path("../outside/made").exists());
    assert_eq!(contents(&workspace.log("0/0/"), "approval"), ["Allowed once"]);
    assert_eq!(contents(&workspace.log("0/"), "approval"), Vec::<&str>::new());
}

/// The ids of calls are the models' own: an answer to one agent's question had taken back another's.
#[test]
fn of_two_agents_that_ask_each_is_shown_when_its_answer_is_due() {
    let touch = |name: &str| {
        let command = format!("touch ../outside/{name}");
        Reply::call("c1", "bash", json!({"command": command, "sandbox": false}))
    };
    let (told, asked) = (Reply::text("I was told."), "asks for bash");
    let server = AgentScripts::new()
        .role("0/", [Reply::text("Hello."), told.clone(), told])
        .role("0/0/", [touch("one"), Reply::text("One.")])
        .role("0/1/", [touch("two"), Reply::text("Two.")])
        .start();
    let workspace = Workspace::new();
    workspace.folder("../outside");
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("hi");
    terminal.wait_for("● Hello.\r\n❯ ");
    terminal.type_line("/fork one");
    terminal.wait_for(&format!("? agent 0/0/ {asked}"));
    // What is typed before that is thrown away, lest it answer a question that nobody has seen.
    terminal.wait_for("0/0/ y/a/n ❯ ");
    terminal.type_line("/fork two");
    terminal.wait_for("(agent 0/1/ asks, too; 1 more to answer)");
    assert!(!terminal.text().contains(&format!("? agent 0/1/ {asked}")));
    terminal.type_line("y");
    terminal.wait_for("[0/0/] ● One.\r\n");
    terminal.wait_for(&format!("? agent 0/1/ {asked}"));
    terminal.wait_for("0/1/ y/a/n ❯ ");
    terminal.type_line("n");
    terminal.wait_for("[0/1/] ● Two.\r\n");
    leave(terminal);
    assert!(workspace.path("../outside/one").exists());
    assert!(!workspace.path("../outside/two").exists());
    assert_eq!(contents(&workspace.log("0/1/"), "approval"), ["Refused"]);
    assert_eq!(contents(&workspace.log("0/"), "user"), ["hi"]);
}

#[test]
fn a_fork_in_the_middle_of_a_turn_knows_what_was_before_it() {
    let server = AgentScripts::new()
        .role("0/", [Reply::text("Hello."), bash("b", "true"), Reply::silence()])
        .role("0/0/", [Reply::text("Counted.")])
        .start();
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("hi");
    terminal.wait_for("● Hello.\r\n❯ ");
    terminal.type_line("work on it");
    server.wait_for_stalls(1);
    terminal.type_line("/fork count");
    terminal.wait_for("[0/0/] ● Counted.\r\n");
    terminal.interrupt();
    terminal.wait_for("✗ interrupted");
    leave(terminal);
    let (parent, child) = (server.requests_of("0/"), server.requests_of("0/0/"));
    assert_prefix(&parent[0], &child[0]);
    let asked = child[0].text();
    assert!(asked.contains("Hello.") && !asked.contains("work on it"), "{asked}");
}

/// An interrupt is the person's wish that the agent stops: what waits in its mailbox does not start it again.
#[test]
fn an_interrupt_with_mail_waiting_does_not_start_the_agent_again() {
    let server = AgentScripts::new()
        .role(
            "0/",
            [fork("f", "write"), Reply::silence(), Reply::text("Again."), Reply::text("Told.")],
        )
        .role("0/0/", [send("s", "parent", "hello"), Reply::text("sent")])
        .start();
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("go");
    terminal.wait_for("[0/0/] ● sent");
    server.wait_for_stalls(1);
    terminal.interrupt();
    terminal.wait_for("✗ interrupted");
    wait_for_state(&workspace, "0/", "idle");
    // A person's look starts nothing either.
    terminal.type_line("/agents");
    terminal.wait_for("* 0/ idle [mail:1] (10 tokens in, 5 out): go");
    assert_eq!(server.requests_of("0/").len(), 2);
    terminal.type_line("and now?");
    terminal.wait_for("● Told.\r\n0/ ❯ ");
    leave(terminal);
    let log = workspace.log("0/");
    let kinds = kinds(&log);
    let tail = ["interrupted", "user", "assistant", "notification", "assistant"];
    assert_eq!(kinds[kinds.len() - 5..], tail);
}

#[test]
fn a_letter_cannot_touch_the_terminal() {
    let body = "\u{1b}[2J\u{1b}]0;owned\u{7}\r\u{8}\u{9b}31m";
    let sent = Gate::new();
    let forked = Reply::text("Forked.").after(&sent);
    let server = AgentScripts::new()
        .role("0/", [fork("f", "write"), forked, Reply::text("Told.")])
        .role("0/0/", [send("s", "parent", body), Reply::text(body)])
        .start();
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("go");
    terminal.wait_for("[0/0/] ● \u{fffd}");
    sent.open();
    terminal.wait_for("● Told.\r\n0/ ❯ ");
    terminal.type_line("/mail");
    terminal.wait_for("#1 from 0/0/ - ");
    terminal.type_line("/mail read 1");
    terminal.wait_for("From: 0/0/");
    let shown = leave(terminal).replace("\r\n", "\n");
    assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
}
