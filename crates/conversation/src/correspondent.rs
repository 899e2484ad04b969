//! Who sends and gets mail.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::agent_id::AgentId;
use crate::error::IdError;

/// The user or an agent, as the sender or recipient of mail and as the owner of a mailbox.
///
/// ```
/// use ikigai_conversation::{AgentId, Correspondent};
///
/// assert_eq!(Correspondent::parse("user")?, Correspondent::User);
/// assert_eq!(Correspondent::parse("0/")?, AgentId::top_level(0).into());
/// assert!(Correspondent::parse("reviewer").is_err());
/// # Ok::<(), ikigai_conversation::IdError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Correspondent {
    /// The user of the session.
    User,
    /// An agent of the session.
    Agent(AgentId),
}

impl Correspondent {
    /// The address of the user.
    pub const USER: &str = "user";

    /// Parses the displayed form.
    ///
    /// # Errors
    /// When it is neither `user` nor an agent's ID.
    pub fn parse(text: &str) -> Result<Correspondent, IdError> {
        match text {
            Correspondent::USER => Ok(Correspondent::User),
            id => AgentId::parse(id).map(Correspondent::Agent),
        }
    }

    /// The agent, if it is one.
    pub fn agent(&self) -> Option<&AgentId> {
        match self {
            Correspondent::User => None,
            Correspondent::Agent(agent) => Some(agent),
        }
    }
}

impl From<AgentId> for Correspondent {
    fn from(agent: AgentId) -> Correspondent {
        Correspondent::Agent(agent)
    }
}

impl fmt::Display for Correspondent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Correspondent::User => f.write_str(Correspondent::USER),
            Correspondent::Agent(agent) => agent.fmt(f),
        }
    }
}

impl Serialize for Correspondent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
