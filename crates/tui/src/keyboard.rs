//! Reads input from the terminal in batches: what arrives together is handled together.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use crossterm::event::{Event, EventStream};
use futures_core::Stream;
use tokio::time::timeout;

use crate::typed::{BURST, Sorter, Typed, may_be_wheel};

/// The most events per batch; the rest of a flood comes in the next one.
const BATCH: usize = 4_096;

/// Reads from the terminal.
pub(crate) struct Keyboard {
    /// `None` while another program has the terminal.
    events: Option<EventStream>,
    /// Events that have arrived and were not returned yet.
    gathered: Vec<Event>,
    sorter: Sorter,
}

impl Keyboard {
    pub(crate) fn new() -> Keyboard {
        let sorter = Sorter::default();
        Keyboard { events: Some(EventStream::new()), gathered: Vec::new(), sorter }
    }

    /// Stops reading, so that another program gets the input.
    pub(crate) fn pause(&mut self) {
        self.events = None;
    }

    /// Starts reading again.
    pub(crate) fn resume(&mut self) {
        self.events.get_or_insert_default();
    }

    /// Waits for the next batch.
    ///
    /// # Errors
    /// If the terminal is gone.
    ///
    /// # Cancel safety
    /// Events that have arrived are kept for the next call.
    pub(crate) async fn next(&mut self) -> io::Result<Vec<Typed>> {
        if self.gathered.is_empty() {
            self.gather().await?;
        }
        if let [event] = &*self.gathered
            && may_be_wheel(event)
            && let Ok(gathered) = timeout(BURST, self.gather()).await
        {
            gathered?;
        }
        Ok(self.sorter.sort(std::mem::take(&mut self.gathered)))
    }

    async fn gather(&mut self) -> io::Result<()> {
        poll_fn(|context| self.poll_gather(context)).await
    }

    /// Takes all available events.
    fn poll_gather(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(events) = &mut self.events else { return Poll::Pending };
        let before = self.gathered.len();
        while self.gathered.len() < BATCH {
            match Pin::new(&mut *events).poll_next(context) {
                Poll::Ready(Some(Ok(event))) => self.gathered.push(event),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
                Poll::Ready(None) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                Poll::Pending if self.gathered.len() == before => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}
