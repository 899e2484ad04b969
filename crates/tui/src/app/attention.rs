//! Drawing the user's attention: notifications, and the title of the window.

use ikigai_conversation::{AgentId, Body, Message};

use super::{Action, App, Focus};
use crate::pane::Pane;

impl App {
    /// Draws the attention of a user who is looking elsewhere.
    pub(super) fn notify(&mut self, agent: &AgentId, what: &str) {
        if self.focus == Focus::Away {
            let name = self.team.member(agent).and_then(|member| member.name.clone());
            let who = name.unwrap_or_else(|| format!("Agent {agent}"));
            self.push(Action::Ring(format!("{who} {what}")));
        }
    }

    /// The user's first message to a top-level agent is the title.
    pub(super) fn note_title(&mut self, message: &Message) {
        /// Window titles have little room.
        const TITLE: usize = 80;
        if self.title.is_empty() && message.body == Body::User && message.agent.depth() == 1 {
            let line = message.content.lines().find(|line| !line.trim().is_empty());
            self.title = line.unwrap_or_default().trim().chars().take(TITLE).collect();
        }
    }

    /// The title of the window, with a mark for the state of the session.
    pub(crate) fn window_title(&self) -> String {
        let title = if self.title.is_empty() { "ikigai" } else { &self.title };
        let is_asking = self.panes.values().any(|pane| !pane.questions.is_empty());
        match (is_asking, self.panes.values().any(Pane::is_busy)) {
            (true, _) => format!("? {title}"),
            (false, true) => format!("✳ {title}"),
            (false, false) => title.to_owned(),
        }
    }
}
