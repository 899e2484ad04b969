//! Letters: mail that a command sends on behalf of an agent to a recipient whose id is known.
//! Everything about them is known in advance, so a server can take many in one round trip.

use ikigai_conversation::{AgentId, SessionId};

use crate::agents::agent_by_id;
use crate::error::StoreError;
use crate::mailbox::{Mailbox, mail_id, send};
use crate::steps::{Actor, AgentAddress, MailAddress, Outcome};
use crate::unit::Unit;

/// Mail to send.
#[derive(Debug)]
pub(crate) struct Letter {
    pub(crate) session: SessionId,
    pub(crate) from: AgentId,
    pub(crate) to: AgentId,
    /// The recipient as the command named it.
    pub(crate) given: String,
    pub(crate) body: String,
}

impl Letter {
    /// Whether a letter covers everything that such mail does. Mail to the parent also settles the
    /// report that a child owes, so it does not.
    pub(crate) fn is_all(from: &AgentId, to: &AgentId) -> bool {
        from.parent().as_ref() != Some(to)
    }

    /// Sends it as a unit, which checks everything that can prevent that.
    pub(crate) fn send(self, unit: &Unit<'_>) -> Result<Outcome, StoreError> {
        let sender = agent_by_id(unit, &self.session, &self.from)?;
        let to = MailAddress::Agent(AgentAddress::Id(self.to));
        Ok(send(unit, &Mailbox::of(&sender), &to, self.given, &self.body, Actor::Command)?.outcome)
    }

    /// The outcome if it was posted.
    pub(crate) fn sent(self, id: i64) -> Result<Outcome, StoreError> {
        Ok(Outcome::Sent { id: mail_id(id)?, to: self.to.into() })
    }
}
