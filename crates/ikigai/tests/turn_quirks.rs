//! What servers and models get wrong: each ends in the right log, and what is sent next is in order.

use ikigai_testkit::{ModelServer, Reply};
use serde_json::{Value, json};

use crate::support::model::{Format, assert_stable, results_in, said};
use crate::support::{Workspace, success};

/// A stream of the chat format with these choices, one per chunk.
fn chat<const N: usize>(choices: [Value; N]) -> Reply {
    let chunk = |choice: &Value| format!("data: {}\n\n", json!({"choices": [choice]}));
    Reply::sse(choices.iter().map(chunk).chain(["data: [DONE]\n\n".to_owned()]).collect::<String>())
}

/// A stream of Anthropic's format with these blocks, complete in their first event.
fn blocks<const N: usize>(blocks: [Value; N], stop_reason: &str) -> Reply {
    let begin = json!({"type": "message_start", "message": {"model": "scripted"}});
    let block = |(index, block): (usize, Value)| json!({"type": "content_block_start", "index": index, "content_block": block});
    let end = json!({"type": "message_delta", "delta": {"stop_reason": stop_reason}});
    let blocks = blocks.into_iter().enumerate().map(block);
    let events = [begin].into_iter().chain(blocks).chain([end, json!({"type": "message_stop"})]);
    Reply::sse(events.map(|event| format!("data: {event}\n\n")).collect::<String>())
}

fn delta(delta: Value, finish: Value) -> Value {
    json!({"index": 0, "delta": delta, "finish_reason": finish})
}

/// A call in one piece, with these fields for its id and arguments.
fn piece(id: Value, index: Value, arguments: Value) -> Value {
    let mut call = json!({"type": "function",
        "function": {"name": "bash", "arguments": arguments}});
    for (field, value) in [("id", id), ("index", index)] {
        if !value.is_null() {
            call[field] = value;
        }
    }
    call
}

fn tool_use(id: Value, input: Value) -> Value {
    let mut block = json!({"type": "tool_use", "name": "bash", "input": input});
    if !id.is_null() {
        block["id"] = id;
    }
    block
}

fn echo(text: &str) -> Value {
    json!({"command": format!("echo {text}")})
}

fn text(text: &str) -> String {
    echo(text).to_string()
}

/// The calls and results of the log: id, name, arguments, output.
fn pairs(log: &[Value]) -> Vec<[String; 4]> {
    let field = |message: &Value, name: &str| message["data"][name].as_str().unwrap().to_owned();
    let of_kind = |kind: &'static str| log.iter().filter(move |message| message["kind"] == kind);
    of_kind("tool_call")
        .zip(of_kind("tool_result"))
        .map(|(call, result)| {
            assert_eq!(field(call, "tool_call_id"), field(result, "tool_call_id"));
            let [id, name, arguments] =
                ["tool_call_id", "name", "arguments"].map(|name| field(call, name));
            [id, name, arguments, field(result, "output")]
        })
        .collect()
}

fn ran(id: &str, said: &str) -> [String; 4] {
    let output = success(json!({"output": format!("{said}\n"), "exit_code": 0}));
    [id.to_owned(), "bash".to_owned(), text(said), output.to_string()]
}

/// Runs a turn of these responses and an answer, and a further one; gives the log of the first.
#[track_caller]
fn turn(format: Format, replies: impl IntoIterator<Item = Reply>) -> Vec<Value> {
    let rest = [Reply::text("done"), Reply::text("again")];
    let server = ModelServer::start(replies.into_iter().chain(rest));
    let workspace = Workspace::new();
    let (code, stdout, stderr) = workspace.run_model(&server, format, ["go"]);
    assert_eq!((code, &*stdout), (0, "done\n"), "{stderr}");
    let log = workspace.log("0/");
    let (code, stdout, _) = workspace.run_model(&server, format, ["-c", "and on"]);
    assert_eq!((code, &*stdout), (0, "again\n"));
    let requests = server.requests();
    assert_stable(&requests);
    let outputs = |pairs: &[[String; 4]]| -> Vec<String> {
        pairs.iter().map(|pair| pair[3].clone()).collect()
    };
    let sent: Vec<String> =
        results_in(requests.last().unwrap()).into_iter().map(|(_, output)| output).collect();
    assert_eq!(sent, outputs(&pairs(&log)));
    log
}

#[track_caller]
fn check<const N: usize>(format: Format, reply: Reply, expected: [[String; 4]; N]) {
    assert_eq!(pairs(&turn(format, [reply])), expected);
}

fn refused(id: &str, name: &str, arguments: &str, error: &str) -> [String; 4] {
    [id, name, arguments, &json!({ "error": error }).to_string()].map(str::to_owned)
}

#[test]
fn an_unknown_tool_is_an_error_for_the_model() {
    for format in Format::BOTH {
        let check = |name: &str, error: &str| {
            let reply = Reply::call("c1", name, json!({"a": 1}));
            check(format, reply, [refused("c1", name, r#"{"a":1}"#, error)]);
        };
        check("rm_rf", "Unknown tool: rm_rf");
        check("mcp.tool/with odd:name", "Unknown tool: mcp.tool/with odd:name");
        check("Shell", "Unknown tool: Shell");
        let long = "x".repeat(100);
        check(&long, &format!("Unknown tool: {}", "x".repeat(64)));
    }
}

#[test]
fn malformed_arguments_are_an_error_for_the_model_and_stand_in_the_log_as_they_came() {
    for format in Format::BOTH {
        for arguments in
            ["{", "not json", r#"{"command": "echo"#, "[]", "7", "\"text\"", "null", "\u{1}{}"]
        {
            let reply = Reply::call("c1", "bash", json!(arguments));
            check(format, reply, [refused("c1", "bash", arguments, "Invalid JSON arguments")]);
        }
        let missing = refused("c1", "bash", "{}", "Missing required parameter: command");
        check(format, Reply::call("c1", "bash", json!({})), [missing]);
    }
}

#[test]
fn arguments_come_as_an_object_or_in_a_string_or_in_many_pieces() {
    let calls = json!({"tool_calls": [piece(json!("c1"), json!(0), echo("one"))]});
    check(Format::Chat, chat([delta(calls, json!("tool_calls"))]), [ran("c1", "one")]);
    let input = blocks([tool_use(json!("c1"), echo("one"))], "tool_use");
    check(Format::Anthropic, input, [ran("c1", "one")]);
    let input = blocks([tool_use(json!("c1"), json!(text("one")))], "tool_use");
    check(Format::Anthropic, input, [ran("c1", "one")]);
    for format in Format::BOTH {
        let whole = Reply::call("c1", "bash", echo("one")).whole();
        check(format, whole, [ran("c1", "one")]);
        let split = Reply::call("c1", "bash", echo("über")).in_chunks(1);
        check(format, split, [ran("c1", "über")]);
    }
}

#[test]
fn a_call_without_an_id_gets_one() {
    for id in [Value::Null, json!("")] {
        let call = piece(id.clone(), json!(0), json!(text("one")));
        let reply = chat([delta(json!({"tool_calls": [call]}), json!("tool_calls"))]);
        check(Format::Chat, reply, [ran("call_1", "one")]);
        let reply = blocks([tool_use(id, echo("one"))], "tool_use");
        check(Format::Anthropic, reply, [ran("call_1", "one")]);
    }
}

#[test]
fn calls_with_the_same_id_are_two_calls() {
    let calls = [("one", 0), ("two", 1)]
        .map(|(said, index)| piece(json!("same"), json!(index), json!(text(said))));
    let reply = chat([delta(json!({"tool_calls": calls}), json!("tool_calls"))]);
    check(Format::Chat, reply, [ran("same", "one"), ran("call_2", "two")]);
    let calls = ["one", "two"].map(|said| tool_use(json!("same"), echo(said)));
    let reply = blocks(calls, "tool_use");
    check(Format::Anthropic, reply, [ran("same", "one"), ran("call_2", "two")]);
}

/// Some servers count their calls from the start in every response, and some give no ids, so that we count.
#[test]
fn an_id_of_an_earlier_response_is_not_used_again() {
    for format in Format::BOTH {
        let replies = ["one", "two", "three"].map(|said| Reply::call("call_0", "bash", echo(said)));
        let expected = [ran("call_0", "one"), ran("call_2", "two"), ran("call_3", "three")];
        assert_eq!(pairs(&turn(format, replies)), expected);
    }
    let replies = ["one", "two"].map(|said| {
        let call = piece(Value::Null, json!(0), json!(text(said)));
        chat([delta(json!({"tool_calls": [call]}), json!("tool_calls"))])
    });
    let expected = [ran("call_1", "one"), ran("call_2", "two")];
    assert_eq!(pairs(&turn(Format::Chat, replies)), expected);
}

#[test]
fn an_index_may_be_missing_or_begin_anywhere() {
    for indexes in [[Value::Null, Value::Null], [json!(1), json!(2)], [json!(5), json!(9)]] {
        let [first, second] = indexes;
        let calls = [
            delta(
                json!({"tool_calls": [piece(json!("a"), first, json!(text("one")))]}),
                Value::Null,
            ),
            delta(
                json!({"tool_calls": [piece(json!("b"), second, json!(text("two")))]}),
                json!("tool_calls"),
            ),
        ];
        check(Format::Chat, chat(calls), [ran("a", "one"), ran("b", "two")]);
    }
}

#[test]
fn calls_count_whatever_the_reason_to_stop_says() {
    for reason in ["stop", "", "tool_calls", "function_call", "eos", "length"] {
        let calls = json!({"content": null, "tool_calls": [piece(json!("c1"), json!(0), json!(text("one")))]});
        check(Format::Chat, chat([delta(calls, json!(reason))]), [ran("c1", "one")]);
        let reply = Reply::call("c1", "bash", echo("one")).finish(reason);
        check(Format::Anthropic, reply, [ran("c1", "one")]);
    }
}

#[test]
fn a_call_that_was_cut_at_the_limit_of_tokens_is_not_run() {
    for format in Format::BOTH {
        let cut = r#"{"command": "touch never"#;
        let reply = Reply::call("c1", "bash", json!(cut)).finish("length");
        check(format, reply, [refused("c1", "bash", cut, "Invalid JSON arguments")]);
    }
}

#[test]
fn text_of_nothing_but_white_space_before_calls_is_left_out() {
    for format in Format::BOTH {
        let calls = [("c1", "bash", echo("one"))];
        let log = turn(format, [Reply::text_and_calls("\n\n", calls)]);
        assert_eq!(pairs(&log), [ran("c1", "one")]);
        assert_eq!(log.iter().filter(|message| message["kind"] == "assistant").count(), 1);
    }
}

#[test]
fn content_that_is_null_is_no_text() {
    let reply = chat([
        delta(json!({"role": "assistant", "content": null}), Value::Null),
        delta(json!({"content": "hi"}), json!("stop")),
    ]);
    let server = ModelServer::start([reply]);
    let (code, stdout, _) = Workspace::new().run_model(&server, Format::Chat, ["go"]);
    assert_eq!((code, &*stdout), (0, "hi\n"));
}

/// An answer that says nothing is an answer: the agent goes idle, and the session goes on.
#[test]
fn an_empty_answer_ends_the_turn() {
    for format in Format::BOTH {
        let empty = match format {
            Format::Chat => chat([delta(json!({"content": ""}), json!("stop"))]),
            Format::Anthropic => blocks([], "end_turn"),
        };
        let server = ModelServer::start([empty, Reply::text("hello")]);
        let workspace = Workspace::new();
        let (code, events) = workspace.run_json(&server, format, ["go"]);
        let done = json!({"type": "done", "agent": "0/", "stop": "stop", "text": ""});
        assert_eq!((code, &events[1..]), (0, &[done][..]));
        let answer = json!(["assistant", "", {"response": "r1"}]);
        let user = json!(["user", "go", {}]);
        assert_eq!(said(&workspace.log("0/")), [json!(["system"]), user, answer]);
        let (code, stdout, _) = workspace.run_model(&server, format, ["-c", "and on"]);
        assert_eq!((code, &*stdout), (0, "hello\n"));
        assert_stable(&server.requests());
    }
}

#[test]
fn an_empty_answer_after_calls_ends_the_turn() {
    for format in Format::BOTH {
        let empty = match format {
            Format::Chat => chat([delta(json!({"content": null}), json!("stop"))]),
            Format::Anthropic => blocks([], "end_turn"),
        };
        let call = Reply::call("c1", "bash", echo("one"));
        let server = ModelServer::start([call, empty, Reply::text("hello")]);
        let workspace = Workspace::new();
        let (code, stdout, _) = workspace.run_model(&server, format, ["go"]);
        assert_eq!((code, &*stdout), (0, ""));
        assert_eq!(pairs(&workspace.log("0/")), [ran("c1", "one")]);
        let (code, stdout, _) = workspace.run_model(&server, format, ["-c", "and on"]);
        assert_eq!((code, &*stdout), (0, "hello\n"));
        assert_stable(&server.requests());
    }
}
