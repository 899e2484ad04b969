//! What a provider wants back with a response goes back to it, and to no other; a session may change its model
//! in the middle.

use ikigai_testkit::{CapturedRequest, ModelServer, Reply, assert_prefix};
use serde_json::{Value, json};

use crate::support::Workspace;
use crate::support::model::{Format, assert_stable, assert_strict, results_in, said};

fn echo(text: &str) -> Value {
    json!({"command": format!("echo {text}")})
}

/// A stream of Anthropic's format with these blocks; a block comes with the deltas that make it grow.
fn blocks(blocks: &[(Value, &[Value])]) -> Reply {
    let mut events = vec![json!({"type": "message_start",
        "message": {"model": "scripted", "usage": {"input_tokens": 1, "output_tokens": 1}}})];
    for (index, (block, deltas)) in blocks.iter().enumerate() {
        events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        let delta = |delta| json!({"type": "content_block_delta", "index": index, "delta": delta});
        events.extend(deltas.iter().map(delta));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
        "usage": {"output_tokens": 1}}));
    events.push(json!({"type": "message_stop"}));
    Reply::sse(events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>())
}

const SIGNATURE: &str = "EqQBCgIYAhIkLong/+signature==";

/// Thinking, then a text, then hidden thinking, then a call.
fn thoughtful(text: &str) -> Reply {
    let thinking = json!({"type": "thinking", "thinking": "", "signature": ""});
    let thought = [
        json!({"type": "thinking_delta", "thinking": "I should "}),
        json!({"type": "thinking_delta", "thinking": "\"look\" ü"}),
        json!({"type": "signature_delta", "signature": SIGNATURE}),
    ];
    let words = [json!({"type": "text_delta", "text": text})];
    let hidden = json!({"type": "redacted_thinking", "data": "c2VjcmV0"});
    let call = json!({"type": "tool_use", "id": "c1", "name": "bash", "input": {}});
    let arguments = [json!({"type": "input_json_delta", "partial_json": echo("one").to_string()})];
    blocks(&[
        (thinking, &thought),
        (json!({"type": "text", "text": ""}), &words),
        (hidden, &[]),
        (call, &arguments),
    ])
}

fn thought_blocks() -> [Value; 2] {
    [
        json!({"type": "thinking", "thinking": "I should \"look\" ü", "signature": SIGNATURE}),
        json!({"type": "redacted_thinking", "data": "c2VjcmV0"}),
    ]
}

fn tool_use() -> Value {
    json!({"type": "tool_use", "id": "c1", "name": "bash", "input": echo("one")})
}

/// The content of the first answer in a request of Anthropic's format.
fn first_answer(request: &CapturedRequest) -> Value {
    request.messages()[1]["content"].clone()
}

#[test]
fn thinking_goes_back_unchanged_to_where_it_was() {
    let server =
        ModelServer::start([thoughtful("I look."), Reply::text("done"), Reply::text("again")]);
    let workspace = Workspace::new();
    let (code, stdout, _) = workspace.run_model(&server, Format::Anthropic, ["go"]);
    assert_eq!((code, &*stdout), (0, "done\n"));
    workspace.run_model(&server, Format::Anthropic, ["-c", "and on"]);
    let requests = server.requests();
    let [thinking, hidden] = thought_blocks();
    let expected = json!([thinking, {"type": "text", "text": "I look."}, hidden, tool_use()]);
    assert_eq!(first_answer(&requests[1]), expected);
    assert_eq!(first_answer(&requests[2]), expected);
    assert_stable(&requests);
    // It stands in the first message of its response, and is nothing that a person reads.
    let log = workspace.log("0/");
    let with_extras: Vec<&Value> =
        log.iter().filter(|message| message["data"].get("extras").is_some()).collect();
    let [first] = with_extras[..] else { panic!("{with_extras:?}") };
    assert_eq!((&first["kind"], &first["content"]), (&json!("assistant"), &json!("I look.")));
}

#[test]
fn thinking_before_calls_without_a_text_goes_back_with_the_first_call() {
    for text in ["", "\n\n"] {
        let server = ModelServer::start([thoughtful(text), Reply::text("done")]);
        let workspace = Workspace::new();
        workspace.run_model(&server, Format::Anthropic, ["go"]);
        let [thinking, hidden] = thought_blocks();
        let requests = server.requests();
        assert_eq!(first_answer(&requests[1]), json!([thinking, hidden, tool_use()]), "{text:?}");
        assert_stable(&requests);
    }
}

#[test]
fn thinking_goes_to_no_other_model_and_no_other_provider() {
    for other in ["anthropic/other", "openai/scripted"] {
        let server = ModelServer::start([
            thoughtful("I look."),
            Reply::text("done"),
            Reply::text("hi, I am new"),
            Reply::text("back"),
        ]);
        let workspace = Workspace::new();
        workspace.run_model(&server, Format::Anthropic, ["go"]);
        let arguments = ["-c", "--model", other, "and on"];
        let (code, stdout, _) = workspace.run_model(&server, Format::Anthropic, arguments);
        assert_eq!((code, &*stdout), (0, "hi, I am new\n"));
        workspace.run_model(&server, Format::Anthropic, ["-c", "and back"]);
        let requests = server.requests();
        for secret in ["I should", SIGNATURE, "c2VjcmV0"] {
            assert!(!requests[2].text().contains(secret), "{secret}");
        }
        assert_eq!(first_answer(&requests[3]), first_answer(&requests[1]));
        assert_prefix(&requests[1], &requests[3]);
        assert_strict(&requests);
    }
}

#[test]
fn reasoning_of_a_chat_server_goes_back_with_its_calls_and_not_to_anthropic() {
    let call = json!({"index": 0, "id": "c1", "type": "function",
        "function": {"name": "bash", "arguments": echo("one").to_string()},
        "extra_content": {"google": {"thought_signature": "sig=="}}});
    let chunks = [
        json!({"choices": [{"index": 0, "delta": {"reasoning_content": "I should "}}]}),
        json!({"choices": [{"index": 0, "delta": {"reasoning_content": "\"look\" ü"}}]}),
        json!({"choices": [{"index": 0, "delta": {"content": null, "tool_calls": [call]},
            "finish_reason": "tool_calls"}]}),
    ];
    let stream = chunks.map(|chunk| format!("data: {chunk}\n\n")).concat();
    let server = ModelServer::start([
        Reply::sse(stream),
        Reply::text("done"),
        Reply::text("I am new"),
        Reply::text("back"),
    ]);
    let workspace = Workspace::new();
    workspace.run_model(&server, Format::Chat, ["go"]);
    workspace.run_model(&server, Format::Anthropic, ["-c", "you?"]);
    workspace.run_model(&server, Format::Chat, ["-c", "and you"]);
    let requests = server.requests();
    let call = json!({"id": "c1", "type": "function",
        "function": {"name": "bash", "arguments": echo("one").to_string()},
        "extra_content": {"google": {"thought_signature": "sig=="}}});
    let expected = json!({"role": "assistant", "content": "",
        "reasoning_content": "I should \"look\" ü", "tool_calls": [call]});
    assert_eq!(requests[1].messages()[2], expected);
    assert_eq!(requests[3].messages()[2], expected);
    for secret in ["I should", "sig=="] {
        assert!(!requests[2].text().contains(secret), "{secret}");
    }
    assert_prefix(&requests[1], &requests[3]);
    assert_strict(&requests);
}

/// The same session, a turn with each provider in turn, with calls whose ids only one of them takes.
#[test]
fn a_session_goes_on_with_the_other_providers_model_and_back() {
    const IDS: [&str; 4] = ["functions.bash:0", "toolu_01", "call|1", "toolu_01"];
    let formats = [Format::Chat, Format::Anthropic, Format::Chat, Format::Anthropic];
    let replies = IDS.iter().flat_map(|id| {
        let calls = [(*id, "bash", echo(id.get(..4).unwrap())), (*id, "no.tool", json!("{"))];
        [Reply::text_and_calls("I look.", calls).usage(1, 1), Reply::text("done").usage(1, 1)]
    });
    let server = ModelServer::start(replies);
    let workspace = Workspace::new();
    for (number, format) in formats.into_iter().enumerate() {
        let prompt = format!("turn {number}");
        let start = if number == 0 { "--new" } else { "-c" };
        let arguments = [start, "--model", format.model(), &prompt];
        // The one in the environment is the other one.
        let other = Format::BOTH.into_iter().find(|other| *other != format).unwrap();
        let (code, events) = workspace.run_json(&server, other, arguments);
        assert_eq!((code, &events[0]["model"]), (0, &json!(format.model())));
    }
    let requests = server.requests();
    let paths: Vec<&str> = requests.iter().map(|request| &*request.path).collect();
    let (chat, anthropic) = ("/v1/chat/completions", "/v1/messages");
    let expected = [chat, chat, anthropic, anthropic, chat, chat, anthropic, anthropic];
    assert_eq!(paths, expected);
    assert_strict(&requests);
    for [older, newer] in [[0, 1], [1, 4], [4, 5], [2, 3], [3, 6], [6, 7]] {
        assert_prefix(&requests[older], &requests[newer]);
    }
    // Both were sent the same results, of all turns so far.
    let outputs = |request: &CapturedRequest| -> Vec<String> {
        results_in(request).into_iter().map(|(_, output)| output).collect()
    };
    assert_eq!(outputs(&requests[6]), outputs(&requests[7])[..6]);
    assert_eq!(outputs(&requests[5]), outputs(&requests[7])[..6]);
    assert_eq!(outputs(&requests[7]).len(), 8);
    let log = said(&workspace.log("0/"));
    let models: Vec<&Value> = log
        .iter()
        .filter(|message| message[0] == "usage")
        .map(|usage| &usage[2]["model"])
        .collect();
    let [chat, anthropic] = Format::BOTH.map(Format::model);
    assert_eq!(models, [chat, chat, anthropic, anthropic, chat, chat, anthropic, anthropic]);
    assert_eq!(workspace.json(["agents", "--json"])[0]["model"], anthropic);
}

#[test]
fn each_provider_gets_its_own_key_and_no_other() {
    let server = ModelServer::start([Reply::text("a"), Reply::text("b")]);
    let workspace = Workspace::new();
    workspace.run_model(&server, Format::Chat, ["go"]);
    workspace.run_model(&server, Format::Anthropic, ["-c", "go"]);
    let requests = server.requests();
    let all = |request: &CapturedRequest| format!("{:?}{}", request.headers, request.text());
    assert_eq!(requests[0].header("authorization"), Some("Bearer key-of-openai"));
    assert!(!all(&requests[0]).contains("key-of-anthropic"));
    assert_eq!(requests[1].header("x-api-key"), Some("key-of-anthropic"));
    assert!(!all(&requests[1]).contains("key-of-openai"));
}
