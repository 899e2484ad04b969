//! Limits of a turn and of a session's requests.

use ikigai_testkit::{CapturedRequest, ModelServer, Reply};
use serde_json::{Value, json};

use crate::support::model::{Format, assert_stable, errors_of, events, results_in, said};
use crate::support::terminal::{Terminal, leave, talking};
use crate::support::{Workspace, ended};

/// A model that never stops calling.
fn tireless() -> ModelServer {
    ModelServer::choosing(|request| call(results_in(request).len()))
}

fn call(number: usize) -> Reply {
    Reply::call(&format!("c{number}"), "bash", json!({"command": format!("echo {number}")}))
}

fn kinds(log: &[Value]) -> Vec<&str> {
    let kinds = log.iter().map(|message| message["kind"].as_str().unwrap());
    kinds.filter(|kind| *kind != "usage").collect()
}

fn none_of(format: Format) -> Value {
    match format {
        Format::Chat => json!("none"),
        Format::Anthropic => json!({"type": "none"}),
    }
}

#[test]
fn the_last_result_of_a_turn_says_that_it_is_the_last() {
    for format in Format::BOTH {
        let two = [
            ("c1", "bash", json!({"command": "echo 1"})),
            ("c2", "mail", json!({"action": "inbox"})),
        ];
        let server =
            ModelServer::start([call(0), Reply::calls(two), Reply::text("I got as far as two.")]);
        let workspace = Workspace::new();
        let mut command = workspace.run_command(&server, format, ["--json", "go"]);
        let (code, stdout, stderr) = ended(command.env("IKIGAI_MAX_TOOL_TURNS", "2"));
        assert_eq!((code, &*stderr), (0, ""));
        let last = events(&stdout).pop().unwrap();
        let expected = json!({"type": "done", "agent": "0/", "stop": "tool_limit",
            "text": "I got as far as two."});
        assert_eq!(last, expected);
        let requests = server.requests();
        let outputs = [
            r#"{"success":true,"data":{"output":"0\n","exit_code":0}}"#,
            r#"{"success":true,"data":{"output":"1\n","exit_code":0}}"#,
            r#"{"messages":[],"unread_count":0,"limit_reached":true,"limit_message":"Tool call limit reached (2). Stopping tool loop."}"#,
        ];
        let sent: Vec<String> =
            results_in(&requests[2]).into_iter().map(|(_, output)| output).collect();
        assert_eq!(sent, outputs);
        let choices: Vec<Value> = requests.iter().map(|request| request.tool_choice()).collect();
        assert_eq!(choices, [Value::Null, Value::Null, none_of(format)]);
        assert_eq!(requests[2].tool_names(), requests[0].tool_names());
        assert_stable(&requests);
    }
}

#[test]
fn on_a_terminal_the_user_is_asked_whether_to_continue() {
    let server = ModelServer::choosing(|request| match results_in(request).len() {
        done @ 0..5 => call(done),
        _ => Reply::text("All five."),
    });
    let workspace = Workspace::new();
    let mut command = talking(&workspace, &server);
    let mut terminal = Terminal::start(command.env("IKIGAI_MAX_TOOL_TURNS", "2"));
    terminal.wait_for("❯ ");
    terminal.type_line("count");
    let asked = "Tool call limit reached (2)\r\nPress Enter to continue\r\n❯ ";
    terminal.wait_for(asked);
    assert_eq!(server.requests().len(), 2);
    terminal.type_line("");
    terminal.wait_for_count(asked, 2);
    terminal.type_line("");
    terminal.wait_for("● All five.");
    leave(terminal);
    let requests = server.requests();
    assert_eq!(requests.len(), 6);
    assert_stable(&requests);
    assert!(!requests[5].text().contains("limit_reached"));
}

#[test]
fn an_enveloped_or_failed_last_result_says_so_at_its_root() {
    let limit = r#""limit_reached":true,"limit_message":"Tool call limit reached (1). Stopping tool loop."}"#;
    for (name, arguments, output) in [
        (
            "bash",
            json!({"command": "echo"}),
            r#"{"success":true,"data":{"output":"\n","exit_code":0},"#,
        ),
        ("file_read", json!({"path": "x"}), r#"{"success":false,"error":"File not found: x","#),
        ("nothing", json!({}), r#"{"error":"Unknown tool: nothing","#),
        ("bash", json!("{"), r#"{"error":"Invalid JSON arguments","#),
    ] {
        let server =
            ModelServer::start([Reply::call("c1", name, arguments), Reply::text("enough")]);
        let workspace = Workspace::new();
        let mut command = workspace.run_command(&server, Format::Chat, ["go"]);
        let (code, stdout, _) = ended(command.env("IKIGAI_MAX_TOOL_TURNS", "1"));
        assert_eq!((code, &*stdout), (0, "enough\n"));
        let expected = [("c1".to_owned(), format!("{output}{limit}"))];
        assert_eq!(results_in(&server.requests()[1]), expected);
    }
}

#[test]
fn calls_in_the_answer_at_the_limit_are_neither_run_nor_logged() {
    for format in Format::BOTH {
        let touch = |file: &str| json!({"command": format!("touch {file}")});
        let server = ModelServer::start([
            Reply::call("c1", "bash", touch("first")),
            Reply::text_and_calls("One more!", [("c2", "bash", touch("second"))]),
            Reply::text("and on"),
        ]);
        let workspace = Workspace::new();
        let mut command = workspace.run_command(&server, format, ["--json", "go"]);
        let (code, stdout, _) = ended(command.env("IKIGAI_MAX_TOOL_TURNS", "1"));
        let events = events(&stdout);
        let last = events.last().unwrap();
        assert_eq!(
            (code, &last["stop"], &last["text"]),
            (0, &json!("tool_limit"), &json!("One more!"))
        );
        assert_eq!(events.iter().filter(|event| event["type"] == "tool_call").count(), 1);
        assert_eq!(workspace.names(), ["first"]);
        let log = workspace.log("0/");
        assert_eq!(kinds(&log), ["system", "user", "tool_call", "tool_result", "assistant"]);
        assert_eq!(server.requests().len(), 2);
        let (code, stdout, _) = workspace.run_model(&server, format, ["-c", "go on"]);
        assert_eq!((code, &*stdout), (0, "and on\n"));
        assert_stable(&server.requests());
    }
}

/// A model that has nothing but calls to say at the limit leaves an empty answer.
#[test]
fn an_answer_of_calls_alone_at_the_limit_ends_the_turn_all_the_same() {
    for format in Format::BOTH {
        let server = tireless();
        let workspace = Workspace::new();
        for (number, arguments) in [["--new", "go"], ["-c", "go on"]].into_iter().enumerate() {
            let mut command = workspace.run_command(&server, format, arguments);
            let (code, stdout, _) = ended(command.env("IKIGAI_MAX_TOOL_TURNS", "3"));
            assert_eq!((code, &*stdout), (0, ""));
            assert_eq!(server.requests().len(), 4 * (number + 1));
        }
        let log = workspace.log("0/");
        let calls = log.iter().filter(|message| message["kind"] == "tool_call").count();
        assert_eq!(calls, 6);
        assert_stable(&server.requests());
    }
}

fn run_on_budget(
    workspace: &Workspace,
    server: &ModelServer,
    requests: &str,
    arguments: [&str; 2],
) -> (i32, Value) {
    let mut command = workspace.run_command(server, Format::Chat, arguments);
    let (code, stdout, stderr) = ended(command.arg("--json").env("IKIGAI_MAX_REQUESTS", requests));
    let mut events = events(&stdout);
    assert_eq!(stderr, errors_of(&events));
    (code, events.pop().unwrap())
}

#[test]
fn a_session_without_requests_left_stops_until_a_person_speaks_again() {
    let server = tireless();
    let workspace = Workspace::new();
    let used_up = json!({"type": "done", "agent": "0/", "stop": "error", "text": "",
        "error": "Request budget used up (3)"});
    assert_eq!(run_on_budget(&workspace, &server, "3", ["--new", "go"]), (1, used_up.clone()));
    assert_eq!(server.requests().len(), 3);
    // What was called is closed: nothing is left to be repaired.
    let pairs = ["tool_call", "tool_result"];
    let first = [&["system", "user"][..], &pairs, &pairs, &pairs].concat();
    assert_eq!(kinds(&workspace.log("0/")), first);
    assert_eq!(run_on_budget(&workspace, &server, "3", ["-c", "go on"]), (1, used_up));
    assert_eq!(server.requests().len(), 6);
    let second = [&first, &["user"][..], &pairs, &pairs, &pairs].concat();
    assert_eq!(kinds(&workspace.log("0/")), second);
    assert_stable(&server.requests());
}

#[test]
fn the_last_request_of_a_budget_may_answer() {
    // All calls of a response go back in one request.
    let calls = ["a", "b", "c"].map(|id| (id, "bash", json!({"command": "true"})));
    let server = ModelServer::start([Reply::calls(calls), Reply::text("just in time")]);
    let workspace = Workspace::new();
    let (code, done) = run_on_budget(&workspace, &server, "2", ["--new", "go"]);
    assert_eq!((code, &done["text"]), (0, &json!("just in time")));
}

#[test]
fn a_retry_takes_nothing_from_the_budget() {
    let server = ModelServer::start([
        Reply::status(503).retry_after(0),
        Reply::status(429).retry_after(0),
        call(0),
        Reply::status(500).retry_after(0),
        Reply::text("done"),
    ]);
    let workspace = Workspace::new();
    let (code, done) = run_on_budget(&workspace, &server, "2", ["--new", "go"]);
    assert_eq!((code, &done["text"]), (0, &json!("done")));
    assert_eq!(server.requests().len(), 5);
}

#[test]
fn text_says_what_stopped_it() {
    let server = tireless();
    let workspace = Workspace::new();
    let mut command = workspace.run_command(&server, Format::Chat, ["go"]);
    let (code, stdout, stderr) = ended(command.env("IKIGAI_MAX_REQUESTS", "1"));
    let told = "● Bash  echo 0\n  exit 0\nikigai: Request budget used up (1)\n";
    assert_eq!((code, &*stdout, &*stderr), (1, "", told));
}

/// Other tools, or another model, are the only things that may change a request's beginning.
#[test]
fn a_lower_limit_changes_nothing_of_what_was_sent() {
    let reply = |request: &CapturedRequest| match request.tool_choice() {
        Value::Null => call(results_in(request).len()),
        _ => Reply::text("enough"),
    };
    let server = ModelServer::choosing(reply);
    let workspace = Workspace::new();
    for (limit, arguments) in [("2", ["--new", "go"]), ("1", ["-c", "more"]), ("3", ["-c", "more"])]
    {
        let mut command = workspace.run_command(&server, Format::Anthropic, arguments);
        let (code, stdout, _) = ended(command.env("IKIGAI_MAX_TOOL_TURNS", limit));
        assert_eq!((code, &*stdout), (0, "enough\n"));
    }
    assert_eq!(server.requests().len(), 3 + 2 + 4);
    assert_stable(&server.requests());
    assert_eq!(said(&workspace.log("0/")).len(), 1 + 3 + 9 + 6 * 2 + 3);
}
