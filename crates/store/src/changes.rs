//! Notices that the database changed. A signal carries no data, and may be lost (M6).

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::error::StoreError;
use crate::sqlite::open_reader;

/// How often a file is checked for writes of other processes.
const POLL: Duration = Duration::from_millis(100);

/// Notices that the database changed. A signal carries no data, and may be lost.
#[derive(Debug)]
pub struct Changes {
    committed: watch::Receiver<u64>,
    others: Others,
}

/// How commits of other processes are noticed.
#[derive(Debug)]
enum Others {
    /// With a separate connection: SQLite counts the commits of other connections.
    File { connection: Connection, path: PathBuf, version: i64 },
    /// By notifications from the server.
    Server(watch::Receiver<u64>),
}

impl Changes {
    /// The maximum time to wait: signals may be lost, so a check is due from time to time (M6).
    pub const SWEEP: Duration = Duration::from_secs(2);

    pub(crate) fn of_file(
        committed: watch::Receiver<u64>,
        path: &Path,
    ) -> Result<Changes, StoreError> {
        let connection = open_reader(path)?;
        let others = Others::File { connection, path: path.to_owned(), version: 0 };
        let mut changes = Changes { committed, others };
        changes.others_wrote()?;
        Ok(changes)
    }

    pub(crate) fn of_server(
        committed: watch::Receiver<u64>,
        notified: watch::Receiver<u64>,
    ) -> Changes {
        Changes { committed, others: Others::Server(notified) }
    }

    /// Waits until something may have changed, for at most `limit`.
    ///
    /// # Cancel safety
    /// No change is lost if the future is dropped.
    pub async fn wait(&mut self, limit: Duration) -> Result<(), StoreError> {
        let deadline = Instant::now() + limit;
        while !self.others_wrote()? && Instant::now() < deadline {
            let (next_look, notified) = match &mut self.others {
                Others::File { .. } => (deadline.min(Instant::now() + POLL), None),
                Others::Server(notified) => (deadline, Some(notified)),
            };
            tokio::select! {
                changed = self.committed.changed() => {
                    return changed.map_err(|_| StoreError::Closed);
                }
                () = change(notified) => return Ok(()),
                () = sleep_until(next_look) => {}
            }
        }
        Ok(())
    }

    /// Whether another process wrote to the file. Takes microseconds, because it reads a number
    /// from shared memory.
    fn others_wrote(&mut self) -> Result<bool, StoreError> {
        let Others::File { connection, path, version } = &mut self.others else { return Ok(false) };
        let found = connection
            .pragma_query_value(None, "data_version", |row| row.get(0))
            .map_err(|error| StoreError::from_sqlite(&error, path))?;
        Ok(std::mem::replace(version, found) != found)
    }
}

/// Waits for a notification from the server, if there is a server.
async fn change(notified: Option<&mut watch::Receiver<u64>>) {
    if let Some(notified) = notified
        && notified.changed().await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}
