//! Sessions: their location, which is the latest, and what they contain.

use ikigai_conversation::{SessionId, Time};

use crate::agents::{self, AgentLimits, State};
use crate::error::StoreError;
use crate::leases;
use crate::log::Requests;
use crate::openings::{self, UNUSED, USED_SESSION};
use crate::process::Process;
use crate::sql::{Row, params};
use crate::store::Store;
use crate::tables::{TABLES, TRANSIENT};
use crate::unit::Unit;
use crate::writer::Scope;

/// A machine and a working directory on it, by which sessions are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The machine, as [`Process`] names it.
    pub machine: String,
    /// Absolute.
    pub directory: String,
}

/// The budget of a session until the user sends the next message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Notifications that start a turn.
    pub wakes: u32,
    /// Requests to a model.
    pub requests: u32,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// Its location.
    pub location: Location,
    /// The first line of the user's first message.
    pub title: String,
    /// When it was created.
    pub created_at: Time,
    /// When something was last written to it.
    pub updated_at: Time,
    /// How many agents it has, including the dead.
    pub agents: u32,
    /// How many log messages they have.
    pub messages: u32,
}

impl Store {
    /// All sessions that are used, the most recently used first.
    pub async fn sessions(&self) -> Result<Vec<Session>, StoreError> {
        self.read(|unit| {
            const USER: &str = State::USER;
            let sql = format!(
                "SELECT id, machine, directory, title, created_at, updated_at,
                    (SELECT count(*) FROM agents a
                        WHERE a.session = s.key AND state <> '{USER}' AND NOT ({UNUSED})),
                    (SELECT count(*) FROM messages m JOIN agents a ON a.key = m.agent WHERE a.session = s.key)
                FROM sessions s WHERE {USED_SESSION} ORDER BY updated_at DESC, key DESC"
            );
            unit.rows(&sql, params![], read_session)
        })
        .await
    }

    /// The most recently used session of `location`.
    pub async fn latest_session(
        &self,
        location: Location,
    ) -> Result<Option<SessionId>, StoreError> {
        self.read(move |unit| Ok(latest(unit, &location)?.map(|(session, _)| session))).await
    }

    /// The session of `location` that was last written to, or that a terminal has made since. If
    /// there is none, creates it with the id `new` and agent `0/`.
    pub async fn session_at(
        &self,
        location: Location,
        new: SessionId,
        budget: Budget,
        by: Process,
    ) -> Result<SessionId, StoreError> {
        // On the writer from the start: a unit that finds a session writes nothing and costs no
        // flush, and a short command then needs no reader.
        self.commit(Scope::Location(location.clone()), move |unit| {
            let opened = openings::running(unit, &location, &by)?;
            match latest(unit, &location)?.into_iter().chain(opened).max_by_key(|found| found.1) {
                Some((session, _)) => Ok(session),
                None => create(unit, &location, new, budget),
            }
        })
        .await
    }

    /// Creates a session with agent `0/`.
    pub async fn create_session(
        &self,
        location: Location,
        new: SessionId,
        budget: Budget,
    ) -> Result<SessionId, StoreError> {
        self.commit(Scope::Own, move |unit| create(unit, &location, new, budget)).await
    }

    /// The system prompt of the session, once it has one.
    pub async fn system_prompt(&self, session: SessionId) -> Result<Option<String>, StoreError> {
        self.read(move |unit| system_prompt(unit, key_of(unit, &session)?)).await
    }

    /// Gives a session another title.
    pub async fn rename_session(&self, id: SessionId, title: String) -> Result<(), StoreError> {
        self.commit(Scope::Session(id), move |unit| {
            let session = key_of(unit, &id)?;
            unit.run("UPDATE sessions SET title = ?2 WHERE key = ?1", params![session, title])
        })
        .await
    }

    /// The title of a session; empty until the user has said something.
    pub async fn session_title(&self, id: SessionId) -> Result<String, StoreError> {
        self.read(move |unit| {
            let sql = "SELECT title FROM sessions WHERE key = ?1";
            let title = unit.row(sql, params![key_of(unit, &id)?], |row| row.get(0))?;
            title.ok_or(StoreError::SessionNotFound(id))
        })
        .await
    }

    /// Deletes a session with its agents, logs and mail, unless a live process runs one of its agents.
    pub async fn remove_session(&self, id: SessionId, by: Process) -> Result<(), StoreError> {
        self.commit(Scope::Session(id), move |unit| {
            let session = key_of(unit, &id)?;
            leases::require_none_alive(unit, session, &by)?;
            delete(unit, session)
        })
        .await
    }
}

/// The most recently used session of a location, and when it was last written to.
fn latest(unit: &Unit<'_>, location: &Location) -> Result<Option<(SessionId, Time)>, StoreError> {
    let sql = format!(
        "SELECT id, updated_at FROM sessions s
        WHERE machine = ?1 AND directory = ?2 AND {USED_SESSION}
        ORDER BY updated_at DESC, key DESC LIMIT 1"
    );
    let params = params![location.machine, location.directory];
    unit.row(&sql, params, |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Deletes a session with everything that belongs to it.
pub(crate) fn delete(unit: &Unit<'_>, session: i64) -> Result<(), StoreError> {
    let copied = TABLES.iter().rev().map(|table| (table.name, table.owner));
    for (table, owner) in TRANSIENT.iter().copied().chain(copied) {
        let sql = format!("DELETE FROM {table} WHERE {}", owner.condition());
        unit.run(&sql, params![session])?;
    }
    Ok(())
}

pub(crate) fn create(
    unit: &Unit<'_>,
    location: &Location,
    id: SessionId,
    budget: Budget,
) -> Result<SessionId, StoreError> {
    let now = unit.now().as_millis();
    let session = unit.insert(
        "INSERT INTO sessions (id, machine, directory, created_at, updated_at, wakes_left, requests_left)
            VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6) RETURNING key",
        params![id.to_string(), location.machine, location.directory, now, budget.wakes, budget.requests],
    )?;
    agents::create_top_level(unit, session, None, location, &AgentLimits::NONE)?;
    Ok(id)
}

/// The key of a session.
pub(crate) fn key_of(unit: &Unit<'_>, id: &SessionId) -> Result<i64, StoreError> {
    unit.row("SELECT key FROM sessions WHERE id = ?1", params![id.to_string()], |row| row.get(0))?
        .ok_or(StoreError::SessionNotFound(*id))
}

/// The system prompt of a session, once it has one.
pub(crate) fn system_prompt(unit: &Unit<'_>, session: i64) -> Result<Option<String>, StoreError> {
    let sql = "SELECT m.content FROM messages m JOIN agents a ON a.key = m.agent
        WHERE a.session = ?1 AND m.kind = 'system' ORDER BY m.id LIMIT 1";
    unit.row(sql, params![session], |row| row.get(0))
}

/// Updates the time of the last write to a session.
pub(crate) fn note_written(unit: &Unit<'_>, session: i64) -> Result<(), StoreError> {
    let sql = "UPDATE sessions SET updated_at = ?2 WHERE key = ?1 AND updated_at < ?2";
    unit.run(sql, params![session, unit.now().as_millis()])
}

/// The user has sent a message: agents may work and wake each other again.
pub(crate) fn refill(unit: &Unit<'_>, session: i64, budget: Budget) -> Result<(), StoreError> {
    let sql =
        "UPDATE sessions SET wakes_left = ?2, requests_left = ?3, held_told = 0 WHERE key = ?1";
    unit.run(sql, params![session, budget.wakes, budget.requests])
}

/// Takes one request from the budget of the session, if there is one left.
pub(crate) fn take_request(unit: &Unit<'_>, session: i64) -> Result<Requests, StoreError> {
    let sql = "UPDATE sessions SET requests_left = requests_left - 1
        WHERE key = ?1 AND requests_left > 0";
    Ok(match unit.execute(sql, params![session])? {
        0 => Requests::UsedUp,
        _ => Requests::Granted,
    })
}

/// The user has sent mail: agents may wake each other again.
pub(crate) fn refill_wakes(
    unit: &Unit<'_>,
    session: i64,
    budget: Budget,
) -> Result<(), StoreError> {
    let sql = "UPDATE sessions SET wakes_left = ?2, held_told = 0 WHERE key = ?1";
    unit.run(sql, params![session, budget.wakes])
}

fn read_session(row: &Row<'_>) -> Result<Session, StoreError> {
    Ok(Session {
        id: row.get(0)?,
        location: Location { machine: row.get(1)?, directory: row.get(2)? },
        title: row.get(3)?,
        created_at: row.get(4)?,
        updated_at: row.get(5)?,
        agents: row.get(6)?,
        messages: row.get(7)?,
    })
}

impl State {
    /// The state of the row that stands for the user's mailbox.
    pub(crate) const USER: &'static str = "user";
    /// The states of an agent that lives.
    pub(crate) const ALIVE: &'static str = "state NOT IN ('dead', 'user')";
}
