//! Properties of all Chat Completions responses, whatever the server sends.

use std::collections::HashSet;

use ikigai_providers::{ChatCompletions, Delta, Provider};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

/// Any value: one that belongs there, or one that does not.
fn any_leaf() -> impl Strategy<Value = Value> {
    select(vec![
        Value::Null,
        json!(0),
        json!(1),
        json!(-7.5),
        json!(true),
        json!(""),
        json!("a"),
        json!("f"),
        json!("stop"),
        json!("{\"x\":"),
        json!("1}"),
        json!("{}"),
        json!({}),
        json!({"x": 1}),
        json!([]),
        json!([{"type": "text", "text": "t"}, 7]),
    ])
}

fn any_object(fields: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let field = (select(fields), any_leaf());
    prop::collection::vec(field, 0..5).prop_map(|fields| fields.into_iter().collect())
}

fn any_call() -> impl Strategy<Value = Value> {
    let function = prop_oneof![any_object(&["name", "arguments"]), any_leaf()];
    (any_object(&["index", "id", "type", "extra_content"]), function).prop_map(
        |(mut call, function)| {
            call["function"] = function;
            call
        },
    )
}

fn any_event() -> impl Strategy<Value = String> {
    let calls = prop_oneof![
        4 => prop::collection::vec(any_call(), 0..4).prop_map(Value::from),
        1 => any_leaf(),
    ];
    let delta =
        any_object(&["content", "refusal", "reasoning", "reasoning_details", "function_call"]);
    let choice = (any_object(&["finish_reason", "usage"]), delta, calls).prop_map(
        |(mut choice, mut delta, calls)| {
            delta["tool_calls"] = calls;
            choice["delta"] = delta;
            choice
        },
    );
    let chunk = prop::collection::vec(choice, 0..2).prop_map(|choices| json!({"choices": choices}));
    prop_oneof![
        8 => chunk.prop_map(|chunk| chunk.to_string()),
        1 => any_object(&["choices", "usage", "object"]).prop_map(|chunk| chunk.to_string()),
        1 => select(vec!["", "[DONE]", "{", "null", "[[[["]).prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn whatever_comes_is_a_response_or_a_fault(events in prop::collection::vec(any_event(), 0..8)) {
        let mut decode = ChatCompletions.decode();
        let mut text = String::new();
        let faults = events.iter().filter_map(|event| {
            decode.event(None, event, &mut |delta| {
                if let Delta::Text(piece) = delta {
                    text.push_str(piece);
                }
            }).err()
        });
        // Callers stop at the first fault. Here the decoder gets the rest as
        // well, and must not panic.
        let _ = faults.count();
        if let Ok(response) = decode.finish() {
            prop_assert_eq!(response.text, text);
            let ids: HashSet<&str> = response.calls.iter().map(|call| call.id.as_str()).collect();
            prop_assert_eq!(ids.len(), response.calls.len());
        }
    }
}
