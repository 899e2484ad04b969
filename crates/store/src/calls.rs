//! Tool calls: committed before they run, closed together with what they did to the database.

use ikigai_conversation::{AgentId, Message, MessageId, NewMessage};
use uuid::Uuid;

use crate::agents::AgentRow;
use crate::error::StoreError;
use crate::leases::{Lease, fence};
use crate::log::{self, Next, Recorded, append, append_all};
use crate::sql::params;
use crate::steps::{Actor, Outcome, Step, perform};
use crate::store::Store;
use crate::unit::Unit;

impl Store {
    /// Closes a call in one commit: the step's effect on mail and agents, and the result that `render` makes of its
    /// outcome (an id or a "not found" is only known in here). The log says sent, read, forked or killed if and
    /// only if it is so (mail.md, M2 and M3). Refused when the lease is lost.
    pub async fn close_call(
        &self,
        lease: Lease,
        agent: AgentId,
        step: Step,
        render: impl FnOnce(&Outcome) -> NewMessage + Send + 'static,
        next: Next,
    ) -> Result<Recorded, StoreError> {
        self.commit(lease.scope(), move |unit| {
            let agent = fence(unit, &lease, &agent)?;
            let messages = close(unit, &agent, step, render)?;
            Ok(Recorded { messages, requests: next.note(unit, &agent)? })
        })
        .await
    }

    /// Like [`close_call`](Store::close_call), for a unit that may be sent twice because the answer to the
    /// first was lost: with the same key it happens once, and the second is answered as the first was
    /// (mail.md, M11).
    pub async fn close_call_once(
        &self,
        key: UnitKey,
        lease: Lease,
        agent: AgentId,
        step: Step,
        render: impl FnOnce(&Outcome) -> NewMessage + Send + 'static,
    ) -> Result<Message, StoreError> {
        self.commit(lease.scope(), move |unit| {
            if let Some(message) = outcome_of(unit, &key)? {
                return log::message(unit, message);
            }
            let agent = fence(unit, &lease, &agent)?;
            let mut messages = close(unit, &agent, step, render)?;
            let result = messages.swap_remove(0);
            note_outcome(unit, &key, result.id)?;
            Ok(result)
        })
        .await
    }
}

/// The name of a unit of work, made by whoever wants it done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitKey(Uuid);

impl UnitKey {
    /// A key like no other.
    pub fn new() -> UnitKey {
        UnitKey(Uuid::now_v7())
    }
}

impl Default for UnitKey {
    fn default() -> UnitKey {
        UnitKey::new()
    }
}

fn outcome_of(unit: &Unit<'_>, key: &UnitKey) -> Result<Option<i64>, StoreError> {
    unit.row("SELECT outcome FROM units WHERE key = ?1", params![key.0.to_string()], |row| {
        row.get(0)
    })
}

fn note_outcome(unit: &Unit<'_>, key: &UnitKey, message: MessageId) -> Result<(), StoreError> {
    // Nobody repeats a unit after an hour.
    let forgotten = unit.now().as_millis() - 3_600_000;
    unit.run("DELETE FROM units WHERE created_at < ?1", params![forgotten])?;
    let sql = "INSERT INTO units (key, outcome, created_at) VALUES (?1, ?2, ?3)";
    let params = params![key.0.to_string(), message.value(), unit.now().as_millis()];
    unit.run(sql, params)
}

/// The result, and behind it what the log says of the step besides.
fn close(
    unit: &Unit<'_>,
    agent: &AgentRow,
    step: Step,
    render: impl FnOnce(&Outcome) -> NewMessage,
) -> Result<Vec<Message>, StoreError> {
    let done = perform(unit, agent, step, Actor::Model)?;
    let result = append(unit, agent, render(&done.outcome))?;
    done.trace_to(unit, result.id)?;
    let mut messages = vec![result];
    messages.extend(append_all(unit, agent, done.notes)?);
    Ok(messages)
}
