//! The agents of the session as front ends list them, and what they ask, reported again after every
//! change.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use ikigai_conversation::{AgentId, Message, MessageId, SessionId};
use ikigai_protocol::{AgentState, AgentSummary, ApprovalRequest, Runner, TokenCount};
use ikigai_store::{Agent, AskedQuestion, Changes, Process, Respondent, State, Store, StoreError};
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
    /// Reports the session, and again after every change, until dropped.
    pub async fn watch(&self, report: impl Fn(SessionState)) -> Infallible {
        let mut list = AgentList::new(self);
        let mut reported = None;
        let mut changes = None;
        loop {
            // Subscribe before reading, so that no change in between is missed.
            if changes.is_none() {
                changes = list.store.changes(list.session).ok();
            }
            // The agents report a database that is unavailable.
            if let Ok(state) = list.state().await
                && reported.as_ref() != Some(&state)
            {
                reported = Some(state.clone());
                report(state);
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

    /// Reports what an agent of any process logs after `after`, until dropped.
    pub async fn follow(
        &self,
        agent: AgentId,
        mut after: Option<MessageId>,
        report: impl Fn(Vec<Message>),
    ) -> Infallible {
        let (store, session) = (self.store(), self.session());
        let mut changes = None;
        loop {
            // Subscribe before reading, so that no message in between is missed.
            if changes.is_none() {
                changes = store.changes(session).ok();
            }
            if let Ok(messages) = store.own_log(session, agent.clone(), after).await
                && let Some(last) = messages.last()
            {
                after = Some(last.id);
                report(messages);
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

/// What front ends show of a session besides the conversations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionState {
    /// The living agents, parents before children.
    pub agents: Vec<AgentSummary>,
    /// The open approval requests of agents that other processes run and that this process may
    /// answer, the oldest first. Those of its own agents are events.
    pub questions: Vec<(AgentId, ApprovalRequest)>,
    /// How much unread mail the user has.
    pub unread: u32,
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

    async fn state(&mut self) -> Result<SessionState, StoreError> {
        let agents = self.summaries().await?;
        let questions = self.questions_elsewhere().await?;
        let unread = self.store.unread_of_user(self.session).await?;
        Ok(SessionState { agents, questions, unread })
    }

    async fn questions_elsewhere(&self) -> Result<Vec<(AgentId, ApprovalRequest)>, StoreError> {
        let here = Respondent::current();
        let asked = self.store.questions(self.session).await?.into_iter();
        let elsewhere = asked.filter(|question| question.asker.process != here.process);
        let open = elsewhere.filter(|question| question.takes_answer_of(&here));
        let request = |question: AskedQuestion| {
            let mut request: ApprovalRequest = serde_json::from_str(&question.request).ok()?;
            // A rule is saved where the agent runs.
            request.rule = request.rule.filter(|_| question.asker.is_same_user(&here));
            Some((question.agent, request))
        };
        Ok(open.filter_map(request).collect())
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
            created_at: None,
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
        let Agent { id, name, unread, task, created_at, .. } = agent;
        let created_at = Some(created_at);
        Some(AgentSummary { id, name, state, task, unread, tokens, runner, created_at })
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
