//! Which agent of which session this process runs, and its right to do so.

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

/// A place at the table: an agent that this process runs, or will run once somebody has spoken.
///
/// A session is only made with its first message, so that looking in leaves nothing behind.
#[derive(Debug, Clone)]
pub struct Seat {
    pub(crate) store: Arc<Store>,
    pub(crate) process: Process,
    pub(crate) place: Location,
    /// The folders that its agents can write.
    pub(crate) roots: Arc<[RootFolder]>,
    pub(crate) session: SessionId,
    pub(crate) agent: AgentId,
    /// The right to write to the logs of its top-level agent and of all below; empty until a new session is
    /// made. All who sit below the same top-level agent share it.
    tenure: Arc<OnceLock<Tenure>>,
}

/// A lease, and what makes it last.
#[derive(Debug)]
struct Tenure {
    lease: Lease,
    keeper: Keeper,
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
    /// This one, as a further agent.
    Beside(SessionId),
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
    /// Takes a seat: the agent that is named, else the lowest free one. Its agents will be able to write `roots`.
    ///
    /// # Errors
    /// [`StoreError::RootReplaced`] when the session knows another folder under the path of one of them.
    pub async fn take(
        store: Arc<Store>,
        place: Location,
        roots: Arc<[RootFolder]>,
        which: Which,
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
            (None, Which::Running | Which::Beside(_)) => {
                store.claim_new(session, place.clone(), process.clone(), limits).await?
            }
            (None, Which::New | Which::Newest | Which::Named(_)) => {
                store.claim_free(session, place.clone(), process.clone(), limits).await?
            }
        };
        let agent = agent.unwrap_or_else(|| lease.top().clone());
        let seat = Seat { store, process, place, roots, session, agent, tenure: Arc::default() };
        seat.hold(lease)?;
        Ok(seat)
    }

    /// The session that is wanted; `None` when it is a new one.
    pub async fn session_of(
        store: &Store,
        place: &Location,
        which: Which,
    ) -> Result<Option<SessionId>, SeatError> {
        Ok(match which {
            Which::New => None,
            Which::Named(session) | Which::Beside(session) => Some(session),
            Which::Newest => {
                let newest = store.latest_session(place.clone()).await?;
                Some(newest.ok_or_else(|| SeatError::NoSession(place.directory.clone()))?)
            }
            Which::Running => store.running_session(place.clone(), Process::current()).await?,
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
        Ok(Seat { store, process, place, roots, session, agent: first, tenure: Arc::default() })
    }

    /// Where it is.
    pub(crate) fn place(&self) -> Location {
        self.place.clone()
    }

    pub(crate) fn process(&self) -> Process {
        self.process.clone()
    }

    /// The same right for another agent below the same top-level one.
    pub(crate) fn of(&self, agent: AgentId) -> Seat {
        Seat { agent, ..self.clone() }
    }

    /// A seat beside this one, under a lease of its own.
    pub(crate) fn beside(&self, lease: Lease) -> Result<Seat, StoreError> {
        let seat = Seat { agent: lease.top().clone(), tenure: Arc::default(), ..self.clone() };
        seat.hold(lease).map(|()| seat)
    }

    /// Takes the lease and makes it last from now on. It is taken once.
    pub(crate) fn hold(&self, lease: Lease) -> Result<(), StoreError> {
        if self.tenure.get().is_none() {
            let keeper = Keeper::start(self.store(), lease.clone())?;
            // Whoever was first has the same lease.
            let _ = self.tenure.set(Tenure { lease, keeper });
        }
        Ok(())
    }

    pub(crate) fn lease(&self) -> Option<Lease> {
        self.tenure.get().map(|tenure| tenure.lease.clone())
    }

    /// Waits until the lease is lost, and says why.
    pub(crate) fn lost(&self) -> impl Future<Output = StoreError> + use<> {
        let lost = self.tenure.get().map(|tenure| tenure.keeper.lost());
        async move {
            match lost {
                Some(lost) => lost.await,
                None => std::future::pending().await,
            }
        }
    }

    /// Whether somebody has spoken, so that the session is there.
    pub fn is_made(&self) -> bool {
        self.tenure.get().is_some()
    }

    /// Waits until another process runs a session in this place while the own one is still to be made, and returns it.
    pub async fn overtaken(&self) -> SessionId {
        /// Between two looks: a person who opens a second terminal takes longer to type.
        const PAUSE: Duration = Duration::from_secs(1);
        while !self.is_made() {
            // A database that cannot be reached for now is a matter of who speaks first.
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

    /// Does for the person what a step says, in view of an agent of this seat's tree.
    ///
    /// # Errors
    /// When the database refuses; [`StoreError::SessionNotFound`] before a new session is made.
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

    /// Gives the lease back. One that cannot be given back runs out by itself, and is nobody's trouble before.
    pub(crate) async fn leave(self) {
        const PATIENCE: Duration = Duration::from_secs(2);
        let Some(tenure) = self.tenure.get() else { return };
        tenure.keeper.stop();
        match timeout(PATIENCE, self.store.release(tenure.lease.clone())).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(%error, "lease not given back"),
            Err(_) => warn!("lease not given back in time"),
        }
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
