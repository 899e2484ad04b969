//! Anthropic's Messages.

use std::collections::HashSet;

use serde_json::Value;

use super::rules::{Verdict, distinct, ensure, fields, list, name, object, text, visible};

/// Checks the body of a request.
///
/// # Errors
/// Why the API would refuse it.
pub fn check(body: &Value) -> Result<(), String> {
    let optional =
        ["stream", "cache_control", "system", "tools", "tool_choice", "thinking", "output_config"];
    let fields = fields(body, "the request", &["model", "max_tokens", "messages"], &optional)?;
    visible(&body["model"], "model")?;
    ensure(body["max_tokens"].as_u64().is_some_and(|most| most > 0), || "max_tokens".to_owned())?;
    if let Some(system) = fields.get("system") {
        list(system, "system")?.iter().try_for_each(|block| check_text(block, "system"))?;
    }
    if let Some(tools) = fields.get("tools") {
        check_tools(list(tools, "tools")?)?;
    }
    if let Some(choice) = fields.get("tool_choice") {
        ensure(fields.contains_key("tools"), || "tool_choice without tools".to_owned())?;
        let is_known = matches!(choice["type"].as_str(), Some("auto" | "any" | "none"));
        ensure(is_known, || format!("tool_choice {choice}"))?;
    }
    check_thinking(body)?;
    ensure(marks(body)? <= 4, || "more than four cache marks".to_owned())?;
    check_messages(list(&body["messages"], "messages")?)
}

/// A budget is smaller than the limit of the answer, and an effort is only for adaptive thinking.
fn check_thinking(body: &Value) -> Verdict {
    let (thinking, effort) = (&body["thinking"], &body["output_config"]["effort"]);
    let is_adaptive = thinking["type"] == "adaptive";
    let is_known = match thinking["type"].as_str() {
        None | Some("disabled" | "adaptive") => thinking["budget_tokens"].is_null(),
        Some("enabled") => {
            let budget = thinking["budget_tokens"].as_u64().unwrap_or_default();
            budget >= 1_024 && body["max_tokens"].as_u64().is_some_and(|most| budget < most)
        }
        Some(_) => false,
    };
    ensure(is_known, || format!("thinking {thinking}"))?;
    let is_known = match effort.as_str() {
        None => body.get("output_config").is_none(),
        Some(effort) => is_adaptive && ["low", "medium", "high"].contains(&effort),
    };
    ensure(is_known, || format!("output_config {}", body["output_config"]))
}

fn check_tools(tools: &[Value]) -> Verdict {
    for tool in tools {
        let required = ["name", "description", "input_schema"];
        fields(tool, "a tool", &required, &["cache_control"])?;
        name(&tool["name"], "a tool")?;
        ensure(tool["input_schema"]["type"] == "object", || format!("a schema: {tool}"))?;
    }
    distinct(tools.iter().filter_map(|tool| tool["name"].as_str()), "tool")
}

/// How many cache marks a value contains.
fn marks(value: &Value) -> Verdict<usize> {
    let inner: Vec<&Value> = match value {
        Value::Array(list) => list.iter().collect(),
        // Text from a model or a tool may contain anything.
        Value::Object(fields) => {
            let own = fields.iter().filter(|(name, _)| *name != "input" && *name != "input_schema");
            own.map(|(_, value)| value).collect()
        }
        _ => Vec::new(),
    };
    let mut count = 0;
    for value in inner {
        count += marks(value)?;
    }
    if let Some(mark) = value.get("cache_control") {
        ensure(mark["type"] == "ephemeral", || format!("cache_control {mark}"))?;
        count += 1;
    }
    Ok(count)
}

fn check_text(block: &Value, what: &str) -> Verdict {
    fields(block, what, &["type", "text"], &["cache_control"])?;
    visible(&block["text"], what).map(drop)
}

fn check_messages(messages: &[Value]) -> Verdict {
    let mut ids = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for (position, message) in messages.iter().enumerate() {
        let what = format!("messages.{position}");
        fields(message, &what, &["role", "content"], &[])?;
        let role = if position % 2 == 0 { "user" } else { "assistant" };
        ensure(message["role"] == role, || format!("{what} is not of the {role}"))?;
        let content = list(&message["content"], &what)?;
        if role == "user" {
            check_user(content, &what, &std::mem::take(&mut open))?;
        } else {
            open = check_assistant(content, &what, &mut ids)?;
        }
    }
    ensure(messages.len() % 2 == 1, || "the last message is not the user's".to_owned())
}

/// The results of all open calls come first, one for each.
fn check_user(content: &[Value], what: &str, open: &[&str]) -> Verdict {
    let is_result = |block: &&Value| block["type"] == "tool_result";
    let results: Vec<&Value> = content.iter().take_while(is_result).collect();
    let mut answered = HashSet::new();
    for result in &results {
        fields(result, what, &["type", "tool_use_id"], &["content", "is_error"])?;
        let id = text(&result["tool_use_id"], what)?;
        ensure(open.contains(&id), || format!("{what}: a result without its call: {id}"))?;
        ensure(answered.insert(id), || format!("{what}: two results of {id}"))?;
        let output = &result["content"];
        ensure(output.is_null() || output.is_string(), || format!("{what}: {output}"))?;
    }
    ensure(answered.len() == open.len(), || format!("{what}: a call without its result"))?;
    for block in &content[results.len()..] {
        ensure(block["type"] == "text", || format!("{what}: behind the results: {block}"))?;
        check_text(block, what)?;
    }
    Ok(())
}

/// Checks the parts of an answer, and returns the ids of its calls.
fn check_assistant<'a>(
    content: &'a [Value],
    what: &str,
    ids: &mut HashSet<&'a str>,
) -> Verdict<Vec<&'a str>> {
    let mut open = Vec::new();
    for block in content {
        match block["type"].as_str() {
            Some("text") => check_text(block, what)?,
            Some("tool_use") => {
                fields(block, what, &["type", "id", "name", "input"], &[])?;
                let id = name(&block["id"], what)?;
                ensure(ids.insert(id), || format!("{what}: the id {id} stands twice"))?;
                name(&block["name"], what)?;
                object(&block["input"], what)?;
                open.push(id);
            }
            Some("thinking") => {
                fields(block, what, &["type", "thinking", "signature"], &[])?;
                text(&block["thinking"], what)?;
                visible(&block["signature"], what)?;
            }
            Some("redacted_thinking") => {
                fields(block, what, &["type", "data"], &[])?;
                visible(&block["data"], what)?;
            }
            _ => return Err(format!("{what}: {block}")),
        }
    }
    let ends_in_thinking = content
        .last()
        .and_then(|last| last["type"].as_str())
        .is_some_and(|kind| kind.ends_with("thinking"));
    ensure(!ends_in_thinking, || format!("{what} ends in thinking"))?;
    Ok(open)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(messages: &Value) -> Value {
        json!({"model": "m", "max_tokens": 1, "messages": messages})
    }

    fn said(text: &str) -> Value {
        json!({"role": "user", "content": [{"type": "text", "text": text}]})
    }

    fn called(ids: &[&str]) -> Value {
        let call = |id: &&str| json!({"type": "tool_use", "id": id, "name": "x", "input": {}});
        json!({"role": "assistant", "content": ids.iter().map(call).collect::<Vec<_>>()})
    }

    fn resulted(ids: &[&str]) -> Value {
        let result = |id: &&str| json!({"type": "tool_result", "tool_use_id": id});
        json!({"role": "user", "content": ids.iter().map(result).collect::<Vec<_>>()})
    }

    #[test]
    fn a_valid_request_is_accepted() {
        let messages = json!([said("hi"), called(&["a", "b"]), resulted(&["a", "b"])]);
        assert_eq!(check(&request(&messages)), Ok(()));
    }

    #[test]
    fn invalid_requests_are_refused() {
        let answer = json!({"role": "assistant", "content": [{"type": "text", "text": "x"}]});
        let thought = json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "", "signature": "s"}]});
        for messages in [
            json!([]),
            json!([answer]),
            json!([said("hi"), answer]),
            json!([said("hi"), said("hi")]),
            json!([said(" \n")]),
            json!([said("hi"), called(&["a"]), said("hi")]),
            json!([said("hi"), called(&["a"]), resulted(&[])]),
            json!([said("hi"), called(&["a"]), resulted(&["b"])]),
            json!([said("hi"), called(&["a"]), resulted(&["a", "a"])]),
            json!([said("hi"), called(&["a", "a"]), resulted(&["a"])]),
            json!([said("hi"), called(&["a b"]), resulted(&["a b"])]),
            json!([said("hi"), thought, said("hi")]),
        ] {
            assert!(check(&request(&messages)).is_err(), "{messages}");
        }
        let mut unknown = request(&json!([said("hi")]));
        unknown["mode"] = json!(1);
        assert!(check(&unknown).is_err());
    }
}
