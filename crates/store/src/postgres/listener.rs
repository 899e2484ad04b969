//! Hearing from the server that another process has written.
//!
//! What is heard says nothing but "look", and may be lost. After every new connection a look is due, since nobody
//! knows what was said meanwhile. Behind a pooler nothing is heard at all, and the sweep finds what there is
//! (mail.md, M6).

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

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
    heard: Mutex<Option<watch::Receiver<u64>>>,
}

impl Listener {
    pub(crate) fn new(server: Arc<Server>) -> Listener {
        Listener { server, heard: Mutex::new(None) }
    }

    /// Changes when another process may have written.
    pub(crate) fn hear(&self) -> Result<watch::Receiver<u64>, StoreError> {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(heard) = &*heard {
            return Ok(heard.clone());
        }
        let (tell, hear) = watch::channel(0);
        let server = Arc::clone(&self.server);
        thread::Builder::new()
            .name("listener".to_owned())
            .spawn(move || listen(&server, &tell))
            .map_err(StoreError::internal)?;
        Ok(heard.insert(hear).clone())
    }
}

/// Listens until nobody wants to hear any more.
fn listen(server: &Server, tell: &watch::Sender<u64>) {
    let mut pause = Duration::from_millis(50);
    while !tell.is_closed() {
        if let Ok(Hearing::Nothing) = listen_once(server, tell, &mut pause) {
            break;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_secs(2));
    }
    // The receivers must not take the end of the thread for news.
    while !tell.is_closed() {
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
    tell: &watch::Sender<u64>,
    pause: &mut Duration,
) -> Result<Hearing, StoreError> {
    let failed = |error: ikigai_postgres::Error| server.error(&error);
    let mut client = server.connect()?;
    if client.is_behind_pooler() {
        return Ok(Hearing::Nothing);
    }
    client.script("LISTEN ikigai").map_err(failed)?;
    tell.send_modify(|count| *count += 1);
    *pause = Duration::from_millis(50);
    let mut last = Instant::now();
    while !tell.is_closed() {
        match client.notified(BREATH).map_err(failed)? {
            Some(process) => {
                last = Instant::now();
                if !server.is_own(process) {
                    tell.send_modify(|count| *count += 1);
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
