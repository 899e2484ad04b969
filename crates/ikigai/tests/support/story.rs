//! What holds after everything that goes wrong: the log is whole, and the conversation goes on.

use ikigai_testkit::{ModelServer, Reply};
use serde_json::{Value, json};

use super::Workspace;
use super::model::{Format, assert_stable};

/// The answer with which a model goes on after what went wrong.
pub(crate) const WELL_AGAIN: &str = "I am well again";

/// A call of `bash`.
pub(crate) fn bash(id: &str, command: &str) -> Reply {
    Reply::call(id, "bash", json!({ "command": command }))
}

/// Checks all cases at once: a turn that fails waits more than it works.
pub(crate) fn at_once<T: Send>(cases: impl IntoIterator<Item = T>, check: impl Fn(T) + Sync) {
    std::thread::scope(|scope| {
        for case in cases {
            scope.spawn(|| check(case));
        }
    });
}

/// Goes on with `-c`: the model answers, every request so far was valid and began with the one before it, and
/// the log is whole. Gives the log.
#[track_caller]
pub(crate) fn check_goes_on(
    workspace: &Workspace,
    server: &ModelServer,
    format: Format,
) -> Vec<Value> {
    let (code, stdout, stderr) = workspace.run_model(server, format, ["-c", "and now?"]);
    assert_eq!((code, stdout), (0, format!("{WELL_AGAIN}\n")), "{stderr}");
    // Nothing but calls and results.
    assert!(stderr.lines().all(|line| line.starts_with(['●', ' '])), "{stderr}");
    assert_stable(&server.requests());
    let log = workspace.log("0/");
    assert_whole(&log);
    log
}

/// Fails unless the log begins as one does, and every call has exactly one result, right behind it.
#[track_caller]
pub(crate) fn assert_whole(log: &[Value]) {
    let is_top_level = log[0]["agent"].as_str().unwrap().matches('/').count() == 1;
    assert_eq!(log[0]["kind"], if is_top_level { "system" } else { "fork" });
    let ids: Vec<i64> = log.iter().map(|message| message["id"].as_i64().unwrap()).collect();
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    let told = |message: &Value| (message["data"]["tool_call_id"].clone(), message.clone());
    let mut open = None;
    for (id, message) in log.iter().map(told) {
        match message["kind"].as_str().unwrap() {
            "tool_call" => assert_eq!(open.replace(id), None, "a call inside a call: {message}"),
            "tool_result" => assert_eq!(open.take(), Some(id), "no call for {message}"),
            _ => assert_eq!(open, None, "a call is left open before {message}"),
        }
    }
    assert_eq!(open, None, "a call is left open");
}

/// The kinds of a log, in order, without what a person does not see.
pub(crate) fn kinds(log: &[Value]) -> Vec<&str> {
    let kinds = log.iter().map(|message| message["kind"].as_str().unwrap());
    kinds.filter(|kind| !matches!(*kind, "system" | "usage")).collect()
}

/// The contents of all messages of a kind.
pub(crate) fn contents<'a>(log: &'a [Value], kind: &str) -> Vec<&'a str> {
    let of_kind = log.iter().filter(|message| message["kind"] == kind);
    of_kind.map(|message| message["content"].as_str().unwrap()).collect()
}

/// All events of a type.
pub(crate) fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// The `done` that a turn ends with by an error.
pub(crate) fn failed(error: &str) -> Value {
    json!({"type": "done", "agent": "0/", "stop": "error", "text": "", "error": error})
}

/// The `done` of a turn that was answered.
pub(crate) fn answered(text: &str) -> Value {
    json!({"type": "done", "agent": "0/", "stop": "stop", "text": text})
}

/// The `done` of a turn that was interrupted.
pub(crate) fn interrupted(text: &str) -> Value {
    json!({"type": "done", "agent": "0/", "stop": "interrupted", "text": text})
}
