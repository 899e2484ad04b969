//! An answer in Anthropic's format.

use serde_json::{Value, json};

use super::answer::{Answer, Call, Rendered};

pub(super) fn stream(answer: &Answer) -> Rendered {
    let mut body = Rendered::events();
    let (input, output) = answer.usage;
    let usage = usage(answer, input, 1);
    let message = message(&json!([]), None, &usage);
    body.push(event(&json!({"type": "message_start", "message": message})));
    let mut index = 0;
    if !answer.text.is_empty() {
        text_block(&mut body, &answer.text);
        index += 1;
    }
    for call in &answer.calls {
        call_block(&mut body, index, call);
        index += 1;
    }
    if let Some(message) = &answer.error {
        let error = json!({"type": "overloaded_error", "message": message});
        body.push(event(&json!({"type": "error", "error": error})));
        return body;
    }
    let delta = json!({"stop_reason": stop_reason(answer), "stop_sequence": null});
    let usage = json!({"output_tokens": output});
    body.push(event(&json!({"type": "message_delta", "delta": delta, "usage": usage})));
    body.push(event(&json!({"type": "message_stop"})));
    body
}

fn text_block(body: &mut Rendered, pieces: &[String]) {
    body.push(begin(0, &json!({"type": "text", "text": ""})));
    body.push(event(&json!({"type": "ping"})));
    for piece in pieces {
        body.last_text = Some(body.push(delta(0, &json!({"type": "text_delta", "text": piece}))));
    }
    body.push(event(&json!({"type": "content_block_stop", "index": 0})));
}

fn call_block(body: &mut Rendered, index: usize, call: &Call) {
    let block = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}});
    body.push(begin(index, &block));
    body.push(delta(index, &json!({"type": "input_json_delta", "partial_json": ""})));
    for piece in &call.arguments {
        let piece = json!({"type": "input_json_delta", "partial_json": piece});
        body.last_arguments = Some(body.push(delta(index, &piece)));
    }
    body.push(event(&json!({"type": "content_block_stop", "index": index})));
}

pub(super) fn whole(answer: &Answer) -> Vec<u8> {
    let mut content = Vec::new();
    if !answer.text.is_empty() {
        content.push(json!({"type": "text", "text": answer.text.concat()}));
    }
    for call in &answer.calls {
        let raw = call.arguments.concat();
        let input: Value = serde_json::from_str(&raw).unwrap_or(Value::String(raw));
        content.push(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input}));
    }
    let (input, output) = answer.usage;
    let usage = usage(answer, input, output);
    message(&content.into(), Some(stop_reason(answer)), &usage).to_string().into_bytes()
}

/// What came from a cache is counted apart.
fn usage(answer: &Answer, input: u64, output: u64) -> Value {
    match answer.cached {
        0 => json!({"input_tokens": input, "output_tokens": output}),
        cached => json!({"input_tokens": input - cached, "output_tokens": output,
            "cache_read_input_tokens": cached}),
    }
}

fn message(content: &Value, stop_reason: Option<&str>, usage: &Value) -> Value {
    json!({
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": null,
        "usage": usage,
    })
}

fn begin(index: usize, block: &Value) -> String {
    event(&json!({"type": "content_block_start", "index": index, "content_block": block}))
}

fn delta(index: usize, delta: &Value) -> String {
    event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
}

fn stop_reason(answer: &Answer) -> &str {
    match answer.finish() {
        "stop" => "end_turn",
        "length" => "max_tokens",
        "tool_calls" => "tool_use",
        "content_filter" => "refusal",
        other => other,
    }
}

fn event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap())
}
