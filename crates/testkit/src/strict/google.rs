//! Google's `generateContent`.

use std::collections::HashSet;

use serde_json::Value;

use super::rules::{Verdict, distinct, ensure, fields, list, name, object, text, visible};

/// Checks the body of a request.
///
/// # Errors
/// Why the API would refuse it.
pub fn check(body: &Value) -> Result<(), String> {
    let optional = ["systemInstruction", "tools", "toolConfig", "generationConfig"];
    let all = fields(body, "the request", &["contents"], &optional)?;
    if let Some(system) = all.get("systemInstruction") {
        let parts = list(&system["parts"], "systemInstruction")?;
        parts.iter().try_for_each(|part| visible(&part["text"], "the prompt").map(drop))?;
    }
    for tools in all.get("tools").map(|tools| list(tools, "tools")).transpose()?.unwrap_or_default()
    {
        check_tools(list(&tools["functionDeclarations"], "functionDeclarations")?)?;
    }
    let config = all.get("toolConfig");
    let is_known = config.is_none_or(|config| config["functionCallingConfig"]["mode"] == "NONE");
    ensure(is_known, || format!("toolConfig {config:?}"))?;
    let thinking = &body["generationConfig"]["thinkingConfig"];
    let has_both = thinking["thinkingLevel"].is_string() && thinking["thinkingBudget"].is_u64();
    ensure(!has_both, || format!("a level and a budget: {thinking}"))?;
    check_contents(list(&body["contents"], "contents")?)
}

fn check_tools(tools: &[Value]) -> Verdict {
    for tool in tools {
        fields(tool, "a function", &["name", "description"], &["parameters"])?;
        name(&tool["name"], "a function")?;
        if let Some(schema) = tool.get("parameters") {
            let properties = object(&schema["properties"], "properties")?;
            ensure(!properties.is_empty(), || format!("no properties: {tool}"))?;
        }
    }
    distinct(tools.iter().filter_map(|tool| tool["name"].as_str()), "function")
}

fn check_contents(contents: &[Value]) -> Verdict {
    let mut ids = HashSet::new();
    // The calls of the previous content, by id and name.
    let mut open: Vec<(&str, &str)> = Vec::new();
    for (position, content) in contents.iter().enumerate() {
        let what = format!("contents.{position}");
        fields(content, &what, &["role", "parts"], &[])?;
        let parts = list(&content["parts"], &what)?;
        let due = std::mem::take(&mut open);
        match content["role"].as_str() {
            Some("user") if due.is_empty() => check_said(parts, &what)?,
            Some("user") => check_results(parts, &what, &due)?,
            Some("model") if due.is_empty() => open = check_answer(parts, &what, &mut ids)?,
            _ => return Err(format!("{what}: a call without its result, or a strange role")),
        }
    }
    let roles: Vec<&Value> = contents.iter().map(|content| &content["role"]).collect();
    let twice = roles.windows(2).any(|pair| pair[0] == "model" && pair[1] == "model");
    ensure(!twice, || "two contents of the model in a row".to_owned())?;
    let ends = [roles.first(), roles.last()];
    let are_users = ends.iter().all(|role| role.is_some_and(|role| *role == "user"));
    ensure(are_users, || "the user is not at both ends".to_owned())
}

fn check_said(parts: &[Value], what: &str) -> Verdict {
    parts.iter().try_for_each(|part| {
        fields(part, what, &["text"], &[])?;
        visible(&part["text"], what).map(drop)
    })
}

/// As many results as calls, in their order, and nothing else.
fn check_results(parts: &[Value], what: &str, due: &[(&str, &str)]) -> Verdict {
    ensure(parts.len() == due.len(), || format!("{what}: {} results of {due:?}", parts.len()))?;
    for (part, (id, called)) in parts.iter().zip(due) {
        fields(part, what, &["functionResponse"], &[])?;
        let result = &part["functionResponse"];
        fields(result, what, &["id", "name", "response"], &[])?;
        ensure(result["id"] == *id && result["name"] == *called, || format!("{what}: {result}"))?;
        object(&result["response"], what)?;
    }
    Ok(())
}

/// Checks the parts of an answer, and returns its calls by id and name.
fn check_answer<'a>(
    parts: &'a [Value],
    what: &str,
    ids: &mut HashSet<&'a str>,
) -> Verdict<Vec<(&'a str, &'a str)>> {
    let mut open = Vec::new();
    for part in parts {
        let signature = part.get("thoughtSignature");
        if let Some(signature) = signature {
            visible(signature, what)?;
        }
        if let Some(call) = part.get("functionCall") {
            fields(part, what, &["functionCall"], &["thoughtSignature"])?;
            fields(call, what, &["id", "name", "args"], &[])?;
            object(&call["args"], what)?;
            let id = name(&call["id"], what)?;
            ensure(ids.insert(id), || format!("{what}: the id {id} stands twice"))?;
            open.push((id, name(&call["name"], what)?));
        } else {
            fields(part, what, &["text"], &["thoughtSignature"])?;
            let said = text(&part["text"], what)?;
            let is_there = signature.is_some() || !said.trim().is_empty();
            ensure(is_there, || format!("{what}: a blank text"))?;
        }
    }
    Ok(open)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said() -> Value {
        json!({"role": "user", "parts": [{"text": "hi"}]})
    }

    fn called(id: &str) -> Value {
        let call = json!({"id": id, "name": "x", "args": {}});
        json!({"role": "model", "parts": [{"functionCall": call}]})
    }

    fn resulted(id: &str, response: &Value) -> Value {
        let result = json!({"id": id, "name": "x", "response": response});
        json!({"role": "user", "parts": [{"functionResponse": result}]})
    }

    #[test]
    fn a_valid_request_is_accepted() {
        let contents = json!([said(), called("a"), resulted("a", &json!({})), said()]);
        assert_eq!(check(&json!({"contents": contents})), Ok(()));
    }

    #[test]
    fn invalid_requests_are_refused() {
        let answer = json!({"role": "model", "parts": [{"text": "x"}]});
        let blank = json!({"role": "user", "parts": [{"text": " "}]});
        for contents in [
            json!([]),
            json!([blank]),
            json!([answer]),
            json!([said(), answer]),
            json!([said(), answer, answer, said()]),
            json!([said(), called("a"), said()]),
            json!([said(), called("a"), resulted("b", &json!({}))]),
            json!([said(), called("a"), resulted("a", &json!("text"))]),
            json!([said(), resulted("a", &json!({}))]),
        ] {
            assert!(check(&json!({"contents": contents})).is_err(), "{contents}");
        }
    }
}
