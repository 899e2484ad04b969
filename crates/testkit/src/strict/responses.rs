//! OpenAI's Responses, with nothing stored on the server.

use std::collections::HashSet;

use serde_json::Value;

use super::rules::{Verdict, distinct, ensure, fields, list, name, object, text, visible};

/// Checks the body of a request.
///
/// # Errors
/// Why the API would refuse it.
pub fn check(body: &Value) -> Result<(), String> {
    let optional =
        ["include", "instructions", "tools", "tool_choice", "reasoning", "max_output_tokens"];
    let required = ["model", "store", "stream", "input"];
    let all = fields(body, "the request", &required, &optional)?;
    visible(&body["model"], "model")?;
    ensure(body["store"] == false, || "something is stored".to_owned())?;
    if let Some(instructions) = all.get("instructions") {
        visible(instructions, "instructions")?;
    }
    if let Some(tools) = all.get("tools") {
        check_tools(list(tools, "tools")?)?;
    }
    if let Some(choice) = all.get("tool_choice") {
        let is_known = choice == "none" && all.contains_key("tools");
        ensure(is_known, || format!("tool_choice {choice}"))?;
    }
    if let Some(reasoning) = all.get("reasoning") {
        fields(reasoning, "reasoning", &["effort"], &["summary"])?;
        let is_known =
            ["none", "low", "medium", "high"].map(Value::from).contains(&reasoning["effort"]);
        ensure(is_known, || format!("reasoning {reasoning}"))?;
    }
    check_input(list(&body["input"], "input")?)
}

fn check_tools(tools: &[Value]) -> Verdict {
    for tool in tools {
        let required = ["type", "name", "description", "parameters", "strict"];
        fields(tool, "a tool", &required, &[])?;
        ensure(tool["type"] == "function", || format!("a tool: {tool}"))?;
        name(&tool["name"], "a tool")?;
        object(&tool["parameters"], "parameters")?;
    }
    distinct(tools.iter().filter_map(|tool| tool["name"].as_str()), "tool")
}

fn check_input(input: &[Value]) -> Verdict {
    let mut ids = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for (position, item) in input.iter().enumerate() {
        let what = format!("input.{position}");
        match item["type"].as_str() {
            Some("message") => check_message(item, &what)?,
            Some("reasoning") => check_reasoning(item, input.get(position + 1), &what)?,
            Some("function_call") => {
                let id = check_call(item, &what)?;
                ensure(ids.insert(id), || format!("{what}: the id {id} stands twice"))?;
                open.push(id);
            }
            Some("function_call_output") => {
                fields(item, &what, &["type", "call_id", "output"], &[])?;
                text(&item["output"], &what)?;
                let call = open.iter().position(|id| item["call_id"] == *id);
                open.remove(call.ok_or_else(|| format!("{what}: a result without its call"))?);
            }
            _ => return Err(format!("{what}: {item}")),
        }
        let is_user = item["role"] == "user";
        ensure(!is_user || open.is_empty(), || format!("{what}: a call without its result"))?;
    }
    ensure(open.is_empty(), || format!("calls without their results: {open:?}"))
}

fn check_message(item: &Value, what: &str) -> Verdict {
    fields(item, what, &["type", "role", "content"], &["phase"])?;
    let kind = match item["role"].as_str() {
        Some("user") => "input_text",
        Some("assistant") => "output_text",
        _ => return Err(format!("{what}: {item}")),
    };
    ensure(kind == "output_text" || item.get("phase").is_none(), || format!("{what}: phase"))?;
    for part in list(&item["content"], what)? {
        fields(part, what, &["type", "text"], &[])?;
        ensure(part["type"] == kind, || format!("{what}: {part}"))?;
        visible(&part["text"], what)?;
    }
    Ok(())
}

/// Text or a call of the model must follow it.
fn check_reasoning(item: &Value, next: Option<&Value>, what: &str) -> Verdict {
    fields(item, what, &["type", "id", "summary", "encrypted_content"], &[])?;
    visible(&item["id"], what)?;
    visible(&item["encrypted_content"], what)?;
    ensure(item["summary"].is_array(), || format!("{what}: {item}"))?;
    let follows = next.is_some_and(|next| {
        next["role"] == "assistant"
            || next["type"] == "function_call"
            || next["type"] == "reasoning"
    });
    ensure(follows, || format!("{what}: nothing follows the reasoning"))
}

fn check_call<'a>(item: &'a Value, what: &str) -> Verdict<&'a str> {
    fields(item, what, &["type", "call_id", "name", "arguments"], &[])?;
    name(&item["name"], what)?;
    let arguments = text(&item["arguments"], what)?;
    let is_object = serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object());
    ensure(is_object, || format!("{what}: {arguments}"))?;
    let id = visible(&item["call_id"], what)?;
    ensure(id.len() <= 64, || format!("{what}: a long id"))?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(input: &Value) -> Value {
        json!({"model": "m", "store": false, "stream": true, "input": input})
    }

    fn said() -> Value {
        let content = json!([{"type": "input_text", "text": "hi"}]);
        json!({"type": "message", "role": "user", "content": content})
    }

    fn called(arguments: &str) -> Value {
        json!({"type": "function_call", "call_id": "a", "name": "x", "arguments": arguments})
    }

    fn resulted(id: &str) -> Value {
        json!({"type": "function_call_output", "call_id": id, "output": ""})
    }

    #[test]
    fn a_valid_request_is_accepted() {
        let reasoning =
            json!({"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "e"});
        let input = json!([said(), reasoning, called("{}"), resulted("a"), said()]);
        assert_eq!(check(&request(&input)), Ok(()));
    }

    #[test]
    fn invalid_requests_are_refused() {
        let reasoning =
            json!({"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "e"});
        for input in [
            json!([]),
            json!([said(), called("{}")]),
            json!([said(), called("{"), resulted("a")]),
            json!([said(), called("{}"), said(), resulted("a")]),
            json!([said(), resulted("a")]),
            json!([said(), called("{}"), resulted("a"), called("{}"), resulted("a")]),
            json!([said(), reasoning]),
            json!([reasoning, said()]),
        ] {
            assert!(check(&request(&input)).is_err(), "{input}");
        }
    }
}
