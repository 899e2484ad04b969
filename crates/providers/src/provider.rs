//! Wire formats.

use std::fmt;

use crate::fault::Fault;
use crate::request::Request;
use crate::response::Response;

/// A wire format. It only translates, and does not use the network.
pub trait Provider: fmt::Debug + Send + Sync {
    /// Encodes the body of a request.
    fn encode(&self, request: &Request<'_>) -> Vec<u8>;

    /// A decoder for one response.
    fn decode(&self) -> Box<dyn Decode>;

    /// The path of requests for `model`, relative to the base address.
    fn path(&self, model: &str) -> String;

    /// The path of the list of models, relative to the base address.
    fn models_path(&self) -> &'static str {
        "/models"
    }

    /// The headers with the key, and those that this format requires in every request.
    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        // Local servers have no key, and some refuse an empty one.
        key.map(|key| ("authorization", format!("Bearer {key}"))).into_iter().collect()
    }
}

/// A piece of a response as it arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delta<'a> {
    /// Text of the answer.
    Text(&'a str),
    /// What the model thinks before it answers, as far as the provider shows it. It is not part of
    /// the answer.
    Thinking(&'a str),
    /// Arguments of a call. The call is not complete, and may come to nothing.
    Call {
        /// Which call of the response.
        number: usize,
        /// The tool's name, as far as known.
        name: &'a str,
        /// The piece.
        arguments: &'a str,
    },
}

/// Decodes one response as it arrives.
pub trait Decode: Send {
    /// Handles the next event of a stream. `on_delta` receives its text,
    /// thinking and arguments.
    ///
    /// # Errors
    /// If the server reports an error in the stream, or the event is malformed.
    fn event(
        &mut self,
        event: Option<&str>,
        data: &str,
        on_delta: &mut dyn FnMut(Delta<'_>),
    ) -> Result<(), Fault>;

    /// Handles a whole response, from a server that did not stream although it was asked to.
    ///
    /// # Errors
    /// As for [`event`](Decode::event).
    fn whole(&mut self, body: &[u8], on_delta: &mut dyn FnMut(Delta<'_>)) -> Result<(), Fault>;

    /// Whether the response is complete. Later events can be ignored.
    fn is_over(&self) -> bool {
        false
    }

    /// Finishes the response.
    ///
    /// # Errors
    /// If the response is not complete: its stream broke, and a truncated call must never run.
    fn finish(self: Box<Self>) -> Result<Response, Fault>;

    /// Finishes a response whose connection was lost. It is complete only if the server said so.
    ///
    /// # Errors
    /// As for [`finish`](Decode::finish).
    fn finish_broken(self: Box<Self>) -> Result<Response, Fault> {
        self.finish()
    }
}
