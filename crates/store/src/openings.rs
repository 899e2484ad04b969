//! What opening a session makes, and what closing it removes.
//!
//! A terminal makes its session, or its agent in a running one, when it opens: from then on it can
//! get mail. Until it is used, such an agent is not listed and does not count; a session of unused
//! agents is not listed either. A terminal that closes removes its unused agent in the transaction
//! that releases the lease, so mail that was sent before keeps it. What a killed process left
//! behind is removed by the next opening.

use std::collections::BTreeSet;

use ikigai_conversation::{AgentId, SessionId, Time};

use crate::agents::{self, AgentLimits, AgentRow};
use crate::commands;
use crate::error::StoreError;
use crate::leases::{Lease, claim, decode};
use crate::process::Process;
use crate::roots::{self, RootFolder};
use crate::sessions::{self, Budget, Location};
use crate::sql::params;
use crate::store::Store;
use crate::unit::Unit;
use crate::writer::Scope;

macro_rules! unused {
    () => {
        "a.opened = 1 AND a.next_child = 0
            AND NOT EXISTS (SELECT 1 FROM messages WHERE agent = a.key)
            AND NOT EXISTS (SELECT 1 FROM mail WHERE recipient = a.key)
            AND NOT EXISTS (SELECT 1 FROM mail WHERE sender = a.key)
            AND NOT EXISTS (SELECT 1 FROM queued_inputs WHERE agent = a.key)"
    };
}

/// Whether agent `a` was made by an opening and has not been used since.
pub(crate) const UNUSED: &str = unused!();

/// Whether session `s` has an agent that is used.
pub(crate) const USED_SESSION: &str =
    concat!("EXISTS (SELECT 1 FROM agents a WHERE a.session = s.key AND NOT (", unused!(), "))");

/// A process that opens a session.
#[derive(Debug, Clone)]
pub struct Opening {
    /// Its location.
    pub location: Location,
    /// The process.
    pub process: Process,
    /// The folders that its agents can write.
    pub roots: Vec<RootFolder>,
    /// The budget of a new session.
    pub budget: Budget,
    /// How many agents the session may have.
    pub limits: AgentLimits,
}

/// The agent of an existing session to claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimedAgent {
    /// This top-level agent.
    Named(AgentId),
    /// The lowest top-level agent that no live process runs. If there is none, a new one.
    Free,
    /// A new top-level agent.
    New,
}

impl Store {
    /// Opens the session that a live process runs at this location, as an additional agent. If
    /// there is none, creates one with the id `new` and agent `0/`.
    ///
    /// # Errors
    /// [`StoreError::RootReplaced`] if the path of a root was a different folder when the session
    /// last used it.
    pub async fn open_running(
        &self,
        new: SessionId,
        opening: Opening,
    ) -> Result<Lease, StoreError> {
        loop {
            let (scope, here) = (Scope::Location(opening.location.clone()), opening.clone());
            let opened = self.commit(scope, move |unit| {
                match newest_running(unit, &here.location, &here.process)? {
                    Some(session) => Ok(Err(session)),
                    None => start(unit, new, &here).map(Ok),
                }
            });
            let running = match opened.await? {
                Ok(lease) => return Ok(lease),
                Err(running) => running,
            };
            match self.open_session(running, ClaimedAgent::New, opening.clone()).await {
                // Its last terminal has closed meanwhile, and it was unused.
                Err(StoreError::SessionNotFound(_)) => {}
                opened => return opened,
            }
        }
    }

    /// Creates a session with the id `new` and agent `0/`, and claims that.
    pub async fn open_new(&self, new: SessionId, opening: Opening) -> Result<Lease, StoreError> {
        let scope = Scope::Location(opening.location.clone());
        self.commit(scope, move |unit| start(unit, new, &opening)).await
    }

    /// Opens a session as one of its agents.
    ///
    /// # Errors
    /// [`StoreError::LeaseHeld`] if another process runs the named agent, and
    /// [`StoreError::RootReplaced`] as above. Then nothing has changed.
    pub async fn open_session(
        &self,
        session: SessionId,
        agent: ClaimedAgent,
        opening: Opening,
    ) -> Result<Lease, StoreError> {
        self.commit(Scope::Session(session), move |unit| {
            let Opening { location, process, roots, limits, .. } = opening;
            roots::keep(unit, session, &process, roots)?;
            let key = sessions::key_of(unit, &session)?;
            remove_leftovers(unit, key, &process)?;
            match agent {
                ClaimedAgent::Named(top) => return claim(unit, session, &top, &process),
                ClaimedAgent::Free => {
                    for top in agents::living_top_level(unit, key)? {
                        match claim(unit, session, &top, &process) {
                            Err(StoreError::LeaseHeld { .. }) => {}
                            claimed => return claimed,
                        }
                    }
                }
                ClaimedAgent::New => {}
            }
            unit.touch(key);
            let top = agents::create_top_level(unit, key, None, &location, &limits)?;
            mark_opened(unit, key, &top)?;
            claim(unit, session, &top, &process)
        })
        .await
    }

    /// The lowest agent of a session that a live process other than `process` runs, if any.
    pub async fn agent_elsewhere(
        &self,
        session: SessionId,
        process: Process,
    ) -> Result<Option<AgentId>, StoreError> {
        self.read(move |unit| {
            let sql = "SELECT a.id, l.holder FROM sessions s JOIN agents a ON a.session = s.key
                    JOIN leases l ON l.agent = a.key
                WHERE s.id = ?1 AND a.state <> 'dead' AND l.until > ?2";
            let params = params![session.to_string(), unit.now().as_millis()];
            let held: Vec<(AgentId, Process)> =
                unit.rows(sql, params, |row| Ok((row.get(0)?, decode(&row.text(1)?)?)))?;
            let others =
                held.into_iter().filter(|(_, by)| *by != process && !process.sees_dead(by));
            Ok(others.map(|(agent, _)| agent).min())
        })
        .await
    }

    /// The most recently used session of `location` in which a live process runs an agent.
    pub async fn running_session(
        &self,
        location: Location,
        by: Process,
    ) -> Result<Option<SessionId>, StoreError> {
        self.read(move |unit| newest_running(unit, &location, &by)).await
    }
}

fn newest_running(
    unit: &Unit<'_>,
    location: &Location,
    by: &Process,
) -> Result<Option<SessionId>, StoreError> {
    let sql = "SELECT s.id, l.holder FROM sessions s JOIN agents a ON a.session = s.key
            JOIN leases l ON l.agent = a.key
        WHERE s.machine = ?1 AND s.directory = ?2 AND l.until > ?3
        ORDER BY s.updated_at DESC, s.key DESC";
    let params = params![location.machine, location.directory, unit.now().as_millis()];
    let held = unit.rows(sql, params, |row| Ok((row.get(0)?, decode(&row.text(1)?)?)))?;
    let live = held.into_iter().find(|(_, holder)| !by.sees_dead(holder));
    Ok(live.map(|(session, _)| session))
}

/// The latest session of a location whose terminal is open and has made its agent, and when it was
/// last written to.
pub(crate) fn running(
    unit: &Unit<'_>,
    location: &Location,
    by: &Process,
) -> Result<Option<(SessionId, Time)>, StoreError> {
    let sql =
        "SELECT s.id, s.updated_at, l.holder FROM agents a JOIN sessions s ON s.key = a.session
            JOIN leases l ON l.agent = a.key
        WHERE a.opened = 1 AND s.machine = ?1 AND s.directory = ?2 AND l.until > ?3
        ORDER BY s.updated_at DESC, s.key DESC";
    let params = params![location.machine, location.directory, unit.now().as_millis()];
    let held =
        unit.rows(sql, params, |row| Ok(((row.get(0)?, row.get(1)?), decode(&row.text(2)?)?)))?;
    let live = held.into_iter().find(|(_, holder)| !by.sees_dead(holder));
    Ok(live.map(|(found, _)| found))
}

/// Creates a session with agent `0/`, and claims that.
fn start(unit: &Unit<'_>, new: SessionId, opening: &Opening) -> Result<Lease, StoreError> {
    let Opening { location, process, roots, budget, .. } = opening;
    remove_leftovers_at(unit, location, process)?;
    sessions::create(unit, location, new, *budget)?;
    roots::keep(unit, new, process, roots.clone())?;
    let first = AgentId::top_level(0);
    mark_opened(unit, sessions::key_of(unit, &new)?, &first)?;
    claim(unit, new, &first, process)
}

fn mark_opened(unit: &Unit<'_>, session: i64, agent: &AgentId) -> Result<(), StoreError> {
    let sql = "UPDATE agents SET opened = 1 WHERE session = ?1 AND id = ?2";
    unit.run(sql, params![session, agent.to_string()])
}

/// Releases the lease of an agent. If the agent was never used, removes it.
pub(crate) fn close(unit: &Unit<'_>, agent: &AgentRow) -> Result<(), StoreError> {
    match settle(unit, agent.session, agent.key)? {
        Settled::Removed => Ok(()),
        Settled::Kept => {
            commands::lose_in_tree(unit, agent)?;
            unit.run(
                "UPDATE leases SET until = 0, epoch = epoch + 1 WHERE agent = ?1",
                params![agent.key],
            )
        }
    }
}

/// What became of an agent whose terminal has closed.
enum Settled {
    Removed,
    Kept,
}

/// Removes an agent whose terminal has closed, and its session if it was the only one. If it was
/// used, it becomes an agent like any other.
fn settle(unit: &Unit<'_>, session: i64, agent: i64) -> Result<Settled, StoreError> {
    let sql = format!("SELECT 1 FROM agents a WHERE a.key = ?1 AND {UNUSED}");
    if unit.row(&sql, params![agent], |_| Ok(()))?.is_none() {
        let sql = "UPDATE agents SET opened = 0 WHERE key = ?1 AND opened = 1";
        return unit.run_silently(sql, params![agent]).map(|()| Settled::Kept);
    }
    // A wait for it has to end first. The next opening finds the agent again.
    let sql = "SELECT 1 FROM waits WHERE awaited = ?1";
    if unit.row(sql, params![agent], |_| Ok(()))?.is_some() {
        return Ok(Settled::Kept);
    }
    unit.run("DELETE FROM waits WHERE waiter = ?1", params![agent])?;
    unit.run("DELETE FROM leases WHERE agent = ?1", params![agent])?;
    unit.run("DELETE FROM agents WHERE key = ?1", params![agent])?;
    let sql = "SELECT 1 FROM agents WHERE session = ?1 LIMIT 1";
    if unit.row(sql, params![session], |_| Ok(()))?.is_none() {
        sessions::delete(unit, session)?;
    }
    Ok(Settled::Removed)
}

/// Settles what killed terminals left behind at a location.
fn remove_leftovers_at(
    unit: &Unit<'_>,
    location: &Location,
    by: &Process,
) -> Result<(), StoreError> {
    let sql = "SELECT a.session, l.holder, l.until
        FROM agents a JOIN sessions s ON s.key = a.session LEFT JOIN leases l ON l.agent = a.key
        WHERE a.opened = 1 AND s.machine = ?1 AND s.directory = ?2";
    let opened = unit.rows(sql, params![location.machine, location.directory], |row| {
        Ok((row.get::<i64>(0)?, row.get(1)?, row.get(2)?))
    })?;
    let mut sessions = BTreeSet::new();
    for (session, holder, until) in opened {
        if is_left_behind(unit, by, holder, until)? {
            sessions.insert(session);
        }
    }
    for session in sessions {
        // Locks the session: mail may be on its way to it.
        let sql = "UPDATE sessions SET next_agent = next_agent WHERE key = ?1";
        if unit.execute(sql, params![session])? > 0 {
            remove_leftovers(unit, session, by)?;
        }
    }
    Ok(())
}

/// Settles what killed terminals left behind in a session that is locked.
fn remove_leftovers(unit: &Unit<'_>, session: i64, by: &Process) -> Result<(), StoreError> {
    let sql = "SELECT a.key, l.holder, l.until FROM agents a LEFT JOIN leases l ON l.agent = a.key
        WHERE a.session = ?1 AND a.opened = 1";
    let opened =
        unit.rows(sql, params![session], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    for (agent, holder, until) in opened {
        if is_left_behind(unit, by, holder, until)? {
            settle(unit, session, agent)?;
        }
    }
    Ok(())
}

/// Whether no terminal has this lease any more. A stopped one of this machine still does, however
/// long it has not renewed the lease.
fn is_left_behind(
    unit: &Unit<'_>,
    by: &Process,
    holder: Option<String>,
    until: Option<i64>,
) -> Result<bool, StoreError> {
    let (Some(holder), Some(until)) = (holder, until) else { return Ok(true) };
    let holder = decode(&holder)?;
    let is_over = until == 0 || !by.can_see(&holder) && until <= unit.now().as_millis();
    Ok(is_over || by.sees_dead(&holder))
}
