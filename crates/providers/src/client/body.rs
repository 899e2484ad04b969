//! Reads bodies with limits for time and size.

use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};

use crate::fault::Fault;

use super::limits::Limits;
use super::transport_fault;

/// How much of a refusal is read. The useful part is a sentence; some servers append the request.
const ERROR_LIMIT: usize = 64 << 10;

/// How long a refusal is read. It arrives at once, or it is not worth waiting for.
const ERROR_TIME: Duration = Duration::from_secs(10);

/// How long to wait for the end of a body after its last event, so that
/// the connection can be reused.
const LAST_WORD: Duration = Duration::from_secs(1);

/// Handles a piece of a body. A fault ends the reading.
pub(super) type OnChunk<'a> = dyn FnMut(&[u8]) -> Result<Rest, Fault> + Send + 'a;

/// What is expected of the rest of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    Needed,
    /// The last event has arrived. Some servers keep the connection open after it.
    Ignored,
}

/// Passes a body on, piece by piece.
pub(super) async fn each_chunk(
    mut answer: reqwest::Response,
    shown: &str,
    limits: Limits,
    on_chunk: &mut OnChunk<'_>,
) -> Result<(), Fault> {
    let mut limit = limits.first_byte;
    let mut last = Instant::now();
    let mut alarm = pin!(sleep_until(last + limit));
    let mut rest = Rest::Needed;
    loop {
        tokio::select! {
            biased;
            chunk = answer.chunk() => match chunk {
                Ok(Some(chunk)) => {
                    rest = on_chunk(&chunk)?;
                    last = Instant::now();
                    if rest == Rest::Ignored {
                        limit = LAST_WORD;
                        alarm.as_mut().reset(last + limit);
                    } else if limit != limits.idle {
                        limit = limits.idle;
                        alarm.as_mut().reset(last + limit);
                    }
                }
                Ok(None) => return Ok(()),
                Err(error) => return Err(transport_fault::broken(shown, &error)),
            },
            // The timer is not reset for each of thousands of pieces. When it fires, the time of
            // the latest piece tells how much longer to wait.
            () = &mut alarm => {
                if rest == Rest::Ignored {
                    return Ok(());
                }
                if last + limit <= Instant::now() {
                    return Err(transport_fault::stalled(shown, limit));
                }
                alarm.as_mut().reset(last + limit);
            }
        }
    }
}

/// A whole body of at most `most` bytes.
pub(super) async fn read_document(
    answer: reqwest::Response,
    shown: &str,
    limits: Limits,
    most: usize,
) -> Result<Vec<u8>, Fault> {
    let mut body = Vec::new();
    let mut on_chunk = |chunk: &[u8]| match body.len() + chunk.len() <= most {
        true => {
            body.extend_from_slice(chunk);
            Ok(Rest::Needed)
        }
        false => Err(transport_fault::too_long()),
    };
    each_chunk(answer, shown, limits, &mut on_chunk).await?;
    Ok(body)
}

/// The start of a refusal, or as much of it as arrived.
pub(super) async fn read_error(mut answer: reqwest::Response) -> Vec<u8> {
    let mut body = Vec::new();
    let reading = async {
        while let Ok(Some(chunk)) = answer.chunk().await {
            let room = ERROR_LIMIT - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if body.len() == ERROR_LIMIT {
                break;
            }
        }
    };
    // The part that has arrived is enough.
    let _ = timeout(ERROR_TIME, reading).await;
    body
}
