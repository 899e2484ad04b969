//! What requests to models used and cost, by the user's messages that caused them.
//!
//! A request is noted before it is sent: in the commit that grants it. The usage message of its
//! response accounts for it. What can no longer be accounted for (the process died, the agent was
//! killed or interrupted, its stream broke) is counted as unreported: it may have been billed.

use ikigai_conversation::{AgentId, SessionId, Time, Usage};

use crate::agents::{AgentRow, State, Tokens};
use crate::causes;
use crate::error::StoreError;
use crate::leases::{Lease, decode, fence};
use crate::process::Process;
use crate::sessions;
use crate::sql::{Row, params};
use crate::store::Store;
use crate::unit::Unit;

/// What some requests used and cost: those of one agent to one model on one day (in UTC), for one
/// message of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spending {
    /// The session.
    pub session: SessionId,
    /// The agent.
    pub agent: AgentId,
    /// The user's message that the agent worked for; `None` for requests from before causes were
    /// stored.
    pub cause: Option<Cause>,
    /// The model as `provider/name`.
    pub model: String,
    /// How many requests there were whose usage is known.
    pub requests: u64,
    /// How many of these have no known cost.
    pub unpriced: u64,
    /// How many requests were lost before their usage was stored.
    pub unreported: u64,
    /// Tokens sent, including those from a cache.
    pub input_tokens: u64,
    /// How many of those came from a cache.
    pub cached_tokens: u64,
    /// Tokens received.
    pub output_tokens: u64,
    /// What the requests cost whose price was known, in micro-dollars.
    pub cost: u64,
    /// When the last of them ended.
    pub last_at: Time,
}

/// A message of the user, as a reason for requests.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cause {
    /// Identifies it in its database. Later messages have higher keys.
    pub key: i64,
    /// Its first line.
    pub title: String,
    /// When it was sent.
    pub said_at: Time,
}

/// What was spent so far, in micro-dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    /// Identifies the user's message that the agent works for.
    pub cause: i64,
    /// For that message, by all agents.
    pub message: u64,
    /// In the session.
    pub session: u64,
}

impl Store {
    /// What was spent, in the order in which it was caused: in a session, or in all. `by` checks
    /// which requests are still on their way.
    pub async fn spending(
        &self,
        session: Option<SessionId>,
        by: Process,
    ) -> Result<Vec<Spending>, StoreError> {
        self.read(move |unit| {
            if let Some(session) = &session {
                sessions::key_of(unit, session)?;
            }
            let session = session.map(|session| session.to_string());
            let mut spending = accounted(unit, session.as_deref())?;
            spending.extend(abandoned(unit, session.as_deref(), &by)?);
            Ok(spending)
        })
        .await
    }

    /// The tokens that each agent of a session has used so far, in the order of ids.
    pub async fn tokens(&self, session: SessionId) -> Result<Vec<(AgentId, Tokens)>, StoreError> {
        self.read(move |unit| {
            let session = sessions::key_of(unit, &session)?;
            let sql = "SELECT a.id, CAST(sum(u.input_tokens) AS BIGINT),
                    CAST(sum(u.output_tokens) AS BIGINT)
                FROM agents a JOIN spending u ON u.agent = a.key
                WHERE a.session = ?1 AND u.requests > 0 GROUP BY a.key, a.id";
            let mut tokens: Vec<(AgentId, Tokens)> = unit.rows(sql, params![session], |row| {
                Ok((row.get(0)?, Tokens { input: row.get(1)?, output: row.get(2)? }))
            })?;
            tokens.sort_by(|a, b| a.0.cmp(&b.0));
            Ok(tokens)
        })
        .await
    }

    /// What was spent for the user's message that an agent works for, and in its session.
    pub async fn spent(&self, session: SessionId, agent: AgentId) -> Result<Spent, StoreError> {
        self.read(move |unit| {
            let agent = crate::agents::agent_by_id(unit, &session, &agent)?;
            let cause = agent.cause.unwrap_or(0);
            let sql =
                "SELECT CAST(coalesce(sum(cost), 0) AS BIGINT) FROM spending WHERE cause = ?1";
            let message = unit.row(sql, params![cause], |row| count(row, 0))?;
            let sql = "SELECT CAST(coalesce(sum(u.cost), 0) AS BIGINT)
                FROM agents a JOIN spending u ON u.agent = a.key WHERE a.session = ?1";
            let session = unit.row(sql, params![agent.session], |row| count(row, 0))?;
            let (message, session) = (message.unwrap_or(0), session.unwrap_or(0));
            Ok(Spent { cause, message, session })
        })
        .await
    }

    /// Notes that no report will come of an agent's latest request, and that `lost` attempts of it
    /// may have been billed.
    pub async fn settle_request(
        &self,
        lease: Lease,
        agent: AgentId,
        lost: u32,
    ) -> Result<(), StoreError> {
        self.commit(lease.scope(), move |unit| {
            let agent = fence(unit, &lease, &agent)?;
            let sql = "INSERT INTO spending (agent, cause, model, requests, unreported,
                    input_tokens, cached_tokens, output_tokens, created_at)
                SELECT key, cause, coalesce(model, ''), 0, ?2, 0, 0, 0, ?3 FROM agents
                WHERE key = ?1 AND ?2 > 0";
            unit.run(sql, params![agent.key, lost, unit.now().as_millis()])?;
            close(unit, &agent)
        })
        .await
    }
}

/// Notes that an agent's request is on its way.
pub(crate) fn open(unit: &Unit<'_>, agent: &AgentRow) -> Result<(), StoreError> {
    unit.run("UPDATE agents SET asked = 1 WHERE key = ?1 AND asked = 0", params![agent.key])
}

/// Notes that no request of an agent is on its way.
fn close(unit: &Unit<'_>, agent: &AgentRow) -> Result<(), StoreError> {
    unit.run("UPDATE agents SET asked = 0 WHERE key = ?1 AND asked = 1", params![agent.key])
}

/// Accounts for an agent's request. Its usage message is in the same commit.
pub(crate) fn report(unit: &Unit<'_>, agent: &AgentRow, usage: &Usage) -> Result<(), StoreError> {
    let cause = match agent.cause {
        Some(cause) => cause,
        None => causes::of_agent(unit, agent)?,
    };
    let sql = "INSERT INTO spending (agent, cause, model, requests, unreported,
            input_tokens, cached_tokens, output_tokens, cost, created_at)
        VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7, ?8, ?9)";
    unit.run(
        sql,
        params![
            agent.key,
            cause,
            usage.model,
            usage.unreported.unwrap_or(0),
            signed(usage.input_tokens),
            signed(usage.cache_read_tokens.unwrap_or(0)),
            signed(usage.output_tokens),
            usage.cost.map(signed),
            unit.now().as_millis(),
        ],
    )?;
    close(unit, agent)
}

/// Counts the open requests of an agent and its descendants as lost: no process will report them.
pub(crate) fn lose_open(unit: &Unit<'_>, top: &AgentRow) -> Result<(), StoreError> {
    // Ids consist of digits and slashes, so they contain no special characters of a pattern.
    const OPEN: &str = "session = ?1 AND id LIKE ?2 || '%' AND asked = 1";
    let (session, id, now) = (top.session, top.id.to_string(), unit.now().as_millis());
    let sql = format!(
        "INSERT INTO spending (agent, cause, model, requests, unreported,
                input_tokens, cached_tokens, output_tokens, created_at)
            SELECT key, cause, coalesce(model, ''), 0, 1, 0, 0, 0, ?3 FROM agents WHERE {OPEN}"
    );
    unit.run(&sql, params![session, id, now])?;
    unit.run(&format!("UPDATE agents SET asked = 0 WHERE {OPEN}"), params![session, id])
}

/// What is in the table, summed up.
fn accounted(unit: &Unit<'_>, session: Option<&str>) -> Result<Vec<Spending>, StoreError> {
    /// A day in milliseconds.
    const DAY: i64 = 86_400_000;
    let sum = |column: &str| format!("CAST(sum(u.{column}) AS BIGINT)");
    let sql = format!(
        "SELECT s.id, a.id, u.model, u.cause, c.title, c.created_at, {}, {}, {}, {}, {},
                CAST(coalesce(sum(u.cost), 0) AS BIGINT),
                CAST(sum(CASE WHEN u.requests > 0 AND u.cost IS NULL THEN 1 ELSE 0 END) AS BIGINT),
                max(u.created_at)
            FROM spending u JOIN agents a ON a.key = u.agent JOIN sessions s ON s.key = a.session
                LEFT JOIN causes c ON c.key = u.cause
            WHERE s.id = coalesce(?1, s.id)
            GROUP BY s.key, s.id, a.key, a.id, u.model, u.cause, c.title, c.created_at, u.created_at / {DAY}
            ORDER BY min(u.key)",
        sum("requests"),
        sum("unreported"),
        sum("input_tokens"),
        sum("cached_tokens"),
        sum("output_tokens"),
    );
    unit.rows(&sql, params![session], |row| {
        Ok(Spending {
            requests: count(row, 6)?,
            unreported: count(row, 7)?,
            input_tokens: count(row, 8)?,
            cached_tokens: count(row, 9)?,
            output_tokens: count(row, 10)?,
            cost: count(row, 11)?,
            unpriced: count(row, 12)?,
            last_at: Time::from_millis(row.get(13)?),
            ..origin(row)?
        })
    })
}

/// Requests that were on their way when their process died, and that no process has settled since.
fn abandoned(
    unit: &Unit<'_>,
    session: Option<&str>,
    by: &Process,
) -> Result<Vec<Spending>, StoreError> {
    let sql = format!(
        "SELECT s.id, a.id, coalesce(a.model, ''), a.cause, c.title, c.created_at, a.state,
                l.holder, l.until
            FROM agents a JOIN sessions s ON s.key = a.session
                JOIN agents t ON t.session = a.session AND t.id = {}
                LEFT JOIN leases l ON l.agent = t.key LEFT JOIN causes c ON c.key = a.cause
            WHERE a.asked = 1 AND s.id = coalesce(?1, s.id) ORDER BY a.key",
        unit.dialect().top_of("a.id")
    );
    let now = unit.now();
    let open = unit.rows(&sql, params![session], |row| {
        let is_waiting = row.get::<State>(6)? == State::Waiting;
        let is_alive = match (row.get::<Option<String>>(7)?, row.get::<Option<i64>>(8)?) {
            (Some(holder), Some(until)) => {
                until > now.as_millis() && !by.sees_dead(&decode(&holder)?)
            }
            _ => false,
        };
        let lost = Spending { unreported: 1, last_at: now, ..origin(row)? };
        Ok((!(is_waiting && is_alive)).then_some(lost))
    })?;
    Ok(open.into_iter().flatten().collect())
}

/// Reads the first six columns of both queries.
fn origin(row: &Row<'_>) -> Result<Spending, StoreError> {
    let cause = match (row.get::<Option<i64>>(3)?, row.get(4)?, row.get(5)?) {
        (Some(key), Some(title), Some(said_at)) => {
            Some(Cause { key, title, said_at: Time::from_millis(said_at) })
        }
        _ => None,
    };
    Ok(Spending {
        session: row.get(0)?,
        agent: row.get(1)?,
        model: row.get(2)?,
        cause,
        requests: 0,
        unpriced: 0,
        unreported: 0,
        input_tokens: 0,
        cached_tokens: 0,
        output_tokens: 0,
        cost: 0,
        last_at: Time::from_millis(0),
    })
}

fn count(row: &Row<'_>, column: usize) -> Result<u64, StoreError> {
    Ok(u64::try_from(row.get::<i64>(column)?).unwrap_or(0))
}

/// Agents bound what servers report far below this, so that sums cannot overflow.
fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
