//! Commands on sessions: list, preview, rename, delete.

use ikigai_conversation::{AgentId, Body, Message, SessionId};
use ikigai_mail::relative_time;
use ikigai_protocol::{CommandError, Reply, SessionSummary, typed_text};
use ikigai_store::{Process, Session};

use super::refusal;
use crate::clock::now;
use crate::open::OpenSession;

/// How many messages a preview looks at, and how many of them it shows.
const LOOKED_AT: u32 = 60;
const PREVIEWED: usize = 6;
/// A line of a preview, in characters; wider screens are rare.
const LINE: usize = 300;
/// A title, in characters.
const TITLE: usize = 200;

impl OpenSession {
    /// The latest sessions.
    pub(super) async fn sessions(&self) -> Result<Reply, CommandError> {
        /// More than a user looks through; 'ikigai sessions' lists all.
        const SESSIONS: usize = 500;
        let all = self.slot.store().sessions().await.map_err(refusal)?;
        let sessions = all.iter().take(SESSIONS).map(session_summary).collect();
        let (current, here) = (self.slot.session(), self.environment().directory.display());
        let more = all.len().saturating_sub(SESSIONS);
        Ok(Reply::Sessions { sessions, more, current, here: here.to_string() })
    }

    /// The end of the conversation with the first agent.
    pub(super) async fn preview_session(&self, session: SessionId) -> Result<Reply, CommandError> {
        let (store, agent) = (self.slot.store(), AgentId::top_level(0));
        let log = store.latest_messages(session, agent, LOOKED_AT).await.map_err(refusal)?;
        let mut lines: Vec<String> = log.iter().rev().filter_map(line).take(PREVIEWED).collect();
        lines.reverse();
        Ok(Reply::SessionPreview { session, text: lines.join("\n") })
    }

    pub(super) async fn rename_session(
        &self,
        session: SessionId,
        title: &str,
    ) -> Result<Reply, CommandError> {
        let line = title.lines().next().unwrap_or_default().trim();
        let title: String = line.chars().take(TITLE).collect();
        if title.is_empty() {
            return Err(CommandError::Usage("A title cannot be empty".to_owned()));
        }
        let renamed = self.slot.store().rename_session(session, title.clone()).await;
        renamed.map_err(refusal).map(|()| Reply::SessionRenamed { session, title })
    }

    /// Deletes a session that no process runs.
    pub(super) async fn delete_session(&self, session: SessionId) -> Result<Reply, CommandError> {
        if session == self.slot.session() {
            let why = "This session is open. /new starts another one, which can delete it";
            return Err(CommandError::Refused(why.to_owned()));
        }
        let removed = self.slot.store().remove_session(session, Process::current()).await;
        removed.map_err(refusal).map(|()| Reply::SessionDeleted(session))
    }
}

/// A message of a preview on one line.
fn line(message: &Message) -> Option<String> {
    let (sign, text) = match &message.body {
        Body::User => ("❯", typed_text(&message.content)),
        Body::Assistant(_) => ("●", message.content.as_str()),
        _ => return None,
    };
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    Some(format!("{sign} {}", line.chars().take(LINE).collect::<String>()))
}

/// Summarizes a session for a list.
pub fn session_summary(session: &Session) -> SessionSummary {
    SessionSummary {
        id: session.id,
        directory: session.location.directory.clone(),
        title: session.title.clone(),
        updated_at: session.updated_at,
        age: relative_time(session.updated_at, now()),
        agents: session.agents,
        messages: session.messages,
    }
}
