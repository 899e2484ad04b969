//! `fork`, `wait`, `kill` and `agents` by the person's hand, and as an agent's own commands.

use std::process::Stdio;

use ikigai_conversation::Body;
use ikigai_testkit::{ModelServer, Reply};
use serde_json::{Value, json};

use crate::support::model::Format;
use crate::support::{Workspace, failure, finish, line_of, result};

/// The result of a call.
#[track_caller]
fn call<const N: usize>(
    workspace: &Workspace,
    name: &str,
    arguments: &Value,
    options: [&str; N],
) -> Value {
    let mut command = workspace.ikigai();
    command.args(["tool", name, &arguments.to_string()]).args(options);
    serde_json::from_str(&result(&mut command)).unwrap()
}

#[track_caller]
fn fork(workspace: &Workspace, arguments: &Value) -> String {
    let forked = call(workspace, "fork", arguments, []);
    forked["data"]["agent"].as_str().unwrap_or_else(|| panic!("{forked}")).to_owned()
}

fn registry(workspace: &Workspace) -> Vec<Value> {
    let text = result(workspace.ikigai().args(["agents", "--json"]));
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_fork_by_hand_is_a_child_that_waits_for_whoever_takes_it_up() {
    let workspace = Workspace::new();
    let forked =
        call(&workspace, "fork", &json!({"prompt": "count the files", "name": "counter"}), []);
    assert_eq!(forked.to_string(), r#"{"success":true,"data":{"agent":"0/0/"}}"#);
    let child = json!({"id": "0/0/", "parent": "0/", "name": "counter", "state": "waiting", "unread": 0,
        "notification_pending": false, "model": null});
    assert_eq!(registry(&workspace)[1], child);
    // Its log has all that a process needs to go on, and its parent's has nothing.
    let log = workspace.open().log("0/0/");
    let kinds: Vec<&str> = log.iter().map(|message| message.kind().name()).collect();
    assert_eq!(kinds, ["fork", "system", "user"]);
    assert_eq!(log[2].content, "count the files");
    assert!(matches!(&log[0].body, Body::Fork(fork) if fork.up_to.is_none()));
    assert_eq!(workspace.open().log("0/").len(), 0);
    let grandchild = call(&workspace, "fork", &json!({"prompt": "x"}), ["--agent", "0/0/"]);
    assert_eq!(grandchild["data"]["agent"], "0/0/0/");
}

#[test]
fn agents_are_listed_with_their_names_states_and_tasks() {
    let workspace = Workspace::new();
    fork(&workspace, &json!({"prompt": "\n one line\nand another", "name": "counter"}));
    let expected = json!({"success": true, "data": {"agents": [
        {"id": "0/", "name": null, "state": "idle", "task": ""},
        {"id": "0/0/", "name": "counter", "state": "waiting", "task": "one line"},
    ]}});
    assert_eq!(call(&workspace, "agents", &json!({}), []).to_string(), expected.to_string());
}

#[test]
fn forks_are_refused_by_name_by_number_and_by_depth() {
    let workspace = Workspace::new();
    fork(&workspace, &json!({"prompt": "x", "name": "counter"}));
    let again = call(&workspace, "fork", &json!({"prompt": "x", "name": "counter"}), []);
    assert_eq!(again, failure("Agent 0/0/ is already called 'counter'"));
    let named = call(&workspace, "fork", &json!({"prompt": "x", "name": "1"}), []);
    assert!(
        named["error"].as_str().unwrap().starts_with("'1' is not a valid agent name"),
        "{named}"
    );
    let limited = |key: &str, value: &str, agent: &str| {
        let mut command = workspace.ikigai();
        command.env(key, value).args(["tool", "fork", r#"{"prompt":"x"}"#, "--agent", agent]);
        serde_json::from_str::<Value>(&result(&mut command)).unwrap()
    };
    let full = limited("IKIGAI_MAX_AGENTS", "2", "0/");
    assert_eq!(full, failure("Maximum agents (2) reached"));
    let deep = limited("IKIGAI_MAX_DEPTH", "2", "0/0/");
    assert_eq!(deep, failure("Maximum agent depth (2) exceeded"));
    assert_eq!(registry(&workspace).len(), 2);
}

#[test]
fn a_person_kills_any_but_the_last_top_level_agent() {
    let workspace = Workspace::new();
    fork(&workspace, &json!({"prompt": "x"}));
    call(&workspace, "fork", &json!({"prompt": "x"}), ["--agent", "0/0/"]);
    let kill = |agent: &str| call(&workspace, "kill", &json!({"agent": agent}), []);
    assert_eq!(kill("0/"), failure("Agent 0/ is the last top-level agent"));
    let killed = json!({"success": true, "data": {"killed": ["0/0/0/", "0/0/"]}});
    assert_eq!(kill("0/0"), killed);
    assert_eq!(kill("0/0/"), failure("Agent 0/0/ is dead"));
    assert_eq!(kill("nobody"), failure("Agent nobody not found"));
    result(workspace.ikigai().args(["agents", "add"]));
    assert_eq!(kill("0/"), json!({"success": true, "data": {"killed": ["0/"]}}));
    let states: Vec<Value> =
        registry(&workspace).iter().map(|agent| agent["state"].clone()).collect();
    assert_eq!(states, ["dead", "dead", "dead", "idle"]);
}

#[test]
fn a_command_of_an_agent_kills_as_its_model_may() {
    let workspace = Workspace::new();
    fork(&workspace, &json!({"prompt": "x"}));
    let session = workspace.open().session().to_string();
    let mut command = workspace.ikigai();
    command.env("IKIGAI_AGENT", "0/0/").env("IKIGAI_SESSION", session);
    command.args(["tool", "kill", r#"{"agent":"parent"}"#]);
    let refused: Value = serde_json::from_str(&result(&mut command)).unwrap();
    assert_eq!(refused, failure("Agent 0/ cannot be killed by its descendant"));
}

#[test]
fn a_wait_by_hand_ends_when_all_are_idle_or_at_its_limit() {
    let workspace = Workspace::new();
    let wait = |arguments: Value| call(&workspace, "wait", &arguments, []);
    let nobody = json!({"success": true, "data": {"results": [], "unread": 0}});
    assert_eq!(wait(json!({})), nobody);
    fork(&workspace, &json!({"prompt": "x", "name": "counter"}));
    let running = json!({"results": [{"agent": "0/0/", "status": "running"}], "unread": 0});
    assert_eq!(wait(json!({"timeout": 0}))["data"], running);
    assert_eq!(wait(json!({"agents": ["counter"], "timeout": 0}))["data"], running);
    let repaired = &wait(json!({"agents": "counter", "timeout": 0}))["data"];
    assert_eq!(repaired["results"], running["results"]);
    assert_eq!(repaired["repaired"], json!(["agents: a string read as a list"]));
    assert_eq!(wait(json!({"agents": ["0"]})), failure("Agent 0/ cannot wait for itself"));
    assert_eq!(wait(json!({"agents": ["9/"]})), failure("Agent 9/ not found"));
    // It ends by the end of the child, which tells its parent, since nobody but a person waits.
    let mut waiting = workspace.tool_command("wait", json!({"timeout": 3600}));
    let waiting = waiting.stdout(Stdio::piped()).spawn().unwrap();
    workspace.open().answer("0/0/", "three files");
    let waited: Value = serde_json::from_str(&line_of(finish(waiting))).unwrap();
    let expected = json!({"results": [{"agent": "0/0/", "status": "idle", "answer": "three files"}], "unread": 1});
    assert_eq!(waited["data"], expected);
    let inbox = call(&workspace, "mail", &json!({"action": "inbox"}), []);
    assert_eq!(inbox["messages"][0]["preview"], "three files");
    assert_eq!(inbox["messages"][0]["from"], "0/0/");
}

/// What a model is told inside a turn; nothing here makes a child, so that nobody else asks the server.
#[test]
fn in_a_turn_the_results_are_in_their_envelope() {
    for format in Format::BOTH {
        let server = ModelServer::start([
            Reply::call("c1", "agents", json!({})),
            Reply::call("c2", "wait", json!({})),
            Reply::call("c3", "fork", json!({"prompt": "x"})),
            Reply::call("c4", "kill", json!({"agent": "0"})),
            Reply::call("c5", "wait", json!({"agents": ["0/"]})),
            Reply::text("done"),
        ]);
        let workspace = Workspace::new();
        workspace.write_config("max_depth = 1\n");
        let (code, events) = workspace.run_json(&server, format, ["who is there?"]);
        assert_eq!(code, 0);
        let results = events.iter().filter(|event| event["type"] == "tool_result");
        let results: Vec<Value> = results.map(|event| event["result"].clone()).collect();
        let me = json!({"id": "0/", "name": null, "state": "tool", "task": "who is there?"});
        let expected = [
            json!({"success": true, "data": {"agents": [me]}}),
            json!({"success": true, "data": {"results": [], "unread": 0}}),
            failure("Maximum agent depth (1) exceeded"),
            failure("Agent 0/ cannot kill itself"),
            failure("Agent 0/ cannot wait for itself"),
        ];
        assert_eq!(results, expected);
    }
}
