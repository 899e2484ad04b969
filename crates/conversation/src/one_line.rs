//! One-line summaries of calls and results, for skimming the log.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// The maximum characters of such a line, including the `…` of a cut.
const LIMIT: usize = 200;

/// A call in function notation: `glob(pattern="*.c")`.
pub(crate) fn call_line(name: &str, arguments: &str) -> String {
    one_line(&format!("{name}({})", arguments_line(arguments)), LIMIT)
}

/// The arguments by name: `pattern="*.c", path="src"`. Anything but an object is left unchanged.
pub(crate) fn arguments_line(arguments: &str) -> Cow<'_, str> {
    match serde_json::from_str::<Map<String, Value>>(arguments) {
        Ok(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
            fields.join(", ").into()
        }
        Err(_) => arguments.into(),
    }
}

/// The first argument that is a text; empty if there is none. Anything but an object is left as it is.
pub(crate) fn first_text(arguments: &str) -> Cow<'_, str> {
    match serde_json::from_str::<Map<String, Value>>(arguments) {
        Ok(fields) => {
            let first = fields.into_iter().find_map(|(_, value)| match value {
                Value::String(text) => Some(text),
                _ => None,
            });
            first.unwrap_or_default().into()
        }
        Err(_) => arguments.into(),
    }
}

/// Whether a result is a success: it has no `error` at its root.
pub(crate) fn is_success(result: &Value) -> bool {
    result.get("error").is_none()
}

/// The line for a result without a summary by its tool: its error, the first line of its output, or
/// `ok`.
pub(crate) fn result_line(result: &Value) -> String {
    if let Some(error) = result.get("error") {
        return line(&format!("error: {}", text_of(error)));
    }
    line(&first_line(&result["data"]["output"]).unwrap_or_else(|| "ok".to_owned()))
}

fn first_line(output: &Value) -> Option<String> {
    output.as_str()?.lines().next().filter(|line| !line.trim().is_empty()).map(str::to_owned)
}

fn text_of(value: &Value) -> Cow<'_, str> {
    value.as_str().map_or_else(|| value.to_string().into(), Cow::Borrowed)
}

/// One line of at most [`LIMIT`] characters.
pub(crate) fn line(text: &str) -> String {
    one_line(text, LIMIT)
}

/// The first `limit` characters of a text, with `…` as the last one if it was cut.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some(_) => text.chars().take(limit - 1).chain(['…']).collect(),
    }
}

/// Folds every run of white space that has a line break or tab into one space, replaces control
/// characters (untrusted text must not control the terminal), and cuts the text.
pub(crate) fn one_line(text: &str, limit: usize) -> String {
    let mut line = String::new();
    let mut length = 0;
    let mut characters = text.trim().chars().peekable();
    while let Some(c) = characters.next() {
        if length == limit {
            // One too many: `…` replaces the last one.
            line.pop();
            line.push('…');
            break;
        }
        line.push(match c {
            c if is_break(c) => {
                while characters.next_if(|c| is_break(*c) || *c == ' ').is_some() {}
                ' '
            }
            c if c.is_control() => char::REPLACEMENT_CHARACTER,
            c => c,
        });
        length += 1;
    }
    line
}

/// Whether a character is a line break for some program, or a tab, whose width is unknown.
fn is_break(c: char) -> bool {
    matches!(c, '\t'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check_call(name: &str, arguments: &str, expected: &str) {
        assert_eq!(call_line(name, arguments), expected);
    }

    #[track_caller]
    fn check_result(output: &str, expected: &str) {
        assert_eq!(result_line(&serde_json::from_str(output).unwrap()), expected);
    }

    #[test]
    fn a_call_shows_its_arguments_by_name() {
        check_call("glob", r#"{"pattern":"*.c"}"#, r#"glob(pattern="*.c")"#);
        check_call(
            "file_read",
            r#"{ "path": "a b", "limit": 5, "x": [1, null] }"#,
            r#"file_read(path="a b", limit=5, x=[1,null])"#,
        );
        check_call("bash", "{\"command\":\"a\\nb \\\"c\\\"\"}", r#"bash(command="a\nb \"c\"")"#);
        check_call("agents", "{}", "agents()");
        check_call("agents", "", "agents()");
    }

    #[test]
    fn arguments_that_are_not_an_object_are_shown_unchanged() {
        check_call("glob", "*.c", "glob(*.c)");
        check_call("glob", "[1]", "glob([1])");
        check_call("glob", "{\"pattern\":\n\n  \"*", "glob({\"pattern\": \"*)");
    }

    #[test]
    fn a_line_is_cut_at_200_characters() {
        let exact = "é".repeat(LIMIT - "bash()".len());
        check_call("bash", &exact, &format!("bash({exact})"));
        check_call("bash", &"é".repeat(300), &format!("bash({}…", "é".repeat(LIMIT - 6)));
    }

    #[test]
    fn a_line_cannot_break_or_control_the_terminal() {
        check_call("bash", "a\r\n \tb\u{2028}c\u{1b}[2Jd\u{7}", "bash(a b c\u{fffd}[2Jd\u{fffd})");
        check_call("bash", "{\"c\":\"\u{85}\u{7f}\"}", "bash(c=\" \u{fffd}\")");
    }

    #[test]
    fn an_error_is_shown_as_the_line() {
        check_result(r#"{"success":false,"error":"no\nshell"}"#, "error: no shell");
        check_result(r#"{"error":"Agent 9/ not found"}"#, "error: Agent 9/ not found");
        check_result(r#"{"error":{"code":1}}"#, r#"error: {"code":1}"#);
    }

    #[test]
    fn any_other_result_is_shown_as_its_first_line_or_ok() {
        check_result(r#"{"success":true,"data":{"output":"first\nsecond"}}"#, "first");
        check_result(r#"{"success":true,"data":{"output":"\nsecond"}}"#, "ok");
        check_result("{}", "ok");
        check_result("[]", "ok");
    }

    proptest! {
        #[test]
        fn any_text_becomes_one_short_line(text in prop::collection::vec(any::<char>(), 0..400)) {
            let text: String = text.into_iter().collect();
            let quoted = Value::from(text.as_str()).to_string();
            for line in [
                call_line(&text, "{}"),
                call_line("x", &text),
                call_line("x", &format!("{{{quoted}:{quoted}}}")),
                result_line(&serde_json::json!({"error": text})),
            ] {
                prop_assert!(line.chars().count() <= LIMIT);
                prop_assert!(!line.chars().any(|c| c.is_control() || is_break(c)), "{:?}", line);
            }
        }
    }
}
