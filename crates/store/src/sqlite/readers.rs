//! A small pool of read-only connections. Readers and the writer never wait for each other.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;

use crate::clock::Clock;
use crate::error::StoreError;
use crate::unit::{Connection as UnitConnection, Unit};

use super::Transaction;
use super::open::open_reader;

/// How many connections are kept for the next readers. More readers at once open their own.
const KEPT: usize = 4;

#[derive(Debug, Clone)]
pub(crate) struct Readers {
    path: PathBuf,
    clock: Clock,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    pub(crate) fn new(path: PathBuf, clock: Clock) -> Readers {
        Readers { path, clock, idle: Arc::default() }
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `read` on one consistent view of the database.
    pub(crate) async fn read<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Unit<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        let readers = self.clone();
        tokio::task::spawn_blocking(move || readers.read_now(read))
            .await
            .map_err(StoreError::internal)?
    }

    fn read_now<T>(
        &self,
        read: impl FnOnce(&Unit<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match kept {
            Some(connection) => connection,
            None => open_reader(&self.path)?,
        };
        let failed = |error: rusqlite::Error| StoreError::from_sqlite(&error, &self.path);
        connection.execute_batch("BEGIN").map_err(failed)?;
        let view = Transaction { connection: &connection, path: &self.path, now: self.clock.now() };
        let value = read(&Unit::new(UnitConnection::Sqlite(view)));
        connection.execute_batch("COMMIT").map_err(failed)?;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT {
            idle.push(connection);
        }
        value
    }
}
