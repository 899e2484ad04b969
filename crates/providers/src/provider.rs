//! A wire format: the two directions of a translation.

use std::fmt;

use crate::fault::Fault;
use crate::request::Request;
use crate::response::Response;

/// A wire format. It only translates; the network is somebody else's business.
pub trait Provider: fmt::Debug + Send + Sync {
    /// The body of a request.
    fn encode(&self, request: &Request<'_>) -> Vec<u8>;

    /// A translator for one response.
    fn decode(&self) -> Box<dyn Decode>;

    /// Where requests for `model` go, behind the provider's base address.
    fn path(&self, model: &str) -> String;

    /// Where its models are listed, behind the provider's base address.
    fn models_path(&self) -> &'static str {
        "/models"
    }

    /// The headers that carry the key, and those that every request of this format has.
    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        // Servers on the user's own machine have no key, and some refuse an empty one.
        key.map(|key| ("authorization", format!("Bearer {key}"))).into_iter().collect()
    }
}

/// Translates one response, as it comes.
pub trait Decode: Send {
    /// Takes the next event of a stream; `on_text` gets the text in it.
    ///
    /// # Errors
    /// When the server says in the stream that it failed, or what it says cannot be understood.
    fn event(
        &mut self,
        event: Option<&str>,
        data: &str,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<(), Fault>;

    /// Takes a whole response, from a server that did not stream although it was asked to.
    ///
    /// # Errors
    /// As for [`event`](Decode::event).
    fn whole(&mut self, body: &[u8], on_text: &mut dyn FnMut(&str)) -> Result<(), Fault>;

    /// Whether the server has said that this was all. What may still come is of no interest.
    fn is_over(&self) -> bool {
        false
    }

    /// What all that came amounts to.
    ///
    /// # Errors
    /// When the response is not complete: the stream broke off, and half a call must never be run.
    fn finish(self: Box<Self>) -> Result<Response, Fault>;

    /// The same after a connection that broke: only an end that the server spoke of counts.
    ///
    /// # Errors
    /// As for [`finish`](Decode::finish).
    fn finish_broken(self: Box<Self>) -> Result<Response, Fault> {
        self.finish()
    }
}
