//! The agents of the session and their tree.

use std::time::Duration;

use ikigai_conversation::AgentId;
use ikigai_protocol::{AgentState, Runner};

/// An agent in the team list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its ID.
    pub id: AgentId,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// What it is doing.
    pub state: AgentState,
    /// The first line of its task.
    pub task: String,
    /// How much unread mail it has.
    pub unread: u32,
    /// Its cost with the currency, if known.
    pub cost: Option<String>,
    /// Which process runs it.
    pub runner: Runner,
    /// How long ago it was made, if known.
    pub age: Option<Duration>,
}

/// All living agents.
#[derive(Debug, Default)]
pub(crate) struct Team {
    /// In tree order.
    members: Vec<Member>,
}

/// A step in the agent tree.
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

    /// Adds an agent if it is missing: its first event may come before the list that has it.
    pub(crate) fn ensure(&mut self, agent: &AgentId) {
        if self.member(agent).is_none() {
            let at = self.members.partition_point(|member| member.id < *agent);
            let member = Member {
                id: agent.clone(),
                name: None,
                state: AgentState::Idle,
                task: String::new(),
                unread: 0,
                cost: None,
                runner: Runner::ThisProcess,
                age: None,
            };
            self.members.insert(at, member);
        }
    }

    /// Sets the state of an agent from its events, which are ahead of the agent list.
    pub(crate) fn set_state(&mut self, agent: &AgentId, state: AgentState) {
        if let Some(member) = self.members.iter_mut().find(|member| member.id == *agent) {
            member.state = state;
        }
    }

    /// The agent that a step leads to, if there is one.
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

    /// Finds an agent by its ID, with or without the trailing slash, or by its name.
    pub(crate) fn find(&self, named: &str) -> Option<&Member> {
        let slashed = format!("{}/", named.trim_end_matches('/'));
        let is_meant = |member: &&Member| {
            member.id.to_string() == slashed || member.name.as_deref() == Some(named)
        };
        self.members.iter().rfind(is_meant)
    }

    /// The tree that `/agents` shows.
    pub(crate) fn tree(&self, view: &AgentId) -> String {
        let line = |member: &Member| {
            let mark = if member.id == *view { "*" } else { " " };
            let indent = "  ".repeat(member.id.depth() - 1);
            format!("{mark} {indent}{}", member.line())
        };
        self.members.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// The agents that wait for approval first, then the others in tree order.
    pub(crate) fn ranked(&self) -> Vec<&Member> {
        let (mut asking, others): (Vec<&Member>, Vec<&Member>) =
            self.members.iter().partition(|member| member.state == AgentState::Asking);
        asking.extend(others);
        asking
    }
}

impl Member {
    /// `tests 0/1/`
    pub(crate) fn title(&self) -> String {
        let name = self.name.as_ref().map(|name| format!("{name} ")).unwrap_or_default();
        format!("{name}{}", self.id)
    }

    /// `0/1/ name tool [mail:2] $0.10: task`
    pub(crate) fn line(&self) -> String {
        let name = self.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        let mail = if self.unread > 0 { format!(" [mail:{}]", self.unread) } else { String::new() };
        let cost = self.cost.as_ref().map(|cost| format!(" {cost}")).unwrap_or_default();
        let runner = match self.runner {
            Runner::ThisProcess => "",
            Runner::OtherProcess => " (another terminal)",
            Runner::None => " (no terminal)",
        };
        let task = if self.task.is_empty() { String::new() } else { format!(": {}", self.task) };
        format!("{}{name} {}{mail}{cost}{runner}{task}", self.id, self.state.name())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn team(ids: &[&str]) -> Team {
        let mut team = Team::default();
        ids.iter().for_each(|id| team.ensure(&AgentId::parse(id).unwrap()));
        team
    }

    pub(crate) fn team_of(members: &[(&str, Option<&str>, AgentState)]) -> Team {
        let ids: Vec<&str> = members.iter().map(|(id, ..)| *id).collect();
        let mut team = team(&ids);
        for (member, (_, name, state)) in team.members.iter_mut().zip(members) {
            member.name = name.map(str::to_owned);
            member.state = *state;
        }
        team
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
    fn agents_that_wait_for_approval_come_first() {
        let mut team = team(&["0/", "0/0/", "0/1/"]);
        team.members[2].state = AgentState::Asking;
        let ranked: Vec<String> =
            team.ranked().iter().map(|member| member.id.to_string()).collect();
        assert_eq!(ranked, ["0/1/", "0/", "0/0/"]);
    }
}
