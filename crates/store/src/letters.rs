//! Letters: mail that a command sends in the name of an agent, to an agent whose id it knows. All that this takes is known
//! beforehand, so a server is asked once for many of them.

use ikigai_conversation::{AgentId, SessionId};

use crate::agents::agent_by_id;
use crate::error::StoreError;
use crate::mailbox::{mail_id, send};
use crate::steps::{Actor, Address, Outcome};
use crate::unit::Unit;

/// Mail that is still to be sent.
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
    /// Whether a letter is all that such mail is. With mail to its parent a child also pays the report that it owes.
    pub(crate) fn is_all(from: &AgentId, to: &AgentId) -> bool {
        from.parent().as_ref() != Some(to)
    }

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
