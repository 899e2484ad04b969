//! The client for a model's server: sends requests, reads responses, and
//! retries where that may help.

mod address;
mod body;
mod connector;
mod limits;
mod local_server;
mod login;
mod models;
mod retry_after;
mod transport_fault;

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Method, Url};
use tokio::time::timeout;

use crate::fault::{Category, Fault};
use crate::provider::{Delta, Provider};
use crate::request::Request;
use crate::response::Response;
use crate::retry::Retries;
use crate::secret::Secret;
use crate::sse::SseDecoder;

use address::Address;
use body::{Rest, each_chunk, read_document, read_error};
use connector::{Connector, SendError};
pub use limits::Limits;

/// The limit for a streamed response. The longest responses have some hundred kilobytes of text,
/// and servers wrap every word in a few hundred bytes.
const STREAM_LIMIT: usize = 64 << 20;

/// The limit for a response that is not streamed.
const DOCUMENT_LIMIT: usize = 32 << 20;

/// A provider's server, and the key for it.
#[derive(Clone)]
pub struct Endpoint {
    /// The wire format.
    pub provider: Arc<dyn Provider>,
    /// The base address. It may contain a user name and password.
    pub base_url: String,
    /// The key to send, if any.
    pub key: Option<Secret>,
    /// A file with certificates to trust in addition to the built-in ones.
    pub certificates: Option<PathBuf>,
}

/// Events during a request.
#[derive(Debug, Clone, Copy)]
pub enum Progress<'a> {
    /// An attempt starts. From here on the provider may bill it.
    Sending,
    /// The attempt was refused, or reached no server: nothing is billed for it.
    Refused,
    /// More of the response.
    Delta(Delta<'a>),
    /// The request failed and is retried after the delay. Discard everything so far.
    Retry {
        /// The number of the retry, from 1.
        attempt: u32,
        /// How many there are at most.
        of: u32,
        /// What went wrong.
        fault: &'a Fault,
        /// How long the client waits before it.
        delay: Duration,
    },
}

/// Handles progress.
pub type OnProgress<'a> = dyn FnMut(Progress<'_>) + Send + 'a;

/// A client for one provider. It keeps its connections, so use one client
/// for as long as its key is valid.
pub struct Client {
    provider: Arc<dyn Provider>,
    key: Option<Secret>,
    /// `None` if the base address is invalid.
    base: Option<Address>,
    connector: Connector,
    limits: Limits,
}

impl Client {
    /// Creates a client. It connects and reads certificates only when the first request is sent.
    pub fn new(endpoint: Endpoint, limits: Limits) -> Client {
        let base = Address::parse(&endpoint.base_url);
        let connector = Connector::new(base.as_ref(), endpoint.certificates, limits.connect);
        Client { provider: endpoint.provider, key: endpoint.key, base, connector, limits }
    }

    /// The same client with connections of its own, for another thread.
    #[must_use]
    pub fn apart(&self) -> Client {
        let connector = self.connector.with_patience(self.limits.connect);
        let (provider, key) = (Arc::clone(&self.provider), self.key.clone());
        Client { provider, key, base: self.base.clone(), connector, limits: self.limits }
    }

    /// Sends a request, and retries it while that may help. The response is complete.
    ///
    /// # Errors
    /// The last fault, if a retry would not help or has not helped.
    ///
    /// # Cancel safety
    /// When the future is dropped, the connection is closed at once, and nothing continues in the
    /// background.
    pub async fn ask(
        &self,
        request: &Request<'_>,
        on: &mut OnProgress<'_>,
    ) -> Result<Response, Fault> {
        let path = self.provider.path(request.model);
        let question = self
            .request(&self.connector, Method::POST, self.base()?.join(&path))?
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(self.provider.encode(request))
            .build()
            .map_err(|error| transport_fault::unreachable(self.shown(), &error))?;
        let seed = RandomState::new().hash_one(0);
        let mut retries = Retries::new(self.limits.retries, self.limits.first_delay, seed);
        let mut attempt = 0;
        loop {
            let fault = match self.attempt(&question, on).await {
                Ok(response) => return Ok(response),
                Err(fault) => self.without_secrets(fault),
            };
            let Some(delay) = retries.next(&fault) else { return Err(fault) };
            attempt += 1;
            let of = self.limits.retries;
            on(Progress::Retry { attempt, of, fault: &fault, delay });
            tokio::time::sleep(delay).await;
        }
    }

    fn base(&self) -> Result<&Address, Fault> {
        self.base.as_ref().ok_or_else(|| {
            Fault::new(Category::Network, "the provider's base_url is not an HTTP address")
        })
    }

    /// A request without a body.
    fn request(
        &self,
        connector: &Connector,
        method: Method,
        url: Url,
    ) -> Result<reqwest::RequestBuilder, Fault> {
        // A name and password in the address are sent as a header too. The key replaces them.
        Ok(connector.http()?.request(method, url).headers(self.headers()?))
    }

    fn headers(&self) -> Result<HeaderMap, Fault> {
        let mut headers = HeaderMap::new();
        for (name, value) in self.provider.headers(self.key.as_ref().map(Secret::expose)) {
            let mut value = HeaderValue::from_str(&value).map_err(|_| {
                Fault::new(Category::KeyRefused, "it has characters that cannot be sent")
            })?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(headers)
    }

    async fn attempt(
        &self,
        question: &reqwest::Request,
        on: &mut OnProgress<'_>,
    ) -> Result<Response, Fault> {
        let shown = self.shown();
        on(Progress::Sending);
        let answer = timeout(self.limits.first_byte, self.connector.send(shown, question)).await;
        let answer = answer.map_err(|_| transport_fault::stalled(shown, self.limits.first_byte))?;
        let answer = answer.map_err(|error| match error {
            SendError::NotConnected(fault) => {
                on(Progress::Refused);
                fault
            }
            SendError::Lost(fault) => fault,
        })?;
        if !answer.status().is_success() {
            on(Progress::Refused);
            return Err(self.refusal(answer).await);
        }
        match media_type(answer.headers()).as_str() {
            "application/json" => self.read_whole(answer, on).await,
            "text/html" => Err(transport_fault::web_page(shown)),
            // Some servers stream without saying so.
            _ => self.read_stream(answer, on).await,
        }
    }

    /// Why the server refused the request.
    async fn refusal(&self, answer: reqwest::Response) -> Fault {
        let status = answer.status();
        let headers = answer.headers();
        if status.is_redirection() {
            let to = headers.get(LOCATION).and_then(|to| to.to_str().ok());
            return Fault::from_redirect(status.as_u16(), to.map(address::shown).as_deref());
        }
        let wanted = retry_after::parse(headers, SystemTime::now());
        let body = read_error(answer).await;
        Fault::from_status(status.as_u16(), &body, wanted)
    }

    async fn read_stream(
        &self,
        answer: reqwest::Response,
        on: &mut OnProgress<'_>,
    ) -> Result<Response, Fault> {
        let mut decode = self.provider.decode();
        let mut events = SseDecoder::default();
        let mut room = STREAM_LIMIT;
        let mut on_delta = |delta: Delta<'_>| on(Progress::Delta(delta));
        let mut on_chunk = |chunk: &[u8]| {
            room = room.checked_sub(chunk.len()).ok_or_else(transport_fault::too_long)?;
            events.feed(chunk, &mut |event| decode.event(event.name, event.data, &mut on_delta))?;
            Ok(if decode.is_over() { Rest::Ignored } else { Rest::Needed })
        };
        let arrived = each_chunk(answer, self.shown(), self.limits, &mut on_chunk).await;
        let ended = arrived.and_then(|()| {
            events.finish(&mut |event| decode.event(event.name, event.data, &mut on_delta))
        });
        match ended {
            Ok(()) => decode.finish(),
            // A server that sent everything and then closed the connection incorrectly has still
            // answered.
            Err(fault) if fault.category == Category::Network => {
                decode.finish_broken().map_err(|_| fault)
            }
            Err(fault) => Err(fault),
        }
    }

    async fn read_whole(
        &self,
        answer: reqwest::Response,
        on: &mut OnProgress<'_>,
    ) -> Result<Response, Fault> {
        let body = read_document(answer, self.shown(), self.limits, DOCUMENT_LIMIT).await?;
        let mut decode = self.provider.decode();
        decode.whole(&body, &mut |delta| on(Progress::Delta(delta)))?;
        decode.finish()
    }

    /// The base address without secrets.
    fn shown(&self) -> &str {
        self.base.as_ref().map_or("nowhere", Address::shown)
    }

    /// Removes the key and the password from a fault, in case the server repeats them.
    fn without_secrets(&self, mut fault: Fault) -> Fault {
        fault.message = self.cut_secrets(fault.message);
        fault
    }

    fn cut_secrets(&self, text: String) -> String {
        let login = self.base.iter().flat_map(Address::secrets);
        self.key.iter().chain(login).fold(text, |text, secret| secret.cut_out_of(&text))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let provider = &self.provider;
        f.debug_struct("Client").field("provider", provider).field("url", &self.shown()).finish()
    }
}

/// The type of a body, without its parameters, in lower case. Empty if there is no such header.
fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_lowercase()
}
