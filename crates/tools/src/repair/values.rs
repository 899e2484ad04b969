//! Parameters with another name or another type than declared.

use serde_json::{Map, Number, Value};

use super::command;
use super::members::Members;
use crate::declaration::{Parameter, ParameterType};

/// Other names that models use, and the parameters that each can mean.
const ALIASES: [(&str, &[&str]); 7] = [
    ("file_path", &["path"]),
    ("filename", &["path", "glob"]),
    ("cmd", &["command"]),
    ("old_str", &["old_string"]),
    ("new_str", &["new_string"]),
    ("query", &["pattern"]),
    ("text", &["content", "old_string", "new_string"]),
];

/// Gives values under another name to the parameter that is meant, and returns what was renamed;
/// `None` if a parameter got two values.
pub(super) fn rename(
    values: &mut Map<String, Value>,
    members: &mut Members,
    parameters: &[Parameter],
) -> Option<Vec<String>> {
    let mut notes = Vec::new();
    let mut given: Vec<(&str, Value)> = Vec::new();
    for (alias, meanings) in ALIASES {
        let is_declared = parameters.iter().any(|parameter| parameter.name == alias);
        let Some(value) = values.get(alias).filter(|value| !is_declared && !value.is_null()) else {
            continue;
        };
        let mut meant = parameters.iter().filter(|known| meanings.contains(&known.name));
        let (Some(parameter), None) = (meant.next(), meant.next()) else { continue };
        let name = parameter.name;
        match values.get(name).filter(|value| !value.is_null()) {
            // As in the strict reading, what is not declared is ignored.
            Some(own) if fits(parameter.value, own) => continue,
            Some(_) => return None,
            None => {}
        }
        match given.iter().find(|(other, _)| *other == name) {
            Some((_, other)) if other != value => return None,
            Some(_) => {}
            None => {
                given.push((name, value.clone()));
                members.rename(alias, name);
                notes.push(format!("{alias} read as {name}"));
            }
        }
    }
    values.extend(given.into_iter().map(|(name, value)| (name.to_owned(), value)));
    Some(notes)
}

/// Converts values to the declared type where that has one meaning, and returns what was converted.
pub(super) fn convert(
    values: &mut Map<String, Value>,
    members: &Members,
    parameters: &[Parameter],
) -> Vec<String> {
    let mut notes = Vec::new();
    for parameter in parameters {
        let (name, kind) = (parameter.name, parameter.value);
        let Some(value) = values.get(name).filter(|value| !value.is_null() && !fits(kind, value))
        else {
            continue;
        };
        let text = members.text(name).unwrap_or_default();
        let is_json_file = || {
            let path = values.get("path").and_then(Value::as_str);
            path.is_some_and(|path| path.ends_with(".json"))
        };
        if let Some((converted, how)) = converted(kind, value, text, is_json_file) {
            values.insert(name.to_owned(), converted);
            notes.push(format!("{name}: {how}"));
        }
    }
    notes
}

fn fits(kind: ParameterType, value: &Value) -> bool {
    match kind {
        ParameterType::Text
        | ParameterType::ShellCommand
        | ParameterType::FileContent
        | ParameterType::Choice(_) => value.is_string(),
        ParameterType::Texts => value.is_array(),
        // Numbers in strings are part of the strict reading.
        ParameterType::Integer => value.is_number() || value.is_string(),
        ParameterType::Boolean => value.is_boolean(),
    }
}

/// The value as one of the declared type, and what was done to it. `text` is its JSON.
fn converted(
    kind: ParameterType,
    value: &Value,
    text: &str,
    is_json_file: impl FnOnce() -> bool,
) -> Option<(Value, &'static str)> {
    match (kind, value) {
        (ParameterType::Boolean, Value::String(word)) => {
            let truth =
                ["false", "true"].iter().position(|name| word.eq_ignore_ascii_case(name))?;
            Some((Value::from(truth == 1), "a string read as a boolean"))
        }
        (
            ParameterType::Text | ParameterType::ShellCommand | ParameterType::FileContent,
            Value::Number(number),
        ) if is_plain(number, text) => Some((Value::from(text), "a number read as a string")),
        (ParameterType::ShellCommand, Value::Array(words)) => {
            let words: Vec<&str> = words.iter().map(Value::as_str).collect::<Option<_>>()?;
            let command = command::joined(&words)?;
            Some((Value::from(command), "a list joined as shell words"))
        }
        (ParameterType::FileContent, Value::Object(_)) if is_json_file() => {
            Some((Value::from(pretty(text)), "an object written as JSON"))
        }
        // Otherwise it may be a list that was encoded twice.
        (ParameterType::Texts, Value::String(one)) if !one.trim_start().starts_with('[') => {
            Some((Value::from(vec![one.clone()]), "a string read as a list"))
        }
        (ParameterType::Texts, Value::Number(_)) => {
            Some((Value::from(vec![value.clone()]), "a number read as a list"))
        }
        (
            ParameterType::Text
            | ParameterType::ShellCommand
            | ParameterType::FileContent
            | ParameterType::Choice(_)
            | ParameterType::Texts
            | ParameterType::Integer
            | ParameterType::Boolean,
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_),
        ) => None,
    }
}

/// Whether there is one way to write a number: `1.50` and `1e3` may be texts or values.
fn is_plain(number: &Number, text: &str) -> bool {
    number.to_string() == text && !text.ends_with(".0")
}

/// Valid JSON on several lines, indented by two. Each string and number stays as it was written.
fn pretty(json: &str) -> String {
    let mut lines = String::with_capacity(json.len());
    let (mut in_string, mut is_escaped) = (false, false);
    let mut depth = 0;
    let mut last = ' ';
    for c in json.chars() {
        if in_string {
            lines.push(c);
            in_string = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
            continue;
        }
        if c.is_ascii_whitespace() {
            continue;
        }
        let closes = matches!(c, '}' | ']');
        depth -= usize::from(closes);
        let is_empty = closes && matches!(last, '{' | '[');
        if (closes && !is_empty) || matches!(last, ',') || (matches!(last, '{' | '[') && !closes) {
            lines.push('\n');
            lines.extend(std::iter::repeat_n("  ", depth));
        }
        lines.push(c);
        if c == ':' {
            lines.push(' ');
        }
        depth += usize::from(matches!(c, '{' | '['));
        in_string = c == '"';
        last = c;
    }
    lines.push('\n');
    lines
}

#[cfg(test)]
mod tests {
    use super::pretty;

    #[test]
    fn json_is_indented_and_otherwise_stays() {
        let json = r#"{"a":{}, "b" : [1.10,{"c":"x,{\"\\"}, [ ] ],"d":12345678901234567890123}"#;
        let expected = r#"{
  "a": {},
  "b": [
    1.10,
    {
      "c": "x,{\"\\"
    },
    []
  ],
  "d": 12345678901234567890123
}
"#;
        assert_eq!(pretty(json), expected);
    }
}
