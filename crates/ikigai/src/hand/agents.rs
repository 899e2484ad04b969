//! Commands about agents: looking at them, forking, killing.

use std::collections::BTreeMap;

use ikigai_conversation::AgentId;
use ikigai_mail::parse_named;
use ikigai_store::{Agent, ForkContext, NewFork, Outcome, State, Step, StoreError, Tokens};

use super::{Hand, NOT_YET};
use crate::session::find_agent;
use crate::settings;

/// What came of a kill.
pub(crate) struct Killed {
    pub(crate) text: String,
    /// Children first; none when it was refused.
    pub(crate) dead: Vec<AgentId>,
}

impl Hand<'_> {
    /// The agents that live, as a tree with `view` marked.
    pub(crate) async fn tree(&self, view: &AgentId) -> String {
        match self.registry().await {
            Ok((agents, tokens)) => {
                let cost = |agent: &Agent| tokens.get(&agent.id).copied().unwrap_or_default();
                let alive = agents.iter().filter(|agent| agent.state != State::Dead);
                let lines = alive.map(|agent| tree_line(agent, cost(agent), view));
                lines.collect::<Vec<_>>().join("\n")
            }
            Err(StoreError::SessionNotFound(_)) => NOT_YET.to_owned(),
            Err(error) => format!("Error: {error}"),
        }
    }

    async fn registry(&self) -> Result<(Vec<Agent>, BTreeMap<AgentId, Tokens>), StoreError> {
        let agents = self.store.agents(self.session).await?;
        let tokens = self.store.tokens(self.session).await?;
        Ok((agents, tokens.into_iter().collect()))
    }

    /// An agent that can be talked to here, by its id or name.
    pub(crate) async fn talkable(&self, named: &str) -> Result<AgentId, String> {
        let agent = self.living(named).await?;
        match agent.top() == self.seat.agent().top() {
            true => Ok(agent),
            false => Err(format!(
                "Error: agent {agent} is not run here; write to it: /mail send {agent} text"
            )),
        }
    }

    async fn living(&self, named: &str) -> Result<AgentId, String> {
        let agents = match self.store.agents(self.session).await {
            Ok(agents) => agents,
            Err(StoreError::SessionNotFound(_)) => return Err(NOT_YET.to_owned()),
            Err(error) => return Err(format!("Error: {error}")),
        };
        let unknown = || {
            let slashed = format!("{}/", named.trim_end_matches('/'));
            format!("Error: Agent {slashed} not found; /agents lists all")
        };
        let found = find_agent(&self.store, Some(self.session), named).await;
        let id = found.map_err(|_| unknown())?;
        match agents.iter().find(|agent| agent.id == id) {
            Some(agent) if agent.state == State::Dead => Err(format!("Error: Agent {id} is dead")),
            Some(_) => Ok(id),
            None => Err(unknown()),
        }
    }

    /// Makes a child that knows the conversation; without a task it is idle.
    pub(crate) async fn fork(&self, agent: &AgentId, prompt: &str) -> String {
        let settings = &self.environment.settings;
        let fork = NewFork {
            prompt: Some(prompt.to_owned()).filter(|prompt| !prompt.is_empty()),
            name: None,
            context: ForkContext::Full,
            limits: settings::agent_limits(settings),
            system: None,
        };
        match self.seat.act(agent.clone(), Step::Fork(fork), settings::budget(settings)).await {
            Ok(Outcome::Forked(child)) => format!("Agent {child}; /agent {child} talks to it"),
            other => explain(other),
        }
    }

    /// Ends an agent with its children; without an id the one in view.
    pub(crate) async fn kill(&self, view: &AgentId, named: &str) -> Killed {
        let own = self.seat.agent().clone();
        // The last one cannot be killed, and that is said.
        if named.is_empty() && *view == own && self.has_others().await {
            let text =
                format!("Error: that would end {own} and all below it; if so, say /kill {own}");
            return Killed { text, dead: Vec::new() };
        }
        let named = if named.is_empty() { view.to_string() } else { named.to_owned() };
        let budget = settings::budget(&self.environment.settings);
        match self.seat.act(own, Step::Kill(parse_named(&named)), budget).await {
            Ok(Outcome::Killed(dead)) => {
                let ids: Vec<String> = dead.iter().map(AgentId::to_string).collect();
                Killed { text: format!("Killed: {}", ids.join(", ")), dead }
            }
            other => Killed { text: explain(other), dead: Vec::new() },
        }
    }

    /// Whether the session has other top-level agents that live.
    async fn has_others(&self) -> bool {
        let is_alive = |agent: &&Agent| agent.id.depth() == 1 && agent.state != State::Dead;
        let agents = self.store.agents(self.session).await;
        agents.is_ok_and(|agents| agents.iter().filter(is_alive).count() > 1)
    }
}

/// One agent of the tree.
fn tree_line(agent: &Agent, cost: Tokens, view: &AgentId) -> String {
    let indent = "  ".repeat(agent.id.depth() - 1);
    let mark = if agent.id == *view { "*" } else { " " };
    let name = agent.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let mail = if agent.unread > 0 { format!(" [mail:{}]", agent.unread) } else { String::new() };
    let task = if agent.task.is_empty() { String::new() } else { format!(": {}", agent.task) };
    let cost = cost_text(cost).map(|cost| format!(" {cost}")).unwrap_or_default();
    format!("{mark} {indent}{}{name} {}{mail}{cost}{task}", agent.id, agent.state.name())
}

/// What an agent has cost, if it has.
pub(crate) fn cost_text(tokens: Tokens) -> Option<String> {
    let Tokens { input, output } = tokens;
    (input + output > 0).then(|| format!("({input} tokens in, {output} out)"))
}

fn explain(outcome: Result<Outcome, StoreError>) -> String {
    match outcome {
        Ok(Outcome::Refused(refusal)) => format!("Error: {refusal}"),
        Ok(other) => format!("Error: unexpected: {other:?}"),
        Err(StoreError::SessionNotFound(_)) => NOT_YET.to_owned(),
        Err(error) => format!("Error: {error}"),
    }
}
