//! What a call would do, as somebody reads it who has to say yes to all of it.

use std::time::Duration;

use ikigai_conversation::ToolCall;
use serde_json::Value;
use similar::TextDiff;

use crate::transcript::changed_path;

/// What a file holds that a call would replace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Before {
    /// There is no file.
    Nothing,
    /// This text.
    Text(String),
    /// So many bytes that are no text, cannot be read, or are more than anybody would look at.
    NotShown {
        /// How many.
        bytes: u64,
    },
    /// Nobody has looked yet.
    Unknown,
}

/// What a call would do. None of it is fit for a terminal yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A command, a path, or the arguments as they are.
    Text(String),
    /// A change to a file.
    Change {
        /// The file.
        path: String,
        /// What the diff does not say.
        remark: Option<String>,
        /// The hunks of a unified diff.
        diff: String,
    },
}

impl Subject {
    /// What `call` would do. `before` is looked at for a `file_write` only.
    pub fn of(call: &ToolCall, before: &Before) -> Subject {
        let Ok(arguments) = serde_json::from_str::<Value>(&call.arguments) else {
            return Subject::Text(call.arguments.clone());
        };
        let text = |name: &str| arguments[name].as_str().unwrap_or_default();
        let path = arguments["path"].as_str();
        match (call.name.as_str(), changed_path(call)) {
            ("bash", _) => Subject::Text(text("command").to_owned()),
            ("file_write", Some(path)) => write(path, before, text("content")),
            (_, Some(path)) => {
                let diff = difference(text("old_string"), text("new_string"));
                let is_everywhere = arguments["replace_all"] == true;
                let remark = is_everywhere.then(|| format!("wherever it stands in {path}"));
                Subject::Change { path, remark, diff }
            }
            (_, None) => Subject::Text(path.map_or_else(|| arguments.to_string(), str::to_owned)),
        }
    }
}

fn write(path: String, before: &Before, content: &str) -> Subject {
    let (old, remark) = match before {
        Before::Nothing => ("", None),
        Before::Text(old) => (old.as_str(), None),
        Before::NotShown { bytes } => {
            ("", Some(format!("{path}: all {bytes} bytes of the file are replaced by")))
        }
        Before::Unknown => ("", Some(format!("{path}: whatever it holds is replaced by"))),
    };
    Subject::Change { remark, diff: difference(old, content), path }
}

fn difference(old: &str, new: &str) -> String {
    /// For long texts that have little in common the shortest way between them takes minutes to find, and
    /// nothing else goes on meanwhile. After this time one that is longer does.
    const PATIENCE: Duration = Duration::from_millis(200);
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(old, new);
    diff.unified_diff().missing_newline_hint(false).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::tests::asking;

    fn subject(name: &str, arguments: &str, before: &Before) -> Subject {
        Subject::of(&asking(name, arguments).call, before)
    }

    #[track_caller]
    fn check(name: &str, arguments: &str, expected: &str) {
        let found = subject(name, arguments, &Before::Nothing);
        assert_eq!(found, Subject::Text(expected.to_owned()));
    }

    #[track_caller]
    fn check_change(
        name: &str,
        arguments: &str,
        before: &Before,
        remark: Option<&str>,
        diff: &str,
    ) {
        let (path, remark, diff) = ("f".to_owned(), remark.map(str::to_owned), diff.to_owned());
        assert_eq!(subject(name, arguments, before), Subject::Change { path, remark, diff });
    }

    #[test]
    fn a_command_is_shown_whole() {
        check("bash", r#"{"command":"a\nb | c","timeout":5}"#, "a\nb | c");
        check("bash", "no json", "no json");
    }

    #[test]
    fn other_calls_show_their_path_or_all_of_their_arguments() {
        check("file_read", r#"{"path":"/etc/hosts","limit":3}"#, "/etc/hosts");
        check("mail", r#"{"action":"inbox"}"#, r#"{"action":"inbox"}"#);
    }

    const WRITE: &str = r#"{"path":"f","content":"one\n2\nthree\n"}"#;

    #[test]
    fn a_write_is_shown_as_what_it_changes() {
        let text = Before::Text("one\ntwo\nthree\n".to_owned());
        check_change("file_write", WRITE, &text, None, "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n");
        let added = "@@ -0,0 +1,3 @@\n+one\n+2\n+three\n";
        check_change("file_write", WRITE, &Before::Nothing, None, added);
    }

    /// It was shown as a new file, as if nothing were lost.
    #[test]
    fn what_is_replaced_and_cannot_be_shown_is_told() {
        let added = "@@ -0,0 +1,3 @@\n+one\n+2\n+three\n";
        let bytes = "f: all 7 bytes of the file are replaced by";
        check_change("file_write", WRITE, &Before::NotShown { bytes: 7 }, Some(bytes), added);
        let unknown = "f: whatever it holds is replaced by";
        check_change("file_write", WRITE, &Before::Unknown, Some(unknown), added);
    }

    #[test]
    fn an_edit_says_whether_it_is_of_every_occurrence() {
        let edit = r#"{"path":"f","old_string":"o","new_string":"0"}"#;
        check_change("file_edit", edit, &Before::Nothing, None, "@@ -1 +1 @@\n-o\n+0\n");
        let edit = r#"{"path":"f","old_string":"o","new_string":"0","replace_all":true}"#;
        let everywhere = Some("wherever it stands in f");
        check_change("file_edit", edit, &Before::Nothing, everywhere, "@@ -1 +1 @@\n-o\n+0\n");
    }

    /// Only that it was too large was said, above the keys for a yes.
    #[test]
    fn a_text_of_any_size_is_shown_whole() {
        let content = "x\n".repeat(300_000);
        let arguments = serde_json::json!({"path": "f", "content": content}).to_string();
        let Subject::Change { diff, .. } = subject("file_write", &arguments, &Before::Nothing)
        else {
            panic!("a write is a change")
        };
        assert_eq!(diff.lines().filter(|line| *line == "+x").count(), 300_000);
    }
}
