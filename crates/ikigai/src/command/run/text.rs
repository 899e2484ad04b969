//! Plain text: the answer on standard output, everything else on standard error.

use std::collections::BTreeMap;

use ikigai_conversation::{AgentId, Body, Message, SessionId};
use ikigai_lines::{call_line, database_unavailable, end_line, prefix_lines, retry_line};
use ikigai_protocol::{
    BlockChange, BlockContent, CallChange, CallEnd, CallState, Event, EventKind, StopReason,
    TranscriptReducer, TurnEnd, render_notice,
};

use super::printer::{Output, lost_command};
use crate::print::{self, Reader};

/// Prints answers when they are complete. Lines about other agents start with their ID.
pub(super) struct PlainText {
    /// The agent of the prompt.
    own: AgentId,
    reducers: BTreeMap<AgentId, TranscriptReducer>,
    /// Text that is either the answer or, if calls follow, a remark.
    texts: BTreeMap<AgentId, String>,
}

impl Output for PlainText {
    fn session(&mut self, _session: SessionId, _model: &str) -> anyhow::Result<Reader> {
        Ok(Reader::Listening)
    }

    fn event(&mut self, event: &Event) -> anyhow::Result<Reader> {
        let Event { agent, kind } = event;
        match kind {
            EventKind::Retry { attempt, of, reason, delay } => {
                self.note(agent, &retry_line(*attempt, *of, reason, *delay));
            }
            EventKind::DatabaseUnavailable(reason) => {
                self.note(agent, &database_unavailable(reason));
            }
            EventKind::Message(Message { body: Body::Assistant(_), content, .. }) => {
                self.texts.insert(agent.clone(), content.clone());
            }
            EventKind::Message(_) | EventKind::MailHeld | EventKind::InputRejected(_) => {}
            EventKind::TurnStarted(_) | EventKind::TextDelta(_) | EventKind::TurnEnded(_) => {}
            EventKind::ApprovalRequested(_) | EventKind::AgentLost(_) => {}
            EventKind::ThinkingDelta(_) | EventKind::EffortRefused(_) => {}
            EventKind::ContextUsed { .. } | EventKind::Compaction(_) | EventKind::Warning(_) => {}
            EventKind::ToolOutput { .. } | EventKind::ReadsStarted(_) => {}
            EventKind::CommandStarted { .. } | EventKind::CommandOutput { .. } => {}
            EventKind::CommandEnded { .. } => {}
            EventKind::CommandLost { command, line } => print::note(&lost_command(*command, line)),
            EventKind::CallProgress { .. } => {}
        }
        self.fold(agent, kind);
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
            Some(_) | None => self.fold(agent, &EventKind::TurnEnded(done.clone())),
        }
        Ok(reader)
    }
}

impl PlainText {
    pub(super) fn new(own: AgentId) -> PlainText {
        PlainText { own, reducers: BTreeMap::new(), texts: BTreeMap::new() }
    }

    /// Prints what an event changes in the agent's conversation.
    fn fold(&mut self, agent: &AgentId, event: &EventKind) {
        let changes = self.reducers.entry(agent.clone()).or_default().event(event);
        for change in changes {
            match change {
                BlockChange::Added(block) => self.print_block(agent, &block.content),
                BlockChange::Call { change: CallChange::Ended(end), .. } => {
                    self.print_end(agent, &end);
                }
                BlockChange::Call { .. } => {}
                BlockChange::Extended { .. } | BlockChange::Logged { .. } => {}
                BlockChange::Thought { .. } => {}
                BlockChange::Removed(_) | BlockChange::Hidden(_) => {}
                BlockChange::HiddenAfter(_) | BlockChange::Cleared => {}
            }
        }
    }

    fn print_block(&mut self, agent: &AgentId, content: &BlockContent) {
        match content {
            BlockContent::Call(call) => {
                self.print_remark(agent);
                match &call.state {
                    CallState::Ended(end) => self.print_end(agent, end),
                    CallState::Running | CallState::Asking | CallState::Unfinished => {
                        self.note(agent, &call_line(call));
                    }
                }
            }
            BlockContent::Mail(cards) => {
                self.print_remark(agent);
                cards.iter().for_each(|card| self.note(agent, &card.line()));
            }
            BlockContent::Notification(text) => {
                self.print_remark(agent);
                self.note(agent, text);
            }
            BlockContent::Notice { tone, text } => self.note(agent, &render_notice(*tone, text)),
            BlockContent::Summary { title, .. } => self.note(agent, title),
            BlockContent::Said(_) | BlockContent::Answer(_) | BlockContent::Divider(_) => {}
            BlockContent::Thought { .. } => {}
            BlockContent::Typed(_) | BlockContent::Reply(_) | BlockContent::Refusal(_) => {}
        }
    }

    /// Prints text that turned out to be a remark.
    fn print_remark(&mut self, agent: &AgentId) {
        let text = self.texts.remove(agent);
        if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
            self.note(agent, &text);
        }
    }

    /// Prints the outcome of a call. A rule that would have allowed a refused call follows on its
    /// own lines, ready for the configuration.
    fn print_end(&self, agent: &AgentId, end: &CallEnd) {
        self.note(agent, &end_line(end));
        if let Some(rule) = &end.rule {
            self.note(agent, rule);
        }
    }

    fn note(&self, agent: &AgentId, text: &str) {
        match self.own == *agent {
            true => print::note(text),
            false => print::note(&prefix_lines(agent, text)),
        }
    }
}
