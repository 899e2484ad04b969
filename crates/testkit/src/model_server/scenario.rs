//! Scripts for manual use and benches: the same few conversations again and again.

use serde_json::{Value, json};

use super::captured::CapturedRequest;
use super::reply::Reply;

/// A model whose answers only depend on the request, so that any number of agents can use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scenario {
    /// A short text.
    Text,
    /// This many calls of `bash`, one after another, then a text.
    Bash(usize),
    /// This many calls of `file_read`, one after another, then a text.
    FileRead(usize),
    /// A text in this many pieces.
    Deltas(usize),
}

impl Scenario {
    pub(super) fn parse(words: &[&str]) -> Option<Scenario> {
        let count = |word: &str| word.parse().ok();
        match *words {
            ["text"] => Some(Scenario::Text),
            ["bash", calls] => count(calls).map(Scenario::Bash),
            ["file_read", calls] => count(calls).map(Scenario::FileRead),
            ["deltas", pieces] => count(pieces).map(Scenario::Deltas),
            _ => None,
        }
    }

    pub(super) fn reply(self, captured: &CapturedRequest) -> Reply {
        match self {
            Scenario::Text => Reply::text("Hello from the scripted model."),
            Scenario::Bash(calls) => call(captured, calls, "bash", json!({"command": "true"})),
            Scenario::FileRead(calls) => {
                call(captured, calls, "file_read", json!({"path": "README.md"}))
            }
            Scenario::Deltas(pieces) => Reply::pieces((0..pieces).map(|n| format!("word{n} "))),
        }
    }
}

fn call(captured: &CapturedRequest, calls: usize, name: &str, arguments: Value) -> Reply {
    let done = captured.results_since_user();
    match done < calls {
        true => Reply::call(&format!("call_{}_{done}", captured.messages().len()), name, arguments),
        false => Reply::text("Done."),
    }
}

/// Replies from a JSON list such as `[{"text": "Hi"}, {"calls": [{"name": "bash", "arguments":
/// {…}}]}]`. With `status` a reply is an error.
pub(super) fn parse_script(json: &str) -> Result<Vec<Reply>, String> {
    let replies: Vec<Value> = serde_json::from_str(json).map_err(|error| error.to_string())?;
    replies.iter().map(parse_reply).collect()
}

fn parse_reply(reply: &Value) -> Result<Reply, String> {
    let text = reply["text"].as_str().unwrap_or_default();
    if let Some(status) = reply["status"].as_u64() {
        let status = u16::try_from(status).map_err(|_| format!("no status: {status}"))?;
        let error = Reply::error(status, text);
        let wish = reply["retry_after"].as_u64();
        return Ok(wish.map_or(error.clone(), |seconds| error.retry_after(seconds)));
    }
    let calls = reply["calls"].as_array().map(Vec::as_slice).unwrap_or_default();
    if text.is_empty() && calls.is_empty() {
        return Err(format!("neither text nor calls nor a status: {reply}"));
    }
    let names: Vec<String> = (1..=calls.len()).map(|place| format!("call_{place}")).collect();
    let calls = calls.iter().zip(&names).map(|(call, made)| {
        let id = call["id"].as_str().unwrap_or(made);
        (id, call["name"].as_str().unwrap_or_default(), call["arguments"].clone())
    });
    let answer = Reply::text_and_calls(text, calls);
    Ok(match reply["finish"].as_str() {
        Some(reason) => answer.finish(reason),
        None => answer,
    })
}
