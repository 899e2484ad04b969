//! Waiting for other agents: the edges between who waits and who is waited for, when a wait is over, and what it
//! tells.
//!
//! The edges keep two promises across processes: nobody waits in a circle, and a child whose parent waits for it
//! does not write to it as well. They are gone when the wait is: by its end, by an interrupt, by a kill, and when
//! another process takes the waiter over.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use ikigai_conversation::{AgentId, SessionId};

use crate::agents::{AgentRow, State, agent_by_id, find_agent, state_of};
use crate::error::StoreError;
use crate::leases::{Lease, fence};
use crate::refusal::Refusal;
use crate::reports::{self, LastWords};
use crate::sessions;
use crate::sql::params;
use crate::steps::{Actor, Mark, Named, Outcome, Performed, resolve};
use crate::store::Store;
use crate::unit::Unit;
use crate::waking::would_wake;

/// For whom somebody wants to wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// These, or all living children when it names nobody.
    pub agents: Vec<Named>,
    /// For how long; it is whoever waits that looks at the clock.
    pub limit: Duration,
}

/// A wait that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Each once, in the order in which they were named.
    awaited: Vec<AgentId>,
}

/// What a wait tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waited {
    /// One for each that was waited for.
    pub results: Vec<Awaited>,
    /// All unread mail of the waiter.
    pub unread: u32,
}

/// How one that was waited for is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Awaited {
    /// Who.
    pub agent: AgentId,
    /// How.
    pub status: Status,
}

/// What has become of an agent's work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It is idle, and said this last.
    Answered(String),
    /// It is idle, and its last turn ended by this error.
    Failed(String),
    /// It is at work, or about to be: mail waits that will wake it.
    Running,
    /// It was killed.
    Dead,
}

impl Store {
    /// Begins a wait of an agent that this process runs. A refusal is a value: nothing was begun.
    pub async fn begin_wait(
        &self,
        lease: Lease,
        waiter: AgentId,
        wait: Wait,
    ) -> Result<Result<Waiting, Refusal>, StoreError> {
        self.commit(lease.scope(), move |unit| {
            let waiter = fence(unit, &lease, &waiter)?;
            remove_edges(unit, &waiter)?;
            let found = find_awaited(unit, &waiter, &wait)?;
            if let Ok(waiting) = &found {
                add_edges(unit, &waiter, waiting)?;
            }
            Ok(found)
        })
        .await
    }

    /// Finds for whom a person's hand, or a command, waits. It leaves no trace: an agent that a person waits for
    /// still tells its parent.
    pub async fn watch(
        &self,
        session: SessionId,
        waiter: AgentId,
        wait: Wait,
    ) -> Result<Result<Waiting, Refusal>, StoreError> {
        self.read(move |unit| find_awaited(unit, &agent_by_id(unit, &session, &waiter)?, &wait))
            .await
    }

    /// Whether a wait is over: all are idle or dead, or the waiter has mail that it was not told of.
    pub async fn wait_is_over(
        &self,
        session: SessionId,
        waiter: AgentId,
        waiting: Waiting,
    ) -> Result<bool, StoreError> {
        self.read(move |unit| {
            let waiter = agent_by_id(unit, &session, &waiter)?;
            let sql = "SELECT untold > 0 FROM agents WHERE key = ?1";
            if unit.row(sql, params![waiter.key], |row| row.get(0))?.unwrap_or(false) {
                return Ok(true);
            }
            for id in &waiting.awaited {
                if let Some(agent) = find_agent(unit, waiter.session, id)?
                    && is_running(unit, &agent)?
                {
                    return Ok(false);
                }
            }
            Ok(true)
        })
        .await
    }
}

/// Finds who is to be waited for, and refuses what could never end.
pub(crate) fn find_awaited(
    unit: &Unit<'_>,
    waiter: &AgentRow,
    wait: &Wait,
) -> Result<Result<Waiting, Refusal>, StoreError> {
    if waiter.is_dead {
        return Ok(Err(Refusal::Dead(waiter.id.clone())));
    }
    let mut awaited = match wait.agents.is_empty() {
        true => living_children(unit, waiter)?,
        false => Vec::new(),
    };
    let mut known = BTreeSet::new();
    for named in &wait.agents {
        let Some(agent) = resolve(unit, waiter, &named.address)? else {
            return Ok(Err(Refusal::NoAgent(named.given.clone())));
        };
        if agent.key == waiter.key {
            return Ok(Err(Refusal::WaitsForItself(agent.id)));
        }
        if known.insert(agent.id.clone()) {
            awaited.push(agent.id);
        }
    }
    let waiting = Waiting { awaited };
    Ok(match cycle(unit, waiter, &waiting)? {
        Some(cycle) => Err(Refusal::Cycle(cycle)),
        None => Ok(waiting),
    })
}

fn living_children(unit: &Unit<'_>, parent: &AgentRow) -> Result<Vec<AgentId>, StoreError> {
    let sql = format!(
        "SELECT id FROM agents WHERE session = ?1 AND id LIKE ?2 || '_%/'
            AND id NOT LIKE ?2 || '%/%/' AND {}",
        State::ALIVE
    );
    let params = params![parent.session, parent.id.to_string()];
    let ids: Vec<String> = unit.rows(&sql, params, |row| row.get(0))?;
    let mut ids = ids.iter().map(|id| sessions::parse_agent(id)).collect::<Result<Vec<_>, _>>()?;
    ids.sort();
    Ok(ids)
}

/// The circle that a wait would close, from the waiter back to it.
fn cycle(
    unit: &Unit<'_>,
    waiter: &AgentRow,
    waiting: &Waiting,
) -> Result<Option<Vec<AgentId>>, StoreError> {
    let edges = live_edges(unit, waiter.session)?;
    // Who was come from, on the way from the waiter.
    let mut reached: BTreeMap<AgentId, AgentId> = BTreeMap::new();
    let mut next: VecDeque<AgentId> = VecDeque::new();
    for id in &waiting.awaited {
        reached.insert(id.clone(), waiter.id.clone());
        next.push_back(id.clone());
    }
    while let Some(at) = next.pop_front() {
        if at == waiter.id {
            return Ok(Some(way_back(&reached, &waiter.id)));
        }
        for to in edges.get(&at).into_iter().flatten() {
            if !reached.contains_key(to) {
                reached.insert(to.clone(), at.clone());
                next.push_back(to.clone());
            }
        }
    }
    Ok(None)
}

/// The circle through `start`, read from the steps that led to it.
fn way_back(reached: &BTreeMap<AgentId, AgentId>, start: &AgentId) -> Vec<AgentId> {
    let mut path = vec![start.clone()];
    while let Some(from) = path.last().and_then(|last| reached.get(last)) {
        path.push(from.clone());
        if from == start {
            break;
        }
    }
    path.reverse();
    path
}

/// Who waits for whom, as far as the waiters are run by somebody: what a process left behind when it died keeps
/// nobody from waiting.
fn live_edges(
    unit: &Unit<'_>,
    session: i64,
) -> Result<BTreeMap<AgentId, Vec<AgentId>>, StoreError> {
    let sql = format!(
        "SELECT a.id, b.id FROM agents a JOIN waits w ON w.waiter = a.key
            JOIN agents b ON b.key = w.awaited
            JOIN agents t ON t.session = a.session AND t.id = {}
            JOIN leases l ON l.agent = t.key
        WHERE a.session = ?1 AND l.until > ?2",
        unit.dialect().top_of("a.id")
    );
    let found = unit.rows(&sql, params![session, unit.now().as_millis()], |row| {
        Ok((row.get::<String>(0)?, row.get::<String>(1)?))
    })?;
    let mut edges: BTreeMap<AgentId, Vec<AgentId>> = BTreeMap::new();
    for (waiter, awaited) in found {
        let waiter = sessions::parse_agent(&waiter)?;
        edges.entry(waiter).or_default().push(sessions::parse_agent(&awaited)?);
    }
    Ok(edges)
}

fn add_edges(unit: &Unit<'_>, waiter: &AgentRow, waiting: &Waiting) -> Result<(), StoreError> {
    for id in &waiting.awaited {
        let sql = "INSERT INTO waits (waiter, awaited)
            SELECT ?1, key FROM agents WHERE session = ?2 AND id = ?3";
        unit.run(sql, params![waiter.key, waiter.session, id.to_string()])?;
    }
    Ok(())
}

fn remove_edges(unit: &Unit<'_>, waiter: &AgentRow) -> Result<(), StoreError> {
    unit.run("DELETE FROM waits WHERE waiter = ?1", params![waiter.key])
}

/// Tells how everybody is. When it is the model that is told, the unread mail is told with it, and a child whose end it
/// heard of owes it nothing any more.
pub(crate) fn end(
    unit: &Unit<'_>,
    waiter: &AgentRow,
    waiting: &Waiting,
    actor: Actor,
) -> Result<Performed, StoreError> {
    let mut results = Vec::new();
    for id in &waiting.awaited {
        let Some(agent) = find_agent(unit, waiter.session, id)? else { continue };
        let status = status(unit, &agent)?;
        let is_told = matches!(status, Status::Answered(_) | Status::Failed(_));
        if is_told && actor == Actor::Model && id.parent().as_ref() == Some(&waiter.id) {
            reports::forgive(unit, agent.key)?;
        }
        results.push(Awaited { agent: id.clone(), status });
    }
    let waited = Waited { results, unread: waiter.unread };
    let done = Performed::new(Outcome::Waited(waited));
    match actor {
        Actor::Model => {
            remove_edges(unit, waiter)?;
            let sql = "SELECT id FROM mail WHERE recipient = ?1 AND unread = 1 AND told_by IS NULL";
            let untold: Vec<i64> = unit.rows(sql, params![waiter.key], |row| row.get(0))?;
            Ok(done.marking(untold.into_iter().map(|mail| (Mark::Told, mail))))
        }
        Actor::Command | Actor::Person(_) => Ok(done),
    }
}

/// Ends a wait without telling the waiter anything; who has finished meanwhile writes to it after all.
pub(crate) fn abandon(unit: &Unit<'_>, waiter: &AgentRow) -> Result<(), StoreError> {
    remove_edges(unit, waiter)?;
    reports::pay_in_tree(unit, waiter)
}

/// The same for all in the tree of a top-level agent that another process takes over.
pub(crate) fn abandon_tree(unit: &Unit<'_>, top: &AgentRow) -> Result<(), StoreError> {
    let sql = "DELETE FROM waits WHERE waiter IN
        (SELECT key FROM agents WHERE session = ?1 AND id LIKE ?2 || '%')";
    unit.run(sql, params![top.session, top.id.to_string()])?;
    reports::pay_in_tree(unit, top)
}

fn status(unit: &Unit<'_>, agent: &AgentRow) -> Result<Status, StoreError> {
    if agent.is_dead {
        return Ok(Status::Dead);
    }
    if is_running(unit, agent)? {
        return Ok(Status::Running);
    }
    Ok(match reports::last_words(unit, agent.key)? {
        LastWords::Answer(text) => Status::Answered(text),
        LastWords::Error(error) => Status::Failed(error),
    })
}

/// An idle agent that mail is about to wake has not done its work yet.
fn is_running(unit: &Unit<'_>, agent: &AgentRow) -> Result<bool, StoreError> {
    if agent.is_dead {
        return Ok(false);
    }
    Ok(state_of(unit, agent.key)? != State::Idle || would_wake(unit, agent)?)
}
