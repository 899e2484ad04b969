//! How long a model thinks, and what it thinks.

use ikigai_testkit::{AgentScripts, ModelServer, Point, Reply};
use serde_json::{Value, json};

use crate::support::model::{Format, assert_stable};
use crate::support::scene::{Scene, fork, types_of};
use crate::support::screen::{Screen, command};
use crate::support::story::of_type;
use crate::support::terminal::start_talking;
use crate::support::{Workspace, ended};

/// The efforts in the requests to a server that speaks Chat Completions; null where there is none.
fn efforts(server: &ModelServer) -> Vec<Value> {
    server.requests().iter().map(|request| request.json()["reasoning_effort"].clone()).collect()
}

const REFUSAL: &str = "Unsupported parameter: 'reasoning_effort' is not supported with this model.";
const NOTE: &str =
    "⚠ openai/scripted refused the effort, so it is used without one (/effort changes it)\n";

#[test]
fn an_effort_is_sent_if_there_is_one() {
    let server = ModelServer::choosing(|_| Reply::text("ok"));
    let workspace = Workspace::new();
    workspace.run_model(&server, Format::Chat, ["go"]);
    workspace.run_model(&server, Format::Chat, ["go", "--effort", "high"]);
    let mut by_variable = workspace.run_command(&server, Format::Chat, ["go"]);
    assert_eq!(ended(by_variable.env("IKIGAI_EFFORT", "off")).0, 0);
    assert_eq!(efforts(&server), [Value::Null, json!("high"), json!("none")]);
    workspace.run_model(&server, Format::Anthropic, ["go", "--effort", "low"]);
    let sent = server.requests()[3].json();
    assert_eq!(sent["thinking"], json!({"type": "enabled", "budget_tokens": 4_096}));
    let (code, _, stderr) = workspace.run_model(&server, Format::Chat, ["go", "--effort", "max"]);
    assert_eq!(code, 2);
    assert!(
        stderr.contains("--effort") && stderr.contains("one of off, low, medium, high"),
        "{stderr}"
    );
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn a_child_inherits_the_effort() {
    let server = AgentScripts::new()
        .role("0/", [fork("f", "work"), Reply::text("started"), Reply::text("thanks")])
        .role("0/0/", [Reply::text("done")])
        .start();
    let effort = |command: &mut std::process::Command| {
        command.args(["--effort", "medium"]);
    };
    let workspace = Workspace::new();
    let scene = Scene::play_with(workspace, server, Format::Chat, effort, |_, _, _| {});
    assert_eq!(scene.check().server.requests_of("0/0/").len(), 1);
    assert!(efforts(&scene.server).iter().all(|effort| effort == "medium"));
}

#[test]
fn a_model_that_refuses_the_effort_is_asked_once_more_without_and_the_user_is_told_once() {
    let server = ModelServer::start([
        Reply::error(400, REFUSAL),
        Reply::call("c1", "glob", json!({"pattern": "*"})),
        Reply::text("done"),
    ]);
    let workspace = Workspace::new();
    let told = workspace.run_json_telling(&server, Format::Chat, ["go", "--effort", "off"], NOTE);
    assert_eq!((told.0, &told.1.last().unwrap()["text"]), (0, &json!("done")));
    assert_eq!(efforts(&server), [json!("none"), Value::Null, Value::Null]);
}

/// A request that fails without the effort too failed for another reason.
#[test]
fn a_request_that_is_refused_anyway_shows_the_first_refusal() {
    let server = ModelServer::start([Reply::error(400, "first"), Reply::error(400, "second")]);
    let workspace = Workspace::new();
    let (code, events) = workspace.run_json(&server, Format::Chat, ["go", "--effort", "low"]);
    assert_eq!(code, 1);
    assert!(events.last().unwrap()["error"].as_str().unwrap().contains("HTTP 400: first"));
    // Other faults have nothing to do with it.
    let server = ModelServer::start([Reply::error(401, "no key"), Reply::text("never")]);
    workspace.run_json(&server, Format::Chat, ["go", "--effort", "low"]);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn the_effort_is_changed_per_agent_in_a_conversation() {
    let server = ModelServer::start(["Hello.", "Hello again."].map(Reply::text));
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("/effort");
    terminal.wait_for("Effort: the provider's default");
    terminal.type_line("/effort high");
    terminal.wait_for("Effort set to high");
    terminal.type_line("hi");
    terminal.wait_for("● Hello.\r\n❯ ");
    terminal.type_line("/effort max");
    terminal.wait_for("There is no effort 'max'. It is off, low, medium, high or default");
    terminal.type_line("/effort default");
    terminal.wait_for("Effort set to the provider's default");
    terminal.type_line("again");
    terminal.wait_for("● Hello again.\r\n❯ ");
    terminal.end_input();
    assert_eq!(terminal.finish("--session").0, Some(0));
    assert_eq!(efforts(&server), [json!("high"), Value::Null]);
}

/// A stream that thinks in pieces, and then answers or calls.
fn thinking(pieces: &[&str], end: &[Value]) -> Reply {
    let thoughts = pieces.iter().map(|piece| json!({"reasoning_content": piece}));
    let deltas = thoughts.chain(end.iter().cloned());
    let chunk =
        |delta: Value| format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]}));
    let mut body: String = deltas.map(chunk).collect();
    let reason = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    body.push_str(&format!("data: {reason}\n\ndata: [DONE]\n\n"));
    Reply::sse(body)
}

fn call(name: &str, arguments: &str) -> Value {
    let function = json!({"name": name, "arguments": arguments});
    json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}]})
}

#[test]
fn thinking_is_an_event_and_is_kept_with_the_first_message_of_the_response() {
    let server = ModelServer::start([
        thinking(&["I should ", "look."], &[call("glob", r#"{"pattern":"*"}"#)]),
        thinking(&["Empty."], &[json!({"content": "There is "}), json!({"content": "nothing."})]),
        Reply::text("Nothing."),
    ]);
    let workspace = Workspace::new();
    let (code, events) = workspace.run_json(&server, Format::Chat, ["go"]);
    assert_eq!(code, 0);
    let deltas: Vec<&Value> = of_type(&events, "thinking").iter().map(|it| &it["delta"]).collect();
    assert_eq!(deltas, ["I should ", "look.", "Empty."]);
    let expected = json!({"type": "thinking", "agent": "0/", "delta": "Empty."});
    assert_eq!(*of_type(&events, "thinking")[2], expected);
    let mut types = types_of(&events, "0/");
    types.dedup();
    let expected = ["session", "thinking", "tool_call", "tool_result", "thinking", "text", "done"];
    assert_eq!(types, expected);
    assert_eq!(events.last().unwrap()["text"], "There is nothing.");
    let log = workspace.log("0/");
    let kept = log.iter().filter(|message| message["data"]["thinking"].is_string());
    let kept: Vec<_> =
        kept.map(|message| (&message["kind"], &message["data"]["thinking"])).collect();
    let expected =
        [(&json!("tool_call"), &json!("I should look.")), (&json!("assistant"), &json!("Empty."))];
    assert_eq!(kept, expected);
    assert!(log.iter().any(|message| message["data"]["thinking_ms"].is_u64()));
    // It is sent back only as the provider's own extras, with calls.
    workspace.run_model(&server, Format::Chat, ["-c", "and now?"]);
    let requests = server.requests();
    assert_stable(&requests);
    let sent = requests[2].json().to_string();
    assert!(sent.contains(r#""reasoning_content":"I should look.""#), "{sent}");
    assert!(!sent.contains("Empty.") && !sent.contains("thinking"), "{sent}");
}

#[test]
fn a_retry_discards_the_thinking_before_it() {
    let broken = thinking(&["wrong"], &[json!({"content": "half"})]).close_at(Point::Byte(120));
    let server = ModelServer::start([broken, thinking(&["right"], &[json!({"content": "ok"})])]);
    let workspace = Workspace::new();
    let (code, _) = workspace.run_json(&server, Format::Chat, ["go"]);
    assert_eq!(code, 0);
    let log = workspace.log("0/");
    let answer = log.iter().find(|message| message["kind"] == "assistant").unwrap();
    assert_eq!(answer["data"]["thinking"], "right");
}

#[test]
fn a_resumed_session_shows_that_the_model_thought() {
    let server = ModelServer::start([thinking(&["Hm."], &[json!({"content": "Hello."})])]);
    let workspace = Workspace::new();
    workspace.run_model(&server, Format::Chat, ["hi"]);
    let screen = Screen::start(command(&workspace, &server).arg("-c"), 80, 24);
    screen.wait_for("Thought for 1s");
    screen.wait_for("● Hello.");
    screen.leave();
}
