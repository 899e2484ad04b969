//! Notifies other processes that something changed.
//!
//! Not inside the commit, because NOTIFY takes a lock there that all writers of the server share.
//! Notifications may be lost (M6), so they are not flushed. Changes during a notification are
//! combined into the next one.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use ikigai_postgres::{Client, Error, Value};

use crate::writer::Scope;

use super::server::Server;

/// The pause after a notification, so that a burst of commits causes one. A notification costs the
/// server as much as a commit, so the pause grows with the length of a burst.
const PAUSE: Duration = Duration::from_millis(2);
/// The longest pause: unnoticeable compared to the seconds that models take.
const LONGEST_PAUSE: Duration = Duration::from_millis(10);
/// How long to wait for an unresponsive server at exit: notifications may be lost.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);
/// The setting ends with the statement, which is its own transaction.
const NOTIFY: &str =
    "SELECT set_config('synchronous_commit', 'off', true), pg_notify('ikigai', ?1)";
/// With more sessions than this, a notification names none of them.
const MAX_SESSIONS: usize = 8;

/// What a notification says: the session, or an empty text for any.
pub(crate) fn payload_of(scope: &Scope) -> String {
    match scope {
        Scope::Session(session) => session.to_string(),
        Scope::Location(_) | Scope::Own => String::new(),
    }
}

/// Sends notifications on its own connection.
#[derive(Debug)]
pub(crate) struct Notifier {
    server: Arc<Server>,
    has_sent: bool,
    /// The pending notification, which the thread takes.
    pending: Arc<Mutex<BTreeSet<String>>>,
    thread: Option<NotifierThread>,
}

/// The thread that sends.
#[derive(Debug)]
struct NotifierThread {
    /// Wakes the thread.
    wake: SyncSender<()>,
    /// Nothing is ever sent here: each side notices when the other is dropped.
    exit: SyncSender<()>,
    has_ended: Receiver<()>,
}

impl Notifier {
    pub(crate) fn new(server: Arc<Server>) -> Notifier {
        Notifier { server, has_sent: false, pending: Arc::default(), thread: None }
    }

    /// Sends a notification without waiting. The first one uses the writer's connection: a short
    /// command only sends one, and needs no other connection.
    pub(crate) fn notify(&mut self, writer: &mut Client, payload: String) -> Result<(), Error> {
        if !std::mem::replace(&mut self.has_sent, true) {
            writer.queue(NOTIFY, &[Value::Text(Some(&payload))])?;
            return writer.tell();
        }
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if pending.len() == MAX_SESSIONS {
            pending.clear();
            pending.insert(String::new());
        } else {
            pending.insert(payload);
        }
        drop(pending);
        if self.thread.is_none() {
            let (wake, wakeups) = sync_channel(1);
            let (exit, exiting) = sync_channel(1);
            let (end, has_ended) = sync_channel(1);
            let (server, pending) = (Arc::clone(&self.server), Arc::clone(&self.pending));
            let send_all = move || {
                let _end: SyncSender<()> = end;
                let mut client = None;
                let mut pause = PAUSE;
                let mut is_over = wakeups.recv().is_err();
                while !is_over {
                    let payloads = std::mem::take(
                        &mut *pending.lock().unwrap_or_else(PoisonError::into_inner),
                    );
                    send(&server, &mut client, &payloads);
                    let _: Result<(), _> = exiting.recv_timeout(pause);
                    let more = wakeups.try_recv().is_ok();
                    pause = if more { LONGEST_PAUSE.min(pause * 2) } else { PAUSE };
                    is_over = !more && wakeups.recv().is_err();
                }
            };
            let started = thread::Builder::new().name("notifier".to_owned()).spawn(send_all);
            self.thread = started.ok().map(|_| NotifierThread { wake, exit, has_ended });
        }
        if let Some(thread) = &self.thread {
            // Full: a notification is about to be sent anyway.
            let _ = thread.wake.try_send(());
        }
        Ok(())
    }
}

/// At exit everything was sent, unless the server does not respond.
impl Drop for Notifier {
    fn drop(&mut self) {
        if let Some(NotifierThread { wake, exit, has_ended }) = self.thread.take() {
            drop((wake, exit));
            let _ = has_ended.recv_timeout(EXIT_TIMEOUT);
        }
    }
}

fn send(server: &Server, kept: &mut Option<Client>, payloads: &BTreeSet<String>) {
    let client = match Server::still_good(kept.take()) {
        Some(client) => Ok(client),
        None => server.connect_notifier(),
    };
    let Ok(mut client) = client else { return };
    let mut queued =
        payloads.iter().map(|payload| client.queue(NOTIFY, &[Value::Text(Some(payload))]));
    if queued.all(|queued| queued.is_ok()) && client.run().is_ok() {
        *kept = Some(client);
    }
}
