//! Commands on agents: open, fork and kill.

use ikigai_conversation::AgentId;
use ikigai_mail::parse_named;
use ikigai_protocol::{CommandError, RECALLED, Reply, Runner};
use ikigai_store::{Agent, ForkContext, NewFork, Outcome, State, Step, StoreError};

use super::refusal;
use crate::agents::runner_of;
use crate::open::OpenSession;
use crate::selection::find_agent;
use crate::settings;

impl OpenSession {
    /// Opens the conversation of an agent that this process runs.
    pub(super) async fn open_agent(
        &self,
        view: &AgentId,
        target: Option<String>,
    ) -> Result<Reply, CommandError> {
        let (store, session) = (self.slot.store(), self.slot.session());
        let agent = match target {
            Some(target) => self.find_talkable(&target).await?,
            None => view.clone(),
        };
        // A new agent has no log, and neither has a session that is not started.
        let log = store.latest_messages(session, agent.clone(), RECALLED).await;
        Ok(Reply::Opened { agent, log: log.unwrap_or_default() })
    }

    async fn find_talkable(&self, target: &str) -> Result<AgentId, CommandError> {
        let (store, session) = (self.slot.store(), self.slot.session());
        let agents = store.agents(session).await.map_err(refusal)?;
        let unknown = || CommandError::AgentNotFound(format!("{}/", target.trim_end_matches('/')));
        let found = find_agent(&store, Some(session), target).await;
        let id = found.map_err(|_| unknown())?;
        let agent = agents.iter().find(|agent| agent.id == id).ok_or_else(unknown)?;
        if agent.state == State::Dead {
            return Err(CommandError::AgentDead(id));
        }
        if id.top() == self.slot.agent().top() {
            return Ok(id);
        }
        match runner_of(&store, session, id.top()).await.map_err(refusal)? {
            Runner::ThisProcess => Ok(id),
            Runner::OtherProcess => Err(CommandError::RunElsewhere(id)),
            Runner::None => Err(CommandError::NotRunning(id)),
        }
    }

    /// Forks a child with the conversation of its parent. Without a prompt the child is idle.
    pub(super) async fn fork(
        &self,
        agent: AgentId,
        prompt: Option<String>,
    ) -> Result<Reply, CommandError> {
        let limits = settings::agent_limits(&self.environment().settings);
        let (name, system) = (None, None);
        let fork = NewFork { prompt, name, context: ForkContext::Full, limits, system };
        match self.act(agent, Step::Fork(fork)).await {
            Ok(Outcome::Forked(child)) => Ok(Reply::Forked(child)),
            other => Err(unexpected(other)),
        }
    }

    /// Kills an agent and its children; by default the agent in view.
    pub(super) async fn kill(
        &self,
        view: &AgentId,
        target: Option<String>,
    ) -> Result<Reply, CommandError> {
        let own = self.slot.agent();
        // The database refuses to kill the last one.
        if target.is_none() && view == own && self.has_others().await {
            let why =
                format!("This ends agent {own} and its children. To confirm, type /kill {own}");
            return Err(CommandError::Refused(why));
        }
        let target = target.unwrap_or_else(|| view.to_string());
        match self.act(own.clone(), Step::Kill(parse_named(&target))).await {
            Ok(Outcome::Killed(dead)) => Ok(Reply::Killed(dead)),
            other => Err(unexpected(other)),
        }
    }

    async fn act(&self, agent: AgentId, step: Step) -> Result<Outcome, StoreError> {
        let budget = settings::budget(&self.environment().settings);
        self.slot.seat().act(agent, step, budget).await
    }

    /// Whether the session has other top-level agents that are alive.
    async fn has_others(&self) -> bool {
        let is_alive = |agent: &&Agent| agent.id.depth() == 1 && agent.state != State::Dead;
        let agents = self.slot.store().agents(self.slot.session()).await;
        agents.is_ok_and(|agents| agents.iter().filter(is_alive).count() > 1)
    }
}

fn unexpected(outcome: Result<Outcome, StoreError>) -> CommandError {
    match outcome {
        Ok(Outcome::Refused(why)) => CommandError::Refused(why.to_string()),
        Ok(other) => CommandError::Database(format!("unexpected outcome: {other:?}")),
        Err(error) => refusal(error),
    }
}
