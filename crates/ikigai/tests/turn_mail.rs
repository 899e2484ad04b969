//! Mail in a turn, and the turn that it starts.

use ikigai_testkit::{CapturedRequest, ModelServer, Reply};
use serde_json::{Value, json};

use crate::support::Workspace;
use crate::support::ended;
use crate::support::model::{Format, assert_stable, events};

const ONE: &str = "[Notification: You have 1 unread message in your inbox]";

fn send(to: &str, body: &str) -> Value {
    json!({"action": "send", "to": to, "body": body})
}

/// The types of the events, a text in many pieces as one.
fn types(events: &[Value]) -> Vec<&str> {
    let mut types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    types.dedup_by(|next, last| (*next, *last) == ("text", "text"));
    types.retain(|kind| *kind != "usage");
    types
}

fn texts_of(kind: &str, log: &[Value]) -> Vec<String> {
    let messages = log.iter().filter(|message| message["kind"] == kind);
    messages.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

/// The text of the last message of a request, which is the user's.
fn last_text(request: &CapturedRequest) -> String {
    let messages = request.messages();
    let last = messages.last().unwrap();
    assert_eq!(last["role"], "user");
    match &last["content"] {
        Value::String(text) => text.clone(),
        blocks => {
            let [block] = &blocks.as_array().unwrap()[..] else { panic!("{blocks}") };
            assert_eq!(block["type"], "text");
            block["text"].as_str().unwrap().to_owned()
        }
    }
}

#[test]
fn mail_to_oneself_is_announced_once_at_the_end_of_the_turn() {
    for format in Format::BOTH {
        let server = ModelServer::start([
            Reply::call("c1", "mail", send("0/", "remember\nthis")),
            Reply::call("c2", "bash", json!({"command": "true"})),
            Reply::text("first"),
            Reply::text("second"),
        ]);
        let workspace = Workspace::new();
        let (code, events) = workspace.run_json(&server, format, ["go"]);
        assert_eq!(code, 0);
        let expected = [
            "session",
            "tool_call",
            "tool_result",
            "tool_call",
            "tool_result",
            "text",
            "done",
            "notification",
            "text",
            "done",
        ];
        assert_eq!(types(&events), expected);
        let text = format!("{ONE}\n#1 from 0/: \"remember\\nthis\"");
        let log = workspace.log("0/");
        let notification = events.iter().find(|event| event["type"] == "notification").unwrap();
        let place = log.iter().position(|message| message["kind"] == "notification").unwrap();
        let told = json!({"type": "notification", "agent": "0/", "log": log[place]["id"],
            "text": text});
        assert_eq!(*notification, told);
        assert_eq!(log[place]["data"], json!({"mail": [1]}));
        assert_eq!(texts_of("notification", &log), [&*text]);
        assert_eq!(texts_of("assistant", &log), ["first", "second"]);
        let done: Vec<&Value> = events.iter().filter(|event| event["type"] == "done").collect();
        let ended =
            |text: &str| json!({"type": "done", "agent": "0/", "stop": "stop", "text": text});
        assert_eq!(done, [&ended("first"), &ended("second")]);
        let requests = server.requests();
        assert_eq!(requests.len(), 4);
        assert_eq!(last_text(&requests[3]), text);
        assert_stable(&requests);
        let agents = workspace.json(["agents", "--json"]);
        let state = (&agents[0]["state"], &agents[0]["unread"], &agents[0]["notification_pending"]);
        assert_eq!(state, (&json!("idle"), &json!(0), &json!(false)));
    }
}

#[test]
fn mail_that_was_there_before_is_announced_after_the_turn() {
    for format in Format::BOTH {
        let server = ModelServer::start(["one", "two", "three", "four"].map(Reply::text));
        let workspace = Workspace::new();
        workspace.run_model(&server, format, ["go"]);
        workspace.print(["mail", "send", "0/", "first"]);
        workspace.print(["mail", "send", "0/", "second"]);
        let (code, events) = workspace.run_json(&server, format, ["-c", "and on"]);
        assert_eq!(code, 0);
        let expected = ["session", "text", "done", "notification", "text", "done"];
        assert_eq!(types(&events), expected);
        let text = "[Notification: You have 2 unread messages in your inbox]\n\
            #2 from user: \"second\"\n#1 from user: \"first\"";
        let requests = server.requests();
        assert_eq!(requests.len(), 3);
        assert_eq!(last_text(&requests[1]), "and on");
        assert_eq!(last_text(&requests[2]), text);
        // It was told, and is not told again.
        let (_, events) = workspace.run_json(&server, format, ["-c", "and on"]);
        assert_eq!(types(&events), ["session", "text", "done"]);
        assert_stable(&server.requests());
    }
}

#[test]
fn what_the_inbox_has_shown_is_not_announced() {
    let server = ModelServer::start([
        Reply::call("c1", "mail", json!({"action": "inbox"})),
        Reply::text("I have seen it."),
    ]);
    let workspace = Workspace::new();
    workspace.print(["mail", "send", "0/", "hello"]);
    let (_, events) = workspace.run_json(&server, Format::Chat, ["-c", "go"]);
    assert_eq!(types(&events), ["session", "tool_call", "tool_result", "text", "done"]);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn mail_that_is_read_in_the_second_turn_is_read_for_good() {
    let server = ModelServer::start([
        Reply::text("one"),
        Reply::call("c1", "mail", json!({"action": "read", "id": 1})),
        Reply::text("two"),
    ]);
    let workspace = Workspace::new();
    let long = "hello ".repeat(200);
    workspace.print(["mail", "send", "0/", &long]);
    let (code, events) = workspace.run_json(&server, Format::Chat, ["-c", "go"]);
    assert_eq!((code, &events.last().unwrap()["text"]), (0, &json!("two")));
    let output = server.requests()[2].tool_output("c1");
    assert_eq!((&output["from"], &output["body"]), (&json!("user"), &json!(long.trim())));
    let agents = workspace.json(["agents", "--json"]);
    let state = (&agents[0]["unread"], &agents[0]["notification_pending"]);
    assert_eq!(state, (&json!(0), &json!(false)));
}

#[test]
fn the_answers_of_all_turns_are_on_standard_output() {
    let server = ModelServer::start([
        Reply::call("c1", "mail", send("0/", "x")),
        Reply::text("first"),
        Reply::text("second"),
    ]);
    let workspace = Workspace::new();
    let (code, stdout, stderr) = workspace.run_model(&server, Format::Chat, ["go"]);
    assert_eq!((code, &*stdout), (0, "first\nsecond\n"));
    assert_eq!(stderr, "● Mail  to 0/: x\n  sent #1 to 0/\n✉ 0/ → 0/   x\n");
}

/// The counter ends what two agents, or one with itself, would go on with for ever.
#[test]
fn an_agent_that_always_writes_to_itself_is_woken_as_often_as_the_budget_allows() {
    let reply = |request: &CapturedRequest| match request.results_since_user() {
        0 => {
            let number = request.messages().len();
            Reply::call(&format!("c{number}"), "mail", send("0/", "again"))
        }
        _ => Reply::text("ok"),
    };
    let server = ModelServer::choosing(reply);
    let workspace = Workspace::new();
    let mut command = workspace.run_command(&server, Format::Chat, ["--json", "go"]);
    let (code, stdout, stderr) = ended(command.env("IKIGAI_MAIL__MAX_WAKES", "3"));
    let held = "⚠ Mail is held: agents were woken mail.max_wakes times. Your next message \
        releases it\n";
    assert_eq!(stderr, held);
    let events = events(&stdout);
    let turn = ["tool_call", "tool_result", "text", "done"];
    let woken = [&["notification"][..], &turn].concat();
    let expected = [&["session"][..], &turn, &woken, &woken, &woken].concat();
    assert_eq!((code, types(&events)), (0, expected));
    let agents = workspace.json(["agents", "--json"]);
    assert_eq!(agents[0]["unread"], 1);
    assert_stable(&server.requests());
}

#[test]
fn a_turn_that_failed_holds_its_mail_until_the_person_speaks_again() {
    let server = ModelServer::start([
        Reply::call("c1", "mail", send("0/", "hello")),
        Reply::error(400, "no"),
        Reply::text("better"),
        Reply::text("told"),
    ]);
    let workspace = Workspace::new();
    let (code, first) = workspace.run_json(&server, Format::Chat, ["go"]);
    assert_eq!((code, types(&first)), (1, vec!["session", "tool_call", "tool_result", "done"]));
    let (code, second) = workspace.run_json(&server, Format::Chat, ["-c", "again"]);
    let expected = vec!["session", "text", "done", "notification", "text", "done"];
    assert_eq!((code, types(&second)), (0, expected));
    assert_stable(&server.requests());
}

#[test]
fn a_refused_letter_is_a_result_and_wakes_nobody() {
    let server = ModelServer::start([
        Reply::call("c1", "mail", send("9/", "hello")),
        Reply::text("nobody there"),
    ]);
    let workspace = Workspace::new();
    let (code, events) = workspace.run_json(&server, Format::Chat, ["go"]);
    assert_eq!((code, events.last().unwrap()["text"].as_str()), (0, Some("nobody there")));
    assert_eq!(server.requests()[1].tool_output("c1"), json!({"error": "Agent 9/ not found"}));
}
