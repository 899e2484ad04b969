//! Tool calls: committed before they run, and closed together with their changes to the database.

use ikigai_conversation::{AgentId, Message, NewMessage};

use crate::agents::AgentRow;
use crate::error::StoreError;
use crate::leases::{Lease, fence};
use crate::log::{AppendOutcome, Next, append, append_all};
use crate::steps::{Actor, Outcome, Step, perform};
use crate::store::Store;
use crate::unit::Unit;

impl Store {
    /// Closes a call in one commit: the step's effect on mail and agents, and the result that
    /// `render` makes from its outcome (an id or a "not found" is only known here). The log says
    /// sent, read, forked or killed if and only if that happened (M2 and M3). Refused if the lease
    /// is lost.
    pub async fn close_call(
        &self,
        lease: Lease,
        agent: AgentId,
        step: Step,
        render: impl FnOnce(&Outcome) -> NewMessage + Send + 'static,
        next: Next,
    ) -> Result<AppendOutcome, StoreError> {
        self.commit(lease.scope(), move |unit| {
            let agent = fence(unit, &lease, &agent)?;
            let messages = close(unit, &agent, step, render)?;
            next.note_after(unit, &agent, messages)
        })
        .await
    }
}

/// The result, followed by further messages about the step.
fn close(
    unit: &Unit<'_>,
    agent: &AgentRow,
    step: Step,
    render: impl FnOnce(&Outcome) -> NewMessage,
) -> Result<Vec<Message>, StoreError> {
    let done = perform(unit, agent, step, Actor::Model)?;
    let result = append(unit, agent, render(&done.outcome))?;
    done.trace_to(unit, agent, result.id)?;
    let mut messages = vec![result];
    messages.extend(append_all(unit, agent, done.notes)?);
    Ok(messages)
}
