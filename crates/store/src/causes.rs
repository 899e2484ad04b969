//! Causes: every message of the user is a cause, and everything that agents do because of it,
//! including forks and mail, belongs to that cause.
//!
//! An agent works for the cause of its latest input: from the user, from its
//! parent at the fork, or from the latest mail that woke it, which has the
//! cause that its sender worked for. Mail that the user sends starts a cause
//! too. Mail that a command sends on behalf of an agent counts as the agent's.

use ikigai_conversation::Correspondent;

use crate::agents::AgentRow;
use crate::error::StoreError;
use crate::log::task_of;
use crate::mailbox::Mailbox;
use crate::sql::params;
use crate::steps::Actor;
use crate::unit::Unit;

/// The user has sent a message to an agent.
pub(crate) fn start(unit: &Unit<'_>, agent: &AgentRow, title: &str) -> Result<(), StoreError> {
    let cause = create(unit, agent.session, title)?;
    unit.run("UPDATE agents SET cause = ?2 WHERE key = ?1", params![agent.key, cause])
}

/// The cause that an agent works for. An agent from a version without causes gets one now.
pub(crate) fn of_agent(unit: &Unit<'_>, agent: &AgentRow) -> Result<i64, StoreError> {
    let sql = "SELECT cause, task FROM agents WHERE key = ?1";
    let found = unit.row(sql, params![agent.key], |row| {
        Ok((row.get::<Option<i64>>(0)?, row.get::<String>(1)?))
    })?;
    match found {
        Some((Some(cause), _)) => Ok(cause),
        Some((None, task)) => {
            start(unit, agent, &task)?;
            of_agent(unit, agent)
        }
        None => Err(StoreError::AgentNotFound(agent.id.clone())),
    }
}

/// The cause of new mail.
pub(crate) fn of_mail(
    unit: &Unit<'_>,
    sender: &Mailbox,
    to: &Correspondent,
    body: &str,
    actor: Actor,
) -> Result<Option<i64>, StoreError> {
    match actor {
        // The user does nothing because of it.
        Actor::User(_) if *to == Correspondent::User => Ok(None),
        Actor::User(_) => {
            create(unit, sender.session, &format!("mail to {to}: {}", task_of(body))).map(Some)
        }
        Actor::Command | Actor::Model => Ok(sender.cause),
    }
}

/// An agent is notified of new mail, and works for the cause of the latest message.
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
