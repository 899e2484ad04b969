//! A few read-only connections. More readers than these have to wait, because a server's
//! connections are limited.

use std::sync::{Arc, Mutex, PoisonError};

use ikigai_postgres::Client;
use tokio::sync::Semaphore;

use crate::clock::Clock;
use crate::error::StoreError;
use crate::sql::params;
use crate::unit::{Connection, Unit};

use super::server::Server;
use super::transaction::Transaction;

/// With the writer, the notifier and the listener a process has at most five connections.
const READERS: usize = 2;

#[derive(Debug, Clone)]
pub(crate) struct Readers {
    server: Arc<Server>,
    clock: Clock,
    turns: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Client>>>,
}

impl Readers {
    pub(crate) fn new(server: Arc<Server>, clock: Clock) -> Readers {
        let turns = Arc::new(Semaphore::new(READERS));
        Readers { server, clock, turns, idle: Arc::default() }
    }

    /// Runs `read` on one consistent view of the database.
    pub(crate) async fn read<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Unit<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let turn = turn.map_err(|_| StoreError::Closed)?;
        let readers = self.clone();
        tokio::task::spawn_blocking(move || {
            let value = readers.read_now(read);
            drop(turn);
            value
        })
        .await
        .map_err(StoreError::internal)?
    }

    fn read_now<T>(
        &self,
        read: impl FnOnce(&Unit<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut client = match Server::still_good(kept) {
            Some(client) => client,
            None => self.server.connect()?,
        };
        let view = Transaction::view(&mut client, &self.server, &self.clock);
        let value = read(&Unit::new(Connection::Postgres(&view)));
        // A connection that failed is not used again.
        if view.end().is_ok() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(client);
        }
        value
    }

    /// Checks whether the database is intact, and returns a short description.
    pub(crate) fn check(&self) -> Result<String, StoreError> {
        self.read_now(|unit| {
            let sql = "SELECT current_setting('server_version'), current_setting('fsync'),
                current_setting('full_page_writes'), (SELECT count(*) FROM sessions),
                (SELECT count(*) FROM messages), (SELECT count(*) FROM mail)";
            let found = unit.row(sql, params![], |row| {
                let durable = ["fsync", "full_page_writes"].into_iter().zip([1, 2]);
                let mut lax = Vec::new();
                for (name, column) in durable {
                    if row.text(column)? != "on" {
                        lax.push(name);
                    }
                }
                let text = format!(
                    "PostgreSQL {}; sessions: {}, log messages: {}, mail: {}",
                    row.text(0)?.split(' ').next().unwrap_or_default(),
                    row.get::<i64>(3)?,
                    row.get::<i64>(4)?,
                    row.get::<i64>(5)?
                );
                Ok((text, lax))
            })?;
            match found {
                Some((text, lax)) if lax.is_empty() => Ok(self.server.hide_password(&text)),
                Some((_, lax)) => {
                    let reason =
                        format!("{} is off, so that a power cut loses mail", lax.join(" and "));
                    Err(self.server.refuses(&reason, "turn it on in the server's postgresql.conf"))
                }
                None => Err(StoreError::internal("the server says nothing")),
            }
        })
    }
}
