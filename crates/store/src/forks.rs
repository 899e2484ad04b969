//! Forking: a child, its first messages, and what it inherits by reference.

use ikigai_conversation::{AgentId, Fork, MessageId, NewMessage};

use crate::agents::{AgentLimits, AgentRow, Newcomer, name_refusal, room_refusal, take_name};
use crate::error::StoreError;
use crate::log::{append, message_id, task_of};
use crate::refusal::Refusal;
use crate::sessions;
use crate::sql::params;
use crate::steps::{Actor, Outcome, PerformedStep};
use crate::unit::Unit;

/// What a child inherits of its parent's conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForkContext {
    /// Nothing.
    Fresh,
    /// What its parent sees at this moment, by reference, so the length of the log does not matter.
    /// It ends before the response that asked for the fork, or before the current turn if the fork
    /// was not made by the model.
    Full,
}

/// A child to fork.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFork {
    /// Its task. Without one it is idle.
    pub prompt: Option<String>,
    /// Its name, if any.
    pub name: Option<String>,
    /// What it inherits.
    pub context: ForkContext,
    /// The limits of the session.
    pub limits: AgentLimits,
    /// The prompt for a session that has none yet.
    pub system: Option<String>,
}

/// Forks a child of `parent`, with its `fork` message and its task. With a task it is `waiting`
/// from this commit on, so that a wait right after the fork waits.
pub(crate) fn fork(
    unit: &Unit<'_>,
    parent: &AgentRow,
    fork: &NewFork,
    actor: Actor,
) -> Result<PerformedStep, StoreError> {
    if let Some(refusal) = refusal(unit, parent, fork)? {
        return Ok(PerformedStep::refused(refusal));
    }
    let up_to = match fork.context {
        ForkContext::Fresh => None,
        ForkContext::Full => last_inherited(unit, parent, actor)?,
    };
    let child = create_child(unit, parent, fork, up_to)?;
    append(unit, &child, NewMessage::fork(Fork { parent: parent.id.clone(), up_to }))?;
    if let Some(prompt) = &fork.prompt {
        // A full fork inherits its parent's.
        if up_to.is_none()
            && let Some(system) =
                sessions::system_prompt(unit, parent.session)?.or_else(|| fork.system.clone())
        {
            append(unit, &child, NewMessage::system(system))?;
        }
        let first = append(unit, &child, NewMessage::user(prompt.clone()))?;
        start_turn(unit, &child, first.id)?;
    }
    Ok(PerformedStep::new(Outcome::Forked(child.id)))
}

fn refusal(
    unit: &Unit<'_>,
    parent: &AgentRow,
    fork: &NewFork,
) -> Result<Option<Refusal>, StoreError> {
    if parent.is_dead {
        return Ok(Some(Refusal::Dead(parent.id.clone())));
    }
    if parent.id.depth() >= (fork.limits.depth as usize).min(AgentId::MAX_DEPTH) {
        return Ok(Some(Refusal::TooDeep(fork.limits.depth)));
    }
    let newcomer = match fork.prompt {
        Some(_) => Newcomer::Working,
        None => Newcomer::IdleChild,
    };
    if let Some(refusal) = room_refusal(unit, parent.session, &fork.limits, newcomer)? {
        return Ok(Some(refusal));
    }
    match &fork.name {
        Some(name) => name_refusal(unit, parent.session, name),
        None => Ok(None),
    }
}

fn create_child(
    unit: &Unit<'_>,
    parent: &AgentRow,
    fork: &NewFork,
    up_to: Option<MessageId>,
) -> Result<AgentRow, StoreError> {
    let sql =
        "UPDATE agents SET next_child = next_child + 1 WHERE key = ?1 RETURNING next_child - 1";
    let number = unit
        .row(sql, params![parent.key], |row| row.get(0))?
        .ok_or_else(|| StoreError::AgentNotFound(parent.id.clone()))?;
    let id = parent.id.child(number).map_err(StoreError::internal)?;
    if let Some(name) = &fork.name {
        take_name(unit, parent.session, name)?;
    }
    let task = fork.prompt.as_deref().map(task_of).unwrap_or_default();
    let has_task = fork.prompt.is_some();
    let key = unit.insert(
        "INSERT INTO agents (session, id, name, state, model, machine, directory, task, owes_report,
                inherits, inherits_up_to, created_at, cause)
            SELECT session, ?2, ?3, ?4, model, machine, directory, ?5, ?6, ?7, ?8, ?9, cause
            FROM agents WHERE key = ?1 RETURNING key",
        params![
            parent.key,
            id.to_string(),
            fork.name,
            if has_task { "waiting" } else { "idle" },
            task,
            has_task,
            up_to.map(|_| parent.key),
            up_to.map(MessageId::value),
            unit.now().as_millis(),
        ],
    )?;
    Ok(AgentRow {
        key,
        session: parent.session,
        id,
        is_dead: false,
        unread: 0,
        cause: parent.cause,
    })
}

/// The last message of the parent's own log that a full fork inherits; `None` if there is none.
fn last_inherited(
    unit: &Unit<'_>,
    parent: &AgentRow,
    actor: Actor,
) -> Result<Option<MessageId>, StoreError> {
    let end = match actor {
        Actor::Model => start_of_response(unit, parent)?,
        Actor::Command | Actor::User(_) => {
            let sql = "SELECT turn_start FROM agents WHERE key = ?1 AND in_turn = 1";
            unit.row(sql, params![parent.key], |row| row.get(0))?.flatten()
        }
    };
    let sql = "SELECT max(id) FROM messages WHERE agent = ?1 AND id < ?2";
    let last: Option<i64> =
        unit.row(sql, params![parent.key, end.unwrap_or(i64::MAX)], |row| row.get(0))?.flatten();
    last.map(message_id).transpose()
}

/// The start of the latest response with calls. Only that response is scanned backwards, however
/// long the log is.
fn start_of_response(unit: &Unit<'_>, agent: &AgentRow) -> Result<Option<i64>, StoreError> {
    /// A response has few messages, and one result per call.
    const STRIDE: u32 = 32;
    let sql = "SELECT id, data FROM messages
        WHERE agent = ?1 AND kind = 'tool_call' ORDER BY id DESC LIMIT 1";
    let call =
        unit.row(sql, params![agent.key], |row| Ok((row.get(0)?, response_of(&row.text(1)?))))?;
    let Some((mut start, response)) = call else { return Ok(None) };
    let sql = "SELECT id, CASE WHEN kind IN ('assistant', 'tool_call', 'usage') THEN data END, kind IN ('tool_result', 'approval', 'kill')
        FROM messages WHERE agent = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3";
    let mut before = start;
    loop {
        let found = unit.rows(sql, params![agent.key, before, STRIDE], |row| {
            let data: Option<String> = row.get(1)?;
            Ok((row.get(0)?, data.and_then(|data| response_of(&data)), row.get::<bool>(2)?))
        })?;
        let is_whole = found.len() < STRIDE as usize;
        for (id, of, is_between_calls) in found {
            before = id;
            match of {
                Some(of) if Some(&of) == response.as_ref() => start = id,
                None if is_between_calls => {}
                Some(_) | None => return Ok(Some(start)),
            }
        }
        if is_whole {
            return Ok(Some(start));
        }
    }
}

/// The response that a message belongs to. It is parsed here and not by the database, because the
/// databases handle unusual text differently.
fn response_of(data: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Part {
        response: Option<String>,
    }
    serde_json::from_str::<Part>(data).ok()?.response
}

/// Notes the first message of a turn, unless a turn is in progress.
pub(crate) fn start_turn(
    unit: &Unit<'_>,
    agent: &AgentRow,
    first: MessageId,
) -> Result<(), StoreError> {
    let sql = "UPDATE agents SET in_turn = 1, turn_start = ?2 WHERE key = ?1 AND in_turn = 0";
    unit.run(sql, params![agent.key, first.value()])
}
