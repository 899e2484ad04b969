//! `/export`: writes the conversation to a file, as Markdown or JSON lines.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use ikigai_conversation::{AgentId, Body, Message};
use ikigai_protocol::{CommandError, Nothing, Reply, safe, safe_json};
use ikigai_store::StoreError;

use super::refusal;
use crate::open::OpenSession;

impl OpenSession {
    /// Writes the log of an agent to a new file: JSON lines for `.jsonl` and `.json`, else
    /// Markdown.
    pub(super) async fn export(&self, agent: &AgentId, file: &str) -> Result<Reply, CommandError> {
        let (store, session) = (self.slot.store(), self.slot.session());
        let log = match store.own_log(session, agent.clone(), None).await {
            Err(StoreError::SessionNotFound(_)) => Vec::new(),
            log => log.map_err(refusal)?,
        };
        if log.is_empty() {
            return Err(CommandError::NothingToDo(Nothing::Conversation));
        }
        let path = self.environment().directory.join(file);
        let is_json = path.extension().is_some_and(|ending| ending == "jsonl" || ending == "json");
        let text = match is_json {
            true => log.iter().map(|message| safe_json(message.encode()) + "\n").collect(),
            // The file may be printed on a terminal.
            false => safe(&render_markdown(agent, &log)),
        };
        write_new(&path, &text).map_err(|error| {
            CommandError::Refused(match error.kind() {
                io::ErrorKind::AlreadyExists => {
                    format!("{} already exists. Choose another name", path.display())
                }
                _ => format!("Cannot write {}: {error}", path.display()),
            })
        })?;
        Ok(Reply::Exported { path, messages: log.len() })
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

/// A code block with a fence longer than any backticks in it.
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
