//! Two processes on one session: who is who, and mail that wakes the other.

use ikigai_testkit::{CapturedRequest, ModelServer, Reply};
use serde_json::{Value, json};

use crate::support::model::{Format, assert_strict};
use crate::support::processes::start_run;
use crate::support::story::{contents, kinds};
use crate::support::terminal::start_talking;
use crate::support::{Workspace, wait_for};

fn send(id: &str, to: &str, body: &str) -> Reply {
    Reply::call(id, "mail", json!({"action": "send", "to": to, "body": body}))
}

/// Writes to somebody first, then says that it did.
fn writes(request: &CapturedRequest, to: &str, body: &str) -> Reply {
    match request.results_since_user() {
        0 => send(&format!("c{}", request.messages().len()), to, body),
        _ => Reply::text(&format!("Wrote {body}.")),
    }
}

/// Whoever is asked to, writes; who gets `ping` answers `pong` to `0/`, who gets `question` answers `2/`.
fn correspondents() -> ModelServer {
    ModelServer::choosing(|request| {
        let said = request.last_user_text().unwrap_or_default();
        let is_told = |body: &str| said.contains("[Notification") && said.contains(body);
        match request.results_since_user() {
            _ if is_told("ping") => writes(request, "0/", "pong"),
            _ if is_told("question") => writes(request, "2/", "reply"),
            _ if is_told("\"") => Reply::text("Seen."),
            _ if said.ends_with("write") => writes(request, "1/", "ping"),
            0 if said.ends_with("ask") => send("ask", "0/", "question"),
            1 if said.ends_with("ask") => Reply::call("wait", "wait", json!({"agents": ["0/"]})),
            _ => Reply::text("Hello."),
        }
    })
}

#[test]
fn two_terminals_are_two_agents_and_each_is_woken_by_the_others_mail() {
    let server = correspondents();
    let workspace = Workspace::new();
    let mut first = start_talking(&workspace, &server);
    first.type_line("hi");
    first.wait_for("● Hello.\r\n❯ ");
    let second = start_talking(&workspace, &server);
    second.wait_for("agent 1/");
    first.type_line("write");
    second.wait_for("✉ 0/ → 1/   ping");
    second.wait_for("● Wrote pong.\r\n❯ ");
    first.wait_for("✉ 1/ → 0/   pong");
    first.wait_for("● Seen.\r\n❯ ");
    // Each ran its own agent, and nothing of the other's is on its screen.
    let holders = ["0/", "1/"].map(|agent| workspace.lease(agent).unwrap().pid);
    let terminals = [&first, &second].map(|terminal| i64::from(terminal.process().as_raw_pid()));
    assert_eq!(holders, terminals);
    assert!(!first.text().contains("Wrote pong") && !second.text().contains("Seen."));
    for mut terminal in [first, second] {
        terminal.end_input();
        assert_eq!(terminal.finish("❯ ").0, Some(0));
    }
    assert_eq!(contents(&workspace.log("0/"), "user"), ["hi", "write"]);
    let woken = ["notification", "tool_call", "tool_result", "assistant"];
    assert_eq!(kinds(&workspace.log("1/")), woken);
    assert_strict(&server.requests());
}

#[test]
fn a_run_that_joins_by_its_session_gets_its_answer_from_a_terminal() {
    let server = correspondents();
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("hi");
    terminal.wait_for("● Hello.\r\n❯ ");
    workspace.print(["agents", "add"]);
    // 1/ is free, but it is not what the run is about.
    let session = workspace.open().session().to_string();
    workspace.sql("UPDATE agents SET state = 'dead' WHERE id = '1/'");
    let told = "ikigai: agent 0/ is run by another process, so you talk to agent 2/\n";
    let arguments = ["--session", &session, "ask"];
    let (code, events) = workspace.run_json_telling(&server, Format::Chat, arguments, told);
    assert_eq!((code, &events[0]["agent"]), (0, &json!("2/")));
    terminal.wait_for("✉ 2/ → 0/   question");
    terminal.wait_for("● Wrote reply.\r\n❯ ");
    let told = |event: &&Value| event["type"] == "tool_result" && event["name"] == "wait";
    let waited = events.iter().find(told).unwrap();
    assert_eq!(waited["result"]["data"]["unread"], 1, "{waited}");
    terminal.end_input();
    assert_eq!(terminal.finish("❯ ").0, Some(0));
}

#[test]
fn a_session_is_joined_from_anywhere_and_by_a_free_agent_first() {
    let server = correspondents();
    let workspace = Workspace::new();
    workspace.folder("../elsewhere");
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("hi");
    terminal.wait_for("● Hello.\r\n❯ ");
    let session = workspace.open().session().to_string();
    let join = |told: &str| {
        let arguments = ["--session", &session, "--json", "hello"];
        let mut command = workspace.run_command(&server, Format::Chat, arguments);
        let ended = crate::support::ended(command.current_dir(workspace.path("../elsewhere")));
        assert_eq!((ended.0, &*ended.2), (0, told));
        crate::support::model::events(&ended.1)[0]["agent"].clone()
    };
    let told = "ikigai: agent 0/ is run by another process, so you talk to agent 1/\n";
    assert_eq!(join(told), "1/");
    // The one that was made is free again.
    assert_eq!(join(told), "1/");
    terminal.end_input();
    assert_eq!(terminal.finish("❯ ").0, Some(0));
    assert_eq!(join(""), "0/");
    let sessions = workspace.json(["sessions", "--json"]);
    assert_eq!(sessions.as_array().unwrap().len(), 1);
}

#[test]
fn a_new_session_on_a_terminal_does_not_join() {
    let server = correspondents();
    let workspace = Workspace::new();
    let mut first = start_talking(&workspace, &server);
    first.type_line("hi");
    first.wait_for("● Hello.\r\n❯ ");
    let mut command = crate::support::terminal::talking(&workspace, &server);
    let mut second = crate::support::terminal::Terminal::start(command.arg("--new"));
    second.wait_for("agent 0/");
    second.type_line("hi");
    second.wait_for("● Hello.\r\n❯ ");
    for mut terminal in [first, second] {
        terminal.end_input();
        assert_eq!(terminal.finish("❯ ").0, Some(0));
    }
    assert_eq!(workspace.json(["sessions", "--json"]).as_array().unwrap().len(), 2);
}

#[test]
fn a_child_that_the_command_line_forks_is_started_by_the_process_that_runs_its_parent() {
    let server = correspondents();
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("hi");
    terminal.wait_for("● Hello.\r\n❯ ");
    let forked = workspace.tool("fork", json!({"prompt": "look around", "name": "scout"}));
    let expected = json!({"success": true, "data": {"agent": "0/0/"}});
    assert_eq!(serde_json::from_str::<Value>(&forked).unwrap(), expected);
    // Its last words wake its parent.
    terminal.wait_for("✉ 0/0/ → 0/   Hello.");
    terminal.wait_for("● Seen.\r\n");
    wait_for("both to be idle", || {
        workspace.states().iter().all(|(_, state)| state == "idle").then_some(())
    });
    // The registry and the mailbox can be looked at beside the process.
    let agents = workspace.json(["agents", "--json"]);
    let child = &agents[1];
    assert_eq!((&child["id"], &child["name"]), (&json!("0/0/"), &json!("scout")));
    let inbox = workspace.json(["mail", "inbox", "--json"]);
    assert_eq!(inbox["messages"][0]["from"], "0/0/");
    assert_eq!(contents(&workspace.log("0/0/"), "user"), ["look around"]);
    terminal.end_input();
    assert_eq!(terminal.finish("❯ ").0, Some(0));
}

#[test]
fn a_name_means_one_living_agent_also_for_a_run() {
    let server = correspondents();
    let workspace = Workspace::with_agents(2);
    assert_eq!(workspace.print(["agents", "add", "reviewer"]), "2/\n");
    let taken = "ikigai: Agent 2/ is already called 'reviewer'\n";
    assert_eq!(workspace.run(["agents", "add", "reviewer"]), (1, String::new(), taken.into()));
    let (code, events) =
        workspace.run_json(&server, Format::Chat, ["-c", "--agent", "reviewer", "hi"]);
    assert_eq!((code, &events[0]["agent"]), (0, &json!("2/")));
    workspace.print(["mail", "send", "reviewer", "user: hello"]);
    let inbox = workspace.json(["mail", "inbox", "--json", "--agent", "reviewer"]);
    assert_eq!(inbox["unread_count"], 1);
    workspace.open().kill("2/");
    let (code, _, told) = workspace.run(["mail", "inbox", "--agent", "reviewer"]);
    assert_eq!(code, 1);
    assert!(told.starts_with("ikigai: 'reviewer' is not an agent"), "{told}");
    assert_eq!(workspace.print(["agents", "add", "reviewer"]), "3/\n");
    let inbox = workspace.json(["mail", "inbox", "--json", "--agent", "reviewer"]);
    assert_eq!(inbox["unread_count"], 0);
}

#[test]
fn a_child_of_a_running_agent_cannot_be_taken_either() {
    let server = ModelServer::choosing(|_| Reply::silence());
    let workspace = Workspace::with_agents(1);
    workspace.make_session();
    let child = workspace.open().fork("0/", Some("scout"));
    let run = start_run(&workspace, &server, ["-c", "go"]);
    server.wait_for_requests(1);
    for named in [&*child, "scout"] {
        let arguments = ["-c", "--agent", named, "mine"];
        let (code, _, told) = workspace.run_model(&server, Format::Chat, arguments);
        let pid = run.child.id();
        let expected = format!("ikigai: Agent 0/ is run by another process (pid {pid} on ");
        assert!(code == 1 && told.starts_with(&expected), "{told}");
    }
    crate::support::processes::kill(run);
}
