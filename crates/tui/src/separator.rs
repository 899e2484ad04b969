//! The line between the conversation and the input.

use ikigai_conversation::AgentId;
use ratatui_core::text::{Line, Span};

use crate::style::{DANGER, DIM, WARNING};
use crate::team::{Step, Team};
use crate::wrap::width_of;

/// The agent in view with its relatives, unread mail and pending questions.
pub(crate) struct Separator<'a> {
    pub(crate) team: &'a Team,
    pub(crate) view: &'a AgentId,
    /// The note on unread mail.
    pub(crate) mail: Option<String>,
    /// Agents that wait for approval.
    pub(crate) asking: Vec<&'a AgentId>,
}

impl Separator<'_> {
    pub(crate) fn render(&self, width: usize) -> Line<'static> {
        let name = |step| {
            self.team.relative(self.view, step).map_or_else(|| "-".to_owned(), ToString::to_string)
        };
        let mut spans = vec![Span::styled("── ", DIM)];
        spans.push(Span::styled(
            format!("↑{} ←{} ", name(Step::Parent), name(Step::PreviousSibling)),
            DIM,
        ));
        spans.push(Span::raw(format!("[{}]", self.view)));
        spans.push(Span::styled(
            format!(" →{} ↓{} ──", name(Step::NextSibling), name(Step::NewestChild)),
            DIM,
        ));
        if let Some(mail) = &self.mail {
            spans.push(Span::styled(format!(" {mail}"), WARNING));
            spans.push(Span::styled(" ──", DIM));
        }
        for agent in &self.asking {
            spans.push(Span::styled(format!(" [{agent} asks]"), DANGER));
            spans.push(Span::styled(" ──", DIM));
        }
        let used = width_of(&spans);
        spans.push(Span::styled("─".repeat(width.saturating_sub(used)), DIM));
        Line::from(spans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::team::tests::team;

    #[track_caller]
    fn check(view: &str, expected: &str) {
        let team = team(&["0/0/", "0/", "1/", "0/1/", "0/10/"]);
        let view = AgentId::parse(view).unwrap();
        let separator = Separator { team: &team, view: &view, mail: None, asking: Vec::new() };
        assert_eq!(separator.render(0).to_string(), expected);
    }

    #[test]
    fn the_separator_shows_the_relatives() {
        check("0/", "── ↑- ←- [0/] →1/ ↓0/10/ ──");
        check("0/1/", "── ↑0/ ←0/0/ [0/1/] →0/10/ ↓- ──");
        check("1/", "── ↑- ←0/ [1/] →- ↓- ──");
    }

    #[test]
    fn the_separator_shows_mail_and_questions() {
        let team = team(&["0/", "0/1/"]);
        let (view, child) = (AgentId::top_level(0), AgentId::parse("0/1/").unwrap());
        let separator = Separator {
            team: &team,
            view: &view,
            mail: Some("[mail:2]".to_owned()),
            asking: vec![&child],
        };
        assert_eq!(
            separator.render(60).to_string(),
            format!("── ↑- ←- [0/] →- ↓0/1/ ── [mail:2] ── [0/1/ asks] ──{}", "─".repeat(8))
        );
    }
}
