//! Letters: mail that a command sends in the name of an agent, to an agent whose id it knows and who is not its parent.
//! All that this takes is known beforehand, so a server is asked once for many of them.

use ikigai_conversation::{AgentId, SessionId};

use crate::agents::agent_by_id;
use crate::error::StoreError;
use crate::mailbox::{mail_id, send};
use crate::steps::{Actor, Address, Outcome};
use crate::unit::Unit;

/// A letter.
#[derive(Debug)]
pub(crate) struct Letter {
    pub(crate) session: SessionId,
    pub(crate) from: AgentId,
    pub(crate) to: AgentId,
    /// Whom the command has named.
    pub(crate) given: String,
    pub(crate) body: String,
}

impl Letter {
    /// Sends it by a unit, which knows all that may be against it.
    pub(crate) fn send(self, unit: &Unit<'_>) -> Result<Outcome, StoreError> {
        let sender = agent_by_id(unit, &self.session, &self.from)?;
        let to = Address::Id(self.to);
        Ok(send(unit, &sender, &to, self.given, &self.body, Actor::Command)?.outcome)
    }

    /// What came of it when it was posted.
    pub(crate) fn sent(self, id: i64) -> Result<Outcome, StoreError> {
        Ok(Outcome::Sent { id: mail_id(id)?, to: self.to })
    }
}
