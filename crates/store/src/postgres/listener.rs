//! Listens to the server's notifications that another process has written.
//!
//! A notification only names a session, and may be lost. After every reconnect all sessions are
//! reported as changed, because notifications may have been missed. Behind a pooler there are no
//! notifications, and the sweep finds the changes (M6).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ikigai_conversation::SessionId;
use tokio::sync::watch;

use crate::error::StoreError;

use super::server::Server;

/// How soon a listener notices that it has no subscribers any more.
const BREATH: Duration = Duration::from_millis(500);
/// After this time without a notification the server is asked whether it is still there.
const SILENCE: Duration = Duration::from_secs(15);

/// Listens for a whole process, from the first subscription on.
#[derive(Debug)]
pub(crate) struct Listener {
    server: Arc<Server>,
    ears: Arc<Ears>,
}

/// The subscriptions. The listening thread holds them too, and ends when nothing else does.
#[derive(Debug, Default)]
struct Ears {
    /// By session.
    watches: Mutex<BTreeMap<SessionId, watch::Sender<u64>>>,
}

impl Listener {
    pub(crate) fn new(server: Arc<Server>) -> Listener {
        Listener { server, ears: Arc::default() }
    }

    /// Changes when another process may have written to the session.
    pub(crate) fn subscribe(&self, session: SessionId) -> Result<watch::Receiver<u64>, StoreError> {
        let mut watches = self.ears.watches();
        if !self.ears.are_listening() {
            let (server, ears) = (Arc::clone(&self.server), Arc::clone(&self.ears));
            thread::Builder::new()
                .name("listener".to_owned())
                .spawn(move || listen(&server, &ears))
                .map_err(StoreError::internal)?;
        }
        watches.retain(|_, tell| !tell.is_closed());
        Ok(watches.entry(session).or_insert_with(|| watch::channel(0).0).subscribe())
    }
}

impl Ears {
    fn watches(&self) -> MutexGuard<'_, BTreeMap<SessionId, watch::Sender<u64>>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notifies the subscribers of the session in a notification. If it names none, notifies all.
    fn tell(&self, text: &str) {
        let watches = self.watches();
        match SessionId::parse(text) {
            Ok(session) => watches.get(&session).into_iter().for_each(count_up),
            Err(_) => watches.values().for_each(count_up),
        }
    }

    /// Upgraded by the store: whether there is a thread.
    fn are_listening(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > 1
    }

    /// Upgraded by the thread: whether there is a store.
    fn are_wanted(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > 1
    }
}

fn count_up(tell: &watch::Sender<u64>) {
    tell.send_modify(|count| *count += 1);
}

/// Listens until there are no subscribers.
fn listen(server: &Server, ears: &Arc<Ears>) {
    let mut pause = Duration::from_millis(50);
    while ears.are_wanted() {
        if let Ok(Hearing::Nothing) = listen_once(server, ears, &mut pause) {
            break;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_secs(2));
    }
    // Behind a pooler, later subscriptions do not start another thread.
    while ears.are_wanted() {
        thread::sleep(BREATH);
    }
}

/// Why a connection is not used any more.
enum Hearing {
    /// There are no subscribers.
    Ended,
    /// It delivers no notifications.
    Nothing,
}

fn listen_once(
    server: &Server,
    ears: &Arc<Ears>,
    pause: &mut Duration,
) -> Result<Hearing, StoreError> {
    let failed = |error: ikigai_postgres::Error| server.error(&error);
    let mut client = server.connect()?;
    if client.is_behind_pooler() {
        return Ok(Hearing::Nothing);
    }
    client.script("LISTEN ikigai").map_err(failed)?;
    ears.tell("");
    *pause = Duration::from_millis(50);
    let mut last = Instant::now();
    while ears.are_wanted() {
        match client.notified(BREATH).map_err(failed)? {
            Some(notification) => {
                last = Instant::now();
                if !server.is_own(notification.process) {
                    ears.tell(&notification.text);
                }
            }
            None if last.elapsed() > SILENCE => {
                client.set_timeout(SILENCE).map_err(failed)?;
                client.ask("SELECT 1", &[]).map_err(failed)?;
                last = Instant::now();
            }
            None => {}
        }
    }
    Ok(Hearing::Ended)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn only_subscribers_of_a_session_are_notified() {
        let ears = Ears::default();
        let sessions = [SessionId::new(Uuid::now_v7()), SessionId::new(Uuid::now_v7())];
        let watch = |session| {
            let (tell, notified) = watch::channel(0);
            ears.watches().insert(session, tell);
            notified
        };
        let mut notified = sessions.map(watch);
        let mut check = |text: &str, expected: [bool; 2]| {
            ears.tell(text);
            let found = notified.each_mut().map(|notified| {
                let has_changed = notified.has_changed().unwrap();
                notified.mark_unchanged();
                has_changed
            });
            assert_eq!(found, expected, "{text}");
        };
        check(&sessions[0].to_string(), [true, false]);
        check(&SessionId::new(Uuid::now_v7()).to_string(), [false, false]);
        // A malformed notification concerns all.
        check("", [true, true]);
        check("more", [true, true]);
    }
}
