//! `kill -9` of a process with several agents: the next one takes all of them up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ikigai_testkit::{CapturedRequest, ModelServer, Point, Reply};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::model::{Format, assert_strict};
use crate::support::processes::{kill, start_run};
use crate::support::story::{assert_whole, bash, contents, of_type};
use crate::support::terminal::{Terminal, start_talking, talking};
use crate::support::{Workspace, wait_for, wait_for_pid, wait_until_gone};

/// The first thing that a person said to an agent. Before it stands what every conversation begins with.
fn first_said(request: &CapturedRequest) -> String {
    let messages = request.messages();
    let user = messages.iter().find(|message| message["role"] == "user").unwrap();
    let text = user["content"].as_str().unwrap();
    text.rsplit('\n').next().unwrap().to_owned()
}

/// A leader with three children: one in a stream, one in a command, one in a wait, and then it waits for all.
fn family(request: &CapturedRequest) -> Reply {
    let fork = |id: &str, prompt: &str| Reply::call(id, "fork", json!({ "prompt": prompt }));
    match (&*first_said(request), request.results_since_user()) {
        ("lead", 0) => fork("f1", "stream"),
        ("lead", 1) => fork("f2", "command"),
        ("lead", 2) => fork("f3", "wait"),
        ("lead", _) => Reply::call("w1", "wait", json!({})),
        ("stream", _) => Reply::text("half an answer").stall_at(Point::Text),
        ("command", _) => bash("b1", "echo $$ > leader; sleep 31415.7"),
        _ => Reply::call("w2", "wait", json!({"agents": ["0/0/"]})),
    }
}

#[test]
fn a_whole_family_goes_on_where_it_was_killed() {
    let is_well = Arc::new(AtomicBool::new(false));
    let well = Arc::clone(&is_well);
    let server = ModelServer::choosing(move |request| match well.load(Ordering::Relaxed) {
        true => Reply::text(&format!("{} is well", first_said(request))),
        false => family(request),
    });
    let workspace = Workspace::unconfined();
    let run = start_run(&workspace, &server, ["lead"]);
    let leader = wait_for_pid(&workspace.path("leader"));
    server.wait_for_stalls(1);
    wait_for("four edges", || (workspace.number("SELECT count(*) FROM waits") == 4).then_some(()));
    kill(run);
    wait_until_gone(leader);
    is_well.store(true, Ordering::Relaxed);
    workspace.print(["mail", "send", "0/1/", "user: unread"]);
    let (code, events) = workspace.run_json(&server, Format::Chat, ["-c", "and now?"]);
    assert_eq!((code, &events[0]["agent"]), (0, &json!("0/")));
    let idle = |id: &str| (id.to_owned(), "idle".to_owned());
    assert_eq!(workspace.states(), ["0/", "0/0/", "0/1/", "0/2/"].map(idle));
    assert_eq!(workspace.number("SELECT count(*) FROM waits"), 0);
    assert!(workspace.lease("0/").unwrap().is_given_back);
    for (agent, said, interrupted) in [
        ("0/", "lead is well", 1),
        ("0/0/", "stream is well", 0),
        ("0/1/", "command is well", 1),
        ("0/2/", "wait is well", 1),
    ] {
        let log = workspace.log(agent);
        assert_whole(&log);
        assert!(contents(&log, "assistant").contains(&said), "{agent}: {log:?}");
        let closed = |message: &&Value| {
            message["kind"] == "tool_result"
                && message["content"].as_str().unwrap().contains("Interrupted: the program ended")
        };
        assert_eq!(log.iter().filter(closed).count(), interrupted, "{agent}");
    }
    // The mail of the person was announced, and the children's last words were.
    assert_eq!(workspace.number("SELECT count(*) FROM mail"), 4);
    assert_eq!(workspace.number("SELECT count(*) FROM mail WHERE told_by IS NULL"), 0);
    assert!(of_type(&events, "notification").len() >= 2);
    assert_strict(&server.requests());
}

#[test]
fn the_next_terminal_takes_up_the_agent_with_its_unread_mail() {
    let server = ModelServer::choosing(|_| Reply::text("Hello."));
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("hi");
    terminal.wait_for("● Hello.\r\n❯ ");
    terminal.send_signal(Signal::KILL);
    assert_eq!(terminal.finish("❯ ").0, None);
    assert!(!workspace.lease("0/").unwrap().is_given_back);
    workspace.print(["mail", "send", "0/", "user: while you were away"]);
    let mut next = Terminal::start(talking(&workspace, &server).arg("-c"));
    next.wait_for("agent 0/");
    next.wait_for(" → 0/   user: while you were away");
    next.wait_for("● Hello.\r\n❯ ");
    next.end_input();
    assert_eq!(next.finish("--session").0, Some(0));
    assert_eq!(contents(&workspace.log("0/"), "notification").len(), 1);
}

#[test]
fn the_next_terminal_goes_on_with_the_turn() {
    let server = ModelServer::start([
        Reply::text("half an answer").stall_at(Point::Text),
        Reply::text("a whole answer"),
    ]);
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("hi");
    server.wait_for_stalls(1);
    terminal.send_signal(Signal::KILL);
    assert_eq!(terminal.finish("❯ ").0, None);
    let mut next = Terminal::start(talking(&workspace, &server).arg("-c"));
    next.wait_for("(continues an interrupted turn)");
    next.wait_for("● a whole answer\r\n❯ ");
    next.end_input();
    assert_eq!(next.finish("--session").0, Some(0));
    assert_eq!(contents(&workspace.log("0/"), "assistant"), ["a whole answer"]);
}

/// Its turn is not left lying when somebody is there who can go on with it.
#[test]
fn a_process_beside_goes_on_with_the_turn_of_one_that_was_killed() {
    let server = ModelServer::start([
        Reply::text("Hello."),
        Reply::text("half an answer").stall_at(Point::Text),
        Reply::text("a whole answer"),
    ]);
    let workspace = Workspace::new();
    let mut first = start_talking(&workspace, &server);
    first.type_line("hi");
    first.wait_for("● Hello.\r\n❯ ");
    let mut second = start_talking(&workspace, &server);
    second.wait_for("agent 1/");
    second.type_line("work");
    server.wait_for_stalls(1);
    second.send_signal(Signal::KILL);
    assert_eq!(second.finish("❯ ").0, None);
    // It is left to who comes back to it, until its lease has run out.
    workspace.sql("UPDATE leases SET until = 1 WHERE until > 0 AND agent = (SELECT key FROM agents WHERE id = '1/')");
    first.wait_for("a whole answer");
    wait_for("it to be given back", || workspace.lease("1/").filter(|lease| lease.is_given_back));
    first.end_input();
    assert_eq!(first.finish("❯ ").0, Some(0));
    assert_eq!(contents(&workspace.log("1/"), "assistant"), ["a whole answer"]);
}
