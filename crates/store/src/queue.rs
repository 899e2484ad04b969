//! User input while the agent is at work. It is kept until the agent reaches a boundary.

use ikigai_conversation::{AgentId, NewMessage};

use crate::agents::AgentRow;
use crate::error::StoreError;
use crate::leases::{Lease, fence};
use crate::log::{AppendOutcome, Input, Requests};
use crate::sessions::{self, Budget};
use crate::sql::params;
use crate::store::Store;
use crate::unit::Unit;

/// The limit of the queue: far more than a user types, and a bound for programs that send input.
const QUEUE_LIMIT: u32 = 1_000;

impl Store {
    /// Queues user input for the agent's next boundary.
    ///
    /// # Errors
    /// [`StoreError::Limit`] if the queue is full.
    pub async fn queue_input(
        &self,
        lease: Lease,
        agent: AgentId,
        text: String,
    ) -> Result<(), StoreError> {
        self.commit(lease.scope(), move |unit| {
            let agent = fence(unit, &lease, &agent)?;
            let sql = "SELECT count(*) FROM queued_inputs WHERE agent = ?1";
            let waiting: u32 = unit.row(sql, params![agent.key], |row| row.get(0))?.unwrap_or(0);
            if waiting >= QUEUE_LIMIT {
                let text = format!("Too many queued messages for agent {} ({waiting})", agent.id);
                return Err(StoreError::Limit(text));
            }
            let sql = "INSERT INTO queued_inputs (agent, content, created_at) VALUES (?1, ?2, ?3)";
            unit.run(sql, params![agent.key, text, unit.now().as_millis()])?;
            unit.touch(agent.session);
            Ok(())
        })
        .await
    }

    /// Moves queued input to the log as user messages. `None` if the queue is empty.
    pub async fn append_queued(
        &self,
        lease: Lease,
        agent: AgentId,
        budget: Budget,
        model: String,
    ) -> Result<Option<AppendOutcome>, StoreError> {
        self.commit(lease.scope(), move |unit| {
            let agent = fence(unit, &lease, &agent)?;
            let messages = take_queued(unit, &agent)?;
            if messages.is_empty() {
                return Ok(None);
            }
            Input { messages, budget, model }.append(unit, &agent).map(Some)
        })
        .await
    }

    /// Removes the last message from the queue. `None` if the queue is empty.
    pub async fn unqueue_input(
        &self,
        lease: Lease,
        agent: AgentId,
    ) -> Result<Option<String>, StoreError> {
        self.commit(lease.scope(), move |unit| {
            let agent = fence(unit, &lease, &agent)?;
            let sql = "SELECT id, content FROM queued_inputs WHERE agent = ?1
                ORDER BY id DESC LIMIT 1";
            let last = unit.row(sql, params![agent.key], |row| {
                Ok((row.get::<i64>(0)?, row.get::<String>(1)?))
            })?;
            let Some((id, text)) = last else { return Ok(None) };
            unit.run("DELETE FROM queued_inputs WHERE id = ?1", params![id])?;
            Ok(Some(text))
        })
        .await
    }

    /// Notes that an agent resumes a stopped turn, and that a request follows. A budget means that
    /// the user resumes it.
    pub async fn resume(
        &self,
        lease: Lease,
        agent: AgentId,
        refill: Option<Budget>,
    ) -> Result<Requests, StoreError> {
        self.commit(lease.scope(), move |unit| {
            let agent = fence(unit, &lease, &agent)?;
            if let Some(budget) = refill {
                sessions::refill(unit, agent.session, budget)?;
                unit.run("UPDATE agents SET mail_held = 0 WHERE key = ?1", params![agent.key])?;
            }
            unit.run("UPDATE agents SET in_turn = 1 WHERE key = ?1", params![agent.key])?;
            crate::log::Next::Request.note(unit, &agent)
        })
        .await
    }
}

fn take_queued(unit: &Unit<'_>, agent: &AgentRow) -> Result<Vec<NewMessage>, StoreError> {
    let sql = "SELECT content FROM queued_inputs WHERE agent = ?1 ORDER BY id";
    let texts: Vec<String> = unit.rows(sql, params![agent.key], |row| row.get(0))?;
    if !texts.is_empty() {
        unit.run("DELETE FROM queued_inputs WHERE agent = ?1", params![agent.key])?;
    }
    Ok(texts.into_iter().map(NewMessage::user).collect())
}
