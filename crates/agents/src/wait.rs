//! Waiting for other agents: start, poll until the wait is over, end. It makes no requests.

use std::time::Duration;

use ikigai_conversation::{AgentId, NewMessage, SessionId};
use ikigai_store::{Changes, Next, Outcome, Requests, StartedWait, Step, Store, StoreError, Wait};
use tokio::time::{Instant, timeout_at};

use crate::agent::Agent;

/// Waits until a wait is over, but at most for `limit`.
///
/// # Errors
/// When the database refuses.
///
/// # Cancel safety
/// Safe: it only reads.
pub async fn until_over(
    store: &Store,
    session: SessionId,
    waiter: &AgentId,
    waiting: &StartedWait,
    limit: Duration,
) -> Result<(), StoreError> {
    let polling = async {
        // Before the first query, so that no later change is missed.
        let mut changes = store.changes(session)?;
        loop {
            match store.wait_is_over(session, waiter.clone(), waiting.clone()).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                // Continue when the database is back.
                Err(error) if error.is_transient() => {}
                Err(error) => return Err(error),
            }
            changes.wait(Changes::SWEEP).await?;
        }
    };
    // A wait that reaches its limit is not an error; its result has the states of the others.
    timeout_at(Instant::now() + limit, polling).await.unwrap_or(Ok(()))
}

impl Agent {
    /// Runs a call of `wait` and commits its result.
    pub(crate) async fn run_wait(
        &mut self,
        wait: Wait,
        render: impl Fn(&Outcome) -> NewMessage + Clone + Send + 'static,
        next: Next,
    ) -> Result<Requests, StoreError> {
        let limit = wait.limit;
        let waiting = match self.start_wait(wait).await? {
            Ok(waiting) => waiting,
            Err(refusal) => {
                return self.record(vec![render(&Outcome::Refused(refusal))], next).await;
            }
        };
        let (store, session) = (self.seat.store(), self.seat.session());
        let over = until_over(&store, session, self.id(), &waiting, limit);
        let step = match self.interrupt.run_until_cancelled(over).await {
            Some(Ok(())) => Step::EndWait(waiting),
            // Ending the wait finds out whether the database is back.
            Some(Err(error)) if error.is_transient() => Step::EndWait(waiting),
            Some(Err(error)) => return Err(error),
            None => Step::AbandonWait,
        };
        self.record_step(step, render, next).await
    }
}
