use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::{AgentScripts, CapturedRequest, Gate, ModelServer, Point, Reply, assert_prefix};

const CHAT: &str = "/v1/chat/completions";
const ANTHROPIC: &str = "/v1/messages";

/// A client that reads the response byte by byte.
struct Client(BufReader<TcpStream>);

impl Client {
    fn of(server: &ModelServer) -> Client {
        Client(BufReader::new(TcpStream::connect(server.address()).unwrap()))
    }

    fn post(&mut self, path: &str, body: &Value) {
        let body = body.to_string();
        let length = body.len();
        let head = format!("POST {path} HTTP/1.1\r\nContent-Length: {length}\r\n\r\n");
        self.0.get_mut().write_all((head + &body).as_bytes()).unwrap();
    }

    fn status(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.split(' ').nth(1).unwrap_or_default().to_owned()
    }

    /// Reads a whole response and returns its body.
    fn body(&mut self) -> String {
        let mut length = None;
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).unwrap();
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = Some(value.trim().parse().unwrap());
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = Vec::new();
        match length {
            Some(length) => {
                self.0.by_ref().take(length).read_to_end(&mut body).unwrap();
            }
            None => while self.chunk(&mut body) {},
        }
        String::from_utf8(body).unwrap()
    }

    fn chunk(&mut self, body: &mut Vec<u8>) -> bool {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        let length = u64::from_str_radix(line.trim(), 16).unwrap();
        self.0.by_ref().take(length).read_to_end(body).unwrap();
        self.0.read_line(&mut line).unwrap();
        length > 0
    }

    /// Everything up to the end of the connection.
    fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        // A reset is an end too.
        let _ = self.0.read_to_end(&mut rest);
        String::from_utf8(rest).unwrap()
    }
}

fn streamed() -> Value {
    json!({"stream": true, "stream_options": {"include_usage": true}})
}

/// The data of all events.
fn data(body: &str) -> Vec<Value> {
    body.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter(|data| *data != "[DONE]")
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

fn joined<'a>(events: &'a [Value], pointer: &str) -> String {
    events.iter().filter_map(|event: &'a Value| event.pointer(pointer)?.as_str()).collect()
}

#[test]
fn a_connection_serves_the_script_in_order() {
    let server = ModelServer::start([Reply::text("one"), Reply::status(429).retry_after(7)]);
    let mut client = Client::of(&server);
    client.post(CHAT, &streamed());
    assert_eq!(client.status(), "200");
    assert_eq!(joined(&data(&client.body()), "/choices/0/delta/content"), "one");
    client.post(CHAT, &streamed());
    assert_eq!(client.status(), "429");
    assert!(client.body().contains("scripted"));
    client.post(CHAT, &streamed());
    assert_eq!(client.status(), "500");
    assert!(client.body().contains("script is at its end"));
    assert_eq!(server.wait_for_requests(3).len(), 3);
    assert_eq!(server.connections(), 1);
}

#[test]
fn an_answer_comes_in_the_format_of_the_path() {
    let calls = [("c1", "bash", json!({"command": "ls -l"})), ("c2", "glob", json!({}))];
    let answer = Reply::text_and_calls("I look.", calls).usage(3, 4);
    let server = ModelServer::choosing(move |_| answer.clone());
    let mut client = Client::of(&server);

    client.post(CHAT, &streamed());
    let body = client.body();
    assert!(body.ends_with("data: [DONE]\n\n"));
    let events = data(&body);
    assert_eq!(joined(&events, "/choices/0/delta/content"), "I look.");
    assert_eq!(joined(&events, "/choices/0/delta/tool_calls/0/function/name"), "bashglob");
    let arguments = joined(&events, "/choices/0/delta/tool_calls/0/function/arguments");
    assert_eq!(arguments, r#"{"command":"ls -l"}{}"#);
    assert_eq!(joined(&events, "/choices/0/finish_reason"), "tool_calls");
    assert_eq!(events.last().unwrap()["usage"]["total_tokens"], 7);

    client.post(ANTHROPIC, &json!({"stream": true}));
    let body = client.body();
    assert!(body.starts_with("event: message_start\n"));
    let events = data(&body);
    assert_eq!(joined(&events, "/delta/text"), "I look.");
    assert_eq!(joined(&events, "/content_block/name"), "bashglob");
    assert_eq!(joined(&events, "/delta/partial_json"), r#"{"command":"ls -l"}{}"#);
    assert_eq!(joined(&events, "/delta/stop_reason"), "tool_use");

    client.post(CHAT, &json!({}));
    let whole: Value = serde_json::from_str(&client.body()).unwrap();
    assert_eq!(whole["choices"][0]["message"]["tool_calls"][1]["id"], "c2");
    client.post(ANTHROPIC, &json!({}));
    let whole: Value = serde_json::from_str(&client.body()).unwrap();
    assert_eq!(whole["content"][1]["input"], json!({"command": "ls -l"}));
}

#[test]
fn a_reply_ends_at_the_chosen_point() {
    let call = Reply::call("c1", "bash", json!({"command": "rm -rf important"}));
    let server = ModelServer::start([
        Reply::hang_up(),
        Reply::text("half and half").close_at(Point::Text),
        call.close_at(Point::Arguments),
        Reply::text("whole").reset_at(Point::Byte(5)),
        Reply::text("part").then_error("no more"),
        Reply::sse("").in_chunks(1),
    ]);
    assert_eq!(Client::of(&server).rest(), "");
    let reply = |path| {
        let mut client = Client::of(&server);
        client.post(path, &streamed());
        client.rest()
    };
    let text = reply(CHAT);
    assert!(text.contains("half ") && text.contains("and "), "{text}");
    assert!(!text.contains("finish_reason\":\"stop"), "{text}");
    let arguments = reply(CHAT);
    assert!(arguments.contains("rf impor"), "{arguments}");
    assert!(!arguments.contains("tool_calls\"}"), "{arguments}");
    assert!(!reply(CHAT).contains("DONE"));
    let mut client = Client::of(&server);
    client.post(ANTHROPIC, &streamed());
    let events = data(&client.body());
    assert_eq!(joined(&events, "/delta/text"), "part");
    assert_eq!(events.last().unwrap()["error"]["type"], "overloaded_error");
    client.post(CHAT, &streamed());
    assert_eq!(client.body(), "");
}

#[test]
fn a_test_sees_a_stall_and_the_client_disconnect() {
    let server = ModelServer::start([Reply::silence(), Reply::text("ab").stall_at(Point::Text)]);
    for count in [1, 2] {
        let mut client = Client::of(&server);
        client.post(CHAT, &streamed());
        server.wait_for_stalls(count);
        drop(client);
        server.wait_for_departures(count);
    }
}

#[test]
fn a_gate_delays_a_reply_or_the_rest_of_it() {
    let (before, within) = (Gate::new(), Gate::new());
    let server =
        ModelServer::start([Reply::text("a b").after(&before).hold_at(Point::Text, &within)]);
    let mut client = Client::of(&server);
    client.post(CHAT, &streamed());
    server.wait_for_requests(1);
    before.open();
    assert_eq!(client.status(), "200");
    within.open();
    assert_eq!(joined(&data(&client.body()), "/choices/0/delta/content"), "a b");
}

#[test]
fn a_request_in_chunks_is_read() {
    let server = ModelServer::start([Reply::text("ok")]);
    let mut client = Client::of(&server);
    let request =
        "POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n1\r\n \r\n0\r\n\r\n";
    client.0.get_mut().write_all(request.as_bytes()).unwrap();
    assert_eq!(client.status(), "200");
    assert_eq!(server.requests()[0].body, b"{} ");
}

fn captured(path: &str, body: &Value) -> CapturedRequest {
    let (method, path) = ("POST".to_owned(), path.to_owned());
    CapturedRequest { method, path, headers: Vec::new(), body: body.to_string().into_bytes() }
}

#[test]
fn a_captured_request_can_be_inspected_in_both_formats() {
    let chat = captured(
        CHAT,
        &json!({
            "messages": [
                {"role": "system", "content": "Be good."},
                {"role": "user", "content": [{"type": "text", "text": "Do it."}]},
                {"role": "assistant", "tool_calls": []},
                {"role": "tool", "tool_call_id": "c1", "content": "{\"exit\":1}"},
                {"role": "tool", "tool_call_id": "c2", "content": "plain"},
            ],
            "tools": [{"type": "function", "function": {"name": "bash"}}],
            "tool_choice": "none",
        }),
    );
    let anthropic = captured(
        ANTHROPIC,
        &json!({
            "system": [{"type": "text", "text": "Be good."}],
            "messages": [
                {"role": "user", "content": "Do it."},
                {"role": "assistant", "content": []},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "{\"exit\":1}"},
                    {"type": "tool_result", "tool_use_id": "c2",
                        "content": [{"type": "text", "text": "plain"}]},
                ]},
            ],
            "tools": [{"name": "bash"}],
            "tool_choice": "none",
        }),
    );
    for request in [chat, anthropic] {
        assert_eq!(request.tool_output("c1"), json!({"exit": 1}));
        assert_eq!(request.tool_output("c2"), json!("plain"));
        assert_eq!(request.system().unwrap(), "Be good.");
        assert_eq!(request.last_user_text().unwrap(), "Do it.");
        assert_eq!(request.tool_names(), ["bash"]);
        assert_eq!(request.tool_choice(), "none");
        assert_eq!(request.results_since_user(), 2);
    }
}

#[test]
fn a_request_that_only_adds_messages_keeps_the_prefix() {
    let older = captured(CHAT, &json!({"model": "m", "messages": [{"a": "]}"}], "tools": [1]}));
    let newer = captured(CHAT, &json!({"model": "m", "messages": [{"a": "]}"}, 2], "tools": []}));
    assert_prefix(&older, &newer);
    let other = captured(CHAT, &json!({"model": "m", "messages": [{"a": "]"}, 2]}));
    assert!(std::panic::catch_unwind(|| assert_prefix(&older, &other)).is_err());

    let blocks = |list| json!({"messages": [{"role": "user", "content": list}]});
    let (one, two) = (json!([{"type": "text"}]), json!([{"type": "text"}, {"type": "text"}]));
    assert_prefix(&captured(ANTHROPIC, &blocks(one)), &captured(ANTHROPIC, &blocks(two)));
}

#[test]
fn every_agent_has_its_own_script() {
    let server = AgentScripts::new()
        .role("0/", [Reply::text("parent")])
        .choosing("0/0/", |_| Reply::text("child"))
        .start();
    let ask = |texts: &[&str]| {
        let message = |text: &&str| json!({"role": "user", "content": text});
        let messages: Vec<Value> = texts.iter().map(message).collect();
        let mut client = Client::of(&server);
        client.post(CHAT, &json!({"messages": messages}));
        (client.status(), client.body())
    };
    let (parent, child) = ("[You are agent 0/]\n\ngo", "[You are agent 0/0/, forked by 0/.]\n\ngo");
    let (status, body) = ask(&[parent, child]);
    assert_eq!((&*status, body.contains("child")), ("200", true));
    assert!(ask(&[parent, "a tale: [You are agent 7/]"]).1.contains("parent"));
    // A request beyond the script fails, and says so.
    for (texts, error) in [
        ([parent].as_slice(), "agent 0/ has no line left"),
        (&["[You are agent 1/]\n\ngo"], "agent 1/ has no role"),
        (&["go"], "the request has no identity"),
    ] {
        let (status, body) = ask(texts);
        assert_eq!((&*status, body.contains(error)), ("400", true), "{body}");
    }
    assert_eq!(server.requests_of("0/").len(), 2);
}
