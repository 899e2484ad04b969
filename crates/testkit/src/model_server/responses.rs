//! An answer in the Responses format.

use serde_json::{Value, json};

use super::answer::{Answer, Rendered};

pub(super) fn stream(answer: &Answer) -> Rendered {
    let mut body = Rendered::events();
    body.push(event("response.created", json!({"response": {"model": "scripted"}})));
    let mut output = Vec::new();
    if !answer.text.is_empty() {
        let item = message("");
        body.push(event("response.output_item.added", json!({"output_index": 0, "item": item})));
        for piece in &answer.text {
            let delta = json!({"output_index": 0, "item_id": "msg_1", "delta": piece});
            body.last_text = Some(body.push(event("response.output_text.delta", delta)));
        }
        output.push(message(&answer.text.concat()));
        let done = json!({"output_index": 0, "item": output[0]});
        body.push(event("response.output_item.done", done));
    }
    for call in &answer.calls {
        let index = output.len();
        let item = |arguments: &str| {
            json!({"type": "function_call", "id": format!("fc_{}", call.id), "call_id": call.id,
                "name": call.name, "arguments": arguments})
        };
        let begin = json!({"output_index": index, "item": item("")});
        body.push(event("response.output_item.added", begin));
        for piece in &call.arguments {
            let delta = json!({"output_index": index, "item_id": format!("fc_{}", call.id),
                "delta": piece});
            let delta = event("response.function_call_arguments.delta", delta);
            body.last_arguments = Some(body.push(delta));
        }
        output.push(item(&call.arguments.concat()));
        let done = json!({"output_index": index, "item": output[index]});
        body.push(event("response.output_item.done", done));
    }
    match &answer.error {
        Some(message) => {
            let error = json!({"code": "server_error", "message": message});
            body.push(event("response.failed", json!({"response": {"error": error}})));
        }
        None => {
            let response = document(answer, &output);
            body.push(event("response.completed", json!({"response": response})));
        }
    }
    body
}

pub(super) fn whole(answer: &Answer) -> Vec<u8> {
    let text = (!answer.text.is_empty()).then(|| message(&answer.text.concat()));
    let calls = answer.calls.iter().map(|call| {
        json!({"type": "function_call", "id": format!("fc_{}", call.id), "call_id": call.id,
            "name": call.name, "arguments": call.arguments.concat()})
    });
    let output: Vec<Value> = text.into_iter().chain(calls).collect();
    document(answer, &output).to_string().into_bytes()
}

fn document(answer: &Answer, output: &[Value]) -> Value {
    let (input, out) = answer.usage;
    json!({"id": "resp_1", "status": "completed", "model": "scripted", "output": output,
        "usage": {"input_tokens": input, "output_tokens": out, "total_tokens": input + out}})
}

fn message(text: &str) -> Value {
    let content = match text {
        "" => json!([]),
        text => json!([{"type": "output_text", "text": text, "annotations": []}]),
    };
    json!({"type": "message", "id": "msg_1", "role": "assistant", "content": content})
}

fn event(name: &str, mut data: Value) -> String {
    data["type"] = Value::from(name);
    format!("event: {name}\ndata: {data}\n\n")
}
