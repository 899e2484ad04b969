//! Telling other processes that something changed.
//!
//! Not inside the commit: there it would take a lock that all writers of the server share. What is told may be lost
//! (M6), so it is not flushed; and what is told while the last word is still on its way is told once.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use ikigai_postgres::{Client, Error, Value};

use crate::writer::Scope;

use super::server::Server;

/// So long nothing more is said: a burst of commits is one word. Every word takes the server as long as a commit, so
/// the longer a burst goes on, the fewer are made of it.
const BREATH: Duration = Duration::from_millis(2);
/// Nobody notices it among the seconds in which models answer.
const LONGEST_BREATH: Duration = Duration::from_millis(10);
/// Whoever leaves waits no longer for a server that does not answer: what is told may be lost.
const PARTING: Duration = Duration::from_millis(500);
/// The setting ends with the statement, which is a transaction of its own.
const NEWS: &str = "SELECT set_config('synchronous_commit', 'off', true), pg_notify('ikigai', ?1)";
/// Of more sessions at once it is only said that there is news.
const MOST_SESSIONS: usize = 8;

/// What there is news of, as others are told it: a session, or anything when it is empty.
pub(crate) fn news_of(scope: &Scope) -> String {
    match scope {
        Scope::Session(session) => session.to_string(),
        Scope::Place(_) | Scope::Own => String::new(),
    }
}

/// Says that there is news, on a connection of its own.
#[derive(Debug)]
pub(crate) struct Notifier {
    server: Arc<Server>,
    has_spoken: bool,
    /// What is to be said, for the thread to take.
    unsaid: Arc<Mutex<BTreeSet<String>>>,
    thread: Option<Speaker>,
}

/// The thread that speaks.
#[derive(Debug)]
struct Speaker {
    /// Where it is told that there is news.
    news: SyncSender<()>,
    /// Nothing is ever sent here: each side hears when the other lets go.
    leaving: SyncSender<()>,
    has_ended: Receiver<()>,
}

impl Notifier {
    pub(crate) fn new(server: Arc<Server>) -> Notifier {
        Notifier { server, has_spoken: false, unsaid: Arc::default(), thread: None }
    }

    /// Says it, and waits for nothing. The first time that is done through the writer's connection: a short command
    /// has only one thing to say, and needs no further connection for it.
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
            // Full: it is about to be said anyway.
            let _ = speaker.news.try_send(());
        }
        Ok(())
    }
}

/// Whoever leaves has said everything, unless the server does not listen.
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
