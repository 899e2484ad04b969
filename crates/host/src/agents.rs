//! The agents of the session as front ends list them, reported again after every change.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use ikigai_conversation::{AgentId, SessionId};
use ikigai_protocol::{AgentState, AgentSummary, Runner, TokenCount};
use ikigai_store::{Agent, Changes, Process, State, Store, StoreError};
use tokio::time::{Instant, sleep};

use crate::commands::token_count;
use crate::open::{AgentSlot, OpenSession};

/// Between two updates: commits come faster than a user reads.
const BETWEEN: Duration = Duration::from_millis(100);
/// Counting tokens reads all logs of the session, so it may take at most this fraction (1/50) of
/// the time.
const SHARE: u32 = 50;

impl OpenSession {
    /// The living agents, parents before children.
    pub(crate) async fn agents(&self) -> Result<Vec<AgentSummary>, StoreError> {
        AgentList::new(&self.slot).summaries().await
    }
}

impl AgentSlot {
    /// Reports the living agents, and again after every change, until dropped.
    pub async fn watch_agents(&self, report: impl Fn(Vec<AgentSummary>)) -> Infallible {
        let mut list = AgentList::new(self);
        let mut reported = Vec::new();
        let mut changes = None;
        loop {
            // Subscribe before reading, so that no change in between is missed.
            if changes.is_none() {
                changes = list.store.changes(list.session).ok();
            }
            // The agents report a database that is unavailable.
            if let Ok(agents) = list.summaries().await
                && agents != reported
            {
                reported.clone_from(&agents);
                report(agents);
            }
            let waited = match &mut changes {
                Some(changes) => changes.wait(Changes::SWEEP).await,
                None => Err(StoreError::Closed),
            };
            if waited.is_err() {
                changes = None;
                sleep(Changes::SWEEP).await;
            }
            sleep(BETWEEN).await;
        }
    }

    /// An agent of the session that another process runs, if any.
    pub async fn agent_elsewhere(&self) -> Option<AgentId> {
        self.store().agent_elsewhere(self.session(), Process::current()).await.ok().flatten()
    }
}

struct AgentList {
    store: Arc<Store>,
    session: SessionId,
    /// The top-level agent that this process runs.
    own: AgentId,
    tokens: BTreeMap<AgentId, TokenCount>,
    next_sum: Instant,
}

impl AgentList {
    fn new(slot: &AgentSlot) -> AgentList {
        let (tokens, next_sum) = (BTreeMap::new(), Instant::now());
        let (store, session, own) = (slot.store(), slot.session(), slot.agent().top());
        AgentList { store, session, own, tokens, next_sum }
    }

    async fn summaries(&mut self) -> Result<Vec<AgentSummary>, StoreError> {
        let agents = self.store.agents(self.session).await?;
        self.sum_tokens().await?;
        let runners = self.runners(&agents).await?;
        // The agent of this terminal is listed even before it is used.
        let unused = (!agents.iter().any(|agent| agent.id == self.own)).then(|| self.unused());
        let summary = |agent: Agent| {
            let runner = runners.get(&agent.id.top()).copied().unwrap_or(Runner::None);
            self.summary(agent, runner)
        };
        let used = agents.into_iter().filter_map(summary);
        let mut summaries: Vec<AgentSummary> = used.chain(unused).collect();
        summaries.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(summaries)
    }

    async fn sum_tokens(&mut self) -> Result<(), StoreError> {
        let started = Instant::now();
        if started >= self.next_sum {
            let tokens = self.store.tokens(self.session).await?.into_iter();
            self.tokens = tokens.map(|(agent, tokens)| (agent, token_count(tokens))).collect();
            self.next_sum = Instant::now() + started.elapsed() * SHARE;
        }
        Ok(())
    }

    /// Which process runs each living top-level agent.
    async fn runners(&self, agents: &[Agent]) -> Result<BTreeMap<AgentId, Runner>, StoreError> {
        let mut runners = BTreeMap::from([(self.own.clone(), Runner::ThisProcess)]);
        for agent in living_top_agents(agents).filter(|agent| agent.id != self.own) {
            let runner = runner_of(&self.store, self.session, agent.id.clone()).await?;
            runners.insert(agent.id.clone(), runner);
        }
        Ok(runners)
    }

    /// Summarizes the agent of this terminal before it is used.
    fn unused(&self) -> AgentSummary {
        AgentSummary {
            id: self.own.clone(),
            name: None,
            state: AgentState::Idle,
            task: String::new(),
            unread: 0,
            tokens: TokenCount::default(),
            runner: Runner::ThisProcess,
        }
    }

    /// Summarizes an agent, unless it is dead.
    fn summary(&self, agent: Agent, runner: Runner) -> Option<AgentSummary> {
        let state = match agent.state {
            State::Idle => AgentState::Idle,
            State::Waiting => AgentState::Waiting,
            State::Tool => AgentState::Tool,
            State::Asking => AgentState::Asking,
            State::Dead => return None,
        };
        let tokens = self.tokens.get(&agent.id).copied().unwrap_or_default();
        let Agent { id, name, unread, task, .. } = agent;
        Some(AgentSummary { id, name, state, task, unread, tokens, runner })
    }
}

fn living_top_agents(agents: &[Agent]) -> impl Iterator<Item = &Agent> {
    agents.iter().filter(|agent| agent.id.depth() == 1 && agent.state != State::Dead)
}

/// Which process runs a top-level agent.
pub(crate) async fn runner_of(
    store: &Store,
    session: SessionId,
    top: AgentId,
) -> Result<Runner, StoreError> {
    Ok(match store.holder(session, top).await? {
        Some(holder) if holder == Process::current() => Runner::ThisProcess,
        Some(_) => Runner::OtherProcess,
        None => Runner::None,
    })
}
