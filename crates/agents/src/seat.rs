//! Which agent of which session this process runs, and the lease that allows it to.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ikigai_conversation::{AgentId, SessionId};
use ikigai_store::{
    Budget, ClaimedAgent, Lease, Location, Opening, Outcome, Process, Step, Store, StoreError,
};
use tokio::time::timeout;
use tracing::warn;
use uuid::Uuid;

use crate::keeper::Keeper;

/// An agent that this process runs, or will run from the user's first message on.
///
/// A terminal creates its agent when it opens, so that it can get mail; the store removes the agent
/// if it is never used. For a task without a terminal the first message creates the session.
#[derive(Debug, Clone)]
pub struct Seat {
    pub(crate) store: Arc<Store>,
    /// The process that runs it.
    pub(crate) opening: Arc<Opening>,
    pub(crate) session: SessionId,
    pub(crate) agent: AgentId,
    /// The lease for writing to the logs of its top-level agent and all descendants of that, which
    /// share it. Empty until a new session is created.
    held: Arc<OnceLock<HeldLease>>,
}

/// A lease with its renewal.
#[derive(Debug)]
struct HeldLease {
    lease: Lease,
    keeper: Keeper,
}

/// Which session to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionChoice {
    /// A new session, created by its first message.
    New,
    /// A new session, created at once.
    NewAtOnce,
    /// The session at this location that was last written to.
    Newest,
    /// This session, wherever it was started.
    Named(SessionId),
    /// As an additional agent, a session that a live process runs at this location; otherwise a new
    /// one.
    Running,
    /// This session, as an additional agent.
    Beside(SessionId),
}

/// Why an agent could not be claimed.
#[derive(Debug, thiserror::Error)]
pub enum SeatError {
    /// The location has no session to continue.
    #[error("there is no session in {0} to continue")]
    NoSession(String),
    /// A new session has only one agent.
    #[error("a new session has only agent 0/, not {0}")]
    NotInNewSession(AgentId),
    /// The database refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Seat {
    /// Claims `agent`, or the one that `which` stands for.
    ///
    /// # Errors
    /// [`StoreError::RootReplaced`] if the path of a root was a different folder when the session
    /// last used it.
    pub async fn take(
        store: Arc<Store>,
        opening: Opening,
        which: SessionChoice,
        agent: Option<AgentId>,
    ) -> Result<Seat, SeatError> {
        let (new, here) = (SessionId::new(Uuid::now_v7()), opening.clone());
        let lease = match (which, &agent) {
            (SessionChoice::New, _) => {
                require_first(agent.as_ref())?;
                return Ok(Seat::of_session(store, opening, new, AgentId::top_level(0)));
            }
            (SessionChoice::Running, None) => store.open_running(new, here).await?,
            (
                SessionChoice::NewAtOnce
                | SessionChoice::Running
                | SessionChoice::Newest
                | SessionChoice::Named(_)
                | SessionChoice::Beside(_),
                _,
            ) => match Seat::session_of(&store, &opening.location, which).await? {
                Some(session) => {
                    let claimed = claimed_agent(which, agent.as_ref());
                    store.open_session(session, claimed, here).await?
                }
                None => {
                    require_first(agent.as_ref())?;
                    store.open_new(new, here).await?
                }
            },
        };
        let agent = agent.unwrap_or_else(|| lease.top().clone());
        let seat = Seat::of_session(store, opening, *lease.session(), agent);
        seat.hold(lease)?;
        Ok(seat)
    }

    /// The session to run; `None` for a new one.
    pub async fn session_of(
        store: &Store,
        place: &Location,
        which: SessionChoice,
    ) -> Result<Option<SessionId>, SeatError> {
        Ok(match which {
            SessionChoice::New | SessionChoice::NewAtOnce => None,
            SessionChoice::Named(session) | SessionChoice::Beside(session) => Some(session),
            SessionChoice::Newest => {
                let newest = store.latest_session(place.clone()).await?;
                Some(newest.ok_or_else(|| SeatError::NoSession(place.directory.clone()))?)
            }
            SessionChoice::Running => {
                store.running_session(place.clone(), Process::current()).await?
            }
        })
    }

    fn of_session(store: Arc<Store>, opening: Opening, session: SessionId, agent: AgentId) -> Seat {
        Seat { store, opening: Arc::new(opening), session, agent, held: Arc::default() }
    }

    /// The location of the process.
    pub(crate) fn place(&self) -> Location {
        self.opening.location.clone()
    }

    pub(crate) fn process(&self) -> Process {
        self.opening.process.clone()
    }

    /// The same lease, for another agent below the same top-level one.
    pub(crate) fn of(&self, agent: AgentId) -> Seat {
        Seat { agent, ..self.clone() }
    }

    /// The top-level agent of another lease in the same session.
    pub(crate) fn with_lease(&self, lease: Lease) -> Result<Seat, StoreError> {
        let seat = Seat { agent: lease.top().clone(), held: Arc::default(), ..self.clone() };
        seat.hold(lease).map(|()| seat)
    }

    /// Holds the lease and starts to renew it. Does nothing if a lease is held already.
    pub(crate) fn hold(&self, lease: Lease) -> Result<(), StoreError> {
        if self.held.get().is_none() {
            let keeper = Keeper::start(self.store(), lease.clone())?;
            // If another thread set it first, it is the same lease.
            let _ = self.held.set(HeldLease { lease, keeper });
        }
        Ok(())
    }

    pub(crate) fn lease(&self) -> Option<Lease> {
        self.held.get().map(|held| held.lease.clone())
    }

    /// Waits until the lease is lost, and returns the reason.
    pub(crate) fn lost(&self) -> impl Future<Output = StoreError> + use<> {
        let lost = self.held.get().map(|held| held.keeper.lost());
        async move {
            match lost {
                Some(lost) => lost.await,
                None => std::future::pending().await,
            }
        }
    }

    /// Whether the session exists. A new one is created by its first message.
    pub fn is_made(&self) -> bool {
        self.held.get().is_some()
    }

    /// Performs a step for the user, as `agent`.
    ///
    /// # Errors
    /// When the database refuses; [`StoreError::SessionNotFound`] before a new session is created.
    pub async fn act(
        &self,
        agent: AgentId,
        step: Step,
        budget: Budget,
    ) -> Result<Outcome, StoreError> {
        match self.lease().filter(|lease| *lease.top() == agent.top()) {
            Some(lease) => Ok(self.store.act(lease, agent, step, budget).await?.outcome),
            None => self.store.perform(self.session, agent, step, Some(budget)).await,
        }
    }

    /// Releases the lease. If that fails, the lease expires.
    pub(crate) async fn release(self) {
        const TIMEOUT: Duration = Duration::from_secs(2);
        let Some(held) = self.held.get() else { return };
        held.keeper.stop();
        match timeout(TIMEOUT, self.store.release(held.lease.clone())).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(%error, "lease not given back"),
            Err(_) => warn!("lease not given back in time"),
        }
    }

    /// The database.
    pub fn store(&self) -> Arc<Store> {
        Arc::clone(&self.store)
    }

    /// The session, even if it does not exist yet.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// The agent.
    pub fn agent(&self) -> &AgentId {
        &self.agent
    }
}

/// The agent to claim in an existing session.
fn claimed_agent(which: SessionChoice, agent: Option<&AgentId>) -> ClaimedAgent {
    match (agent, which) {
        (Some(agent), _) => ClaimedAgent::Named(agent.top()),
        (None, SessionChoice::Running | SessionChoice::Beside(_)) => ClaimedAgent::New,
        (None, SessionChoice::Newest | SessionChoice::Named(_)) => ClaimedAgent::Free,
        (None, SessionChoice::New | SessionChoice::NewAtOnce) => ClaimedAgent::Free,
    }
}

/// Refuses an agent that a new session does not have.
fn require_first(agent: Option<&AgentId>) -> Result<(), SeatError> {
    match agent.filter(|agent| **agent != AgentId::top_level(0)) {
        Some(other) => Err(SeatError::NotInNewSession(other.clone())),
        None => Ok(()),
    }
}
