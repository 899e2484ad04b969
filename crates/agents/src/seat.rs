//! Which agent of which session this process runs, and the lease that allows it to.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ikigai_conversation::{AgentId, SessionId};
use ikigai_store::{
    AgentLimits, Budget, Lease, Location, Outcome, Process, RootFolder, Step, Store, StoreError,
};
use tokio::time::{sleep, timeout};
use tracing::warn;
use uuid::Uuid;

use crate::keeper::Keeper;

/// An agent that this process runs, or will run from the user's first message on.
///
/// A session is created by its first message, so that just starting the program leaves nothing
/// behind.
#[derive(Debug, Clone)]
pub struct Seat {
    pub(crate) store: Arc<Store>,
    pub(crate) process: Process,
    pub(crate) place: Location,
    /// The folders that its agents can write.
    pub(crate) roots: Arc<[RootFolder]>,
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
    /// A new session.
    New,
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
    /// Claims `agent`, or the lowest free one. Its agents will be able to write to `roots`.
    ///
    /// # Errors
    /// [`StoreError::RootReplaced`] if the path of a root was a different folder when the session
    /// last used it.
    pub async fn take(
        store: Arc<Store>,
        place: Location,
        roots: Arc<[RootFolder]>,
        which: SessionChoice,
        agent: Option<AgentId>,
        limits: AgentLimits,
    ) -> Result<Seat, SeatError> {
        let process = Process::current();
        let Some(session) = Seat::session_of(&store, &place, which).await? else {
            return Seat::in_new_session(store, process, place, roots, agent);
        };
        store.keep_roots(session, process.clone(), roots.to_vec()).await?;
        let lease = match (&agent, which) {
            (Some(agent), _) => store.claim(session, agent.top(), process.clone()).await?,
            (None, SessionChoice::Running | SessionChoice::Beside(_)) => {
                store.claim_new(session, place.clone(), process.clone(), limits).await?
            }
            (None, SessionChoice::New | SessionChoice::Newest | SessionChoice::Named(_)) => {
                store.claim_free(session, place.clone(), process.clone(), limits).await?
            }
        };
        let agent = agent.unwrap_or_else(|| lease.top().clone());
        let seat = Seat { store, process, place, roots, session, agent, held: Arc::default() };
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
            SessionChoice::New => None,
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

    fn in_new_session(
        store: Arc<Store>,
        process: Process,
        place: Location,
        roots: Arc<[RootFolder]>,
        agent: Option<AgentId>,
    ) -> Result<Seat, SeatError> {
        let first = AgentId::top_level(0);
        if let Some(other) = agent.filter(|agent| *agent != first) {
            return Err(SeatError::NotInNewSession(other));
        }
        let session = SessionId::new(Uuid::now_v7());
        Ok(Seat { store, process, place, roots, session, agent: first, held: Arc::default() })
    }

    /// The location of the process.
    pub(crate) fn place(&self) -> Location {
        self.place.clone()
    }

    pub(crate) fn process(&self) -> Process {
        self.process.clone()
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

    /// Waits until another process runs a session at this location while this one does not exist
    /// yet, and returns that session.
    pub async fn overtaken(&self) -> SessionId {
        /// The time between two checks. A user who opens a second terminal takes longer to type.
        const PAUSE: Duration = Duration::from_secs(1);
        while !self.is_made() {
            // If the database is unreachable, the user's first message will report that.
            if let Ok(Some(other)) = self.store.running_session(self.place(), self.process()).await
                && other != self.session
                && !self.is_made()
            {
                return other;
            }
            sleep(PAUSE).await;
        }
        std::future::pending().await
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
