//! Hearing from the server that another process has written.
//!
//! What is heard says nothing but "look" and at which session, and may be lost. After every new connection a look is due, since nobody
//! knows what was said meanwhile. Behind a pooler nothing is heard at all, and the sweep finds what there is
//! (M6).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ikigai_conversation::SessionId;
use tokio::sync::watch;

use crate::error::StoreError;

use super::server::Server;

/// How soon a listener notices that nobody wants to hear any more.
const BREATH: Duration = Duration::from_millis(500);
/// After so long without a word the server is asked whether it is still there.
const SILENCE: Duration = Duration::from_secs(15);

/// Hears for a whole process, from the first time that somebody wants to.
#[derive(Debug)]
pub(crate) struct Listener {
    server: Arc<Server>,
    ears: Arc<Ears>,
}

/// Who wants to hear. The listening thread has it too, and ends when nobody else has.
#[derive(Debug, Default)]
struct Ears {
    /// By the session of which something is to be heard.
    watches: Mutex<BTreeMap<SessionId, watch::Sender<u64>>>,
}

impl Listener {
    pub(crate) fn new(server: Arc<Server>) -> Listener {
        Listener { server, ears: Arc::default() }
    }

    /// Changes when another process may have written to a session.
    pub(crate) fn hear(&self, session: SessionId) -> Result<watch::Receiver<u64>, StoreError> {
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

    /// Tells those who watch the session that a notification names; when it names none, all.
    fn tell(&self, text: &str) {
        let watches = self.watches();
        match SessionId::parse(text) {
            Ok(session) => watches.get(&session).into_iter().for_each(count_up),
            Err(_) => watches.values().for_each(count_up),
        }
    }

    /// Asked by the store: whether there is a thread.
    fn are_listening(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > 1
    }

    /// Asked by the thread: whether there is a store.
    fn are_wanted(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > 1
    }
}

fn count_up(tell: &watch::Sender<u64>) {
    tell.send_modify(|count| *count += 1);
}

/// Listens until nobody wants to hear any more.
fn listen(server: &Server, ears: &Arc<Ears>) {
    let mut pause = Duration::from_millis(50);
    while ears.are_wanted() {
        if let Ok(Hearing::Nothing) = listen_once(server, ears, &mut pause) {
            break;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_secs(2));
    }
    // Nobody else begins to listen where nothing can be heard.
    while ears.are_wanted() {
        thread::sleep(BREATH);
    }
}

/// Why a connection is not listened to any more.
enum Hearing {
    /// Nobody wants to.
    Ended,
    /// Nothing comes through it.
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
    fn only_who_watches_a_session_is_told_of_it() {
        let ears = Ears::default();
        let sessions = [SessionId::new(Uuid::now_v7()), SessionId::new(Uuid::now_v7())];
        let watch = |session| {
            let (tell, heard) = watch::channel(0);
            ears.watches().insert(session, tell);
            heard
        };
        let mut heard = sessions.map(watch);
        let mut check = |text: &str, expected: [bool; 2]| {
            ears.tell(text);
            let found = heard.each_mut().map(|heard| {
                let has_changed = heard.has_changed().unwrap();
                heard.mark_unchanged();
                has_changed
            });
            assert_eq!(found, expected, "{text}");
        };
        check(&sessions[0].to_string(), [true, false]);
        check(&SessionId::new(Uuid::now_v7()).to_string(), [false, false]);
        // What nobody understands concerns everybody.
        check("", [true, true]);
        check("more", [true, true]);
    }
}
