//! The store itself: opening, writing, reading, and noticing that something changed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::clock::Clock;
use crate::error::StoreError;
use crate::open::{check, network_file_system, open_reader, open_writer, parse_address};
use crate::readers::Readers;
use crate::unit::Unit;
use crate::writer::Writer;

/// How often the database is asked whether another process has written to it.
const POLL: Duration = Duration::from_millis(100);

/// An open database. Dropping it waits for what is still to be committed.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    writer: Writer,
    readers: Readers,
}

/// How a database is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the time comes from: the machine, but in tests.
    pub clock: Clock,
    /// Tells the name of a folder's file system when it is one of a network; replaced only in tests.
    pub network_file_system: fn(&Path) -> Option<&'static str>,
}

impl Default for Options {
    fn default() -> Options {
        Options { clock: Clock::Machine, network_file_system }
    }
}

impl Store {
    /// Opens the database at `address` (`sqlite://PATH`), and makes it when it is not there.
    ///
    /// # Errors
    /// Says what is wrong with the ground it should stand on, and what to do about it.
    pub fn open(address: &str, options: Options) -> Result<Store, StoreError> {
        let path = std::path::absolute(parse_address(address)?).map_err(StoreError::internal)?;
        let (connection, identity) = open_writer(&path, options.network_file_system)?;
        let writer = Writer::start(connection, path.clone(), identity, options.clock.clone())?;
        let readers = Readers::new(path.clone(), options.clock);
        Ok(Store { path, writer, readers })
    }

    /// The file of the database.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many shared commits this process has tried so far; fewer than units when they share one.
    pub fn commits(&self) -> u64 {
        *self.writer.committed().borrow()
    }

    /// Looks whether the database is in order, and says in a few words what was found.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn check(&self) -> Result<String, StoreError> {
        check(&self.path)
    }

    /// A watch on changes, by this process and by others.
    ///
    /// # Errors
    /// When the database cannot be opened once more.
    pub fn changes(&self) -> Result<Changes, StoreError> {
        Changes::watch(self.writer.committed(), &self.path)
    }

    /// Runs one unit of work to its commit.
    pub(crate) async fn commit<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Unit<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        self.writer.commit(work).await
    }

    /// Reads from one consistent view.
    pub(crate) async fn read<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Unit<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        self.readers.read(read).await
    }
}

/// Notices that the database changed. It does not say what: a signal carries no data and may be lost.
#[derive(Debug)]
pub struct Changes {
    committed: watch::Receiver<u64>,
    /// Its own connection: SQLite counts the commits of others per connection.
    connection: Connection,
    path: PathBuf,
    version: i64,
}

impl Changes {
    fn watch(committed: watch::Receiver<u64>, path: &Path) -> Result<Changes, StoreError> {
        let connection = open_reader(path)?;
        let mut changes = Changes { committed, connection, path: path.to_owned(), version: 0 };
        changes.others_wrote()?;
        Ok(changes)
    }

    /// How long to wait at most: a signal may be lost, so a look is due from time to time all the same (mail.md, M6).
    pub const SWEEP: Duration = Duration::from_secs(2);

    /// Waits until something may have changed, `limit` at most.
    ///
    /// # Cancel safety
    /// A change is not forgotten when the future is dropped.
    pub async fn wait(&mut self, limit: Duration) -> Result<(), StoreError> {
        let deadline = Instant::now() + limit;
        while !self.others_wrote()? && Instant::now() < deadline {
            let next_look = deadline.min(Instant::now() + POLL);
            tokio::select! {
                changed = self.committed.changed() => {
                    return changed.map_err(|_| StoreError::Closed);
                }
                () = sleep_until(next_look) => {}
            }
        }
        Ok(())
    }

    /// Microseconds: it reads a number from shared memory.
    fn others_wrote(&mut self) -> Result<bool, StoreError> {
        let version = self
            .connection
            .pragma_query_value(None, "data_version", |row| row.get(0))
            .map_err(|error| StoreError::from_sqlite(&error, &self.path))?;
        Ok(std::mem::replace(&mut self.version, version) != version)
    }
}
