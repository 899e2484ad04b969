//! Helpers for the tests of all wire formats.

use ikigai_conversation::{AgentId, Extras, Log, Message, MessageId, NewMessage, ResponseId, Time};
use ikigai_conversation::{Body, Effort, ToolCallId};
use serde_json::json;

use crate::fault::{Category, Fault};
use crate::provider::{Delta, Provider};
use crate::request::{Request, Tool, ToolUse};
use crate::response::{Call, Response, Stop, Tokens};

/// Messages of an agent, numbered from `first`.
pub(crate) fn messages(
    agent: &str,
    first: i64,
    news: impl IntoIterator<Item = NewMessage>,
) -> Vec<Message> {
    let agent = AgentId::parse(agent).unwrap();
    let number = |(new, id): (NewMessage, i64)| {
        new.into_message(MessageId::new(id).unwrap(), agent.clone(), Time::from_millis(0))
    };
    news.into_iter().zip(first..).map(number).collect()
}

pub(crate) fn answer(text: &str, response: &str) -> NewMessage {
    NewMessage::assistant(text, ResponseId::new(response))
}

pub(crate) fn call(name: &str, id: &str, arguments: &str, response: &str) -> NewMessage {
    NewMessage::tool_call(ToolCallId::new(id), name, arguments, ResponseId::new(response))
}

/// The result of a call made with [`call`].
pub(crate) fn result(name: &str, id: &str, output: &str) -> NewMessage {
    match call(name, id, "{}", "").body {
        Body::ToolCall(call) => NewMessage::tool_result(&call, output),
        other => unreachable!("{other:?}"),
    }
}

pub(crate) fn extras(json: &str) -> Extras {
    Extras::parse(json).unwrap()
}

pub(crate) fn glob_tool() -> Tool {
    Tool {
        name: "glob".to_owned(),
        description: "Find files".to_owned(),
        parameters: json!({"type": "object", "properties": {"pattern": {"type": "string"}}}),
    }
}

/// The body of a request for a log of agent `0/`.
pub(crate) fn sent(
    provider: &dyn Provider,
    model: &str,
    tools: &[Tool],
    news: impl IntoIterator<Item = NewMessage>,
) -> String {
    sent_for(provider, model, tools, ToolUse::Auto, &messages("0/", 1, news))
}

/// The body of a request for a log.
pub(crate) fn sent_for(
    provider: &dyn Provider,
    model: &str,
    tools: &[Tool],
    tool_use: ToolUse,
    log: &[Message],
) -> String {
    let view = Log::new(log).view();
    let request = Request { tools, tool_use, ..Request::without_tools(model, "", &view) };
    String::from_utf8(provider.encode(&request)).unwrap()
}

/// What a request with this effort has at its end that a request without one does not have.
#[track_caller]
pub(crate) fn sent_for_effort(provider: &dyn Provider, model: &str, effort: Effort) -> String {
    let log = messages("0/", 1, [NewMessage::user("hi")]);
    let view = Log::new(&log).view();
    let request = Request::without_tools(model, "", &view);
    let [without, with] = [None, Some(effort)]
        .map(|effort| String::from_utf8(provider.encode(&Request { effort, ..request })).unwrap());
    let without = without.strip_suffix('}').unwrap();
    with.strip_prefix(without).unwrap().strip_suffix('}').unwrap().to_owned()
}

/// The rest of a body, starting with `"field":`.
pub(crate) fn from_field<'a>(body: &'a str, field: &str) -> &'a str {
    &body[body.find(&format!("\"{field}\":")).unwrap()..]
}

/// The response to these events, and the text that was passed on meanwhile.
pub(crate) fn received(
    provider: &dyn Provider,
    events: &[&str],
) -> (Result<Response, Fault>, String) {
    let mut decoder = provider.decode();
    let mut text = String::new();
    for data in events {
        if let Err(fault) = decoder.event(None, data, &mut |delta| add_text(&mut text, delta)) {
            return (Err(fault), text);
        }
    }
    (decoder.finish(), text)
}

fn add_text(text: &mut String, delta: Delta<'_>) {
    match delta {
        Delta::Text(piece) => text.push_str(piece),
        Delta::Thinking(_) | Delta::Call { .. } => {}
    }
}

/// The thinking that was passed on with these events.
pub(crate) fn thought(provider: &dyn Provider, events: &[&str]) -> String {
    let mut decoder = provider.decode();
    let mut thinking = String::new();
    for data in events {
        let mut on_delta = |delta: Delta<'_>| match delta {
            Delta::Text(_) | Delta::Call { .. } => {}
            Delta::Thinking(piece) => thinking.push_str(piece),
        };
        decoder.event(None, data, &mut on_delta).unwrap();
    }
    thinking
}

/// The response to a body that was not streamed.
pub(crate) fn received_whole(provider: &dyn Provider, body: &str) -> Result<Response, Fault> {
    let mut decoder = provider.decode();
    let mut text = String::new();
    decoder.whole(body.as_bytes(), &mut |delta| add_text(&mut text, delta))?;
    let response = decoder.finish()?;
    assert_eq!(text, response.text, "the text that was passed on is the response's");
    Ok(response)
}

/// A complete response with this text.
pub(crate) fn complete(text: &str, tokens: Option<Tokens>) -> Response {
    let (text, stop) = (text.to_owned(), Stop::Complete);
    Response { text, calls: Vec::new(), extras: None, stop, tokens }
}

pub(crate) fn received_call(id: &str, name: &str, arguments: &str) -> Call {
    let (name, arguments) = (name.to_owned(), arguments.to_owned());
    Call { id: ToolCallId::new(id), name, arguments }
}

#[track_caller]
pub(crate) fn check_response(provider: &dyn Provider, events: &[&str], expected: &Response) {
    let (response, text) = received(provider, events);
    assert_eq!(response.as_ref(), Ok(expected));
    assert_eq!(text, expected.text, "what was passed on");
}

#[track_caller]
pub(crate) fn check_fault(
    provider: &dyn Provider,
    events: &[&str],
    category: Category,
    message: &str,
) {
    let (response, _) = received(provider, events);
    assert_eq!(response, Err(Fault::new(category, message)));
}
