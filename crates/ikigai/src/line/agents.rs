//! Commands about agents: looking at them, forking, killing (agents.md).

use std::collections::BTreeMap;

use ikigai_conversation::AgentId;
use ikigai_mail::parse_named;
use ikigai_store::{Agent, Context, NewFork, Outcome, State, Step, StoreError, Tokens};

use super::{Person, lock};

/// A session is made with the first thing that is said.
const NOT_YET: &str =
    "Error: the session begins with the first thing you say; there is only agent 0/ yet";

impl Person<'_> {
    /// Lists the agents that live.
    pub(super) async fn agents(&self) {
        let text = match self.registry().await {
            Ok((agents, tokens)) => {
                let view = lock(&self.screen).view().clone();
                let cost = |agent: &Agent| tokens.get(&agent.id).copied().unwrap_or_default();
                let alive = agents.iter().filter(|agent| agent.state != State::Dead);
                let lines = alive.map(|agent| tree_line(agent, cost(agent), &view));
                lines.collect::<Vec<_>>().join("\n")
            }
            Err(StoreError::SessionNotFound(_)) => NOT_YET.to_owned(),
            Err(error) => format!("Error: {error}"),
        };
        lock(&self.screen).say(&text);
    }

    async fn registry(&self) -> Result<(Vec<Agent>, BTreeMap<AgentId, Tokens>), StoreError> {
        let agents = self.store.agents(self.session).await?;
        let tokens = self.store.tokens(self.session).await?;
        Ok((agents, tokens.into_iter().collect()))
    }

    /// Talks to another agent from now on.
    pub(super) async fn look_at(&self, named: &str) {
        let text = match self.find(named).await {
            Ok(agent) if agent.top() == self.seat.agent().top() => {
                let said = self.store.own_log(self.session, agent.clone(), None).await;
                let mut screen = lock(&self.screen);
                screen.look_at(agent.clone());
                screen.recall(&said.unwrap_or_default());
                screen.say(&format!("You talk to agent {agent} now"));
                screen.catch_up();
                return;
            }
            Ok(agent) => format!(
                "Error: agent {agent} is not run here; write to it: /mail send {agent} text"
            ),
            Err(error) => error,
        };
        lock(&self.screen).say(&text);
    }

    /// Makes a child that knows the conversation; without a task it is idle.
    pub(super) async fn fork(&self, prompt: &str) {
        let settings = &self.environment.settings;
        let fork = NewFork {
            prompt: Some(prompt.to_owned()).filter(|prompt| !prompt.is_empty()),
            name: None,
            context: Context::Full,
            limits: settings.agent_limits(),
            system: None,
        };
        let agent = lock(&self.screen).view().clone();
        let text = match self.seat.act(agent, Step::Fork(fork), settings.budget()).await {
            Ok(Outcome::Forked(child)) => format!("Agent {child}; /agent {child} talks to it"),
            other => explain(other),
        };
        lock(&self.screen).say(&text);
    }

    /// Ends an agent with its children; without an id the one in view.
    pub(super) async fn kill(&self, named: &str) {
        let view = lock(&self.screen).view().clone();
        let named = if named.is_empty() { view.to_string() } else { named.to_owned() };
        let budget = self.environment.settings.budget();
        let own = self.seat.agent().clone();
        let text = match self.seat.act(own.clone(), Step::Kill(parse_named(&named)), budget).await {
            Ok(Outcome::Killed(dead)) => {
                if dead.contains(&view) {
                    lock(&self.screen).look_at(own);
                }
                let dead: Vec<String> = dead.iter().map(AgentId::to_string).collect();
                format!("Killed: {}", dead.join(", "))
            }
            other => explain(other),
        };
        lock(&self.screen).say(&text);
    }

    /// A living agent by its id or name.
    async fn find(&self, named: &str) -> Result<AgentId, String> {
        let slashed = format!("{}/", named.trim_end_matches('/'));
        let agents = match self.store.agents(self.session).await {
            Ok(agents) => agents,
            Err(StoreError::SessionNotFound(_)) => return Err(NOT_YET.to_owned()),
            Err(error) => return Err(format!("Error: {error}")),
        };
        let is_meant = |agent: &&Agent| {
            agent.id.to_string() == slashed || agent.name.as_deref() == Some(named)
        };
        match agents.iter().rfind(is_meant) {
            Some(agent) if agent.state == State::Dead => {
                Err(format!("Error: Agent {} is dead", agent.id))
            }
            Some(agent) => Ok(agent.id.clone()),
            None => Err(format!("Error: Agent {slashed} not found; /agents lists all")),
        }
    }
}

/// One agent of the tree.
fn tree_line(agent: &Agent, cost: Tokens, view: &AgentId) -> String {
    let indent = "  ".repeat(agent.id.depth() - 1);
    let mark = if agent.id == *view { "*" } else { " " };
    let name = agent.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let mail = if agent.unread > 0 { format!(" [mail:{}]", agent.unread) } else { String::new() };
    let task = if agent.task.is_empty() { String::new() } else { format!(": {}", agent.task) };
    let cost = match cost {
        Tokens { input: 0, output: 0 } => String::new(),
        Tokens { input, output } => format!(" ({input} tokens in, {output} out)"),
    };
    format!("{mark} {indent}{}{name} {}{mail}{cost}{task}", agent.id, agent.state.name())
}

fn explain(outcome: Result<Outcome, StoreError>) -> String {
    match outcome {
        Ok(Outcome::Refused(refusal)) => format!("Error: {refusal}"),
        Ok(other) => format!("Error: unexpected: {other:?}"),
        Err(StoreError::SessionNotFound(_)) => NOT_YET.to_owned(),
        Err(error) => format!("Error: {error}"),
    }
}
