//! Calls in a turn: committed, run, closed, sent back.

use ikigai_testkit::{CapturedRequest, ModelServer, Reply};
use serde_json::{Value, json};

use crate::support::model::{Format, assert_stable, events, results_in, said};
use crate::support::{Workspace, ended, success};

fn ran(output: &str) -> Value {
    success(json!({"output": output, "exit_code": 0}))
}

fn echo(text: &str) -> Value {
    json!({"command": format!("echo {text}")})
}

/// The log's messages of a call of `bash` that echoed a text.
fn echoed(id: &str, text: &str, response: &str) -> [Value; 2] {
    let arguments = echo(text).to_string();
    let call = json!({"tool_call_id": id, "name": "bash", "arguments": arguments,
        "response": response, "effects": ["command"],
        "shown": {"verb": "Bash", "subject": format!("echo {text}")}});
    let output = ran(&format!("{text}\n")).to_string();
    let result = json!({"tool_call_id": id, "name": "bash", "output": output, "success": true,
        "shown": {"outcome": "exit 0", "state": "succeeded"}});
    let line = format!("bash(command=\"echo {text}\")");
    [json!(["tool_call", line, call]), json!(["tool_result", "exit 0", result])]
}

fn usage(format: Format, input: u64, output: u64, response: &str) -> Value {
    let data = json!({"input_tokens": input, "output_tokens": output, "cost": null, "model": format.model(),
        "response": response});
    json!(["usage", "", data])
}

fn answer(text: &str, response: &str) -> Value {
    json!(["assistant", text, {"response": response}])
}

fn user(text: &str) -> Value {
    json!(["user", text, {}])
}

/// A log from its messages and pairs.
fn log_of<const N: usize>(parts: [&[Value]; N]) -> Vec<Value> {
    [&[json!(["system"])], &parts.concat()[..]].concat()
}

#[test]
fn a_call_is_run_logged_and_sent_back() {
    for format in Format::BOTH {
        let server = ModelServer::start([
            Reply::call("call_1", "bash", echo("one")).usage(11, 12),
            Reply::text("It says one.").usage(13, 14),
        ]);
        let workspace = Workspace::new();
        let (code, stdout, _) = workspace.run_model(&server, format, ["what does it say?"]);
        assert_eq!((code, &*stdout), (0, "It says one.\n"));
        let expected = log_of([
            &[user("what does it say?"), usage(format, 11, 12, "r1")],
            &echoed("call_1", "one", "r1"),
            &[usage(format, 13, 14, "r2"), answer("It says one.", "r2")],
        ]);
        assert_eq!(said(&workspace.log("0/")), expected);
        let requests = server.requests();
        assert_eq!(requests.len(), 2);
        let sent = [("call_1".to_owned(), ran("one\n").to_string())];
        assert_eq!(results_in(&requests[1]), sent);
        assert_stable(&requests);
    }
}

#[test]
fn several_calls_of_a_response_run_one_after_another_and_each_has_its_pair() {
    for format in Format::BOTH {
        let workspace = Workspace::new();
        // Each command needs what the one before it has left behind.
        let commands = ["echo a > f", "cat f; echo b >> f", "cat f"];
        let outputs = ["", "a\n", "a\nb\n"];
        let ids = ["c1", "c2", "c3"];
        let call = |(id, command)| (id, "bash", json!({ "command": command }));
        let calls = ids.into_iter().zip(commands).map(call);
        let server = ModelServer::start([Reply::calls(calls), Reply::text("done")]);
        let (code, _, _) = workspace.run_model(&server, format, ["go"]);
        assert_eq!(code, 0);
        let log = workspace.log("0/");
        let pairs: Vec<(&str, &str)> = log
            .iter()
            .filter_map(|message| {
                let id = message["data"]["tool_call_id"].as_str()?;
                Some((message["kind"].as_str().unwrap(), id))
            })
            .collect();
        let in_order =
            ids.map(|id| [("tool_call", id), ("tool_result", id)]).as_flattened().to_vec();
        assert_eq!(pairs, in_order);
        let responses: Vec<&Value> = log
            .iter()
            .filter(|message| message["kind"] == "tool_call")
            .map(|message| &message["data"]["response"])
            .collect();
        assert!(responses.iter().all(|response| *response == responses[0]), "{responses:?}");
        let requests = server.requests();
        let expected: Vec<_> = ids
            .iter()
            .zip(outputs)
            .map(|(id, output)| ((*id).to_owned(), ran(output).to_string()))
            .collect();
        assert_eq!(results_in(&requests[1]), expected);
        assert_stable(&requests);
    }
}

#[test]
fn text_that_came_with_calls_stands_before_them_in_log_and_request() {
    for format in Format::BOTH {
        let calls = [("c1", "bash", echo("one")), ("c2", "bash", echo("two"))];
        let server = ModelServer::start([
            Reply::text_and_calls("I look first.", calls).usage(1, 2),
            Reply::text("done").usage(3, 4),
        ]);
        let workspace = Workspace::new();
        workspace.run_model(&server, format, ["go"]);
        let expected = log_of([
            &[user("go"), usage(format, 1, 2, "r1"), answer("I look first.", "r1")],
            &echoed("c1", "one", "r1"),
            &echoed("c2", "two", "r1"),
            &[usage(format, 3, 4, "r2"), answer("done", "r2")],
        ]);
        assert_eq!(said(&workspace.log("0/")), expected);
        let requests = server.requests();
        let [one, two] = [echo("one"), echo("two")];
        let (place, response) = match format {
            Format::Chat => {
                let call = |id: &str, arguments: &Value| {
                    json!({"id": id, "type": "function",
                        "function": {"name": "bash", "arguments": arguments.to_string()}})
                };
                let calls = [call("c1", &one), call("c2", &two)];
                let message = json!({"role": "assistant", "content": "I look first.",
                    "tool_calls": calls});
                (2, message)
            }
            Format::Anthropic => {
                let call = |id: &str, arguments: &Value| json!({"type": "tool_use", "id": id, "name": "bash", "input": arguments});
                let text = json!({"type": "text", "text": "I look first."});
                let content = [text, call("c1", &one), call("c2", &two)];
                (1, json!({"role": "assistant", "content": content}))
            }
        };
        assert_eq!(requests[1].messages()[place], response);
        assert_stable(&requests);
    }
}

#[test]
fn a_turn_of_many_responses_is_one_stable_conversation() {
    const ROUNDS: usize = 20;
    for format in Format::BOTH {
        let next = |request: &CapturedRequest| match results_in(request).len() {
            ROUNDS => Reply::text("done").usage(1, 1),
            done => Reply::call(&format!("c{done}"), "bash", echo(&done.to_string())).usage(1, 1),
        };
        let server = ModelServer::choosing(next);
        let workspace = Workspace::new();
        let (code, stdout, _) = workspace.run_model(&server, format, ["go"]);
        assert_eq!((code, &*stdout), (0, "done\n"));
        let rounds = (0..ROUNDS).flat_map(|round| {
            let response = format!("r{}", round + 1);
            let [call, result] = echoed(&format!("c{round}"), &round.to_string(), &response);
            [usage(format, 1, 1, &response), call, result]
        });
        let last = format!("r{}", ROUNDS + 1);
        let expected = log_of([
            &[user("go")],
            &rounds.collect::<Vec<_>>(),
            &[usage(format, 1, 1, &last), answer("done", &last)],
        ]);
        let log = workspace.log("0/");
        assert_eq!(said(&log), expected);
        let ids: Vec<i64> = log.iter().map(|message| message["id"].as_i64().unwrap()).collect();
        assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
        let requests = server.requests();
        assert_eq!(requests.len(), ROUNDS + 1);
        assert_stable(&requests);
    }
}

#[test]
fn a_call_is_in_the_log_before_it_runs() {
    let look = json!({"command": "\"$IKIGAI\" log --json > seen"});
    let calls = [("c1", "bash", echo("one")), ("c2", "bash", look)];
    let server = ModelServer::start([Reply::calls(calls), Reply::text("done")]);
    let workspace = Workspace::unconfined();
    let mut command = workspace.run_command(&server, Format::Chat, ["go"]);
    command.env("IKIGAI", env!("CARGO_BIN_EXE_ikigai"));
    assert_eq!(ended(&mut command).0, 0);
    let seen = events(&workspace.read_text("seen"));
    let log = workspace.log("0/");
    assert_eq!(seen, log[..seen.len()]);
    let last = seen.last().unwrap();
    assert_eq!((&last["kind"], &last["data"]["tool_call_id"]), (&json!("tool_call"), &json!("c2")));
    assert_eq!(log[seen.len()]["kind"], "tool_result");
}

/// A model that is given something else than what the log has would be told two stories.
#[test]
fn the_bytes_of_a_result_in_a_request_are_those_of_the_log() {
    for format in Format::BOTH {
        let workspace = Workspace::new();
        workspace.write("odd", "\u{0}\u{1b}[31m \"quoted\" \\ ü 👩‍👩‍👧 \u{2028} </script>\r\n\t%{}");
        let calls = [
            ("c1", "bash", json!({"command": "cat odd; head -c 300 /dev/zero | tr '\\0' '\\377'"})),
            ("c2", "bash", json!({"command": "yes 0123456789 | head -c 200000"})),
            ("c3", "file_read", json!({"path": "no such file"})),
            ("c4", "mail", json!({"action": "inbox"})),
        ];
        let server = ModelServer::start([Reply::calls(calls), Reply::text("done")]);
        workspace.run_model(&server, format, ["go"]);
        let log = workspace.log("0/");
        let results = log.iter().filter(|message| message["kind"] == "tool_result");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let expected: Vec<(String, String)> = results
            .map(|message| {
                (text(&message["data"]["tool_call_id"]), text(&message["data"]["output"]))
            })
            .collect();
        assert_eq!(expected.len(), 4);
        let requests = server.requests();
        assert_eq!(results_in(&requests[1]), expected);
        assert_stable(&requests);
    }
}

#[test]
fn a_server_that_says_nothing_of_its_cost_has_no_usage_in_the_log() {
    let chunk =
        json!({"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]});
    let server = ModelServer::start([Reply::sse(format!("data: {chunk}\n\ndata: [DONE]\n\n"))]);
    let workspace = Workspace::new();
    workspace.run_model(&server, Format::Chat, ["go"]);
    assert_eq!(said(&workspace.log("0/")), log_of([&[user("go"), answer("hi", "r1")]]));
}

#[test]
fn usage_has_the_sorts_of_tokens_that_the_provider_tells_apart() {
    let start = json!({"type": "message_start", "message": {"model": "scripted", "usage": {
        "input_tokens": 3, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 7,
        "output_tokens": 1}}});
    let end = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
        "usage": {"output_tokens": 9}});
    let block = json!({"type": "content_block_start", "index": 0,
        "content_block": {"type": "text", "text": "hi"}});
    let events: String = [start, block, end, json!({"type": "message_stop"})]
        .map(|event| format!("data: {event}\n\n"))
        .concat();
    let server = ModelServer::start([Reply::sse(events)]);
    let workspace = Workspace::new();
    workspace.run_model(&server, Format::Anthropic, ["go"]);
    let usage = json!(["usage", "", {"input_tokens": 15, "output_tokens": 9,
        "cache_read_tokens": 7, "cache_write_tokens": 5, "cost": null, "model": "anthropic/scripted",
        "response": "r1"}]);
    assert_eq!(said(&workspace.log("0/")), log_of([&[user("go"), usage, answer("hi", "r1")]]));
}
