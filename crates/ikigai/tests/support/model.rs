//! `ikigai run` against a model server that follows a script.

use std::cell::RefCell;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output};
use std::sync::{Arc, mpsc};

use ikigai_testkit::{CapturedRequest, ModelServer, assert_prefix, strict};
use serde_json::{Value, json};

use super::{Ended, PATIENCE, Workspace, ended, finish};

/// The wire formats that a conversation is tested in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Chat,
    Anthropic,
}

impl Format {
    pub(crate) const BOTH: [Format; 2] = [Format::Chat, Format::Anthropic];

    /// The model of this format that every server has.
    pub(crate) fn model(self) -> &'static str {
        match self {
            Format::Chat => "openai/scripted",
            Format::Anthropic => "anthropic/scripted",
        }
    }
}

impl Workspace {
    /// `ikigai run`, with both providers at the server and this format's model unless `--model` says otherwise.
    pub(crate) fn run_command<const N: usize>(
        &self,
        server: &ModelServer,
        format: Format,
        arguments: [&str; N],
    ) -> Command {
        let mut command = self.ikigai();
        command
            .env("OPENAI_BASE_URL", server.base_url())
            .env("OPENAI_API_KEY", "key-of-openai")
            .env("ANTHROPIC_BASE_URL", server.url())
            .env("ANTHROPIC_API_KEY", "key-of-anthropic")
            .env("IKIGAI_MODEL", format.model())
            .arg("run")
            .args(arguments);
        command
    }

    /// Runs it to its end, as text.
    #[track_caller]
    pub(crate) fn run_model<const N: usize>(
        &self,
        server: &ModelServer,
        format: Format,
        arguments: [&str; N],
    ) -> Ended {
        ended(&mut self.run_command(server, format, arguments))
    }

    /// Runs it to its end, as events; nothing but the errors of failed turns may be on standard error.
    #[track_caller]
    pub(crate) fn run_json<const N: usize>(
        &self,
        server: &ModelServer,
        format: Format,
        arguments: [&str; N],
    ) -> (i32, Vec<Value>) {
        let mut command = self.run_command(server, format, arguments);
        let (code, stdout, stderr) = ended(command.arg("--json"));
        let events = events(&stdout);
        assert_eq!(stderr, errors_of(&events));
        (code, events)
    }

    /// The same, with exactly this on standard error.
    #[track_caller]
    pub(crate) fn run_json_telling<const N: usize>(
        &self,
        server: &ModelServer,
        format: Format,
        arguments: [&str; N],
        told: &str,
    ) -> (i32, Vec<Value>) {
        let mut command = self.run_command(server, format, arguments);
        let (code, stdout, stderr) = ended(command.arg("--json"));
        assert_eq!(stderr, told);
        (code, events(&stdout))
    }

    /// The log of an agent in the newest session.
    #[track_caller]
    pub(crate) fn log(&self, agent: &str) -> Vec<Value> {
        events(&self.print(["log", "--json", "--agent", agent]))
    }
}

/// What is on standard error for the turns that failed. The agent of the first event is the prompt's.
pub(crate) fn errors_of(events: &[Value]) -> String {
    let failed = events.iter().filter(|event| event["stop"] == "error");
    let line = |event: &Value| {
        let (agent, error) = (event["agent"].as_str().unwrap(), event["error"].as_str().unwrap());
        let from = match event["agent"] == events[0]["agent"] {
            true => "ikigai:".to_owned(),
            false => format!("[{agent}]"),
        };
        format!("{from} {error}\n")
    };
    failed.map(line).collect()
}

/// One JSON value per line.
#[track_caller]
pub(crate) fn events(lines: &str) -> Vec<Value> {
    assert!(lines.is_empty() || lines.ends_with('\n'), "the last line has no end: {lines}");
    let events = lines.lines().map(|line| serde_json::from_str(line).unwrap());
    events.filter(|event| !is_live(event)).collect()
}

/// Whether it is output of a command that runs. Which of it is passed on is a matter of time.
fn is_live(event: &Value) -> bool {
    event["type"] == "tool_output"
}

/// A run whose events are read while it goes on.
pub(crate) struct Running {
    pub(crate) child: Child,
    lines: mpsc::Receiver<String>,
    /// What was read so far.
    pub(crate) seen: RefCell<Vec<Value>>,
}

impl Running {
    /// Starts a command that prints events.
    pub(crate) fn start(command: &mut Command) -> Running {
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Running { child, lines, seen: RefCell::default() }
    }

    /// The next event; `None` when there will be none.
    #[track_caller]
    pub(crate) fn next(&self) -> Option<Value> {
        std::iter::from_fn(|| self.next_of_all()).find(|event| !is_live(event))
    }

    /// What a running command prints next.
    #[track_caller]
    pub(crate) fn next_output(&self) -> Value {
        std::iter::from_fn(|| self.next_of_all()).find(is_live).expect("the command prints more")
    }

    fn next_of_all(&self) -> Option<Value> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => {
                let event: Value = serde_json::from_str(&line).unwrap();
                if !is_live(&event) {
                    self.seen.borrow_mut().push(event.clone());
                }
                Some(event)
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => None,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("no event comes"),
        }
    }

    /// All events up to the first of this type, which is the last of them.
    #[track_caller]
    pub(crate) fn until(&self, kind: &str) -> Vec<Value> {
        let mut seen = Vec::new();
        while seen.last().is_none_or(|event: &Value| event["type"] != kind) {
            seen.push(self.next().unwrap_or_else(|| panic!("no {kind} came: {seen:?}")));
        }
        seen
    }

    /// Waits for the end; gives the exit code, the rest of the events and standard error.
    #[track_caller]
    pub(crate) fn finish(self) -> (i32, Vec<Value>, String) {
        let Output { status, stderr, .. } = finish(self.child);
        let code = status.code().unwrap_or_else(|| panic!("ended by {status}"));
        let rest = self.lines.iter().map(|line| serde_json::from_str(&line).unwrap());
        let rest = rest.filter(|event| !is_live(event)).collect();
        (code, rest, String::from_utf8(stderr).unwrap())
    }
}

/// Fails unless the strictest servers would take every request.
#[track_caller]
pub(crate) fn assert_strict(requests: &[Arc<CapturedRequest>]) {
    for (number, request) in requests.iter().enumerate() {
        let judged = match request.path.ends_with("/messages") {
            true => strict::anthropic::check(&request.json()),
            false => strict::chat::check(&request.json()),
        };
        assert_eq!(judged, Ok(()), "request {number}: {}", request.text());
    }
}

/// Fails unless every request is strict and begins with the one before it.
#[track_caller]
pub(crate) fn assert_stable(requests: &[Arc<CapturedRequest>]) {
    assert_strict(requests);
    for pair in requests.windows(2) {
        assert_prefix(&pair[0], &pair[1]);
    }
}

/// What a log says, without what differs from run to run: ids and times are left out, responses are called
/// `r1`, `r2` … in the order in which they appear, and of the prompt only the kind is left.
pub(crate) fn said(log: &[Value]) -> Vec<Value> {
    let mut responses: Vec<Value> = Vec::new();
    let strip = |message: &Value| {
        let mut data = message["data"].clone();
        if let Some(response) = data.get_mut("response") {
            let known = responses.iter().position(|known| known == response);
            let number = known.unwrap_or_else(|| {
                responses.push(response.clone());
                responses.len() - 1
            });
            *response = Value::from(format!("r{}", number + 1));
        }
        match message["kind"].as_str() {
            Some("system") => json!(["system"]),
            _ => json!([message["kind"], message["content"], data]),
        }
    };
    log.iter().map(strip).collect()
}

/// The results in a request, byte by byte: the calls' ids and the texts.
pub(crate) fn results_in(request: &CapturedRequest) -> Vec<(String, String)> {
    let result = |value: &Value, id: &str| {
        let text = |field: &str| value[field].as_str().unwrap().to_owned();
        (text(id), text("content"))
    };
    let of_message = |message: &Value| match message["role"].as_str() {
        Some("tool") => vec![result(message, "tool_call_id")],
        _ => {
            let blocks = message["content"].as_array().into_iter().flatten();
            let results = blocks.filter(|block| block["type"] == "tool_result");
            results.map(|block| result(block, "tool_use_id")).collect()
        }
    };
    request.messages().iter().flat_map(of_message).collect()
}
