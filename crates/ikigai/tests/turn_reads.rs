//! Calls that only read: run at the same time, and committed together.

use ikigai_testkit::{Gate, ModelServer, Reply};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::support::model::{Format, Running, assert_stable, results_in};
use crate::support::story::{WELL_AGAIN, assert_whole, check_goes_on, contents, kinds};
use crate::support::{Workspace, finish, found, pid, success};

fn read(id: &'static str, path: &str) -> (&'static str, &'static str, Value) {
    (id, "file_read", json!({ "path": path }))
}

fn search(id: &'static str) -> (&'static str, &'static str, Value) {
    (id, "grep", json!({"pattern": "needle"}))
}

/// Three reads of one response, then a command, then another read.
fn looking_around() -> Reply {
    let write = ("c4", "bash", json!({"command": "echo needle three > c"}));
    let calls = [read("c1", "a"), search("c2"), read("c3", "b"), write, read("c5", "c")];
    Reply::text_and_calls("I look around.", calls).usage(10, 5)
}

fn prepared() -> Workspace {
    let workspace = Workspace::new();
    workspace.write("a", "needle one\n").write("b", "two\n");
    workspace
}

#[test]
fn results_of_reads_are_in_the_order_of_the_calls_in_log_events_and_request() {
    for format in Format::BOTH {
        let server = ModelServer::start([looking_around(), Reply::text("done")]);
        let workspace = prepared();
        let (code, events) = workspace.run_json(&server, format, ["go"]);
        assert_eq!(code, 0);
        let pairs: Vec<(&str, &str)> = events
            .iter()
            .filter(|event| event["type"] == "tool_call" || event["type"] == "tool_result")
            .map(|event| (event["type"].as_str().unwrap(), event["id"].as_str().unwrap()))
            .collect();
        let ids = ["c1", "c2", "c3", "c4", "c5"];
        let in_order = ids.map(|id| [("tool_call", id), ("tool_result", id)]);
        assert_eq!(pairs, in_order.as_flattened());
        let log = workspace.log("0/");
        assert_whole(&log);
        assert_eq!(contents(&log, "assistant"), ["I look around.", "done"]);
        let output = |text: &str| success(json!({"output": text}));
        let expected = [
            output("needle one\n"),
            found(["a:1: needle one"]),
            output("two\n"),
            success(json!({"output": "", "exit_code": 0})),
            output("needle three\n"),
        ];
        let expected: Vec<(String, String)> =
            ids.iter().map(|id| (*id).to_owned()).zip(expected.map(|it| it.to_string())).collect();
        let requests = server.requests();
        assert_eq!(results_in(&requests[1]), expected);
        assert_stable(&requests);
    }
}

/// The database refuses the last of them: then neither the others nor the text before them are there.
#[test]
fn reads_and_the_text_and_usage_of_their_response_are_one_commit() {
    let server =
        ModelServer::start([Reply::text("hello"), looking_around(), Reply::text(WELL_AGAIN)]);
    let workspace = prepared();
    workspace.run_model(&server, Format::Chat, ["hi"]);
    let before = workspace.log("0/");
    workspace
        .raw()
        .refuse("INSERT ON messages", "NEW.kind = 'tool_result' AND NEW.data LIKE '%c3%'");
    let (code, _, stderr) = workspace.run_model(&server, Format::Chat, ["-c", "go"]);
    assert_eq!(code, 1, "{stderr}");
    let log = workspace.log("0/");
    assert_eq!(kinds(&log[before.len()..]), ["user"]);
    assert!(log[before.len()..].iter().all(|message| message["kind"] != "usage"));
}

/// The test has the database to itself while they run, so that they cannot be committed.
#[test]
fn a_kill_before_their_commit_repeats_the_request() {
    let gate = Gate::new();
    let calls = [read("c1", "a"), read("c2", "b")];
    let reads = Reply::text_and_calls("I look.", calls).after(&gate);
    let server = ModelServer::start([reads, Reply::text(WELL_AGAIN)]);
    let workspace = prepared();
    let mut command = workspace.run_command(&server, Format::Chat, ["--json", "go"]);
    let run = Running::start(&mut command);
    run.until("session");
    server.wait_for_requests(1);
    let raw = workspace.raw();
    raw.script_of("BEGIN IMMEDIATE", "BEGIN; LOCK TABLE messages IN EXCLUSIVE MODE");
    gate.open();
    run.until("text");
    kill_process(pid(&run.child), Signal::KILL).unwrap();
    finish(run.child);
    raw.script("ROLLBACK");
    let log = check_goes_on(&workspace, &server, Format::Chat);
    assert_eq!(kinds(&log), ["user", "user", "assistant"]);
}

/// What a read needs approval for is asked like any other call, and the calls around it run all the same.
#[test]
fn a_read_that_needs_approval_is_not_one_of_them() {
    let server = ModelServer::start([
        Reply::calls([read("c1", "a"), read("c2", "/etc/hostname"), read("c3", "b")]),
        Reply::text("done"),
    ]);
    let workspace = prepared();
    let (code, events) = workspace.run_json(&server, Format::Chat, ["go"]);
    assert_eq!(code, 0);
    let types: Vec<&str> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .filter(|kind| ["tool_call", "tool_result", "approval"].contains(kind))
        .collect();
    let pair = ["tool_call", "tool_result"];
    let expected = [&pair[..], &["tool_call", "approval", "tool_result"], &pair].concat();
    assert_eq!(types, expected);
}
