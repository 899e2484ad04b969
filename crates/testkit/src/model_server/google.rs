//! An answer in Google's format.

use serde_json::{Value, json};

use super::answer::{Answer, Rendered};

pub(super) fn stream(answer: &Answer) -> Rendered {
    let mut body = Rendered::events();
    for piece in &answer.text {
        let chunk = chunk(answer, &json!([{"text": piece}]), None);
        body.last_text = Some(body.push(event(&chunk)));
    }
    for call in &answer.calls {
        let chunk = chunk(answer, &json!([part_of(call)]), None);
        body.last_arguments = Some(body.push(event(&chunk)));
    }
    match &answer.error {
        Some(message) => {
            let error = json!({"code": 503, "status": "UNAVAILABLE", "message": message});
            body.push(event(&json!({ "error": error })));
        }
        None => {
            body.push(event(&chunk(answer, &json!([{"text": ""}]), Some("STOP"))));
        }
    }
    body
}

pub(super) fn whole(answer: &Answer) -> Vec<u8> {
    let text = json!({"text": answer.text.concat()});
    let parts: Value = [text].into_iter().chain(answer.calls.iter().map(part_of)).collect();
    chunk(answer, &parts, Some("STOP")).to_string().into_bytes()
}

fn part_of(call: &super::answer::Call) -> Value {
    let arguments = call.arguments.concat();
    let arguments: Value = serde_json::from_str(&arguments).unwrap_or(Value::String(arguments));
    json!({"functionCall": {"id": call.id, "name": call.name, "args": arguments}})
}

fn chunk(answer: &Answer, parts: &Value, finish: Option<&str>) -> Value {
    let (input, output) = answer.usage;
    let usage = json!({"promptTokenCount": input, "candidatesTokenCount": output,
        "totalTokenCount": input + output});
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    if let Some(finish) = finish {
        candidate["finishReason"] = Value::from(finish);
    }
    json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"})
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}
