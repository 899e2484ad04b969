//! What a person has set going: every message of a person is a cause, and whatever agents do for it, by forks
//! and by mail as well, is done under that cause.
//!
//! An agent works for the cause of what it was last told: by a person, by its parent at the fork, or by the
//! newest mail that woke it, which carries the cause that its sender worked for when it was sent. Mail from the
//! person's own hand begins a cause too. Mail that a command sends in the name of an agent counts as the
//! agent's.

use ikigai_conversation::AgentId;

use crate::agents::AgentRow;
use crate::error::StoreError;
use crate::log::task_of;
use crate::sql::params;
use crate::steps::Actor;
use crate::unit::Unit;

/// A person has spoken to an agent.
pub(crate) fn begin(unit: &Unit<'_>, agent: &AgentRow, title: &str) -> Result<(), StoreError> {
    let cause = create(unit, agent.session, title)?;
    unit.run("UPDATE agents SET cause = ?2 WHERE key = ?1", params![agent.key, cause])
}

/// What an agent works for. One that began before there were causes gets one now.
pub(crate) fn of_agent(unit: &Unit<'_>, agent: &AgentRow) -> Result<i64, StoreError> {
    let sql = "SELECT cause, task FROM agents WHERE key = ?1";
    let found = unit.row(sql, params![agent.key], |row| {
        Ok((row.get::<Option<i64>>(0)?, row.get::<String>(1)?))
    })?;
    match found {
        Some((Some(cause), _)) => Ok(cause),
        Some((None, task)) => {
            begin(unit, agent, &task)?;
            of_agent(unit, agent)
        }
        None => Err(StoreError::AgentNotFound(agent.id.clone())),
    }
}

/// What mail is sent for.
pub(crate) fn of_mail(
    unit: &Unit<'_>,
    sender: &AgentRow,
    to: &AgentId,
    body: &str,
    actor: Actor,
) -> Result<Option<i64>, StoreError> {
    match actor {
        Actor::Person(_) => {
            create(unit, sender.session, &format!("mail to {to}: {}", task_of(body))).map(Some)
        }
        Actor::Command | Actor::Model => Ok(sender.cause),
    }
}

/// An agent is told of its new mail, and works for what the newest of it was sent for.
pub(crate) fn take_over_from_mail(unit: &Unit<'_>, agent: &AgentRow) -> Result<(), StoreError> {
    let sql = "UPDATE agents SET cause = coalesce((SELECT cause FROM mail
            WHERE recipient = ?1 AND unread = 1 AND told_by IS NULL AND cause IS NOT NULL
            ORDER BY id DESC LIMIT 1), cause)
        WHERE key = ?1";
    unit.run(sql, params![agent.key])
}

fn create(unit: &Unit<'_>, session: i64, title: &str) -> Result<i64, StoreError> {
    let sql = "INSERT INTO causes (session, title, created_at) VALUES (?1, ?2, ?3) RETURNING key";
    unit.insert(sql, params![session, title, unit.now().as_millis()])
}
