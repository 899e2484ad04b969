//! Limits on what may be spent. Agents stop at their next request once a limit is reached, and the
//! user can grant the same amount once more.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use ikigai_protocol::{EventKind, render_exact_dollars};
use ikigai_store::{Spent, StoreError};

use crate::agent::{Agent, Model};

/// What may be spent, in micro-dollars. `None` means any amount.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CostLimits {
    /// For a message of the user, by all agents.
    pub message: Option<u64>,
    /// In a session.
    pub session: Option<u64>,
}

/// The limits of a process, with what the user granted beyond them. Another process asks again.
#[derive(Debug, Default)]
pub struct Costs {
    limits: CostLimits,
    grants: Mutex<Grants>,
    is_warned: AtomicBool,
}

#[derive(Debug, Default)]
struct Grants {
    /// How often the amount was granted again, by message.
    messages: BTreeMap<i64, u64>,
    session: u64,
}

impl Costs {
    /// These limits, with nothing granted beyond them.
    pub fn new(limits: CostLimits) -> Costs {
        Costs { limits, ..Costs::default() }
    }

    /// The reached limit as an error for the user; `None` if more may be spent.
    fn reached(&self, spent: Spent) -> Option<String> {
        let (message, session) = self.allowed(spent);
        if let Some(limit) = message.filter(|limit| spent.message >= *limit) {
            return Some(format!("Cost limit reached ({})", render_exact_dollars(limit)));
        }
        let limit = session.filter(|limit| spent.session >= *limit)?;
        Some(format!("Session cost limit reached ({})", render_exact_dollars(limit)))
    }

    /// Grants the amount of each reached limit once more.
    fn grant(&self, spent: Spent) {
        let (message, session) = self.allowed(spent);
        let mut grants = self.grants.lock().unwrap_or_else(PoisonError::into_inner);
        if message.is_some_and(|limit| spent.message >= limit) {
            *grants.messages.entry(spent.cause).or_default() += 1;
        }
        if session.is_some_and(|limit| spent.session >= limit) {
            grants.session += 1;
        }
    }

    /// The limits with what was granted beyond them.
    fn allowed(&self, spent: Spent) -> (Option<u64>, Option<u64>) {
        let grants = self.grants.lock().unwrap_or_else(PoisonError::into_inner);
        let granted = grants.messages.get(&spent.cause).copied().unwrap_or(0);
        let times = |limit: Option<u64>, granted: u64| {
            limit.map(|limit| limit.saturating_mul(granted.saturating_add(1)))
        };
        (times(self.limits.message, granted), times(self.limits.session, grants.session))
    }

    fn are_limited(&self) -> bool {
        self.limits != CostLimits::default()
    }
}

impl Agent {
    /// Why the agent may make no further request; `None` if it may.
    pub(crate) async fn cost_limit_reached(&mut self) -> Result<Option<String>, StoreError> {
        let setup = self.setup();
        if !setup.costs.are_limited() {
            return Ok(None);
        }
        let spent = self.spent().await?;
        Ok(setup.costs.reached(spent))
    }

    /// The user continues a turn that may have stopped at a limit.
    pub(crate) async fn grant_costs(&mut self) -> Result<(), StoreError> {
        let setup = self.setup();
        if setup.costs.are_limited() {
            let spent = self.spent().await?;
            setup.costs.grant(spent);
        }
        Ok(())
    }

    /// Warns the user, once, that a limit cannot be kept because a model has no price.
    pub(crate) fn warn_without_price(&self, model: &Model) {
        let costs = &self.setup().costs;
        if costs.are_limited()
            && model.facts.now().prices.is_none()
            && !costs.is_warned.swap(true, Ordering::Relaxed)
        {
            let label = &model.label;
            self.emit(EventKind::Warning(format!(
                "The cost limit cannot be kept: the price of {label} is not known. Set it in your configuration: [models.\"{label}\"]"
            )));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(cause: i64, message: u64, session: u64) -> Spent {
        Spent { cause, message, session }
    }

    #[test]
    fn a_limit_is_reached_by_the_amount_itself() {
        let costs = Costs::new(CostLimits { message: Some(2_000_000), session: Some(5_000_000) });
        assert_eq!(costs.reached(spent(1, 1_999_999, 4_999_999)), None);
        let message = Some("Cost limit reached ($2.00)".to_owned());
        assert_eq!(costs.reached(spent(1, 2_000_000, 9_000_000)), message);
        let session = Some("Session cost limit reached ($5.00)".to_owned());
        assert_eq!(costs.reached(spent(1, 0, 5_000_000)), session);
        assert_eq!(Costs::default().reached(spent(1, u64::MAX, u64::MAX)), None);
    }

    #[test]
    fn a_grant_is_the_same_amount_once_more_for_that_message() {
        let costs = Costs::new(CostLimits { message: Some(5_000), session: None });
        costs.grant(spent(1, 4_999, 0));
        assert!(costs.reached(spent(1, 5_000, 0)).is_some(), "nothing was reached to be granted");
        costs.grant(spent(1, 6_000, 0));
        assert_eq!(costs.reached(spent(1, 9_999, 0)), None);
        assert_eq!(costs.reached(spent(1, 10_000, 0)).unwrap(), "Cost limit reached ($0.01)");
        assert_eq!(costs.reached(spent(2, 5_000, 0)).unwrap(), "Cost limit reached ($0.005)");
    }
}
