//! The output of a running command, passed on while it runs. Only the newest is of interest, so it
//! is bounded in rate and size, and what is left out is counted.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// A piece of the output of a running command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveOutput {
    /// The text; it may start and end in the middle of a line.
    pub text: String,
    /// How many bytes before it were left out.
    pub skipped: u64,
}

/// Receives live output. It must not block.
#[derive(Clone)]
pub struct LiveSink(Arc<dyn Fn(LiveOutput) + Send + Sync>);

impl LiveSink {
    /// A sink that calls `receive`.
    pub fn new(receive: impl Fn(LiveOutput) + Send + Sync + 'static) -> LiveSink {
        LiveSink(Arc::new(receive))
    }
}

impl fmt::Debug for LiveSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LiveSink")
    }
}

/// At most ten pieces a second: more could not be read.
const INTERVAL: Duration = Duration::from_millis(100);
/// The bytes of a piece: about a screen.
const LIMIT: usize = 4 * 1024;

/// Makes pieces of a stream of bytes.
pub(crate) struct LiveStream {
    sink: LiveSink,
    pending: Vec<u8>,
    skipped: u64,
    /// When the next piece may be sent.
    next: Instant,
}

impl LiveStream {
    pub(crate) fn new(sink: LiveSink) -> LiveStream {
        // What a short command prints is in its result soon enough.
        let next = Instant::now() + INTERVAL;
        LiveStream { sink, pending: Vec::new(), skipped: 0, next }
    }

    /// Takes what the command printed.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let newest = &bytes[bytes.len().saturating_sub(LIMIT)..];
        let too_many = (self.pending.len() + newest.len()).saturating_sub(LIMIT);
        self.pending.drain(..too_many);
        self.pending.extend_from_slice(newest);
        self.skipped += (bytes.len() - newest.len() + too_many) as u64;
    }

    /// Waits until a piece may be sent; for ever while there is nothing to send.
    pub(crate) async fn due(&self) {
        match self.pending.is_empty() {
            true => std::future::pending().await,
            false => sleep_until(self.next).await,
        }
    }

    /// Sends what is there, but for the start of a character whose end has not arrived.
    pub(crate) fn send(&mut self) {
        self.next = Instant::now() + INTERVAL;
        let kept = self.pending.split_off(complete(&self.pending));
        let bytes = std::mem::replace(&mut self.pending, kept);
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        // Bytes that are no text take more room as text.
        let cut = text.ceil_char_boundary(text.len().saturating_sub(LIMIT));
        text.drain(..cut);
        if !text.is_empty() {
            let skipped = std::mem::take(&mut self.skipped);
            (self.sink.0)(LiveOutput { text, skipped });
        }
    }
}

/// The length of the bytes without an incomplete character at their end.
fn complete(bytes: &[u8]) -> usize {
    match bytes.utf8_chunks().last() {
        Some(last) if last.invalid().len() < 4 && is_start(last.invalid()) => {
            bytes.len() - last.invalid().len()
        }
        Some(_) | None => bytes.len(),
    }
}

/// Whether more bytes can complete a character.
fn is_start(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// The pieces that are sent when these chunks arrive, each after the time of a piece.
    fn pieces(chunks: &[&[u8]]) -> Vec<(String, u64)> {
        let sent = Arc::new(Mutex::new(Vec::new()));
        let received = Arc::clone(&sent);
        let sink = LiveSink::new(move |piece| received.lock().unwrap().push(piece));
        let mut stream = LiveStream::new(sink);
        for chunk in chunks {
            stream.push(chunk);
            stream.send();
        }
        let sent = sent.lock().unwrap();
        sent.iter().map(|piece| (piece.text.clone(), piece.skipped)).collect()
    }

    #[test]
    fn the_newest_bytes_are_passed_on_and_the_others_counted() {
        let long = [b"x".repeat(LIMIT).as_slice(), b"end"].concat();
        let sent = pieces(&[b"one\n", &long, b"two"]);
        let (text, skipped) = &sent[1];
        assert_eq!((text.len(), text.ends_with("xend"), *skipped), (LIMIT, true, 3));
        assert_eq!((&sent[0], &sent[2]), (&("one\n".to_owned(), 0), &("two".to_owned(), 0)));
    }

    #[test]
    fn what_waits_for_its_time_is_bounded_too() {
        let mut stream = LiveStream::new(LiveSink::new(|_| {}));
        (0..3).for_each(|_| stream.push(&b"y".repeat(LIMIT - 1)));
        assert_eq!((stream.pending.len(), stream.skipped), (LIMIT, 2 * LIMIT as u64 - 3));
    }

    #[test]
    fn a_character_is_never_split_and_other_bytes_are_marked() {
        let euro = "€".as_bytes();
        let sent = pieces(&[&euro[..1], &euro[1..], b"\xff", b"a\xe2"]);
        assert_eq!(
            sent.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>(),
            ["€", "\u{fffd}", "a"]
        );
        let sent = pieces(&[&b"\xff".repeat(LIMIT)]);
        assert!(sent[0].0.len() <= LIMIT);
    }
}
