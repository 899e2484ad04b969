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
const BREATH: Duration = Duration::from_millis(2);
/// The longest pause: unnoticeable compared to the seconds that models take.
const LONGEST_BREATH: Duration = Duration::from_millis(10);
/// How long to wait for an unresponsive server at exit: notifications may be lost.
const PARTING: Duration = Duration::from_millis(500);
/// The setting ends with the statement, which is its own transaction.
const NEWS: &str = "SELECT set_config('synchronous_commit', 'off', true), pg_notify('ikigai', ?1)";
/// With more sessions than this, a notification names none of them.
const MOST_SESSIONS: usize = 8;

/// What a notification says: the session, or an empty text for any.
pub(crate) fn news_of(scope: &Scope) -> String {
    match scope {
        Scope::Session(session) => session.to_string(),
        Scope::Place(_) | Scope::Own => String::new(),
    }
}

/// Sends notifications on its own connection.
#[derive(Debug)]
pub(crate) struct Notifier {
    server: Arc<Server>,
    has_spoken: bool,
    /// The pending notification, which the thread takes.
    unsaid: Arc<Mutex<BTreeSet<String>>>,
    thread: Option<Speaker>,
}

/// The thread that sends.
#[derive(Debug)]
struct Speaker {
    /// Wakes the thread.
    news: SyncSender<()>,
    /// Nothing is ever sent here: each side notices when the other is dropped.
    leaving: SyncSender<()>,
    has_ended: Receiver<()>,
}

impl Notifier {
    pub(crate) fn new(server: Arc<Server>) -> Notifier {
        Notifier { server, has_spoken: false, unsaid: Arc::default(), thread: None }
    }

    /// Sends a notification without waiting. The first one uses the writer's connection: a short
    /// command only sends one, and needs no other connection.
    pub(crate) fn say(&mut self, writer: &mut Client, news: String) -> Result<(), Error> {
        if !std::mem::replace(&mut self.has_spoken, true) {
            writer.queue(NEWS, &[Value::Text(Some(&news))])?;
            return writer.tell();
        }
        let mut unsaid = self.unsaid.lock().unwrap_or_else(PoisonError::into_inner);
        if unsaid.len() == MOST_SESSIONS {
            unsaid.clear();
            unsaid.insert(String::new());
        } else {
            unsaid.insert(news);
        }
        drop(unsaid);
        if self.thread.is_none() {
            let (news, heard) = sync_channel(1);
            let (leaving, has_left) = sync_channel(1);
            let (end, has_ended) = sync_channel(1);
            let (server, unsaid) = (Arc::clone(&self.server), Arc::clone(&self.unsaid));
            let speak = move || {
                let _end: SyncSender<()> = end;
                let mut client = None;
                let mut breath = BREATH;
                let mut is_over = heard.recv().is_err();
                while !is_over {
                    let news =
                        std::mem::take(&mut *unsaid.lock().unwrap_or_else(PoisonError::into_inner));
                    speak(&server, &mut client, &news);
                    let _: Result<(), _> = has_left.recv_timeout(breath);
                    let more = heard.try_recv().is_ok();
                    breath = if more { LONGEST_BREATH.min(breath * 2) } else { BREATH };
                    is_over = !more && heard.recv().is_err();
                }
            };
            let started = thread::Builder::new().name("notifier".to_owned()).spawn(speak);
            self.thread = started.ok().map(|_| Speaker { news, leaving, has_ended });
        }
        if let Some(speaker) = &self.thread {
            // Full: a notification is about to be sent anyway.
            let _ = speaker.news.try_send(());
        }
        Ok(())
    }
}

/// At exit everything was sent, unless the server does not respond.
impl Drop for Notifier {
    fn drop(&mut self) {
        if let Some(Speaker { news, leaving, has_ended }) = self.thread.take() {
            drop((news, leaving));
            let _ = has_ended.recv_timeout(PARTING);
        }
    }
}

fn speak(server: &Server, kept: &mut Option<Client>, news: &BTreeSet<String>) {
    let client = match Server::still_good(kept.take()) {
        Some(client) => Ok(client),
        None => server.connect_notifier(),
    };
    let Ok(mut client) = client else { return };
    let mut queued = news.iter().map(|news| client.queue(NEWS, &[Value::Text(Some(news))]));
    if queued.all(|queued| queued.is_ok()) && client.run().is_ok() {
        *kept = Some(client);
    }
}
