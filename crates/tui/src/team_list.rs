//! The list that Ctrl+T shows: one line per agent, one of them selected.

use ikigai_conversation::AgentId;
use ikigai_protocol::AgentState;
use ratatui_core::text::Line;

use crate::safe::safe_line;
use crate::style::{DIM, PLAIN, REVERSED, WARNING};
use crate::team::{Member, Team};
use crate::wrap::fit;

/// The list and its selection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TeamView {
    pub(crate) chosen: AgentId,
}

impl TeamView {
    /// Moves the selection by so many lines, down for positive numbers.
    pub(crate) fn go(&mut self, team: &Team, by: isize) {
        let ranked = team.ranked();
        let at = ranked.iter().position(|member| member.id == self.chosen).unwrap_or(0);
        let at = at.saturating_add_signed(by).min(ranked.len().saturating_sub(1));
        if let Some(member) = ranked.get(at) {
            self.chosen = member.id.clone();
        }
    }

    /// The list as rows; `last_action` describes the last action of an agent.
    pub(crate) fn rows(
        &self,
        team: &Team,
        width: usize,
        height: usize,
        last_action: impl Fn(&AgentId) -> Option<String>,
    ) -> Vec<Line<'static>> {
        let ranked = team.ranked();
        let chosen = ranked.iter().position(|member| member.id == self.chosen).unwrap_or(0);
        // The selection is always visible.
        let from = (chosen + 1).saturating_sub(height.saturating_sub(1));
        let head = Line::styled(fit("Team: a digit or Enter goes there, Esc closes", width), DIM);
        let shown = ranked.iter().enumerate().skip(from).take(height.saturating_sub(1));
        let row = |(number, member): (usize, &&Member)| {
            let digit = if number < 9 { (number + 1).to_string() } else { " ".to_owned() };
            let action =
                last_action(&member.id).map(|action| format!(" · {action}")).unwrap_or_default();
            let text = safe_line(&format!("{digit} {}{action}", member.line()));
            let style = match (number == chosen, member.state) {
                (true, _) => REVERSED,
                (false, AgentState::Asking) => WARNING,
                (false, AgentState::Idle | AgentState::Waiting | AgentState::Tool) => PLAIN,
            };
            Line::styled(fit(&text, width), style)
        };
        std::iter::once(head).chain(shown.map(row)).collect()
    }
}
