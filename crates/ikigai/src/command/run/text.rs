//! Plain text: the answer on standard output, everything else on standard error.

use std::collections::BTreeMap;

use ikigai_conversation::{AgentId, Body, Message, SessionId};
use ikigai_protocol::{Event, EventKind, StopReason, TurnEnd};

use super::printer::Output;
use crate::print::{self, Reader};
use crate::transcript;

/// Prints answers when they are complete. Lines about other agents start with their ID.
pub(super) struct PlainText {
    /// The agent of the prompt.
    own: AgentId,
    /// Text that is either the answer or, if calls follow, a remark.
    texts: BTreeMap<AgentId, String>,
}

impl Output for PlainText {
    fn session(&mut self, _session: SessionId, _model: &str) -> anyhow::Result<Reader> {
        Ok(Reader::Listening)
    }

    fn event(&mut self, event: &Event) -> anyhow::Result<Reader> {
        let agent = &event.agent;
        match &event.kind {
            EventKind::Message(message) => self.logged(agent, message),
            EventKind::Retry { attempt, reason, delay } => {
                self.note(agent, &transcript::retry(*attempt, reason, *delay));
            }
            EventKind::DatabaseUnavailable(reason) => {
                self.note(agent, &transcript::database_unavailable(reason));
            }
            EventKind::MailHeld => print::note(transcript::MAIL_HELD),
            EventKind::InputRejected(text) => self.note(agent, &transcript::rejected(text)),
            EventKind::AgentLost(reason) => self.note(agent, &format!("✗ {reason}")),
            EventKind::TurnStarted(_)
            | EventKind::TextDelta(_)
            | EventKind::ApprovalRequested(_) => {}
            EventKind::TurnEnded(_) => {}
        }
        Ok(Reader::Listening)
    }

    fn done(&mut self, agent: &AgentId, done: &TurnEnd) -> anyhow::Result<Reader> {
        self.texts.remove(agent);
        let is_own = self.own == *agent;
        let mut reader = Reader::Listening;
        if !done.text.trim().is_empty() && is_own {
            let end = if done.text.ends_with('\n') { "" } else { "\n" };
            reader = print::model_text_to_reader(&format!("{}{end}", done.text))?;
        } else if !done.text.trim().is_empty() {
            self.note(agent, &done.text);
        }
        match &done.error {
            // Like every command, say why it failed.
            Some(error) if done.stop == StopReason::Error && is_own => {
                print::note(&format!("ikigai: {error}"));
            }
            Some(_) | None => {
                transcript::end_note(done).iter().for_each(|note| self.note(agent, note));
            }
        }
        Ok(reader)
    }
}

impl PlainText {
    pub(super) fn new(own: AgentId) -> PlainText {
        PlainText { own, texts: BTreeMap::new() }
    }

    fn logged(&mut self, agent: &AgentId, message: &Message) {
        match &message.body {
            Body::Assistant(_) => {
                self.texts.insert(agent.clone(), message.content.clone());
            }
            Body::ToolCall(_) | Body::ToolResult(_) | Body::Notification(_) => {
                let text = self.texts.remove(agent);
                if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
                    self.note(agent, &text);
                }
                self.note_line(agent, message);
            }
            Body::System | Body::User | Body::Summary(_) | Body::Fork(_) | Body::Usage(_) => {}
            Body::Mark(_) | Body::Rewind(_) | Body::Clear | Body::Trim(_) | Body::Kill(_) => {}
            Body::Interrupted(_) | Body::Command(_) | Body::Approval(_) => {}
        }
    }

    /// Prints a call or result. A rule that would have allowed a refused call follows on its own
    /// lines, ready for the configuration.
    fn note_line(&self, agent: &AgentId, message: &Message) {
        let line = transcript::line(message);
        self.note(agent, &line);
        if let Body::ToolResult(result) = &message.body
            && let Some(rule) = result.shown.as_ref().and_then(|shown| shown.rule.as_ref())
        {
            self.note(agent, rule);
        }
    }

    fn note(&self, agent: &AgentId, text: &str) {
        match self.own == *agent {
            true => print::note(text),
            false => print::note(&transcript::prefix_lines(agent, text)),
        }
    }
}
