//! Calls and results in one line each, for a person who skims the log.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// Characters in such a line, the `…` of a cut included.
const LIMIT: usize = 200;

/// A call as one would write it down: `glob(pattern="*.c")`.
pub(crate) fn call_line(name: &str, arguments: &str) -> String {
    let shown: Cow<'_, str> = match serde_json::from_str::<Map<String, Value>>(arguments) {
        Ok(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
            fields.join(", ").into()
        }
        Err(_) => arguments.into(),
    };
    one_line(&format!("{name}({shown})"))
}

/// Whether a result says that the call worked: it has no `error` at its root.
pub(crate) fn is_success(result: &Value) -> bool {
    result.get("error").is_none()
}

/// What a person wants to know of a result: `3 files`, `exit 1`, `sent #7 to 1/`.
pub(crate) fn result_line(name: &str, result: &Value) -> String {
    if let Some(error) = result.get("error") {
        return one_line(&format!("error: {}", text_of(error)));
    }
    let data = &result["data"];
    let specific = match name {
        "glob" => data["count"].as_u64().map(|count| counted(count, "file", "files")),
        "grep" => data["count"].as_u64().map(|count| counted(count, "match", "matches")),
        "bash" => data["exit_code"].as_i64().map(|code| format!("exit {code}")),
        "file_read" => lines_read(data).map(|count| counted(count, "line", "lines")),
        "mail" => mail_line(result),
        "fork" => data["agent"].as_str().map(|agent| format!("forked {agent}")),
        "kill" => ids_of(&data["killed"]).map(|killed| format!("killed {killed}")),
        "wait" => wait_line(data),
        "agents" => {
            data["agents"].as_array().map(|agents| counted(agents.len() as u64, "agent", "agents"))
        }
        _ => None,
    };
    let line = specific.or_else(|| first_line(&data["output"]));
    one_line(&line.unwrap_or_else(|| "ok".to_owned()))
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The lines of the file, without the one that says where it was cut.
fn lines_read(data: &Value) -> Option<u64> {
    let lines = data["output"].as_str()?.lines().count() as u64;
    let truncated = data["truncated"] == Value::Bool(true);
    Some(lines.saturating_sub(u64::from(truncated)))
}

/// The three results of mail are told apart by their fields: the action is not part of them.
fn mail_line(result: &Value) -> Option<String> {
    let id = result["id"].as_i64();
    let text = |field: &str| result[field].as_str();
    if let (Some(mail), Some(unread)) =
        (result["messages"].as_array(), result["unread_count"].as_u64())
    {
        return Some(format!("{unread} unread, {} shown", mail.len()));
    }
    if let (Some(id), Some(to)) = (id, text("to")) {
        return Some(format!("sent #{id} to {to}"));
    }
    if let (Some(id), Some(from)) = (id, text("from")) {
        return Some(format!("#{id} from {from}"));
    }
    None
}

fn ids_of(ids: &Value) -> Option<String> {
    let ids: Option<Vec<&str>> = ids.as_array()?.iter().map(Value::as_str).collect();
    ids.map(|ids| ids.join(", "))
}

/// How those are that were waited for: `0/0/ idle, 0/1/ running; 1 unread`.
fn wait_line(data: &Value) -> Option<String> {
    let status = |result: &Value| {
        Some(format!("{} {}", result["agent"].as_str()?, result["status"].as_str()?))
    };
    let results: Option<Vec<String>> = data["results"].as_array()?.iter().map(status).collect();
    let unread = data["unread"].as_u64().filter(|unread| *unread > 0);
    let unread = unread.map(|unread| format!("; {unread} unread")).unwrap_or_default();
    let results = results?.join(", ");
    Some(if results.is_empty() { format!("nobody{unread}") } else { format!("{results}{unread}") })
}

fn first_line(output: &Value) -> Option<String> {
    output.as_str()?.lines().next().filter(|line| !line.trim().is_empty()).map(str::to_owned)
}

fn text_of(value: &Value) -> Cow<'_, str> {
    value.as_str().map_or_else(|| value.to_string().into(), Cow::Borrowed)
}

/// Folds every run of white space with a break in it into one space, makes control characters visible
/// (a foreign text must not steer a terminal), and cuts.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::new();
    let mut length = 0;
    let mut characters = text.trim().chars().peekable();
    while let Some(c) = characters.next() {
        if length == LIMIT {
            // One more than fits: the last one gives way to the mark of the cut.
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

/// What ends a line somewhere, and tabs, whose width nobody knows.
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
    fn check_result(name: &str, output: &str, expected: &str) {
        assert_eq!(result_line(name, &serde_json::from_str(output).unwrap()), expected);
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
    fn arguments_that_are_no_object_are_shown_as_they_came() {
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
    fn a_line_cannot_break_or_steer_the_terminal() {
        check_call("bash", "a\r\n \tb\u{2028}c\u{1b}[2Jd\u{7}", "bash(a b c\u{fffd}[2Jd\u{fffd})");
        check_call("bash", "{\"c\":\"\u{85}\u{7f}\"}", "bash(c=\" \u{fffd}\")");
    }

    #[test]
    fn a_result_says_what_a_person_wants_to_know() {
        let glob = |count| format!(r#"{{"success":true,"data":{{"output":"x","count":{count}}}}}"#);
        check_result("glob", &glob(3), "3 files");
        check_result("glob", &glob(1), "1 file");
        check_result("glob", &glob(0), "0 files");
        check_result("grep", &glob(5), "5 matches");
        check_result("grep", &glob(1), "1 match");
        check_result("bash", r#"{"success":true,"data":{"output":"","exit_code":1}}"#, "exit 1");
        check_result("file_read", r#"{"success":true,"data":{"output":"a\nb\n"}}"#, "2 lines");
        check_result("file_read", r#"{"success":true,"data":{"output":"a"}}"#, "1 line");
        check_result("file_read", r#"{"success":true,"data":{"output":""}}"#, "0 lines");
        check_result(
            "file_read",
            r#"{"success":true,"data":{"output":"a\nb\n[Output truncated: …]","truncated":true}}"#,
            "2 lines",
        );
        let wrote = r#"{"success":true,"data":{"output":"Wrote 5 bytes to a.c","bytes":5}}"#;
        check_result("file_write", wrote, "Wrote 5 bytes to a.c");
        let replaced = r#"{"success":true,"data":{"output":"Replaced 1 occurrence(s) in a\nx"}}"#;
        check_result("file_edit", replaced, "Replaced 1 occurrence(s) in a");
    }

    #[test]
    fn mail_results_say_which_mail() {
        let inbox =
            r#"{"messages":[{"id":5,"from":"1/","unread":true,"preview":"x"}],"unread_count":2}"#;
        check_result("mail", inbox, "2 unread, 1 shown");
        let read = r#"{"id":5,"from":"1/","timestamp":"2024-01-15T10:30:00Z","body":"x"}"#;
        check_result("mail", read, "#5 from 1/");
        check_result("mail", r#"{"sent":true,"to":"1/","id":7}"#, "sent #7 to 1/");
    }

    #[test]
    fn results_about_agents_say_which_agents() {
        check_result("fork", r#"{"success":true,"data":{"agent":"0/1/"}}"#, "forked 0/1/");
        let killed = r#"{"success":true,"data":{"killed":["0/1/0/","0/1/"]}}"#;
        check_result("kill", killed, "killed 0/1/0/, 0/1/");
        let waited = r#"{"success":true,"data":{"results":[{"agent":"0/0/","status":"idle","answer":"x"},
            {"agent":"0/1/","status":"running"}],"unread":1}}"#;
        check_result("wait", waited, "0/0/ idle, 0/1/ running; 1 unread");
        check_result("wait", r#"{"success":true,"data":{"results":[],"unread":0}}"#, "nobody");
        check_result("agents", r#"{"success":true,"data":{"agents":[{}, {}]}}"#, "2 agents");
        check_result("wait", r#"{"success":true,"data":{"results":[{}]}}"#, "ok");
    }

    #[test]
    fn an_error_says_itself() {
        check_result("bash", r#"{"success":false,"error":"no\nshell"}"#, "error: no shell");
        check_result("mail", r#"{"error":"Agent 9/ not found"}"#, "error: Agent 9/ not found");
        check_result("glob", r#"{"error":{"code":1}}"#, r#"error: {"code":1}"#);
    }

    #[test]
    fn any_other_result_gives_its_first_line_or_ok() {
        check_result("x", r#"{"success":true,"data":{"output":"first\nsecond"}}"#, "first");
        check_result("x", r#"{"success":true,"data":{"output":"\nsecond"}}"#, "ok");
        check_result("glob", "{}", "ok");
        check_result("mail", "[]", "ok");
    }

    proptest! {
        #[test]
        fn whatever_comes_in_is_one_short_line(text in prop::collection::vec(any::<char>(), 0..400)) {
            let text: String = text.into_iter().collect();
            let quoted = Value::from(text.as_str()).to_string();
            for line in [
                call_line(&text, "{}"),
                call_line("x", &text),
                call_line("x", &format!("{{{quoted}:{quoted}}}")),
                result_line("x", &serde_json::json!({"error": text})),
            ] {
                prop_assert!(line.chars().count() <= LIMIT);
                prop_assert!(!line.chars().any(|c| c.is_control() || is_break(c)), "{:?}", line);
            }
        }
    }
}
