//! A model server that replies as the test says, and fails where the test wants it to.
//!
//! It is a real HTTP server on the loopback device, written on plain sockets: a test controls every
//! byte and the end of every connection. Requests are captured and can be inspected.
//!
//! ```
//! use ikigai_testkit::{ModelServer, Reply};
//! use serde_json::json;
//!
//! let server = ModelServer::start([
//!     Reply::status(429).retry_after(1),
//!     Reply::call("call_1", "bash", json!({"command": "ls"})),
//!     Reply::text("There is nothing."),
//! ]);
//! println!("{}/chat/completions", server.base_url());
//! ```

mod answer;
mod anthropic;
mod captured;
mod cast;
mod chat;
mod connection;
mod gate;
mod google;
mod http;
mod program;
mod reply;
mod responses;
mod scenario;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

pub use captured::{CapturedRequest, assert_prefix};
pub use cast::AgentScripts;
pub use gate::Gate;
pub use program::main as scripted_model;
pub use reply::{Point, Reply};

/// The time limit of all waits. Nothing takes this long unless it never happens.
const LIMIT: Duration = Duration::from_secs(60);

/// A running server. Dropping it ends the server and its connections.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl ModelServer {
    /// A server with these replies, one per request. Later requests get a 500.
    pub fn start(script: impl IntoIterator<Item = Reply>) -> ModelServer {
        ModelServer::on_port(0, Script::List(Mutex::new(script.into_iter().collect())))
    }

    /// A server that chooses a reply for each request, for example by agent.
    pub fn choosing(
        choose: impl Fn(&CapturedRequest) -> Reply + Send + Sync + 'static,
    ) -> ModelServer {
        ModelServer::on_port(0, Script::Choice(Box::new(choose)))
    }

    /// A server on this port; 0 is any.
    fn on_port(port: u16, script: Script) -> ModelServer {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            script,
            has_lists: AtomicBool::new(false),
            seen: Mutex::default(),
            changed: Condvar::default(),
        });
        let for_accepting = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, &for_accepting));
        ModelServer { address, shared }
    }

    /// The script also answers requests for lists of models, which otherwise get a 404 and are not
    /// captured: ikigai asks for them whenever it has time.
    #[must_use]
    pub fn with_lists(self) -> ModelServer {
        self.shared.has_lists.store(true, Ordering::Relaxed);
        self
    }

    /// `http://127.0.0.1:12345`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// `http://127.0.0.1:12345/v1`, the base address for the chat format.
    pub fn base_url(&self) -> String {
        format!("{}/v1", self.url())
    }

    /// Its port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The requests so far, in order.
    pub fn requests(&self) -> Vec<Arc<CapturedRequest>> {
        self.shared.seen.lock().unwrap().requests.clone()
    }

    /// The requests of this agent so far, in order.
    pub fn requests_of(&self, agent: &str) -> Vec<Arc<CapturedRequest>> {
        let mut requests = self.requests();
        requests.retain(|request| request.agent().as_deref() == Some(agent));
        requests
    }

    /// How many connections there were so far.
    pub fn connections(&self) -> usize {
        self.shared.seen.lock().unwrap().accepted
    }

    /// Blocks until there are `count` requests, and returns all of them.
    pub fn wait_for_requests(&self, count: usize) -> Vec<Arc<CapturedRequest>> {
        self.shared.wait_until("requests", count, |seen| seen.requests.len());
        self.requests()
    }

    /// Blocks until `count` replies have reached their stall.
    pub fn wait_for_stalls(&self, count: usize) {
        self.shared.wait_until("stalls", count, |seen| seen.stalls);
    }

    /// Blocks until `count` clients have disconnected from a stalled reply.
    pub fn wait_for_departures(&self, count: usize) {
        self.shared.wait_until("departures", count, |seen| seen.departures);
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        let mut seen = self.shared.seen.lock().unwrap();
        seen.is_over = true;
        for stream in seen.streams.iter().flatten() {
            // Shutting down fails if the client has already closed it.
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(seen);
        // Wakes the accepting thread.
        let _ = TcpStream::connect(self.address);
    }
}

impl fmt::Debug for ModelServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelServer").field("address", &self.address).finish_non_exhaustive()
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else { return };
        let Some(place) = shared.enter(&stream) else { return };
        if shared.script.hangs_up_on_connect() {
            shared.leave(place);
            continue;
        }
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            connection::serve(&stream, &shared);
            shared.leave(place);
        });
    }
}

/// The source of replies.
enum Script {
    List(Mutex<VecDeque<Reply>>),
    Choice(Box<Choose>),
}

type Choose = dyn Fn(&CapturedRequest) -> Reply + Send + Sync;

impl Script {
    fn hangs_up_on_connect(&self) -> bool {
        let Script::List(replies) = self else { return false };
        let mut replies = replies.lock().unwrap();
        replies.pop_front_if(|reply| reply.hangs_up).is_some()
    }
}

/// Shared between the server's threads and the test.
struct Shared {
    script: Script,
    has_lists: AtomicBool,
    seen: Mutex<Seen>,
    changed: Condvar,
}

#[derive(Default)]
struct Seen {
    requests: Vec<Arc<CapturedRequest>>,
    stalls: usize,
    departures: usize,
    accepted: usize,
    is_over: bool,
    /// In the order of arrival. Closed connections are empty.
    streams: Vec<Option<TcpStream>>,
}

impl Shared {
    /// Records a connection, unless the server is being dropped. Returns its position.
    fn enter(&self, stream: &TcpStream) -> Option<usize> {
        let mut seen = self.seen.lock().unwrap();
        if seen.is_over {
            return None;
        }
        seen.accepted += 1;
        seen.streams.push(stream.try_clone().ok());
        Some(seen.streams.len() - 1)
    }

    fn leave(&self, place: usize) {
        self.seen.lock().unwrap().streams[place] = None;
    }

    /// Records a request and returns its reply. One lock for both, so that requests and replies
    /// have the same order.
    fn answer(&self, captured: CapturedRequest) -> (Arc<CapturedRequest>, Reply) {
        let captured = Arc::new(captured);
        let is_list = captured.method == "GET" || captured.path.ends_with("/api/show");
        if is_list && !self.has_lists.load(Ordering::Relaxed) {
            return (captured, Reply::error(404, "no lists"));
        }
        let mut seen = self.seen.lock().unwrap();
        let scripted = match &self.script {
            Script::List(replies) => replies.lock().unwrap().pop_front(),
            Script::Choice(_) => None,
        };
        seen.requests.push(Arc::clone(&captured));
        drop(seen);
        self.changed.notify_all();
        // A choice is made outside the lock: it may take time, or inspect the server.
        let reply = scripted.unwrap_or_else(|| match &self.script {
            Script::List(_) => Reply::error(500, "script is at its end"),
            Script::Choice(choose) => choose(&captured),
        });
        (captured, reply)
    }

    fn note(&self, what: impl FnOnce(&mut Seen)) {
        what(&mut self.seen.lock().unwrap());
        self.changed.notify_all();
    }

    #[track_caller]
    fn wait_until(&self, what: &str, wanted: usize, count: impl Fn(&Seen) -> usize) {
        let seen = self.seen.lock().unwrap();
        let (seen, waited) =
            self.changed.wait_timeout_while(seen, LIMIT, |seen| count(seen) < wanted).unwrap();
        let came = count(&seen);
        // A panic while holding the lock would poison it, and the server could not be dropped.
        drop(seen);
        assert!(!waited.timed_out(), "{came} {what} came, not {wanted}");
    }
}
