//! `/export`: the conversation as a file, for people or for programs.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use ikigai_conversation::{AgentId, Body, Message};
use ikigai_store::StoreError;

use super::Hand;
use crate::print;

impl Hand<'_> {
    /// Writes the log of an agent to a file: JSON lines where its name ends so, else Markdown. Nothing is overwritten.
    pub(crate) async fn export(&self, agent: &AgentId, file: &str) -> String {
        let log = match self.store.own_log(self.session, agent.clone(), None).await {
            Ok(log) => log,
            Err(StoreError::SessionNotFound(_)) => {
                return "Error: nothing was said yet, so there is nothing to write".to_owned();
            }
            Err(error) => return format!("Error: {error}"),
        };
        let path = self.environment.directory.join(file);
        let is_json = path.extension().is_some_and(|ending| ending == "jsonl" || ending == "json");
        let text = match is_json {
            true => log.iter().map(|message| print::safe_json(message.encode()) + "\n").collect(),
            // Whoever shows the file on a terminal trusts it.
            false => print::safe(&render_markdown(agent, &log)),
        };
        match write_new(&path, &text) {
            Ok(()) => format!("Written to {}: {} messages", path.display(), log.len()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                format!("Error: {} is there already; choose another name", path.display())
            }
            Err(error) => format!("Error: cannot write {}: {error}", path.display()),
        }
    }
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes()).inspect_err(|_| drop(std::fs::remove_file(path)))
}

fn render_markdown(agent: &AgentId, log: &[Message]) -> String {
    let parts: Vec<String> = log.iter().filter_map(render_message).collect();
    format!("# Conversation with agent {agent}\n\n{}\n", parts.join("\n\n"))
}

fn render_message(message: &Message) -> Option<String> {
    let content = message.content.trim_end();
    Some(match &message.body {
        Body::User => format!("## You\n\n{content}"),
        Body::Assistant(_) => format!("## Agent\n\n{content}"),
        Body::ToolCall(_) => fenced(&format!("→ {content}")),
        Body::ToolResult(_) => fenced(&format!("← {content}")),
        Body::Notification(_) | Body::Summary(_) => quoted(content),
        Body::Mark(_) | Body::Rewind(_) | Body::Clear | Body::Fork(_) | Body::Kill(_) => {
            format!("*{content}*")
        }
        Body::Interrupted(_) | Body::Command(_) | Body::Approval(_) => format!("*{content}*"),
        Body::System | Body::Usage(_) | Body::Trim(_) => return None,
    })
}

fn quoted(text: &str) -> String {
    text.lines().map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n")
}

/// A block of code whose fence is longer than any in it.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}\n{text}\n{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_what_it_holds() {
        assert_eq!(fenced("a"), "```\na\n```");
        assert_eq!(fenced("x ```` y"), "`````\nx ```` y\n`````");
    }
}
