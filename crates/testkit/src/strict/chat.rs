//! The rules of OpenAI's Chat Completions, collected from the servers that
//! insist on one or another.

use std::collections::HashSet;

use serde_json::{Map, Value};

type Object = Map<String, Value>;

/// Checks whether a server would accept the request.
///
/// # Errors
/// The broken rule, and where.
pub fn check(body: &Value) -> Result<(), String> {
    let body = object(body, "the body")?;
    only(
        body,
        &[
            "model",
            "stream",
            "stream_options",
            "tools",
            "messages",
            "tool_choice",
            "reasoning_effort",
            "max_tokens",
            "max_completion_tokens",
        ],
        "the body",
    )?;
    filled(body, "model", "the body")?;
    let stream_options = serde_json::json!({"include_usage": true});
    if body.get("stream") != Some(&Value::Bool(true))
        || body.get("stream_options") != Some(&stream_options)
    {
        return Err("the response is not streamed with its usage".to_owned());
    }
    match body.get("reasoning_effort").map(Value::as_str) {
        None | Some(Some("none" | "low" | "medium" | "high")) => {}
        Some(_) => return Err("reasoning_effort is none of those that exist".to_owned()),
    }
    check_tools(body)?;
    let messages = array(body.get("messages"), "messages")?;
    Conversation::default().check(messages)
}

fn check_tools(body: &Object) -> Result<(), String> {
    match body.get("tool_choice").map(Value::as_str) {
        None | Some(Some("none" | "auto" | "required")) => {}
        Some(_) => return Err("tool_choice is none of those that exist".to_owned()),
    }
    let Some(tools) = body.get("tools") else {
        return match body.get("tool_choice") {
            Some(_) => Err("there is a tool_choice without tools".to_owned()),
            None => Ok(()),
        };
    };
    let mut names = HashSet::new();
    for tool in array(Some(tools), "tools")? {
        let function = function_of(object(tool, "a tool")?, &["type", "function"], "a tool")?;
        only(function, &["name", "description", "parameters"], "a tool's function")?;
        filled(function, "description", "a tool's function")?;
        let name = name_of(function, "a tool's function")?;
        if !names.insert(name) {
            return Err(format!("two tools are named {name}"));
        }
        object(function.get("parameters").unwrap_or(&Value::Null), "a tool's parameters")?;
    }
    Ok(())
}

/// What the messages so far allow.
#[derive(Default)]
struct Conversation<'a> {
    last_role: Option<&'a str>,
    /// The ids of all calls.
    ids: HashSet<&'a str>,
    /// Calls whose results must come next, the next one last.
    open: Vec<&'a str>,
}

impl<'a> Conversation<'a> {
    fn check(mut self, messages: &'a [Value]) -> Result<(), String> {
        for (position, message) in messages.iter().enumerate() {
            let place = format!("message {position}");
            self.message(object(message, &place)?, &place)?;
        }
        if let Some(id) = self.open.last() {
            return Err(format!("call {id} has no result"));
        }
        match self.last_role {
            Some("user" | "tool") => Ok(()),
            Some(_) | None => Err("the last message is nothing to answer".to_owned()),
        }
    }

    fn message(&mut self, message: &'a Object, place: &str) -> Result<(), String> {
        let role = filled(message, "role", place)?;
        if role != "tool"
            && let Some(id) = self.open.last()
        {
            return Err(format!("{place}: call {id} has no result before it"));
        }
        match role {
            "system" => self.system(message, place)?,
            "user" => only(message, &["role", "content"], place)?,
            "assistant" => self.assistant(message, place)?,
            "tool" => self.result(message, place)?,
            _ => return Err(format!("{place}: no such role: {role}")),
        }
        if !message.contains_key("tool_calls") {
            filled(message, "content", place)?;
        }
        self.last_role = Some(role);
        Ok(())
    }

    fn system(&self, message: &Object, place: &str) -> Result<(), String> {
        match self.last_role {
            None => only(message, &["role", "content"], place),
            Some(_) => Err(format!("{place}: the prompt is not at the start")),
        }
    }

    fn assistant(&mut self, message: &'a Object, place: &str) -> Result<(), String> {
        match self.last_role {
            Some("user" | "tool") => {}
            Some("assistant") => return Err(format!("{place}: two answers in a row")),
            Some(_) | None => return Err(format!("{place}: an answer without a user message")),
        }
        let Some(calls) = message.get("tool_calls") else {
            return only(message, &["role", "content"], place);
        };
        let extras = ["reasoning_content", "reasoning", "reasoning_details"];
        only(message, &[&["role", "content", "tool_calls"], &extras[..]].concat(), place)?;
        if !message.get("content").is_some_and(Value::is_string) {
            return Err(format!("{place}: content is no text"));
        }
        for call in array(Some(calls), place)? {
            self.call(object(call, place)?, place)?;
        }
        self.open.reverse();
        Ok(())
    }

    fn call(&mut self, call: &'a Object, place: &str) -> Result<(), String> {
        let id = filled(call, "id", place)?;
        if id.len() > 40 || !id.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!("{place}: no id: {id}"));
        }
        if !self.ids.insert(id) {
            return Err(format!("{place}: the id {id} is used twice"));
        }
        let function = function_of(call, &["id", "type", "function", "extra_content"], place)?;
        only(function, &["name", "arguments"], place)?;
        name_of(function, place)?;
        let arguments = filled(function, "arguments", place)?;
        match serde_json::from_str(arguments) {
            Ok(Value::Object(_)) => {}
            Ok(_) | Err(_) => return Err(format!("{place}: no arguments: {arguments}")),
        }
        self.open.push(id);
        Ok(())
    }

    fn result(&mut self, message: &Object, place: &str) -> Result<(), String> {
        only(message, &["role", "tool_call_id", "content"], place)?;
        let id = filled(message, "tool_call_id", place)?;
        match self.open.pop() {
            Some(open) if open == id => Ok(()),
            Some(open) => Err(format!("{place}: the result of {id} where that of {open} belongs")),
            None => Err(format!("{place}: the result of {id} without its call")),
        }
    }
}

fn object<'a>(value: &'a Value, place: &str) -> Result<&'a Object, String> {
    value.as_object().ok_or_else(|| format!("{place} is no object"))
}

/// A list that is not empty.
fn array<'a>(value: Option<&'a Value>, place: &str) -> Result<&'a [Value], String> {
    match value {
        Some(Value::Array(list)) if !list.is_empty() => Ok(list),
        Some(_) | None => Err(format!("{place}: there is no list, or it is empty")),
    }
}

/// A text that is not blank.
fn filled<'a>(object: &'a Object, field: &str, place: &str) -> Result<&'a str, String> {
    match object.get(field).and_then(Value::as_str) {
        Some(text) if !text.trim().is_empty() => Ok(text),
        Some(_) => Err(format!("{place}: {field} is blank")),
        None => Err(format!("{place}: {field} is no text")),
    }
}

fn only(object: &Object, fields: &[&str], place: &str) -> Result<(), String> {
    match object.keys().find(|key| !fields.contains(&key.as_str())) {
        Some(key) => Err(format!("{place}: there is no field {key}")),
        None => Ok(()),
    }
}

/// The value of the only type that an object may have.
fn function_of<'a>(typed: &'a Object, fields: &[&str], place: &str) -> Result<&'a Object, String> {
    only(typed, fields, place)?;
    match (typed.get("type").and_then(Value::as_str), typed.get("function")) {
        (Some("function"), Some(function)) => object(function, place),
        _ => Err(format!("{place} is no function")),
    }
}

fn name_of<'a>(function: &'a Object, place: &str) -> Result<&'a str, String> {
    let name = filled(function, "name", place)?;
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if name.len() <= 64 && name.bytes().all(is_allowed) {
        Ok(name)
    } else {
        Err(format!("{place}: no name: {name}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn user() -> Value {
        json!({"role": "user", "content": "u"})
    }

    fn answer() -> Value {
        json!({"role": "assistant", "content": "a"})
    }

    fn calls(ids: &[&str]) -> Value {
        let call = |id: &&str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
        let calls: Vec<Value> = ids.iter().map(call).collect();
        json!({"role": "assistant", "content": "", "tool_calls": calls})
    }

    fn result(id: &str) -> Value {
        json!({"role": "tool", "tool_call_id": id, "content": "r"})
    }

    fn request(messages: impl Into<Value>) -> Value {
        json!({"model": "m", "stream": true, "stream_options": {"include_usage": true},
            "tools": [{"type": "function",
                "function": {"name": "f", "description": "d", "parameters": {}}}],
            "messages": messages.into(), "tool_choice": "none"})
    }

    fn changed(pointer: &str, value: Value) -> Value {
        let mut request = request(vec![user(), calls(&["a"]), result("a")]);
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        request.pointer_mut(parent).unwrap()[field] = value;
        request
    }

    #[test]
    fn valid_requests_are_accepted() {
        let system = json!({"role": "system", "content": "p"});
        let messages =
            vec![system, user(), calls(&["a", "b"]), result("a"), result("b"), answer(), user()];
        assert_eq!(check(&request(messages)), Ok(()));
        assert_eq!(check(&changed("/model", json!("n"))), Ok(()));
    }

    #[test]
    fn an_order_that_breaks_a_rule_is_refused() {
        let system = json!({"role": "system", "content": "p"});
        for (messages, rule) in [
            (vec![], "messages: there is no list, or it is empty"),
            (vec![system.clone()], "the last message is nothing to answer"),
            (vec![user(), answer()], "the last message is nothing to answer"),
            (vec![user(), system.clone()], "message 1: the prompt is not at the start"),
            (vec![system, answer(), user()], "message 1: an answer without a user message"),
            (vec![user(), answer(), answer(), user()], "message 2: two answers in a row"),
            (vec![user(), calls(&["a"]), user()], "message 2: call a has no result before it"),
            (vec![user(), calls(&["a", "b"]), result("a")], "call b has no result"),
            (
                vec![user(), calls(&["a", "b"]), result("b"), result("a")],
                "message 2: the result of b where that of a belongs",
            ),
            (vec![user(), result("a")], "message 1: the result of a without its call"),
            (
                vec![user(), calls(&["a"]), result("a"), calls(&["a"]), result("a")],
                "message 3: the id a is used twice",
            ),
            (vec![user(), calls(&[])], "message 1: there is no list, or it is empty"),
        ] {
            assert_eq!(check(&request(messages)), Err(rule.to_owned()));
        }
    }

    #[test]
    fn a_field_that_breaks_a_rule_is_refused() {
        let call = "/messages/1/tool_calls/0";
        for (pointer, value, rule) in [
            ("/model", json!(""), "the body: model is blank"),
            ("/n", json!(2), "the body: there is no field n"),
            ("/stream", json!(false), "the response is not streamed with its usage"),
            ("/tool_choice", json!("f"), "tool_choice is none of those that exist"),
            ("/reasoning_effort", json!("max"), "reasoning_effort is none of those that exist"),
            ("/tools", json!([]), "tools: there is no list, or it is empty"),
            ("/messages/0/role", json!("human"), "message 0: no such role: human"),
            ("/messages/0/content", json!(" "), "message 0: content is blank"),
            ("/messages/0/name", json!("x"), "message 0: there is no field name"),
            ("/messages/1/content", Value::Null, "message 1: content is no text"),
            ("/messages/2/content", json!(""), "message 2: content is blank"),
            (&format!("{call}/id"), json!(""), "message 1: id is blank"),
            (&format!("{call}/id"), json!("a b"), "message 1: no id: a b"),
            (&format!("{call}/type"), json!("x"), "message 1 is no function"),
            (&format!("{call}/function/name"), json!("a.b"), "message 1: no name: a.b"),
            (&format!("{call}/function/arguments"), json!("{"), "message 1: no arguments: {"),
            (&format!("{call}/function/arguments"), json!("[]"), "message 1: no arguments: []"),
        ] {
            assert_eq!(check(&changed(pointer, value)), Err(rule.to_owned()));
        }
    }
}
