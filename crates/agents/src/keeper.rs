//! Lease renewal.

use std::sync::Arc;
use std::thread;

use ikigai_store::{Lease, Store, StoreError};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// Renews a lease until it is dropped, on its own thread: the process must not lose the agent
/// because its task is not polled (the terminal is stopped, or output goes to a blocked pipe).
#[derive(Debug)]
pub(crate) struct Keeper {
    /// Why the lease was lost, once it is.
    lost: watch::Receiver<Option<StoreError>>,
    stop: CancellationToken,
}

impl Keeper {
    pub(crate) fn start(store: Arc<Store>, lease: Lease) -> Result<Keeper, StoreError> {
        let (report, lost) = watch::channel(None);
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.map_err(|error| StoreError::Internal(error.to_string().into()))?;
        let keep = move || {
            let renewing = stopped.run_until_cancelled(renew(&store, &lease));
            if let Some(error) = runtime.block_on(renewing) {
                let _ = report.send(Some(error));
            }
        };
        let started = thread::Builder::new().name("lease".to_owned()).spawn(keep);
        started.map_err(|error| StoreError::Internal(error.to_string().into()))?;
        Ok(Keeper { lost, stop })
    }

    /// Stops the renewal.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits until the lease is lost, and returns the reason.
    pub(crate) fn lost(&self) -> impl Future<Output = StoreError> + use<> {
        let mut lost = self.lost.clone();
        async move {
            match lost.wait_for(Option::is_some).await.map(|error| error.clone()) {
                Ok(Some(error)) => error,
                // The renewal was stopped on purpose.
                Ok(None) | Err(_) => std::future::pending().await,
            }
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Renews the lease until it is lost. An unreachable database does not count as a loss: the lease
/// is lost only if another process takes the agent over meanwhile, and the next write notices that.
async fn renew(store: &Store, lease: &Lease) -> StoreError {
    loop {
        sleep(Lease::RENEWAL).await;
        match store.renew(lease.clone()).await {
            Ok(()) => {}
            Err(error) if error.is_transient() => warn!(%error, "lease not renewed"),
            Err(error) => return error,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use ikigai_conversation::AgentId;
    use ikigai_store::{Options, Process};
    use ikigai_testkit::{PLENTY, TestStore};

    use super::*;

    const END: &str = "SELECT until FROM leases";

    /// Nothing is polled here: this thread only queries the database.
    #[test]
    fn a_lease_is_renewed_even_if_the_agent_is_not_polled() {
        let store = TestStore::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let session = runtime.block_on(store.session_with(PLENTY));
        let top = AgentId::top_level(0);
        let claimed = store.claim(session, top, Process::current());
        let lease = runtime.block_on(claimed).unwrap();
        let before = store.number(END);
        let address = store.address().to_owned();
        let second = Arc::new(Store::open(&address, Options::default()).unwrap());
        let keeper = Keeper::start(second, lease.clone()).unwrap();
        let started = Instant::now();
        while store.number(END) == before {
            assert!(started.elapsed() < Duration::from_secs(60), "it was not renewed");
            thread::sleep(Duration::from_millis(20));
        }
        drop(keeper);
        runtime.block_on(store.release(lease)).unwrap();
    }

    #[test]
    fn a_lost_lease_is_reported_with_the_reason() {
        let store = TestStore::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let session = runtime.block_on(store.session_with(PLENTY));
        let claim = || store.claim(session, AgentId::top_level(0), Process::current());
        let lease = runtime.block_on(claim()).unwrap();
        // A second claim, even by the same process, voids the first lease.
        runtime.block_on(claim()).unwrap();
        let address = store.address().to_owned();
        let second = Arc::new(Store::open(&address, Options::default()).unwrap());
        let keeper = Keeper::start(second, lease).unwrap();
        let lost = runtime.block_on(keeper.lost());
        assert!(matches!(lost, StoreError::LeaseLost { .. }), "{lost}");
    }
}
