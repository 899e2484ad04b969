//! Waiting for other agents: the edges between waiting and awaited agents, when a wait is over, and
//! what it reports.
//!
//! The edges keep two guarantees across processes: agents never wait in a cycle, and a child does
//! not report to a parent that waits for it. They are removed when the wait ends, by an interrupt,
//! by a kill, and when another process takes over the waiting agent.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use ikigai_conversation::{AgentId, CommandId, SessionId};

use crate::agents::{AgentRow, State, agent_by_id, find_agent, state_of};
use crate::commands;
use crate::error::StoreError;
use crate::leases::{Lease, fence};
use crate::refusal::Refusal;
use crate::reports::{self, LastResult};
use crate::sql::params;
use crate::steps::{Actor, Mark, NamedAgent, Outcome, PerformedStep, resolve};
use crate::store::Store;
use crate::unit::Unit;
use crate::waking::{UNTOLD, would_wake};

/// Which agents to wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// These. If neither agents nor commands are named, all living children.
    pub agents: Vec<NamedAgent>,
    /// Background commands of the waiting agent.
    pub commands: Vec<CommandId>,
    /// For how long. The caller watches the clock.
    pub limit: Duration,
}

/// A wait that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedWait {
    /// Each once, in the order in which they were named.
    awaited: Vec<AgentId>,
    commands: Vec<CommandId>,
}

/// The report of a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitReport {
    /// One for each awaited agent.
    pub results: Vec<AwaitedAgent>,
    /// The number of unread messages of the waiting agent.
    pub unread: u32,
    /// The background commands that it waits for, and those that have ended without its knowledge.
    pub commands: Vec<AwaitedCommand>,
}

/// The status of a background command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwaitedCommand {
    /// Its number.
    pub id: CommandId,
    /// Whether it runs. A command that does not run has ended, or was ended with ikigai.
    pub is_running: bool,
    /// Its exit code, if it has ended.
    pub exit_code: Option<i32>,
}

/// The status of an awaited agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwaitedAgent {
    /// The agent.
    pub agent: AgentId,
    /// Its status.
    pub status: Status,
}

/// The status of an agent's work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It is idle. This was its last answer.
    Answered(String),
    /// It is idle. Its last turn ended with this error.
    Failed(String),
    /// It is at work, or mail is about to wake it.
    Running,
    /// It was killed.
    Dead,
}

impl Store {
    /// Starts a wait of an agent that this process runs. A refusal is a value: nothing was started.
    pub async fn start_wait(
        &self,
        lease: Lease,
        waiter: AgentId,
        wait: Wait,
    ) -> Result<Result<StartedWait, Refusal>, StoreError> {
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

    /// Finds the agents that the user or a command waits for. It leaves no trace: an agent that the
    /// user waits for still reports to its parent.
    pub async fn watch(
        &self,
        session: SessionId,
        waiter: AgentId,
        wait: Wait,
    ) -> Result<Result<StartedWait, Refusal>, StoreError> {
        self.read(move |unit| find_awaited(unit, &agent_by_id(unit, &session, &waiter)?, &wait))
            .await
    }

    /// Whether a wait is over: all agents are idle or dead, or there is mail, or the end of a
    /// command, that the waiting agent has not been notified of.
    pub async fn wait_is_over(
        &self,
        session: SessionId,
        waiter: AgentId,
        waiting: StartedWait,
    ) -> Result<bool, StoreError> {
        self.read(move |unit| {
            let waiter = agent_by_id(unit, &session, &waiter)?;
            let sql = format!("SELECT 1 FROM agents a WHERE key = ?1 AND {UNTOLD}");
            if unit.row(&sql, params![waiter.key], |_| Ok(()))?.is_some() {
                return Ok(true);
            }
            for id in &waiting.awaited {
                if let Some(agent) = find_agent(unit, waiter.session, id)?
                    && is_running(unit, &agent)?
                {
                    return Ok(false);
                }
            }
            let awaited = commands::awaited(unit, &waiter, &waiting.commands)?;
            Ok(!awaited.iter().any(|command| command.is_running))
        })
        .await
    }
}

/// Finds the agents to wait for, and refuses waits that could never end.
pub(crate) fn find_awaited(
    unit: &Unit<'_>,
    waiter: &AgentRow,
    wait: &Wait,
) -> Result<Result<StartedWait, Refusal>, StoreError> {
    if waiter.is_dead {
        return Ok(Err(Refusal::Dead(waiter.id.clone())));
    }
    let mut awaited = match wait.agents.is_empty() && wait.commands.is_empty() {
        true => living_children(unit, waiter)?,
        false => Vec::new(),
    };
    let commands = wait.commands.clone();
    if let Some(unknown) = commands::first_unknown(unit, waiter, &commands)? {
        return Ok(Err(Refusal::NoCommand(unknown)));
    }
    let mut known = BTreeSet::new();
    for named in &wait.agents {
        let Some(agent) = resolve(unit, waiter.session, Some(&waiter.id), &named.address)? else {
            return Ok(Err(Refusal::NoAgent(named.given.clone())));
        };
        if agent.key == waiter.key {
            return Ok(Err(Refusal::WaitsForItself(agent.id)));
        }
        if known.insert(agent.id.clone()) {
            awaited.push(agent.id);
        }
    }
    let waiting = StartedWait { awaited, commands };
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
    let mut ids: Vec<AgentId> = unit.rows(&sql, params, |row| row.get(0))?;
    ids.sort();
    Ok(ids)
}

/// The cycle that a wait would close, from the waiting agent back to it.
fn cycle(
    unit: &Unit<'_>,
    waiter: &AgentRow,
    waiting: &StartedWait,
) -> Result<Option<Vec<AgentId>>, StoreError> {
    let edges = live_edges(unit, waiter.session)?;
    // Each reached agent, with the agent before it on the path.
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

/// The cycle through `start`, reconstructed from the steps.
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

/// Which agents wait for which, if a process runs the waiting agent: edges left behind by a dead
/// process do not block others.
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
    let params = params![session, unit.now().as_millis()];
    let found = unit.rows(&sql, params, |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut edges: BTreeMap<AgentId, Vec<AgentId>> = BTreeMap::new();
    for (waiter, awaited) in found {
        edges.entry(waiter).or_default().push(awaited);
    }
    Ok(edges)
}

fn add_edges(unit: &Unit<'_>, waiter: &AgentRow, waiting: &StartedWait) -> Result<(), StoreError> {
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

/// Reports the status of the awaited agents. If it is reported to a model, unread mail is announced
/// with it, and a child whose end is reported owes no report any more.
pub(crate) fn end(
    unit: &Unit<'_>,
    waiter: &AgentRow,
    waiting: &StartedWait,
    actor: Actor,
) -> Result<PerformedStep, StoreError> {
    let mut results = Vec::new();
    for id in &waiting.awaited {
        let Some(agent) = find_agent(unit, waiter.session, id)? else { continue };
        let status = status(unit, &agent)?;
        let is_told = matches!(status, Status::Answered(_) | Status::Failed(_));
        if is_told && actor == Actor::Model && id.parent().as_ref() == Some(&waiter.id) {
            reports::cancel(unit, agent.key)?;
        }
        results.push(AwaitedAgent { agent: id.clone(), status });
    }
    let mut ids = waiting.commands.clone();
    if actor == Actor::Model {
        ids.extend(commands::untold_ends(unit, waiter)?.iter().map(|command| command.id));
    }
    ids.sort();
    ids.dedup();
    let commands = commands::awaited(unit, waiter, &ids)?;
    let ended = commands.iter().filter(|command| !command.is_running);
    let ended: Vec<CommandId> = ended.map(|command| command.id).collect();
    let waited = WaitReport { results, unread: waiter.unread, commands };
    let mut done = PerformedStep::new(Outcome::WaitEnded(waited));
    if actor == Actor::Model {
        done = done.telling(ended);
    }
    match actor {
        Actor::Model => {
            remove_edges(unit, waiter)?;
            let sql = "SELECT id FROM mail WHERE recipient = ?1 AND unread = 1 AND told_by IS NULL";
            let untold: Vec<i64> = unit.rows(sql, params![waiter.key], |row| row.get(0))?;
            Ok(done.marking(untold.into_iter().map(|mail| (Mark::Told, mail))))
        }
        Actor::Command | Actor::User(_) => Ok(done),
    }
}

/// Ends a wait without a report. A child that has finished meanwhile sends its report by mail.
pub(crate) fn abandon(unit: &Unit<'_>, waiter: &AgentRow) -> Result<(), StoreError> {
    remove_edges(unit, waiter)?;
    reports::send_in_tree(unit, waiter)
}

/// The same for the whole tree of a top-level agent that another process takes over.
pub(crate) fn abandon_tree(unit: &Unit<'_>, top: &AgentRow) -> Result<(), StoreError> {
    let sql = "DELETE FROM waits WHERE waiter IN
        (SELECT key FROM agents WHERE session = ?1 AND id LIKE ?2 || '%')";
    unit.run(sql, params![top.session, top.id.to_string()])?;
    reports::send_in_tree(unit, top)
}

fn status(unit: &Unit<'_>, agent: &AgentRow) -> Result<Status, StoreError> {
    if agent.is_dead {
        return Ok(Status::Dead);
    }
    if is_running(unit, agent)? {
        return Ok(Status::Running);
    }
    Ok(match reports::last_result(unit, agent.key)? {
        LastResult::Answer(text) => Status::Answered(text),
        LastResult::Error(error) => Status::Failed(error),
    })
}

/// An idle agent that mail is about to wake is not done yet.
fn is_running(unit: &Unit<'_>, agent: &AgentRow) -> Result<bool, StoreError> {
    if agent.is_dead {
        return Ok(false);
    }
    Ok(state_of(unit, agent.key)? != State::Idle || would_wake(unit, agent)?)
}
