//! The agents of the session as the screen shows them, told anew whenever the registry has changed.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use ikigai_conversation::{AgentId, SessionId};
use ikigai_store::{Agent, Changes, Process, State, Store, StoreError, Tokens};
use ikigai_tui::{Feed, Member, News, Place};
use tokio::time::{Instant, sleep};

use crate::hand::cost_text;

/// Between two looks: commits come faster than anybody reads.
const BETWEEN: Duration = Duration::from_millis(100);
/// Adding up what was used reads all of the session's logs: it takes at most this part of the time.
const SHARE: u32 = 50;

/// Tells of the agents, for ever. `own` is the top-level agent that this process runs.
pub(super) async fn watch_members(
    store: Arc<Store>,
    session: SessionId,
    own: AgentId,
    feed: Feed,
) -> Infallible {
    let (process, costs, next_sum) = (Process::current(), BTreeMap::new(), Instant::now());
    let mut watch = Watch { store, session, own, process, costs, next_sum };
    let mut told = Vec::new();
    let mut changes = None;
    loop {
        // Before the look: what comes after it is noticed.
        if changes.is_none() {
            changes = watch.store.changes(session).ok();
        }
        // A database that cannot be reached for now is a matter of the agents, who tell of it.
        if let Ok(members) = watch.members().await
            && members != told
        {
            told.clone_from(&members);
            feed.give(News::Team(members));
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

struct Watch {
    store: Arc<Store>,
    session: SessionId,
    own: AgentId,
    process: Process,
    costs: BTreeMap<AgentId, Tokens>,
    next_sum: Instant,
}

impl Watch {
    async fn members(&mut self) -> Result<Vec<Member>, StoreError> {
        let agents = self.store.agents(self.session).await?;
        self.sum_costs().await?;
        let places = self.places(&agents).await?;
        let member = |agent: Agent| {
            let place = places.get(&agent.id.top()).copied().unwrap_or(Place::Nowhere);
            self.member(agent, place)
        };
        Ok(agents.into_iter().filter_map(member).collect())
    }

    async fn sum_costs(&mut self) -> Result<(), StoreError> {
        let begun = Instant::now();
        if begun >= self.next_sum {
            self.costs = self.store.tokens(self.session).await?.into_iter().collect();
            self.next_sum = Instant::now() + begun.elapsed() * SHARE;
        }
        Ok(())
    }

    /// Where the top-level agents are run that live.
    async fn places(&self, agents: &[Agent]) -> Result<BTreeMap<AgentId, Place>, StoreError> {
        let mut places = BTreeMap::from([(self.own.clone(), Place::Here)]);
        for agent in living_tops(agents).filter(|agent| agent.id != self.own) {
            let place = place_of(&self.store, self.session, agent, &self.process).await?;
            places.insert(agent.id.clone(), place);
        }
        Ok(places)
    }

    /// An agent that lives.
    fn member(&self, agent: Agent, place: Place) -> Option<Member> {
        let state = match agent.state {
            State::Idle => ikigai_tui::State::Idle,
            State::Waiting => ikigai_tui::State::Waiting,
            State::Tool => ikigai_tui::State::Tool,
            State::Asking => ikigai_tui::State::Asking,
            State::Dead => return None,
        };
        let cost = self.costs.get(&agent.id).copied().and_then(cost_text);
        let Agent { id, name, unread, task, .. } = agent;
        Some(Member { id, name, state, task, unread, cost, place })
    }
}

/// An agent of the session that another process runs, if there is one.
pub(super) async fn run_elsewhere(store: &Store, session: SessionId) -> Option<AgentId> {
    let (agents, process) = (store.agents(session).await.ok()?, Process::current());
    for agent in living_tops(&agents) {
        if place_of(store, session, agent, &process).await.ok()? == Place::Elsewhere {
            return Some(agent.id.clone());
        }
    }
    None
}

fn living_tops(agents: &[Agent]) -> impl Iterator<Item = &Agent> {
    agents.iter().filter(|agent| agent.id.depth() == 1 && agent.state != State::Dead)
}

/// Where a top-level agent is run, seen from `process`.
async fn place_of(
    store: &Store,
    session: SessionId,
    agent: &Agent,
    process: &Process,
) -> Result<Place, StoreError> {
    Ok(match store.holder(session, agent.id.clone()).await? {
        Some(holder) if holder == *process => Place::Here,
        Some(_) => Place::Elsewhere,
        None => Place::Nowhere,
    })
}
