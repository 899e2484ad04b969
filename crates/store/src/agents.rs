//! The registry of agents.

use ikigai_conversation::{AgentId, SessionId, Time};

use crate::error::StoreError;
use crate::openings::UNUSED;
use crate::refusal::Refusal;
use crate::sessions::{self, Location};
use crate::sql::{Row, params};
use crate::store::Store;
use crate::unit::Unit;
use crate::writer::Scope;

/// What an agent is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Idle, until a message or mail arrives.
    Idle,
    /// Waiting for the model.
    Waiting,
    /// Running a tool.
    Tool,
    /// Waiting for an approval.
    Asking,
    /// Killed.
    Dead,
}

impl State {
    /// Its name in the database and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            State::Idle => "idle",
            State::Waiting => "waiting",
            State::Tool => "tool",
            State::Asking => "asking",
            State::Dead => "dead",
        }
    }

    pub(crate) fn parse(name: &str) -> Result<State, StoreError> {
        [State::Idle, State::Waiting, State::Tool, State::Asking, State::Dead]
            .into_iter()
            .find(|state| state.name() == name)
            .ok_or_else(|| StoreError::internal(format!("no state of an agent: {name}")))
    }
}

/// The tokens that an agent has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Sent to models.
    pub input: i64,
    /// Received from models.
    pub output: i64,
}

/// An agent in the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Its id, which includes its parent's.
    pub id: AgentId,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// What it is doing.
    pub state: State,
    /// How many unread messages are in its mailbox.
    pub unread: u32,
    /// It was notified of mail and has not looked at its mailbox since.
    pub notification_pending: bool,
    /// The latest model it used, if any.
    pub model: Option<String>,
    /// The first line of its latest task.
    pub task: String,
    /// When it was made.
    pub created_at: Time,
}

/// How many agents a session may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentLimits {
    /// How many may work at the same time: all top-level agents, and children that are not idle.
    pub agents: u32,
    /// How many levels there may be. Top-level agents are on the first.
    pub depth: u32,
}

impl AgentLimits {
    /// The default limits.
    pub const DEFAULT: AgentLimits = AgentLimits { agents: 20, depth: 4 };
    pub(crate) const NONE: AgentLimits = AgentLimits { agents: u32::MAX, depth: u32::MAX };
}

impl Store {
    /// All agents of a session that are used, including the dead, parents before children.
    pub async fn agents(&self, session: SessionId) -> Result<Vec<Agent>, StoreError> {
        self.read(move |unit| all(unit, sessions::key_of(unit, &session)?)).await
    }

    /// Adds a top-level agent, which is idle.
    pub async fn add_agent(
        &self,
        session: SessionId,
        name: Option<String>,
        location: Location,
        limits: AgentLimits,
    ) -> Result<AgentId, StoreError> {
        self.commit(Scope::Session(session), move |unit| {
            let session = sessions::key_of(unit, &session)?;
            unit.touch(session);
            create_top_level(unit, session, name.as_deref(), &location, &limits)
        })
        .await
    }
}

pub(crate) fn create_top_level(
    unit: &Unit<'_>,
    session: i64,
    name: Option<&str>,
    location: &Location,
    limits: &AgentLimits,
) -> Result<AgentId, StoreError> {
    let named = name.map_or(Ok(None), |name| name_refusal(unit, session, name))?;
    if let Some(refusal) = named.or(room_refusal(unit, session, limits, Newcomer::Working)?) {
        return Err(StoreError::Refused(refusal));
    }
    if let Some(name) = name {
        take_name(unit, session, name)?;
    }
    let sql =
        "UPDATE sessions SET next_agent = next_agent + 1 WHERE key = ?1 RETURNING next_agent - 1";
    let number = unit
        .row(sql, params![session], |row| row.get(0))?
        .ok_or_else(|| StoreError::internal("the session is gone"))?;
    let id = AgentId::top_level(number);
    unit.run(
        "INSERT INTO agents (session, id, name, state, machine, directory, created_at)
            VALUES (?1, ?2, ?3, 'idle', ?4, ?5, ?6)",
        params![
            session,
            id.to_string(),
            name,
            location.machine,
            location.directory,
            unit.now().as_millis()
        ],
    )?;
    Ok(id)
}

/// The living top-level agents of a session that are used, in the order of ids.
pub(crate) fn living_top_level(unit: &Unit<'_>, session: i64) -> Result<Vec<AgentId>, StoreError> {
    // Such an id has one slash.
    let sql = format!(
        "SELECT id FROM agents a
        WHERE session = ?1 AND {} AND id NOT LIKE '%/%/' AND NOT ({UNUSED})",
        State::ALIVE
    );
    let mut ids: Vec<AgentId> = unit.rows(&sql, params![session], |row| row.get(0))?;
    ids.sort();
    Ok(ids)
}

/// Why an agent cannot have this name. A name must not look like an id, or mail would go to the
/// wrong agent, and it must be unique among the living agents. An idle child gives it up.
pub(crate) fn name_refusal(
    unit: &Unit<'_>,
    session: i64,
    name: &str,
) -> Result<Option<Refusal>, StoreError> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_good = (1..=32).contains(&name.chars().count())
        && name.chars().all(is_plain)
        && !name.chars().all(|c| c.is_ascii_digit())
        && !matches!(name, "parent" | "user");
    if !is_good {
        return Ok(Some(Refusal::Name(name.to_owned())));
    }
    let sql = format!(
        "SELECT id FROM agents WHERE session = ?1 AND name = ?2 AND {}
            AND (state <> 'idle' OR id NOT LIKE '%/%/')",
        State::ALIVE
    );
    let taken: Option<AgentId> = unit.row(&sql, params![session, name], |row| row.get(0))?;
    Ok(taken.map(|agent| Refusal::NameTaken { name: name.to_owned(), agent }))
}

/// Takes a name from the idle child that has it, if one does: it belongs to its newest bearer.
pub(crate) fn take_name(unit: &Unit<'_>, session: i64, name: &str) -> Result<(), StoreError> {
    let sql = format!(
        "UPDATE agents SET name = NULL WHERE session = ?1 AND name = ?2 AND {}",
        State::ALIVE
    );
    unit.run(&sql, params![session, name])
}

/// The most agents of a session that are not dead. Each is a row in every list and a line in the
/// tree, whether it works or not.
const MOST_AGENTS: u32 = 1_000;

/// Whether a new agent works from the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Newcomer {
    /// A top-level agent, or a child with a task.
    Working,
    /// A child without a task.
    IdleChild,
}

/// Why the session cannot have another agent. Idle children cost nothing and do not count towards
/// the limit of the user.
pub(crate) fn room_refusal(
    unit: &Unit<'_>,
    session: i64,
    limits: &AgentLimits,
    newcomer: Newcomer,
) -> Result<Option<Refusal>, StoreError> {
    // The id of a child has more than one slash.
    let sql = format!(
        "SELECT count(*), coalesce(sum(CASE WHEN state = 'idle' AND id LIKE '%/%/' THEN 0 ELSE 1 END), 0)
            FROM agents a WHERE session = ?1 AND {} AND NOT ({UNUSED})",
        State::ALIVE
    );
    let counts = unit.row(&sql, params![session], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (alive, working): (u32, u32) = counts.unwrap_or((0, 0));
    let is_full = newcomer == Newcomer::Working && working >= limits.agents;
    if is_full {
        return Ok(Some(Refusal::TooMany(limits.agents)));
    }
    Ok((alive >= MOST_AGENTS).then_some(Refusal::TooMany(MOST_AGENTS)))
}

/// The living agents, parents before children.
pub(crate) fn living(unit: &Unit<'_>, session: i64) -> Result<Vec<Agent>, StoreError> {
    let mut agents = all(unit, session)?;
    agents.retain(|agent| agent.state != State::Dead);
    Ok(agents)
}

fn all(unit: &Unit<'_>, session: i64) -> Result<Vec<Agent>, StoreError> {
    let sql = format!(
        "SELECT id, name, state, notification_pending, model, task, unread, created_at
        FROM agents a WHERE session = ?1 AND state <> '{}' AND NOT ({UNUSED})",
        State::USER
    );
    let mut agents = unit.rows(&sql, params![session], |row| {
        Ok(Agent {
            id: row.get(0)?,
            name: row.get(1)?,
            state: row.get(2)?,
            notification_pending: row.get(3)?,
            model: row.get(4)?,
            task: row.get(5)?,
            unread: row.get(6)?,
            created_at: row.get(7)?,
        })
    })?;
    agents.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(agents)
}

/// The columns of an agent that most units need.
#[derive(Debug)]
pub(crate) struct AgentRow {
    pub(crate) key: i64,
    pub(crate) session: i64,
    pub(crate) id: AgentId,
    pub(crate) is_dead: bool,
    /// The number of unread messages when the row was read.
    pub(crate) unread: u32,
    /// The cause that it worked for at that time.
    pub(crate) cause: Option<i64>,
}

/// Finds an agent. For units that send mail, go idle or kill, the result stays true until their
/// commit (M5): they hold the write lock of the file, or on a server the lock of the session's row.
pub(crate) fn agent_by_id(
    unit: &Unit<'_>,
    session: &SessionId,
    id: &AgentId,
) -> Result<AgentRow, StoreError> {
    let sql = format!(
        "SELECT {} FROM agents a JOIN sessions s ON s.key = a.session WHERE s.id = ?1 AND a.id = ?2",
        AgentRow::COLUMNS
    );
    let params = params![session.to_string(), id.to_string()];
    if let Some(found) = unit.row(&sql, params, |row| AgentRow::read(row, id))? {
        return Ok(found);
    }
    sessions::key_of(unit, session)?;
    Err(StoreError::AgentNotFound(id.clone()))
}

impl AgentRow {
    /// The first columns of queries about agents `a`, and how many there are.
    pub(crate) const COLUMNS: &str = "a.key, a.session, a.state = 'dead', a.unread, a.cause";
    pub(crate) const WIDTH: usize = 5;

    /// Reads these columns.
    pub(crate) fn read(row: &Row<'_>, id: &AgentId) -> Result<AgentRow, StoreError> {
        Ok(AgentRow {
            key: row.get(0)?,
            session: row.get(1)?,
            id: id.clone(),
            is_dead: row.get(2)?,
            unread: row.get(3)?,
            cause: row.get(4)?,
        })
    }
}

pub(crate) fn find_agent(
    unit: &Unit<'_>,
    session: i64,
    id: &AgentId,
) -> Result<Option<AgentRow>, StoreError> {
    let sql = format!("SELECT {} FROM agents a WHERE session = ?1 AND id = ?2", AgentRow::COLUMNS);
    unit.row(&sql, params![session, id.to_string()], |row| AgentRow::read(row, id))
}

pub(crate) fn set_state(unit: &Unit<'_>, agent: &AgentRow, state: State) -> Result<(), StoreError> {
    let sql = "UPDATE agents SET state = ?2 WHERE key = ?1 AND state <> ?2";
    unit.run(sql, params![agent.key, state.name()])
}

pub(crate) fn state_of(unit: &Unit<'_>, agent: i64) -> Result<State, StoreError> {
    let name: Option<String> =
        unit.row("SELECT state FROM agents WHERE key = ?1", params![agent], |row| row.get(0))?;
    State::parse(name.as_deref().unwrap_or_default())
}
