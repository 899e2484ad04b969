//! Calls as a person reads them.

use ikigai_conversation::ToolCall;
use serde_json::Value;

/// `grep(pattern="TODO")` as `grep: pattern="TODO"`.
pub(crate) fn call_line(name: &str, content: &str) -> String {
    let inside = content.strip_prefix(name).and_then(|rest| rest.strip_prefix('('));
    match inside.and_then(|rest| rest.strip_suffix(')')) {
        Some("") => name.to_owned(),
        Some(arguments) => format!("{name}: {arguments}"),
        None => content.to_owned(),
    }
}

/// The file that a call changes, if it is one that does.
pub(crate) fn changed_path(call: &ToolCall) -> Option<String> {
    if !matches!(call.name.as_str(), "file_write" | "file_edit") {
        return None;
    }
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    arguments["path"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_a_name_with_its_arguments() {
        for (name, content, expected) in [
            (
                "grep",
                r#"grep(pattern="TODO", glob="*.rs")"#,
                r#"grep: pattern="TODO", glob="*.rs""#,
            ),
            ("agents", "agents()", "agents"),
            ("bash", "bash(command=\"a)\")", "bash: command=\"a)\""),
            ("x", "x(cut …", "x(cut …"),
        ] {
            assert_eq!(call_line(name, content), expected);
        }
    }
}
