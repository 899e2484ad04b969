//! The events of `ikigai run --json`.

use ikigai_testkit::{Gate, ModelServer, Point, Reply};
use serde_json::{Value, json};

use crate::support::model::{Format, Running, assert_stable, events};
use crate::support::{Workspace, success};

fn session(format: Format, event: &Value) -> Value {
    let session = &event["session"];
    json!({"type": "session", "agent": "0/", "session": session, "model": format.model()})
}

fn text(delta: &str) -> Value {
    json!({"type": "text", "agent": "0/", "delta": delta})
}

fn done(stop: &str, text: &str) -> Value {
    json!({"type": "done", "agent": "0/", "stop": stop, "text": text})
}

/// The ids of the log's messages of the kinds that have an event, in order.
fn ids(log: &[Value]) -> Vec<&Value> {
    let has_event = |message: &&Value| {
        let kind = message["kind"].as_str().unwrap();
        ["usage", "tool_call", "tool_result", "notification"].contains(&kind)
    };
    log.iter().filter(has_event).map(|message| &message["id"]).collect()
}

#[test]
fn a_run_is_told_event_by_event() {
    for format in Format::BOTH {
        let arguments = json!({"command": "echo hi; exit 3"});
        let calls = [("c1", "bash", arguments.clone()), ("c2", "no_tool", json!({}))];
        let server = ModelServer::start([
            Reply::text_and_calls("I look.", calls).usage(11, 12),
            Reply::text("All done.").usage(13, 14),
        ]);
        let workspace = Workspace::new();
        let (code, events) = workspace.run_json(&server, format, ["go"]);
        assert_eq!(code, 0);
        let log = workspace.log("0/");
        let log = ids(&log);
        let expected = [
            session(format, &events[0]),
            text("I "),
            text("look."),
            json!({"type": "usage", "agent": "0/", "log": log[0], "input_tokens": 11,
                "output_tokens": 12, "cached_tokens": 0, "cost_usd": null}),
            json!({"type": "tool_call", "agent": "0/", "log": log[1], "id": "c1", "name": "bash",
                "arguments": arguments.to_string()}),
            json!({"type": "tool_result", "agent": "0/", "log": log[2], "id": "c1", "name": "bash",
                "result": success(json!({"output": "hi\n", "exit_code": 3}))}),
            json!({"type": "tool_call", "agent": "0/", "log": log[3], "id": "c2",
                "name": "no_tool", "arguments": "{}"}),
            json!({"type": "tool_result", "agent": "0/", "log": log[4], "id": "c2",
                "name": "no_tool", "result": {"error": "Unknown tool: no_tool"}}),
            text("All "),
            text("done."),
            json!({"type": "usage", "agent": "0/", "log": log[5], "input_tokens": 13,
                "output_tokens": 14, "cached_tokens": 0, "cost_usd": null}),
            done("stop", "All done."),
        ];
        assert_eq!(events, expected);
        let sessions = workspace.json(["sessions", "--json"]);
        assert_eq!(sessions[0]["id"], events[0]["session"]);
        assert_stable(&server.requests());
    }
}

/// The events again, from what the log says.
fn told_by(log: &[Value]) -> Vec<Value> {
    let told = |message: &Value| {
        let data = &message["data"];
        let mut event = match message["kind"].as_str().unwrap() {
            "tool_call" => json!({"id": data["tool_call_id"], "name": data["name"],
                "arguments": data["arguments"]}),
            "tool_result" => {
                let output = data["output"].as_str().unwrap();
                json!({"id": data["tool_call_id"], "name": data["name"],
                    "result": serde_json::from_str::<Value>(output).unwrap()})
            }
            "usage" => json!({"input_tokens": data["input_tokens"],
                "output_tokens": data["output_tokens"], "cached_tokens": 0, "cost_usd": null}),
            "notification" => json!({"text": message["content"]}),
            _ => return None,
        };
        event["type"] = message["kind"].clone();
        event["agent"] = message["agent"].clone();
        event["log"] = message["id"].clone();
        Some(event)
    };
    log.iter().filter_map(told).collect()
}

#[test]
fn the_log_says_the_same_as_the_events() {
    for format in Format::BOTH {
        let send = json!({"action": "send", "to": "0/", "body": "to myself"});
        let server = ModelServer::start([
            Reply::text_and_calls("a", [("c1", "mail", send), ("c2", "glob", json!("{"))]),
            Reply::call("c1", "bash", json!({"command": "printf '%s' ü"})),
            Reply::text("first answer"),
            Reply::call("c1", "mail", json!({"action": "inbox"})),
            Reply::text("second answer"),
        ]);
        let workspace = Workspace::new();
        let (code, events) = workspace.run_json(&server, format, ["go"]);
        assert_eq!(code, 0);
        let log = workspace.log("0/");
        let with_log: Vec<Value> =
            events.iter().filter(|event| event.get("log").is_some()).cloned().collect();
        assert_eq!(with_log, told_by(&log));
        let answers: Vec<&Value> = events
            .iter()
            .filter(|event| event["type"] == "done")
            .map(|done| &done["text"])
            .collect();
        assert_eq!(answers, ["first answer", "second answer"]);
        let texts: String = events.iter().filter_map(|event| event["delta"].as_str()).collect();
        let spoken: String = log
            .iter()
            .filter(|message| message["kind"] == "assistant")
            .map(|message| message["content"].as_str().unwrap())
            .collect();
        assert_eq!(texts, spoken);
    }
}

#[test]
fn an_event_is_readable_while_the_server_still_holds_the_rest_back() {
    for format in Format::BOTH {
        let gate = Gate::new();
        let server = ModelServer::start([Reply::text("one two").hold_at(Point::Text, &gate)]);
        let workspace = Workspace::new();
        let mut command = workspace.run_command(&server, format, ["--json", "say"]);
        let run = Running::start(&mut command);
        let first = run.until("text");
        assert_eq!(first, [session(format, &first[0]), text("one ")]);
        gate.open();
        let (code, rest, stderr) = run.finish();
        assert_eq!((code, &*stderr), (0, ""));
        assert_eq!(rest.last(), Some(&done("stop", "one two")));
        assert_stable(&server.requests());
    }
}

#[test]
fn the_session_is_named_before_the_model_says_anything() {
    let server = ModelServer::start([Reply::silence()]);
    let workspace = Workspace::new();
    let mut command = workspace.run_command(&server, Format::Chat, ["--json", "say"]);
    let mut run = Running::start(&mut command);
    let first = run.next().unwrap();
    assert_eq!(first, session(Format::Chat, &first));
    server.wait_for_stalls(1);
    let log = events(&workspace.print(["log", "--json"]));
    assert_eq!(log.last().unwrap()["content"], "say");
    run.child.kill().unwrap();
    run.child.wait().unwrap();
}

#[test]
fn a_call_is_told_while_it_runs() {
    let workspace = Workspace::new();
    workspace.fifo("gate");
    let wait = json!({"command": "cat gate"});
    let server = ModelServer::start([Reply::call("c1", "bash", wait), Reply::text("ok")]);
    let mut command = workspace.run_command(&server, Format::Chat, ["--json", "say"]);
    let run = Running::start(&mut command);
    run.until("tool_call");
    workspace.write("gate", "opened");
    let result = run.next().unwrap();
    assert_eq!(result["result"], success(json!({"output": "opened", "exit_code": 0})));
    assert_eq!(run.finish().0, 0);
}

#[test]
fn an_answer_that_was_cut_is_a_length_and_no_failure() {
    for format in Format::BOTH {
        let server = ModelServer::start([Reply::text("as far as").finish("length")]);
        let workspace = Workspace::new();
        let (code, events) = workspace.run_json(&server, format, ["go"]);
        assert_eq!((code, events.last()), (0, Some(&done("length", "as far as"))));
    }
}

#[test]
fn an_error_is_the_last_event_with_what_went_wrong() {
    for format in Format::BOTH {
        let server = ModelServer::start([Reply::error(400, "your request is odd")]);
        let workspace = Workspace::new();
        let (code, events) = workspace.run_json(&server, format, ["go"]);
        let last = events.last().unwrap();
        let error = last["error"].as_str().unwrap();
        assert!(error.contains("your request is odd"), "{error}");
        let mut expected = done("error", "");
        expected["error"] = last["error"].clone();
        assert_eq!((code, last), (1, &expected));
        assert_eq!(events.len(), 2);
    }
}

#[test]
fn an_answer_that_was_refused_is_an_error() {
    for format in Format::BOTH {
        let server = ModelServer::start([Reply::text("I would").finish("content_filter")]);
        let workspace = Workspace::new();
        let (code, events) = workspace.run_json(&server, format, ["go"]);
        let last = events.last().unwrap();
        assert_eq!((code, &last["stop"], &last["text"]), (1, &json!("error"), &json!("I would")));
        assert!(last["error"].is_string(), "{last}");
    }
}
