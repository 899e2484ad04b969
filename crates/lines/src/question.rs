//! An approval request as lines of text: the whole command or diff, the agent, and the message that
//! caused it.

use ikigai_conversation::{AgentId, Preview};
use ikigai_protocol::{ApprovalRequest, RULE_LOCATION};

/// Renders an approval request line by line. The lines are not yet safe for a terminal.
pub(crate) fn render_question(agent: &AgentId, asking: &ApprovalRequest) -> Vec<String> {
    let ApprovalRequest { call, preview, why, rule, cause, hash: _ } = asking;
    let mut lines = vec![on_one_line(&format!("? agent {agent} asks for {}: {why}", call.name))];
    lines.extend(render_preview(preview).lines().map(indented));
    if !cause.is_empty() {
        lines.push(on_one_line(&format!("  because of: {cause}")));
    }
    if let Some(rule) = rule {
        lines.push(format!("  never asked again with this {RULE_LOCATION}:"));
        lines.extend(rule.lines().map(indented));
    }
    lines.iter().map(|line| in_reading_order(line)).collect()
}

/// The keys that answer an approval request.
pub(crate) const HOW_TO_ANSWER: &str =
    "y: yes, once · a: always in this session · n: no (n and a reason, which the model is told)";

fn indented(line: &str) -> String {
    format!("    {line}")
}

/// Puts a model's text on one line, so that a name with line breaks cannot pass for another
/// question.
fn on_one_line(text: &str) -> String {
    text.replace(['\n', '\t'], "\u{fffd}")
}

/// Characters that reorder displayed text or break lines.
const MARKS: [char; 14] = [
    '\u{061c}', '\u{200e}', '\u{200f}', '\u{2028}', '\u{2029}', '\u{202a}', '\u{202b}', '\u{202c}',
    '\u{202d}', '\u{202e}', '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
];

/// Replaces characters that would make the displayed text differ from what is approved.
fn in_reading_order(line: &str) -> String {
    line.replace(MARKS, "\u{fffd}")
}

/// Renders everything the call would do, since an approval covers all of it.
fn render_preview(preview: &Preview) -> String {
    match preview {
        Preview::Command { command: text } | Preview::Arguments { arguments: text } => text.clone(),
        Preview::Change { remark, diff } => {
            let remark = remark.as_ref().map(|remark| format!("{remark}\n")).unwrap_or_default();
            let path = on_one_line(&diff.path);
            let lines: String = diff.unified().map(|line| line + "\n").collect();
            format!("{remark}--- {path}\n+++ {path}\n{lines}")
        }
    }
}

#[cfg(test)]
mod tests {
    use ikigai_conversation::{Body, FileDiff, Hunk, NewMessage, ResponseId, ToolCall, ToolCallId};

    use super::*;

    fn call() -> ToolCall {
        let id = ToolCallId::new("c1");
        let call = NewMessage::tool_call(id, "bash", "{}", ResponseId::new("r"));
        let Body::ToolCall(call) = call.body else { unreachable!("it is a call") };
        call
    }

    #[test]
    fn a_change_is_a_diff_below_what_it_does_not_say() {
        let lines = vec!["-o".to_owned().into(), "+0".to_owned().into()];
        let hunks = vec![Hunk { old: 3, new: 3, lines }];
        let diff = FileDiff { path: "f\n".to_owned(), added: 1, removed: 1, hunks, omitted: 0 };
        let remark = Some("wherever it stands in f".to_owned());
        let shown = render_preview(&Preview::Change { remark, diff });
        let expected =
            "wherever it stands in f\n--- f\u{fffd}\n+++ f\u{fffd}\n@@ -3 +3 @@\n-o\n+0\n";
        assert_eq!(shown, expected);
    }

    /// The question, as lines; what a model made up is in all of it.
    fn question(command: &str, why: &str) -> Vec<String> {
        let preview = Preview::Command { command: command.to_owned() };
        let (why, cause) = (why.to_owned(), "a\tb".to_owned());
        let rule = Some("[[rules]]\ntool = \"bash\"".to_owned());
        let hash = String::new();
        let asking = ApprovalRequest { call: call(), preview, why, rule, cause, hash };
        render_question(&AgentId::top_level(0), &asking)
    }

    #[test]
    fn no_text_of_a_model_passes_for_a_line_of_ours_or_is_shown_in_another_order() {
        let expected = [
            "? agent 0/ asks for bash: x\u{fffd}? agent 1/ asks for less",
            "    ls \u{fffd}evil",
            "    ? agent 1/ asks\u{fffd}x",
            "  because of: a\u{fffd}b",
            "  never asked again with this in your own configuration before other rules ('ikigai config' names the file):",
            "    [[rules]]",
            "    tool = \"bash\"",
        ];
        let command = "ls \u{202e}evil\n? agent 1/ asks\u{2028}x";
        assert_eq!(question(command, "x\n? agent 1/ asks for less"), expected);
    }
}
