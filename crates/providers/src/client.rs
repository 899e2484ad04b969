//! The way to a model's server and back: asks, reads the stream, and asks again when that may help.

mod address;
mod arriving;
mod connector;
mod limits;
mod login;
mod models;
mod trouble;
mod wish;

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use tokio::time::timeout;

use crate::fault::{Category, Fault};
use crate::provider::Provider;
use crate::request::Request;
use crate::response::Response;
use crate::retry::Retries;
use crate::secret::Secret;
use crate::sse::SseDecoder;

use address::Address;
use arriving::{Rest, each_chunk, read_document, read_error};
use connector::Connector;
pub use limits::Limits;

/// The most of a streamed response. The longest answers have some hundred kilobytes, and a server wraps
/// every word of them in a few hundred bytes.
const STREAM_LIMIT: usize = 64 << 20;

/// The most of a response that came in one piece.
const DOCUMENT_LIMIT: usize = 32 << 20;

/// Where a provider is, and who asks it.
#[derive(Clone)]
pub struct Endpoint {
    /// The wire format.
    pub provider: Arc<dyn Provider>,
    /// What stands before the paths of the format. It may have a user's name and password in it.
    pub base_url: String,
    /// What to show there, if anything.
    pub key: Option<Secret>,
    /// A file with certificates to trust beside those that are built in.
    pub certificates: Option<PathBuf>,
}

/// What happens while a model is asked.
#[derive(Debug, Clone, Copy)]
pub enum Progress<'a> {
    /// More of the answer's text.
    Text(&'a str),
    /// It failed and is tried again after the delay. All text so far is void.
    Retry {
        /// Which retry it is, from 1 on.
        attempt: u32,
        /// What went wrong.
        fault: &'a Fault,
        /// How long it takes until then.
        delay: Duration,
    },
}

/// What is done with progress.
pub type OnProgress<'a> = dyn FnMut(Progress<'_>) + Send + 'a;

/// Asks one provider. Connections are kept and used again, so one client is best kept as long as its key.
pub struct Client {
    provider: Arc<dyn Provider>,
    key: Option<Secret>,
    /// None when the base address is none.
    base: Option<Address>,
    connector: Connector,
    limits: Limits,
}

impl Client {
    /// A client. Nothing is connected, and no certificate read, before the first question.
    pub fn new(endpoint: Endpoint, limits: Limits) -> Client {
        let base = Address::parse(&endpoint.base_url);
        let connector = Connector::new(base.as_ref(), endpoint.certificates, limits.connect);
        Client { provider: endpoint.provider, key: endpoint.key, base, connector, limits }
    }

    /// Asks the model, and asks again while that may help. The response is whole.
    ///
    /// # Errors
    /// The last fault, when trying again does not help or has not helped.
    ///
    /// # Cancel safety
    /// When the future is dropped, the connection is closed at once and nothing goes on behind it.
    pub async fn ask(
        &self,
        request: &Request<'_>,
        on: &mut OnProgress<'_>,
    ) -> Result<Response, Fault> {
        let path = self.provider.path(request.model);
        let question = self
            .request(&self.connector, Method::POST, &path)?
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(self.provider.encode(request))
            .build()
            .map_err(|error| trouble::unreachable(self.shown(), &error))?;
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
            on(Progress::Retry { attempt, fault: &fault, delay });
            tokio::time::sleep(delay).await;
        }
    }

    /// A request that has no body yet.
    fn request(
        &self,
        connector: &Connector,
        method: Method,
        path: &str,
    ) -> Result<reqwest::RequestBuilder, Fault> {
        let base = self.base.as_ref().ok_or_else(|| {
            Fault::new(Category::Network, "the provider's base_url is no http address")
        })?;
        // A name and password in the address are a header, too; the key takes its place.
        Ok(connector.http()?.request(method, base.join(path)).headers(self.headers()?))
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
        let answer = timeout(self.limits.first_byte, self.connector.send(shown, question)).await;
        let answer = answer.map_err(|_| trouble::stalled(shown, self.limits.first_byte))??;
        if !answer.status().is_success() {
            return Err(self.refusal(answer).await);
        }
        match media_type(answer.headers()).as_str() {
            "application/json" => self.read_whole(answer, on).await,
            "text/html" => Err(trouble::web_page(shown)),
            // Not every server that streams says so.
            _ => self.read_stream(answer, on).await,
        }
    }

    /// Why the server did not answer.
    async fn refusal(&self, answer: reqwest::Response) -> Fault {
        let status = answer.status();
        let headers = answer.headers();
        if status.is_redirection() {
            let to = headers.get(LOCATION).and_then(|to| to.to_str().ok());
            return Fault::from_redirect(status.as_u16(), to.map(address::shown).as_deref());
        }
        let wish = wish::retry_after(headers, SystemTime::now());
        let body = read_error(answer).await;
        Fault::from_status(status.as_u16(), &body, wish)
    }

    async fn read_stream(
        &self,
        answer: reqwest::Response,
        on: &mut OnProgress<'_>,
    ) -> Result<Response, Fault> {
        let mut decode = self.provider.decode();
        let mut events = SseDecoder::default();
        let mut room = STREAM_LIMIT;
        let mut on_text = |text: &str| on(Progress::Text(text));
        let mut on_chunk = |chunk: &[u8]| {
            room = room.checked_sub(chunk.len()).ok_or_else(trouble::too_long)?;
            events.feed(chunk, &mut |event| decode.event(event.name, event.data, &mut on_text))?;
            Ok(if decode.is_over() { Rest::OfNoInterest } else { Rest::Wanted })
        };
        let arrived = each_chunk(answer, self.shown(), self.limits, &mut on_chunk).await;
        let ended = arrived.and_then(|()| {
            events.finish(&mut |event| decode.event(event.name, event.data, &mut on_text))
        });
        match ended {
            Ok(()) => decode.finish(),
            // A server that said everything and then closed the connection badly has answered.
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
        decode.whole(&body, &mut |text| on(Progress::Text(text)))?;
        decode.finish()
    }

    /// The base address as a person may see it.
    fn shown(&self) -> &str {
        self.base.as_ref().map_or("nowhere", Address::shown)
    }

    /// Whatever the fault says, a key that a server repeats is not in it.
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

/// The type of a body, without its parameters, in lower case; empty if nothing is said.
fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_lowercase()
}
