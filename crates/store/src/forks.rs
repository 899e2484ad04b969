//! Forking and killing agents.

use ikigai_conversation::{AgentId, MessageId, NewMessage};
use rusqlite::params;

use crate::agents::{AgentLimits, AgentRow, find_agent, require_name, require_room};
use crate::error::StoreError;
use crate::leases::{Lease, fence};
use crate::log::{append, task_of};
use crate::store::Store;
use crate::unit::Unit;

/// What a child knows of its parent's conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Context {
    /// Nothing.
    Fresh,
    /// All up to this message, by reference: a log of any length is forked in the same time.
    Full(Option<MessageId>),
}

/// A child to be made.
#[derive(Debug, Clone)]
pub struct NewFork {
    /// Its name, if it gets one.
    pub name: Option<String>,
    /// What it inherits.
    pub context: Context,
    /// Its first message; without one it is idle.
    pub prompt: Option<NewMessage>,
    /// What the session allows.
    pub limits: AgentLimits,
}

/// A child that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forked {
    /// The child's id.
    pub agent: AgentId,
}

impl Store {
    /// Makes a child of `parent`, with its `fork` message (made by `render` from its id) and its prompt. It
    /// is `waiting` from this commit on when it has one, so that a wait right after it does wait.
    pub async fn fork(
        &self,
        lease: Lease,
        parent: AgentId,
        fork: NewFork,
        render: impl FnOnce(&AgentId) -> NewMessage + Send + 'static,
    ) -> Result<Forked, StoreError> {
        self.commit(move |unit| {
            let parent = fence(unit, &lease, &parent)?;
            let child = create_child(unit, &parent, &fork)?;
            append(unit, &child, render(&child.id))?;
            if let Some(prompt) = fork.prompt {
                append(unit, &child, prompt)?;
            }
            Ok(Forked { agent: child.id })
        })
        .await
    }

    /// Kills an agent and its descendants, and says so in the killer's log: nobody writes to their logs from
    /// this commit on, and they get no mail (mail.md, M9). Returns the dead, children first.
    pub async fn kill(
        &self,
        lease: Lease,
        killer: AgentId,
        victim: AgentId,
        render: impl FnOnce(&[AgentId]) -> NewMessage + Send + 'static,
    ) -> Result<Vec<AgentId>, StoreError> {
        self.commit(move |unit| {
            let killer = fence(unit, &lease, &killer)?;
            let dead = kill(unit, killer.session, &victim)?;
            append(unit, &killer, render(&dead))?;
            Ok(dead)
        })
        .await
    }
}

fn create_child(
    unit: &Unit<'_>,
    parent: &AgentRow,
    fork: &NewFork,
) -> Result<AgentRow, StoreError> {
    fork.name.as_deref().map_or(Ok(()), require_name)?;
    require_room(unit, parent.session, &fork.limits)?;
    if parent.id.depth() >= fork.limits.depth as usize {
        let text = format!("Maximum agent depth ({}) exceeded", fork.limits.depth);
        return Err(StoreError::Limit(text));
    }
    let sql =
        "UPDATE agents SET next_child = next_child + 1 WHERE key = ?1 RETURNING next_child - 1";
    let number = unit
        .row(sql, [parent.key], |row| row.get(0))?
        .ok_or_else(|| StoreError::AgentNotFound(parent.id.clone()))?;
    let id = parent.id.child(number).map_err(StoreError::internal)?;
    let (inherits, up_to) = match fork.context {
        Context::Fresh => (None, None),
        Context::Full(up_to) => (Some(parent.key), up_to.map(MessageId::value)),
    };
    let prompt = fork.prompt.as_ref().map(|prompt| prompt.content.as_str());
    let task = prompt.map(task_of).unwrap_or_default();
    let state = if prompt.is_some() { "waiting" } else { "idle" };
    let key = unit.insert(
        "INSERT INTO agents (session, id, name, state, model, machine, directory, task, owes_report,
                inherits, inherits_up_to, created_at, cause)
            SELECT session, ?2, ?3, ?4, model, machine, directory, ?5, ?6, ?7, ?8, ?9, cause
            FROM agents WHERE key = ?1",
        params![
            parent.key,
            id.to_string(),
            fork.name,
            state,
            task,
            prompt.is_some(),
            inherits,
            up_to,
            unit.now().as_millis(),
        ],
    )?;
    Ok(AgentRow { key, session: parent.session, id, is_dead: false, unread: 0 })
}

/// Marks an agent and its descendants dead. Deeper ones first, so that a list of them reads as it happened.
fn kill(unit: &Unit<'_>, session: i64, victim: &AgentId) -> Result<Vec<AgentId>, StoreError> {
    match find_agent(unit, session, victim)? {
        None => return Err(StoreError::AgentNotFound(victim.clone())),
        Some(agent) if agent.is_dead => return Err(StoreError::AgentDead(victim.clone())),
        Some(_) => {}
    }
    // Ids are digits and slashes, so a pattern made of one has nothing special in it.
    let sql = "UPDATE agents SET state = 'dead', notification_pending = 0
        WHERE session = ?1 AND id LIKE ?2 || '%' AND state <> 'dead' RETURNING id";
    let ids: Vec<String> =
        unit.rows(sql, params![session, victim.to_string()], |row| row.get(0))?;
    let mut dead =
        ids.iter().map(|id| crate::sessions::parse_agent(id)).collect::<Result<Vec<_>, _>>()?;
    dead.sort_by(|a, b| b.depth().cmp(&a.depth()).then_with(|| a.cmp(b)));
    Ok(dead)
}
