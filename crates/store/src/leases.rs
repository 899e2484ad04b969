//! Leases: which process runs an agent. The lease is the fence that keeps all others from writing
//! to its log.
//!
//! A lease is for a top-level agent with its descendants. Every claim increments its epoch, and
//! every write to a log is checked against the epoch in the same transaction. So a process that was
//! suspended, and whose agent another process has taken over, cannot write any more.

use std::time::Duration;

use ikigai_conversation::{AgentId, SessionId};

use crate::agents::{AgentRow, agent_by_id, find_agent};
use crate::commands;
use crate::error::StoreError;
use crate::log::{AppendOutcome, Input};
use crate::openings::{self, Opening};
use crate::process::Process;
use crate::roots;
use crate::sessions;
use crate::spending;
use crate::sql::params;
use crate::store::Store;
use crate::unit::Unit;
use crate::waits;
use crate::writer::Scope;

/// The right to run a top-level agent and its descendants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    session: SessionId,
    top: AgentId,
    epoch: i64,
}

impl Lease {
    /// How long a lease lasts unless it is renewed.
    pub const DURATION: Duration = Duration::from_secs(15);
    /// How often a process renews its leases.
    pub const RENEWAL: Duration = Duration::from_secs(5);

    /// The session it is for.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// What units under it are about.
    pub(crate) fn scope(&self) -> Scope {
        Scope::Session(self.session)
    }

    /// The top-level agent it is for.
    pub fn top(&self) -> &AgentId {
        &self.top
    }
}

impl Store {
    /// Claims an agent for `process`: a free one, one whose lease has expired, or one whose process
    /// is known to be dead.
    ///
    /// # Errors
    /// [`StoreError::LeaseHeld`] if a process that may be alive has it.
    pub async fn claim(
        &self,
        session: SessionId,
        top: AgentId,
        process: Process,
    ) -> Result<Lease, StoreError> {
        self.commit(Scope::Session(session), move |unit| claim(unit, session, &top, &process)).await
    }

    /// Creates a session with the id `new` and agent `0/`, claims that, and appends the user's
    /// first message.
    pub async fn start_session(
        &self,
        new: SessionId,
        opening: &Opening,
        input: Input,
    ) -> Result<(Lease, AppendOutcome), StoreError> {
        let Opening { location, process, roots, .. } = opening.clone();
        self.commit(Scope::Own, move |unit| {
            sessions::create(unit, &location, new, input.budget)?;
            roots::keep(unit, new, &process, roots)?;
            let lease = claim(unit, new, &AgentId::top_level(0), &process)?;
            let recorded = input.append(unit, &fence(unit, &lease, lease.top())?)?;
            Ok((lease, recorded))
        })
        .await
    }

    /// Extends a lease.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] if another process has taken over the agent.
    pub async fn renew(&self, lease: Lease) -> Result<(), StoreError> {
        self.commit(lease.scope(), move |unit| {
            let agent = fence(unit, &lease, &lease.top)?;
            let sql = "UPDATE leases SET until = ?2 WHERE agent = ?1";
            unit.run_silently(sql, params![agent.key, end_of_lease(unit)])
        })
        .await
    }

    /// Releases a lease, and removes the agent if it was never used. It is no error if the lease
    /// was lost before.
    pub async fn release(&self, lease: Lease) -> Result<(), StoreError> {
        self.commit(lease.scope(), move |unit| match fence(unit, &lease, &lease.top) {
            Ok(agent) => openings::close(unit, &agent),
            Err(StoreError::LeaseLost { .. } | StoreError::AgentDead(_)) => Ok(()),
            Err(error) => Err(error),
        })
        .await
    }

    /// The process that runs an agent, according to the leases.
    pub async fn holder(
        &self,
        session: SessionId,
        top: AgentId,
    ) -> Result<Option<Process>, StoreError> {
        self.read(move |unit| holder(unit, agent_by_id(unit, &session, &top)?.key)).await
    }
}

pub(crate) fn claim(
    unit: &Unit<'_>,
    session: SessionId,
    top: &AgentId,
    process: &Process,
) -> Result<Lease, StoreError> {
    if top.depth() != 1 {
        return Err(StoreError::internal(format!("{top} is run with its top-level agent")));
    }
    let agent = agent_by_id(unit, &session, top)?;
    if agent.is_dead {
        return Err(StoreError::AgentDead(top.clone()));
    }
    if let Some(holder) = holder(unit, agent.key)?
        && holder != *process
        && !process.sees_dead(&holder)
    {
        return Err(StoreError::LeaseHeld { agent: top.clone(), holder: holder.to_string() });
    }
    let sql = "INSERT INTO leases (agent, epoch, holder, until) VALUES (?1, 1, ?2, ?3)
        ON CONFLICT (agent) DO UPDATE SET epoch = leases.epoch + 1, holder = ?2, until = ?3
        RETURNING epoch";
    let params = params![agent.key, encode(process)?, end_of_lease(unit)];
    let epoch = unit.row(sql, params, |row| row.get(0))?.unwrap_or(1);
    // Waits of the old process are over: their calls are closed when the log is loaded.
    waits::abandon_tree(unit, &agent)?;
    // Its commands have ended with it.
    commands::lose_in_tree(unit, &agent)?;
    spending::lose_open(unit, &agent)?;
    Ok(Lease { session, top: top.clone(), epoch })
}

/// Finds the agent to write to. Refuses the write if the process has lost its lease or the agent
/// was killed.
pub(crate) fn fence(
    unit: &Unit<'_>,
    lease: &Lease,
    agent: &AgentId,
) -> Result<AgentRow, StoreError> {
    // A single query, because every write to a log starts with it.
    let sql = format!(
        "SELECT {}, l.epoch, l.holder, l.until > 0
            FROM sessions s JOIN agents a ON a.session = s.key
                LEFT JOIN agents t ON t.session = s.key AND t.id = ?3
                LEFT JOIN leases l ON l.agent = t.key
            WHERE s.id = ?1 AND a.id = ?2",
        AgentRow::COLUMNS
    );
    const AT: usize = AgentRow::WIDTH;
    let (session, top) = (lease.session.to_string(), lease.top.to_string());
    let found = unit.row(&sql, params![session, agent.to_string(), top], |row| {
        let lease = match row.get::<Option<i64>>(AT)? {
            Some(epoch) => Some((epoch, row.get::<String>(AT + 1)?, row.get::<bool>(AT + 2)?)),
            None => None,
        };
        Ok((AgentRow::read(row, agent)?, lease))
    })?;
    let Some((row, current)) = found else {
        sessions::key_of(unit, &lease.session)?;
        return Err(StoreError::AgentNotFound(agent.clone()));
    };
    if row.is_dead {
        return Err(StoreError::AgentDead(agent.clone()));
    }
    let holder = match current {
        Some((epoch, ..)) if epoch == lease.epoch && agent.top() == lease.top => return Ok(row),
        // This lease was released, and the row still names its holder.
        Some((epoch, _, false)) if epoch == lease.epoch + 1 => "released since".to_owned(),
        // Another process took over, and may have released its lease since.
        Some((_, holder, _)) => decode(&holder)?.to_string(),
        None => "released since".to_owned(),
    };
    Err(StoreError::LeaseLost { agent: agent.clone(), holder })
}

/// Refuses to continue while a process that may be alive runs an agent of the session.
pub(crate) fn require_none_alive(
    unit: &Unit<'_>,
    session: i64,
    by: &Process,
) -> Result<(), StoreError> {
    let sql = "SELECT a.id, l.holder FROM leases l JOIN agents a ON a.key = l.agent
        WHERE a.session = ?1 AND l.until > ?2";
    let held: Vec<(AgentId, Process)> =
        unit.rows(sql, params![session, unit.now().as_millis()], |row| {
            Ok((row.get(0)?, decode(&row.text(1)?)?))
        })?;
    if let Some((agent, holder)) = held.into_iter().find(|(_, holder)| !by.sees_dead(holder)) {
        return Err(StoreError::LeaseHeld { agent, holder: holder.to_string() });
    }
    Ok(())
}

/// An agent of the session that is at work in a process that may be alive.
pub(crate) fn at_work(
    unit: &Unit<'_>,
    session: i64,
    by: &Process,
) -> Result<Option<AgentId>, StoreError> {
    let sql = "SELECT id FROM agents WHERE session = ?1 AND state NOT IN ('idle', 'dead', 'user')
        ORDER BY key";
    let busy: Vec<AgentId> = unit.rows(sql, params![session], |row| row.get(0))?;
    for id in busy {
        let top = find_agent(unit, session, &id.top())?.map(|top| top.key);
        let holder = top.map_or(Ok(None), |top| holder(unit, top))?;
        if holder.is_some_and(|holder| !by.sees_dead(&holder)) {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

/// The holder of the unexpired lease on this agent.
fn holder(unit: &Unit<'_>, agent: i64) -> Result<Option<Process>, StoreError> {
    let sql = "SELECT holder FROM leases WHERE agent = ?1 AND until > ?2";
    let holder: Option<String> =
        unit.row(sql, params![agent, unit.now().as_millis()], |row| row.get(0))?;
    holder.map(|holder| decode(&holder)).transpose()
}

fn end_of_lease(unit: &Unit<'_>) -> i64 {
    unit.now().as_millis() + i64::try_from(Lease::DURATION.as_millis()).unwrap_or(0)
}

pub(crate) fn encode(process: &Process) -> Result<String, StoreError> {
    serde_json::to_string(process).map_err(StoreError::internal)
}

pub(crate) fn decode(holder: &str) -> Result<Process, StoreError> {
    serde_json::from_str(holder).map_err(StoreError::internal)
}
