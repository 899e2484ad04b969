//! The scripted model as a local server, so that requests take the same path as for a real model.
//!
//! It supports just enough HTTP/1.1 for our own client: one connection at a time, one request each.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};

use super::pace::Speed;
use super::script::{ModelRequest, Reply};

/// Our own requests have a few kilobytes. The limits keep other clients from using up memory.
const HEAD_LIMIT: u64 = 16 * 1024;
const BODY_LIMIT: u64 = 1024 * 1024;

/// How long one client may block the others.
const PATIENCE: Duration = Duration::from_secs(2);

/// A server that runs as long as the program.
pub(super) struct Server {
    address: SocketAddr,
}

impl Server {
    pub(super) fn start(speed: Speed) -> anyhow::Result<Server> {
        let start = || -> io::Result<Server> {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let address = listener.local_addr()?;
            let serve = move || {
                for stream in listener.incoming().flatten() {
                    // An error means that the client is gone.
                    let _ = answer(&stream, speed);
                }
            };
            thread::Builder::new().name("scripted model".to_owned()).spawn(serve)?;
            Ok(Server { address })
        };
        start().context("cannot start the scripted model on 127.0.0.1")
    }

    pub(super) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }
}

fn answer(stream: &TcpStream, speed: Speed) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // Send each word immediately.
    stream.set_nodelay(true)?;
    let body = read_body(&mut BufReader::new(stream))?;
    let mut stream = stream;
    match ModelRequest::parse(&body) {
        Some(request) => say(&mut stream, &request.reply(), speed),
        None => stream.write_all(b"HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n"),
    }
}

/// Reads a request, and returns its body.
fn read_body(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut head = reader.by_ref().take(HEAD_LIMIT);
    let mut length = 0;
    loop {
        let mut line = String::new();
        head.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else {
            match line.trim_end() {
                "" => break,
                _request_line => continue,
            }
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(|_| ErrorKind::InvalidData)?;
        }
    }
    if length > BODY_LIMIT {
        return Err(ErrorKind::FileTooLarge.into());
    }
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body)?;
    Ok(body)
}

/// Streams a reply, ended by closing the connection.
fn say(out: &mut impl Write, reply: &Reply, speed: Speed) -> io::Result<()> {
    thread::sleep(speed.answer_delay());
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    out.write_all(head.as_bytes())?;
    for word in reply.text.split_inclusive(' ') {
        event(out, &json!({"content": word}), None)?;
        thread::sleep(speed.word_delay());
    }
    let finish = match &reply.call {
        Some(call) => {
            let function = json!({"name": call.tool, "arguments": call.arguments});
            let call = json!({"index": 0, "id": "call", "type": "function", "function": function});
            event(out, &json!({"tool_calls": [call]}), None)?;
            "tool_calls"
        }
        None => "stop",
    };
    event(out, &json!({}), Some(finish))?;
    out.write_all(b"data: [DONE]\n\n")
}

fn event(out: &mut impl Write, delta: &Value, finish: Option<&str>) -> io::Result<()> {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    let chunk = json!({"object": "chat.completion.chunk", "choices": [choice]});
    out.write_all(format!("data: {chunk}\n\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(request: &str, expected: Result<&str, ErrorKind>) {
        let body = read_body(&mut request.as_bytes());
        let body = body.map(|body| String::from_utf8(body).unwrap()).map_err(|error| error.kind());
        assert_eq!(body, expected.map(str::to_owned));
    }

    #[test]
    fn a_request_is_read_to_the_end_of_its_body() {
        check("POST / HTTP/1.1\r\nHost: x\r\ncontent-length: 3\r\n\r\nabcd", Ok("abc"));
        check("POST / HTTP/1.1\r\n\r\nabc", Ok(""));
        check("", Ok(""));
    }

    #[test]
    fn a_request_without_bounds_is_refused() {
        let head = |length: &str| format!("POST / HTTP/1.1\r\nContent-Length: {length}\r\n\r\n");
        check(&head("1048577"), Err(ErrorKind::FileTooLarge));
        check(&head("-1"), Err(ErrorKind::InvalidData));
        check(&head("99999999999999999999"), Err(ErrorKind::InvalidData));
        // Headers beyond the limit are ignored.
        check(&format!("{}\r\nContent-Length: 3\r\n\r\nabc", "x".repeat(20_000)), Ok(""));
    }

    #[test]
    fn text_streams_word_by_word_followed_by_the_call() {
        let call = super::super::script::Call { tool: "glob", arguments: "{}".to_owned() };
        let mut out = Vec::new();
        say(&mut out, &Reply { text: "one two", call: Some(call) }, Speed::AtOnce).unwrap();
        let text = String::from_utf8(out).unwrap();
        let (_, events) = text.split_once("\r\n\r\n").unwrap();
        let deltas: Vec<Value> = events
            .lines()
            .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
            .map(|chunk: Value| chunk["choices"][0]["delta"].clone())
            .collect();
        let function = json!({"name": "glob", "arguments": "{}"});
        let call = json!({"index": 0, "id": "call", "type": "function", "function": function});
        let expected = [
            json!({"content": "one "}),
            json!({"content": "two"}),
            json!({"tool_calls": [call]}),
            json!({}),
        ];
        assert_eq!(deltas, expected);
        assert!(events.ends_with("data: [DONE]\n\n"));
    }
}
