//! A call that needs a yes, as lines for the person who decides: the whole command or the diff, whose it is,
//! and what set it going.

use std::io::Read;
use std::path::Path;

use ikigai_conversation::{AgentId, ToolCall};
use ikigai_protocol::ApprovalRequest;
use ikigai_tools::{WHERE_RULES_STAND, open_regular};
use ikigai_tui::{Before, Subject};
use serde_json::Value;

/// What the person is told, line by line, not yet made fit for a terminal.
pub(crate) fn render_question(
    agent: &AgentId,
    asking: &ApprovalRequest,
    directory: &Path,
) -> Vec<String> {
    let ApprovalRequest { call, why, rule, cause } = asking;
    let mut lines = vec![on_one_line(&format!("? agent {agent} asks for {}: {why}", call.name))];
    lines.extend(subject(call, directory).lines().map(indented));
    if !cause.is_empty() {
        lines.push(on_one_line(&format!("  set going by: {cause}")));
    }
    if let Some(rule) = rule {
        lines.push(format!("  never asked again with this {WHERE_RULES_STAND}:"));
        lines.extend(rule.lines().map(indented));
    }
    lines.iter().map(|line| in_reading_order(line)).collect()
}

/// How it is answered.
pub(crate) const HOW_TO_ANSWER: &str =
    "y: yes, once · a: always in this session · n: no (n and a reason, which the model is told)";

fn indented(line: &str) -> String {
    format!("    {line}")
}

/// Text of a model in a line of ours, where a name with line breaks could pass for another question.
fn on_one_line(text: &str) -> String {
    text.replace(['\n', '\t'], "\u{fffd}")
}

/// Marks that show text in another order than it is run in, or break a line.
const MARKS: [char; 14] = [
    '\u{061c}', '\u{200e}', '\u{200f}', '\u{2028}', '\u{2029}', '\u{202a}', '\u{202b}', '\u{202c}',
    '\u{202d}', '\u{202e}', '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
];

/// What is allowed has to be what is read.
fn in_reading_order(line: &str) -> String {
    line.replace(MARKS, "\u{fffd}")
}

/// What the call would do: all of it, since a yes is to all of it.
fn subject(call: &ToolCall, directory: &Path) -> String {
    match Subject::of(call, &present(call, directory)) {
        Subject::Text(text) => text,
        Subject::Change { path, remark, diff } => {
            let remark = remark.map(|remark| remark + "\n").unwrap_or_default();
            format!("{remark}--- {path}\n+++ {path}\n{diff}")
        }
    }
}

/// What a call to write a file would replace.
pub(crate) fn present(call: &ToolCall, directory: &Path) -> Before {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    match (call.name.as_str(), arguments["path"].as_str()) {
        ("file_write", Some(path)) => look_into(&directory.join(path)),
        _ => Before::Nothing,
    }
}

/// More than this of a file nobody would look at; a diff of it would take its time.
pub(crate) const SHOWN_BYTES: u64 = 1024 * 1024;

fn look_into(path: &Path) -> Before {
    let Some(found) = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file) else {
        return Before::Nothing;
    };
    let mut text = String::new();
    let read = match found.len() <= SHOWN_BYTES {
        true => {
            open_regular(path).and_then(|file| file.take(SHOWN_BYTES).read_to_string(&mut text))
        }
        false => Ok(0),
    };
    match read {
        Ok(count) if count as u64 == found.len() => Before::Text(text),
        Ok(_) | Err(_) => Before::NotShown { bytes: found.len() },
    }
}

#[cfg(test)]
mod tests {
    use ikigai_conversation::{Body, NewMessage, ResponseId, ToolCallId};

    use super::*;

    fn call(tool: &str, arguments: &str) -> ToolCall {
        let id = ToolCallId::new("c1");
        let call = NewMessage::tool_call(id, tool, arguments, ResponseId::new("r"));
        let Body::ToolCall(call) = call.body else { unreachable!("it is a call") };
        call
    }

    #[track_caller]
    fn check(tool: &str, arguments: &str, expected: &str) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("there"), "one\ntwo\nthree\n").unwrap();
        assert_eq!(subject(&call(tool, arguments), folder.path()), expected);
    }

    #[test]
    fn a_write_is_shown_as_what_it_changes() {
        check(
            "file_write",
            r#"{"path":"there","content":"one\n2\nthree\n"}"#,
            "--- there\n+++ there\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
        );
        check(
            "file_write",
            r#"{"path":"new","content":"a\n"}"#,
            "--- new\n+++ new\n@@ -0,0 +1 @@\n+a\n",
        );
    }

    /// It was shown as a new file, as if nothing were lost.
    #[test]
    fn what_is_replaced_and_cannot_be_shown_is_told() {
        let folder = tempfile::tempdir().unwrap();
        for (name, old) in [("bytes", b"\xff".repeat(5)), ("huge", b"x\n".repeat(1_000_000))] {
            std::fs::write(folder.path().join(name), &old).unwrap();
            let write = call("file_write", &format!(r#"{{"path":"{name}","content":"a\n"}}"#));
            let expected = format!(
                "{name}: all {} bytes of the file are replaced by\n--- {name}\n+++ {name}\n@@ -0,0 +1 @@\n+a\n",
                old.len()
            );
            assert_eq!(subject(&write, folder.path()), expected);
        }
    }

    #[test]
    fn an_edit_of_every_occurrence_says_so() {
        check(
            "file_edit",
            r#"{"path":"there","old_string":"o","new_string":"0","replace_all":true}"#,
            "wherever it stands in there\n--- there\n+++ there\n@@ -1 +1 @@\n-o\n+0\n",
        );
    }

    /// The question, as lines; what a model made up is in all of it.
    fn question(arguments: &str, why: &str) -> Vec<String> {
        let call = call("bash", arguments);
        let (why, cause) = (why.to_owned(), "a\tb".to_owned());
        let rule = Some("[[rules]]\ntool = \"bash\"".to_owned());
        let asking = ApprovalRequest { call, why, rule, cause };
        render_question(&AgentId::top_level(0), &asking, Path::new("/"))
    }

    #[test]
    fn no_text_of_a_model_passes_for_a_line_of_ours_or_is_shown_in_another_order() {
        let arguments = "{\"command\":\"ls \\u202eevil\\n? agent 1/ asks\\u2028x\"}";
        let expected = [
            "? agent 0/ asks for bash: x\u{fffd}? agent 1/ asks for less",
            "    ls \u{fffd}evil",
            "    ? agent 1/ asks\u{fffd}x",
            "  set going by: a\u{fffd}b",
            "  never asked again with this in your own configuration before other rules ('ikigai config' names the file):",
            "    [[rules]]",
            "    tool = \"bash\"",
        ];
        assert_eq!(question(arguments, "x\n? agent 1/ asks for less"), expected);
    }
}
