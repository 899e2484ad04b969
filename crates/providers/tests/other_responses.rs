//! Properties of all responses in Anthropic's, Google's and the Responses
//! format, whatever the server sends. The streams are those of the
//! fixtures, with events missing, repeated, moved and changed.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use ikigai_conversation::{AgentId, Body, Log, Message, MessageId, NewMessage, ResponseId, Time};
use ikigai_providers::{Anthropic, Delta, Google, Provider, Request, Response, Responses, ToolUse};
use ikigai_testkit::strict;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

type Judge = fn(&Value) -> Result<(), String>;

fn events_of(fixture: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sse/made-up");
    let stream = fs::read_to_string(folder.join(format!("{fixture}.response.txt"))).unwrap();
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|json| serde_json::from_str(json).unwrap()).collect()
}

/// A change of a stream.
#[derive(Debug, Clone)]
enum Damage {
    Drop(Index),
    Repeat(Index),
    Swap(Index, Index),
    /// Replaces a value somewhere inside an event.
    Change(Index, Vec<Index>, Value),
}

fn any_damage() -> impl Strategy<Value = Damage> {
    let leaf = select(vec![
        Value::Null,
        json!(0),
        json!(-7.5),
        json!(true),
        json!(""),
        json!(" "),
        json!("a"),
        json!("{\"x\":"),
        json!({}),
        json!({"x": 1}),
        json!([]),
        json!([7, {"type": "text", "text": "t"}]),
    ]);
    let path = prop::collection::vec(any::<Index>(), 1..6);
    prop_oneof![
        1 => any::<Index>().prop_map(Damage::Drop),
        1 => any::<Index>().prop_map(Damage::Repeat),
        1 => (any::<Index>(), any::<Index>()).prop_map(|(a, b)| Damage::Swap(a, b)),
        4 => (any::<Index>(), path, leaf).prop_map(|(at, path, leaf)| Damage::Change(at, path, leaf)),
    ]
}

impl Damage {
    fn to(&self, events: &mut Vec<Value>) {
        let length = events.len();
        match self {
            _ if length == 0 => {}
            Damage::Drop(at) => drop(events.remove(at.index(length))),
            Damage::Repeat(at) => events.push(events[at.index(length)].clone()),
            Damage::Swap(a, b) => events.swap(a.index(length), b.index(length)),
            Damage::Change(at, path, leaf) => {
                change(&mut events[at.index(length)], path, leaf);
            }
        }
    }
}

/// Puts `leaf` into a value, at a path or as deep as the value goes.
fn change(value: &mut Value, path: &[Index], leaf: &Value) {
    let Some((step, rest)) = path.split_first() else { return *value = leaf.clone() };
    let inner = match value {
        Value::Object(fields) if !fields.is_empty() => {
            let position = step.index(fields.len());
            fields.values_mut().nth(position)
        }
        Value::Array(list) if !list.is_empty() => {
            let position = step.index(list.len());
            list.get_mut(position)
        }
        _ => return *value = leaf.clone(),
    };
    change(inner.unwrap(), rest, leaf);
}

/// Decodes a damaged stream. If that gives a response, it can be sent back.
fn check(
    provider: &dyn Provider,
    judge: Judge,
    mut events: Vec<Value>,
    damage: &[Damage],
) -> Result<(), TestCaseError> {
    damage.iter().for_each(|damage| damage.to(&mut events));
    let mut decoder = provider.decode();
    let mut passed_on = 0;
    for event in &events {
        // Callers stop at the first fault. Here the decoder gets the rest as
        // well, and must not panic.
        let _ = decoder.event(None, &event.to_string(), &mut |delta| {
            if let Delta::Text(piece) = delta {
                passed_on += piece.len();
            }
        });
    }
    let Ok(response) = decoder.finish() else { return Ok(()) };
    prop_assert_eq!(response.text.len(), passed_on);
    let ids: HashSet<&str> = response.calls.iter().map(|call| call.id.as_str()).collect();
    prop_assert_eq!(ids.len(), response.calls.len());
    let log = log_with(&response);
    let view = Log::new(&log).view();
    for model in ["claude-opus-5-5", "gemini-3.8-flash", "gpt-5.6", "a"] {
        let request = Request {
            model,
            origin: "",
            view: &view,
            tools: &[],
            tool_use: ToolUse::Auto,
            effort: None,
            max_output_tokens: None,
        };
        let body = serde_json::from_slice(&provider.encode(&request)).unwrap();
        judge(&body).map_err(|rule| TestCaseError::fail(format!("{rule}: {body}")))?;
    }
    Ok(())
}

/// A log with a response, as an agent writes it.
fn log_with(response: &Response) -> Vec<Message> {
    let id = || ResponseId::new("r1");
    let mut news = vec![NewMessage::user("hi")];
    if !response.text.is_empty() || response.calls.is_empty() {
        news.push(NewMessage::assistant(&response.text, id()));
    }
    for call in &response.calls {
        let new = NewMessage::tool_call(call.id.clone(), &call.name, &call.arguments, id());
        let Body::ToolCall(opened) = new.body.clone() else { unreachable!() };
        news.extend([new, NewMessage::tool_result(&opened, "{}")]);
    }
    if let Some(extras) = &response.extras {
        news[1] = news[1].clone().with_extras(extras.clone());
    }
    news.push(NewMessage::user("go on"));
    let number = |(new, number): (NewMessage, i64)| {
        let id = MessageId::new(number).unwrap();
        new.into_message(id, AgentId::top_level(0), Time::from_millis(0))
    };
    news.into_iter().zip(1..).map(number).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn whatever_anthropic_sends_is_a_fault_or_can_be_sent_back(
        damage in prop::collection::vec(any_damage(), 0..6),
    ) {
        let events = events_of("61-anthropic-made-up-thinking-and-tools");
        check(&Anthropic, strict::anthropic::check, events, &damage)?;
    }

    #[test]
    fn whatever_google_sends_is_a_fault_or_can_be_sent_back(
        damage in prop::collection::vec(any_damage(), 0..6),
    ) {
        check(&Google, strict::google::check, events_of("62-google-made-up-signed-calls"), &damage)?;
    }

    #[test]
    fn whatever_responses_sends_is_a_fault_or_can_be_sent_back(
        damage in prop::collection::vec(any_damage(), 0..6),
    ) {
        let events = events_of("60-responses-made-up-reasoning-and-tool");
        check(&Responses, strict::responses::check, events, &damage)?;
    }
}
