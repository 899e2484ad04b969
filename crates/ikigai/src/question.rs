//! A call that needs a yes, as lines for the person who decides: the whole command or the diff, whose it is,
//! and what set it going (permissions.md, Asking and rules).

use std::fs::File;
use std::io::Read;
use std::path::Path;

use ikigai_agents::Asking;
use ikigai_conversation::AgentId;
use serde_json::Value;
use similar::TextDiff;

/// What the person is told, line by line, not yet made fit for a terminal.
pub(crate) fn render_question(agent: &AgentId, asking: &Asking, directory: &Path) -> Vec<String> {
    let Asking { call, why, rule, cause } = asking;
    let mut lines = vec![format!("? agent {agent} asks for {}: {why}", call.name)];
    lines.extend(subject(&call.name, &call.arguments, directory).lines().map(indented));
    if !cause.is_empty() {
        lines.push(format!("  set going by: {cause}"));
    }
    if let Some(rule) = rule {
        lines.push(format!("  never asked again with: {rule}"));
    }
    lines
}

/// How it is answered.
pub(crate) const HOW_TO_ANSWER: &str =
    "y: yes, once · a: always in this session · n: no (n and a reason, which the model is told)";

fn indented(line: &str) -> String {
    format!("    {line}")
}

/// What the call would do: all of it, since a yes is to all of it.
fn subject(tool: &str, arguments: &str, directory: &Path) -> String {
    let Ok(arguments) = serde_json::from_str::<Value>(arguments) else {
        return arguments.to_owned();
    };
    let text = |name: &str| arguments[name].as_str();
    match (tool, text("path")) {
        ("bash", _) => text("command").unwrap_or_default().to_owned(),
        ("file_write", Some(path)) => {
            let old = present_text(&directory.join(path));
            difference(path, &old.unwrap_or_default(), text("content").unwrap_or_default())
        }
        ("file_edit", Some(path)) => {
            let of = |name| text(name).unwrap_or_default();
            difference(path, of("old_string"), of("new_string"))
        }
        (_, Some(path)) => path.to_owned(),
        (_, None) => arguments.to_string(),
    }
}

fn difference(path: &str, old: &str, new: &str) -> String {
    let diff = TextDiff::from_lines(old, new);
    diff.unified_diff().header(path, path).missing_newline_hint(false).to_string()
}

/// What a file holds, for showing; `None` where that is no text, or more than anybody would look at.
fn present_text(path: &Path) -> Option<String> {
    const LIMIT: u64 = 1024 * 1024;
    let found = std::fs::metadata(path).ok()?;
    if !found.is_file() || found.len() > LIMIT {
        return None;
    }
    let mut text = String::new();
    File::open(path).ok()?.take(LIMIT).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tool: &str, arguments: &str, expected: &str) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("there"), "one\ntwo\nthree\n").unwrap();
        assert_eq!(subject(tool, arguments, folder.path()), expected);
    }

    #[test]
    fn a_command_is_shown_whole() {
        check("bash", r#"{"command":"a\nb | c","timeout":5}"#, "a\nb | c");
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
        check(
            "file_edit",
            r#"{"path":"there","old_string":"two","new_string":"2"}"#,
            "--- there\n+++ there\n@@ -1 +1 @@\n-two\n+2\n",
        );
    }

    #[test]
    fn other_calls_show_their_path_or_all_of_their_arguments() {
        check("file_read", r#"{"path":"/etc/hosts","limit":3}"#, "/etc/hosts");
        check("mail", r#"{"action":"inbox"}"#, r#"{"action":"inbox"}"#);
    }
}
