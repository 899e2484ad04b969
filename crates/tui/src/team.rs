//! The agents of the session: who is related to whom, and the list that Ctrl+T shows.

use ikigai_conversation::AgentId;
use ratatui_core::text::{Line, Span};

use crate::look::{DANGER, DIM, PLAIN, REVERSED, WARNING};
use crate::safe::safe_line;
use crate::wrap::fit;

/// An agent as the team shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Who it is.
    pub id: AgentId,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// What it is doing.
    pub state: State,
    /// The first line of what it was asked to do.
    pub task: String,
    /// How many unread messages it has.
    pub unread: u32,
    /// What it has cost, with its currency, where that is known.
    pub cost: Option<String>,
    /// Whether it can be looked at from here.
    pub place: Place,
}

/// What an agent is doing (agents.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the contract has the words")]
pub enum State {
    Idle,
    Waiting,
    Tool,
    Asking,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::Idle => "idle",
            State::Waiting => "waiting",
            State::Tool => "tool",
            State::Asking => "asking",
        }
    }
}

/// Which process runs an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// This one.
    Here,
    /// Another one: it can be written to, but not talked to.
    Elsewhere,
}

/// All agents that live.
#[derive(Debug, Default)]
pub(crate) struct Team {
    /// In the order of the tree.
    members: Vec<Member>,
}

/// A step in the tree of agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Parent,
    PreviousSibling,
    NextSibling,
    NewestChild,
}

impl Team {
    pub(crate) fn new(mut members: Vec<Member>) -> Team {
        members.sort_by(|a, b| a.id.cmp(&b.id));
        Team { members }
    }

    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    pub(crate) fn member(&self, agent: &AgentId) -> Option<&Member> {
        self.members.iter().find(|member| member.id == *agent)
    }

    /// Makes sure that an agent is known, which may have done something before anybody told of it.
    pub(crate) fn meet(&mut self, agent: &AgentId) {
        if self.member(agent).is_none() {
            let at = self.members.partition_point(|member| member.id < *agent);
            let member = Member {
                id: agent.clone(),
                name: None,
                state: State::Idle,
                task: String::new(),
                unread: 0,
                cost: None,
                place: Place::Here,
            };
            self.members.insert(at, member);
        }
    }

    /// The agent that a step leads to.
    pub(crate) fn relative(&self, agent: &AgentId, step: Step) -> Option<&AgentId> {
        let parent = agent.parent();
        let is_sibling = |other: &&AgentId| other.parent() == parent;
        let mut ids = self.members.iter().map(|member| &member.id);
        match step {
            Step::Parent => ids.find(|other| Some(*other) == parent.as_ref()),
            Step::PreviousSibling => ids.filter(is_sibling).rfind(|other| *other < agent),
            Step::NextSibling => ids.filter(is_sibling).find(|other| *other > agent),
            Step::NewestChild => ids.rfind(|other| other.parent().as_ref() == Some(agent)),
        }
    }

    /// An agent by its id, with or without the last slash, or by its name.
    pub(crate) fn find(&self, named: &str) -> Option<&Member> {
        let slashed = format!("{}/", named.trim_end_matches('/'));
        let is_meant = |member: &&Member| {
            member.id.to_string() == slashed || member.name.as_deref() == Some(named)
        };
        self.members.iter().rfind(is_meant)
    }

    /// The tree of `/agents`.
    pub(crate) fn tree(&self, view: &AgentId) -> String {
        let line = |member: &Member| {
            let mark = if member.id == *view { "*" } else { " " };
            let indent = "  ".repeat(member.id.depth() - 1);
            format!("{mark} {indent}{}", member.line())
        };
        self.members.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Those that ask the person first, then the tree.
    pub(crate) fn ranked(&self) -> Vec<&Member> {
        let (mut asking, others): (Vec<&Member>, Vec<&Member>) =
            self.members.iter().partition(|member| member.state == State::Asking);
        asking.extend(others);
        asking
    }
}

impl Member {
    /// `0/1/ name tool [mail:2] $0.10: task`
    fn line(&self) -> String {
        let name = self.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        let mail = if self.unread > 0 { format!(" [mail:{}]", self.unread) } else { String::new() };
        let cost = self.cost.as_ref().map(|cost| format!(" {cost}")).unwrap_or_default();
        let place = if self.place == Place::Elsewhere { " (another terminal)" } else { "" };
        let task = if self.task.is_empty() { String::new() } else { format!(": {}", self.task) };
        format!("{}{name} {}{mail}{cost}{place}{task}", self.id, self.state.word())
    }
}

/// The list, with one agent chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TeamView {
    pub(crate) chosen: AgentId,
}

impl TeamView {
    /// Chooses the one that is so many lines further down, or up.
    pub(crate) fn go(&mut self, team: &Team, by: isize) {
        let ranked = team.ranked();
        let at = ranked.iter().position(|member| member.id == self.chosen).unwrap_or(0);
        let at = at.saturating_add_signed(by).min(ranked.len().saturating_sub(1));
        if let Some(member) = ranked.get(at) {
            self.chosen = member.id.clone();
        }
    }

    /// The list as rows; `last_action` says what an agent did last.
    pub(crate) fn rows(
        &self,
        team: &Team,
        width: usize,
        height: usize,
        last_action: impl Fn(&AgentId) -> Option<String>,
    ) -> Vec<Line<'static>> {
        let ranked = team.ranked();
        let chosen = ranked.iter().position(|member| member.id == self.chosen).unwrap_or(0);
        // The chosen one is always seen.
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
                (false, State::Asking) => WARNING,
                (false, State::Idle | State::Waiting | State::Tool) => PLAIN,
            };
            Line::styled(fit(&text, width), style)
        };
        std::iter::once(head).chain(shown.map(row)).collect()
    }
}

/// The line between conversation and input: where the agent in view stands, and what waits.
pub(crate) struct Separator<'a> {
    pub(crate) team: &'a Team,
    pub(crate) view: &'a AgentId,
    /// What is said of the mailbox.
    pub(crate) mail: Option<String>,
    /// Others that ask.
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
        let used = crate::wrap::width_of(&spans);
        spans.push(Span::styled("─".repeat(width.saturating_sub(used)), DIM));
        Line::from(spans)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn team(ids: &[&str]) -> Team {
        let mut team = Team::default();
        ids.iter().for_each(|id| team.meet(&AgentId::parse(id).unwrap()));
        team
    }

    #[track_caller]
    fn check(view: &str, expected: &str) {
        let team = team(&["0/0/", "0/", "1/", "0/1/", "0/10/"]);
        let view = AgentId::parse(view).unwrap();
        let separator = Separator { team: &team, view: &view, mail: None, asking: Vec::new() };
        assert_eq!(separator.render(0).to_string(), expected);
    }

    #[test]
    fn the_separator_says_who_stands_around() {
        check("0/", "── ↑- ←- [0/] →1/ ↓0/10/ ──");
        check("0/1/", "── ↑0/ ←0/0/ [0/1/] →0/10/ ↓- ──");
        check("1/", "── ↑- ←0/ [1/] →- ↓- ──");
    }

    #[test]
    fn mail_and_questions_stand_in_the_separator() {
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

    #[test]
    fn agents_are_found_by_id_with_or_without_slash_and_by_name() {
        let mut team = team(&["0/", "0/1/"]);
        team.members[1].name = Some("tester".to_owned());
        for named in ["0/1/", "0/1", "tester"] {
            assert_eq!(team.find(named).unwrap().id.to_string(), "0/1/");
        }
        assert_eq!(team.find("9/"), None);
    }

    #[test]
    fn those_that_ask_come_first() {
        let mut team = team(&["0/", "0/0/", "0/1/"]);
        team.members[2].state = State::Asking;
        let ranked: Vec<String> =
            team.ranked().iter().map(|member| member.id.to_string()).collect();
        assert_eq!(ranked, ["0/1/", "0/", "0/0/"]);
        let mut view = TeamView { chosen: AgentId::top_level(0) };
        view.go(&team, -1);
        assert_eq!(view.chosen.to_string(), "0/1/");
    }
}
