//! Bodies as they arrive: never for ever, and never without bound.

use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};

use crate::fault::Fault;

use super::limits::Limits;
use super::trouble;

/// What is read of a refusal. The useful part is a sentence; some servers put their request into it.
const ERROR_LIMIT: usize = 64 << 10;

/// How long a refusal is read. It is there at once, or it is not worth the wait.
const ERROR_TIME: Duration = Duration::from_secs(10);

/// How long the end of a body is waited for after its last word, so that the connection can be used again.
const LAST_WORD: Duration = Duration::from_secs(1);

/// What is done with a piece of a body. A fault ends the reading.
pub(super) type OnChunk<'a> = dyn FnMut(&[u8]) -> Result<Rest, Fault> + Send + 'a;

/// What is still to come of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    Wanted,
    /// The last word was said. Some servers leave the connection open after it.
    OfNoInterest,
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
    let mut rest = Rest::Wanted;
    loop {
        tokio::select! {
            biased;
            chunk = answer.chunk() => match chunk {
                Ok(Some(chunk)) => {
                    rest = on_chunk(&chunk)?;
                    last = Instant::now();
                    if rest == Rest::OfNoInterest {
                        limit = LAST_WORD;
                        alarm.as_mut().reset(last + limit);
                    } else if limit != limits.idle {
                        limit = limits.idle;
                        alarm.as_mut().reset(last + limit);
                    }
                }
                Ok(None) => return Ok(()),
                Err(error) => return Err(trouble::broken(shown, &error)),
            },
            // It is not set anew for every piece, of which there are thousands: when it rings, what came
            // since tells when it should have.
            () = &mut alarm => {
                if rest == Rest::OfNoInterest {
                    return Ok(());
                }
                if last + limit <= Instant::now() {
                    return Err(trouble::stalled(shown, limit));
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
            Ok(Rest::Wanted)
        }
        false => Err(trouble::too_long()),
    };
    each_chunk(answer, shown, limits, &mut on_chunk).await?;
    Ok(body)
}

/// The beginning of a refusal, or as much of it as came.
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
    // What has come by then is the refusal.
    let _ = timeout(ERROR_TIME, reading).await;
    body
}
