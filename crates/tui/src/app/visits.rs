//! Going to the agents of a session, whichever process runs them, and to their questions.

use std::collections::BTreeMap;
use std::time::Duration;

use ikigai_conversation::AgentId;
use ikigai_protocol::{ApprovalRequest, CommandError, Runner};

use super::App;
use crate::update::Effect;

impl App {
    /// Shows an agent. One that another process runs can only be read.
    pub(crate) fn visit(&mut self, agent: &AgentId) {
        match self.team.member(agent) {
            Some(_) => self.look_at(agent.clone()),
            None => self.refuse(&CommandError::AgentNotFound(agent.to_string()).to_string()),
        }
    }

    /// Loads the log of an agent whose last lines are shown in the team list.
    pub(crate) fn load_to_peek(&mut self, agent: &AgentId) {
        if self.is_run_here(agent) {
            if !std::mem::replace(&mut self.pane(agent).is_recalled, true) {
                self.emit(Effect::LoadLog(agent.clone()));
            }
        } else if self.followed.as_ref() != Some(agent) {
            self.pane(agent).forget();
            self.pane(agent).is_recalled = true;
            self.followed = Some(agent.clone());
            self.emit(Effect::Follow(agent.clone()));
        }
    }

    /// Follows the agent in view again, if the one that was peeked at was followed instead.
    pub(crate) fn end_peek(&mut self) {
        if self.followed.as_ref().is_some_and(|followed| *followed != self.view) {
            self.look_at(self.view.clone());
        }
    }

    /// Whether this process runs an agent.
    pub(super) fn is_run_here(&self, agent: &AgentId) -> bool {
        self.team.member(agent).is_none_or(|member| member.runner == Runner::ThisProcess)
    }

    /// Why the agent in view cannot be talked to, if it cannot.
    pub(crate) fn why_read_only(&self) -> Option<CommandError> {
        let agent = self.view.clone();
        match self.team.member(&agent).map(|member| member.runner) {
            Some(Runner::OtherProcess) => Some(CommandError::RunElsewhere(agent)),
            Some(Runner::None) => Some(CommandError::NotRunning(agent)),
            Some(Runner::ThisProcess) | None => None,
        }
    }

    /// The agent that has waited longest for an answer.
    fn oldest_question(&self) -> Option<AgentId> {
        let asked = self.panes.iter().filter_map(|(agent, pane)| {
            let oldest = pane.questions.front()?;
            Some((oldest.since, agent))
        });
        asked.min().map(|(_, agent)| agent.clone())
    }

    /// Shows the oldest question, whichever agent asks it.
    pub(crate) fn open_oldest_question(&mut self) {
        match self.oldest_question() {
            Some(agent) => self.open_question(&agent),
            None => self.note("No agent needs approval"),
        }
    }

    /// Shows an agent with its question.
    pub(crate) fn open_question(&mut self, agent: &AgentId) {
        if *agent != self.view {
            self.visit(agent);
        }
        if let Some(question) = self.pane(agent).questions.front_mut() {
            question.reopen();
        }
    }

    /// Updates the questions of agents that other processes run.
    pub(super) fn set_questions(&mut self, open: Vec<(AgentId, ApprovalRequest)>, now: Duration) {
        let mut by_agent: BTreeMap<AgentId, Vec<ApprovalRequest>> = BTreeMap::new();
        for (agent, request) in open {
            by_agent.entry(agent).or_default().push(request);
        }
        let elsewhere: Vec<AgentId> =
            self.panes.keys().filter(|agent| !self.is_run_here(agent)).cloned().collect();
        for agent in elsewhere {
            by_agent.entry(agent).or_default();
        }
        for (agent, open) in by_agent {
            if let Some(tool) = self.pane(&agent).set_questions(open, now) {
                self.notify(&agent, &format!("needs approval for {tool}"));
            }
        }
    }
}
