//! An answer in the chat format.

use serde_json::{Value, json};

use super::answer::{Answer, Rendered};

pub(super) fn stream(answer: &Answer, wants_usage: bool) -> Rendered {
    let mut body = Rendered::events();
    body.push(delta(&json!({"role": "assistant", "content": ""}), None));
    for piece in &answer.text {
        body.last_text = Some(body.push(delta(&json!({"content": piece}), None)));
    }
    for (index, call) in answer.calls.iter().enumerate() {
        let begin = json!({"index": index, "id": call.id, "type": "function",
            "function": {"name": call.name, "arguments": ""}});
        body.push(delta(&json!({"tool_calls": [begin]}), None));
        for piece in &call.arguments {
            let more = json!({"index": index, "function": {"arguments": piece}});
            body.last_arguments = Some(body.push(delta(&json!({"tool_calls": [more]}), None)));
        }
    }
    if let Some(message) = &answer.error {
        let error = json!({"error": {"message": message, "type": "server_error", "code": 500}});
        body.push(event(&error));
        return body;
    }
    body.push(delta(&json!({}), Some(answer.finish())));
    if wants_usage {
        body.push(event(&chunk(&json!([]), Some(usage(answer)))));
    }
    body.push("data: [DONE]\n\n".to_owned());
    body
}

pub(super) fn whole(answer: &Answer) -> Vec<u8> {
    let mut message = json!({"role": "assistant", "content": answer.text.concat()});
    if !answer.calls.is_empty() {
        message["tool_calls"] = answer
            .calls
            .iter()
            .map(|call| {
                json!({"id": call.id, "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments.concat()}})
            })
            .collect();
    }
    let body = json!({
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": answer.finish()}],
        "usage": usage(answer),
    });
    body.to_string().into_bytes()
}

fn delta(delta: &Value, finish: Option<&str>) -> String {
    event(&chunk(&json!([{"index": 0, "delta": delta, "finish_reason": finish}]), None))
}

fn chunk(choices: &Value, usage: Option<Value>) -> Value {
    let mut chunk = json!({
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "scripted",
        "choices": choices,
    });
    if let Some(usage) = usage {
        chunk["usage"] = usage;
    }
    chunk
}

fn usage(answer: &Answer) -> Value {
    let (input, output) = answer.usage;
    let mut usage = json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output});
    if answer.cached > 0 {
        usage["prompt_tokens_details"] = json!({"cached_tokens": answer.cached});
    }
    usage
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}
