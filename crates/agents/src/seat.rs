//! Which agent of which session this process runs, and its right to do so.

use std::sync::Arc;

use ikigai_conversation::{AgentId, SessionId};
use ikigai_store::{AgentLimits, Lease, Place, Process, Store, StoreError};
use uuid::Uuid;

/// A place at the table: an agent that this process runs, or will run once somebody has spoken.
///
/// A session is only made with its first message, so that looking in leaves nothing behind.
#[derive(Debug)]
pub struct Seat {
    pub(crate) store: Arc<Store>,
    pub(crate) process: Process,
    pub(crate) place: Place,
    pub(crate) session: SessionId,
    pub(crate) agent: AgentId,
    /// `None` until a new session is made.
    pub(crate) lease: Option<Lease>,
}

/// Which session is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// A new one.
    New,
    /// The one of this place that was last written to.
    Newest,
    /// This one, wherever it belongs.
    Named(SessionId),
    /// One that a live process runs in this place, as a further agent; else a new one.
    Running,
}

/// Why there is no seat.
#[derive(Debug, thiserror::Error)]
pub enum SeatError {
    /// The place has no session to go on with.
    #[error("there is no session in {0} to continue")]
    NoSession(String),
    /// A new session has only one agent.
    #[error("a new session has only agent 0/, not {0}")]
    NotInNewSession(AgentId),
    /// The database says no.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Seat {
    /// Takes a seat: the agent that is named, else the lowest free one (agents.md, Several processes).
    pub async fn take(
        store: Arc<Store>,
        place: Place,
        which: Which,
        agent: Option<AgentId>,
        limits: AgentLimits,
    ) -> Result<Seat, SeatError> {
        let process = Process::current();
        let session = match which {
            Which::New => None,
            Which::Named(session) => Some(session),
            Which::Newest => {
                let newest = store.newest_session(place.clone()).await?;
                Some(newest.ok_or_else(|| SeatError::NoSession(place.directory.clone()))?)
            }
            Which::Running => store.running_session(place.clone(), process.clone()).await?,
        };
        let Some(session) = session else {
            return Seat::in_new_session(store, process, place, agent);
        };
        let lease = match &agent {
            Some(agent) => store.claim(session, agent.top(), process.clone()).await?,
            None if which == Which::Running => {
                store.claim_new(session, place.clone(), process.clone(), limits).await?
            }
            None => store.claim_free(session, place.clone(), process.clone(), limits).await?,
        };
        let agent = agent.unwrap_or_else(|| lease.top().clone());
        Ok(Seat { store, process, place, session, agent, lease: Some(lease) })
    }

    fn in_new_session(
        store: Arc<Store>,
        process: Process,
        place: Place,
        agent: Option<AgentId>,
    ) -> Result<Seat, SeatError> {
        let first = AgentId::top_level(0);
        if let Some(other) = agent.filter(|agent| *agent != first) {
            return Err(SeatError::NotInNewSession(other));
        }
        let session = SessionId::new(Uuid::now_v7());
        Ok(Seat { store, process, place, session, agent: first, lease: None })
    }

    /// The database it is in.
    pub fn store(&self) -> Arc<Store> {
        Arc::clone(&self.store)
    }

    /// The session, also one that is still to be made.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// The agent.
    pub fn agent(&self) -> &AgentId {
        &self.agent
    }
}
