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
    let mut watch = Watch { store, session, own, costs: BTreeMap::new(), next_sum: Instant::now() };
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
        let is_other = |agent: &&Agent| {
            agent.id.depth() == 1 && agent.id != self.own && agent.state != State::Dead
        };
        for agent in agents.iter().filter(is_other) {
            let holder = self.store.holder(self.session, agent.id.clone()).await?;
            let place = match holder {
                Some(holder) if holder == Process::current() => Place::Here,
                Some(_) => Place::Elsewhere,
                None => Place::Nowhere,
            };
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
    let agents = store.agents(session).await.ok()?;
    for agent in agents.into_iter().filter(|agent| agent.id.depth() == 1) {
        let holder = store.holder(session, agent.id.clone()).await.ok()?;
        if holder.is_some_and(|holder| holder != Process::current()) {
            return Some(agent.id);
        }
    }
    None
}
