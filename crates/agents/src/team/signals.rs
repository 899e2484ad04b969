//! What a team waits for.

use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use ikigai_store::{Changes, StoreError};

/// Waits until something may have changed. While a session is being created, that is a short time.
pub(super) async fn changed(
    changes: &mut Option<Changes>,
    is_busy: bool,
) -> Result<(), StoreError> {
    const SOON: Duration = Duration::from_millis(10);
    match changes {
        Some(changes) => changes.wait(Changes::SWEEP).await,
        None if is_busy => {
            tokio::time::sleep(SOON).await;
            Ok(())
        }
        None => std::future::pending().await,
    }
}

/// Waits for the first of several futures. Without any, it waits forever.
pub(super) async fn first_of<T, F: Future<Output = T> + Unpin>(mut futures: Vec<F>) -> T {
    std::future::poll_fn(move |context| {
        let mut ready =
            futures.iter_mut().filter_map(|future| match Pin::new(future).poll(context) {
                Poll::Ready(value) => Some(value),
                Poll::Pending => None,
            });
        ready.next().map_or(Poll::Pending, Poll::Ready)
    })
    .await
}
