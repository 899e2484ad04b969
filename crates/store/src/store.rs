//! The store: opening, writing, reading.

use std::path::Path;
use std::sync::Arc;

use ikigai_conversation::SessionId;
use tokio::sync::watch;

use crate::address::Address;
use crate::changes::Changes;
use crate::clock::Clock;
use crate::error::StoreError;
use crate::letters::Letter;
use crate::postgres::{self, Locks, Postgres};
use crate::sqlite::{self, Sqlite, network_file_system};
use crate::steps::Outcome;
use crate::unit::Unit;
use crate::writer::{Database, Scope, Writer};

/// An open database. Dropping it waits for pending commits.
#[derive(Debug)]
pub struct Store {
    address: String,
    /// Closed before the writer: only the last connection to a file can empty its log.
    reading: Reading,
    writer: Writer,
    /// Why a commit is in doubt, while one is.
    doubt: watch::Receiver<Option<StoreError>>,
}

/// The connections for reads, which never wait for the writer.
#[derive(Debug)]
enum Reading {
    Sqlite(sqlite::Readers),
    Postgres { readers: postgres::Readers, listener: Arc<postgres::Listener> },
}

/// How a database is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// The source of the time. Only tests change it.
    pub clock: Clock,
    /// Returns the name of a folder's file system if it is a network file system. Only tests
    /// replace it.
    pub network_file_system: fn(&Path) -> Option<&'static str>,
    /// Whether units take locks. Only tests turn them off, to show what they are for.
    pub locks: Locks,
}

impl Default for Options {
    fn default() -> Options {
        Options { clock: Clock::Machine, network_file_system, locks: Locks::Taken }
    }
}

impl Store {
    /// Opens the database at `address` (`sqlite://PATH` or `postgres://…`), and creates its tables
    /// if they do not exist.
    ///
    /// # Errors
    /// If the database cannot be used. The error says what to do about it.
    pub fn open(address: &str, options: Options) -> Result<Store, StoreError> {
        let Options { clock, network_file_system, locks } = options;
        let address = Address::parse(address)?;
        let shown = address.shown();
        let (doubts, doubt) = watch::channel(None);
        let (database, reading): (Box<dyn Database>, Reading) = match address {
            Address::Sqlite(path) => {
                let (connection, identity) = sqlite::open_writer(&path, network_file_system)?;
                let readers = sqlite::Readers::new(path.clone(), clock.clone());
                let writer = Sqlite { connection, path, identity, clock };
                (Box::new(writer), Reading::Sqlite(readers))
            }
            Address::Postgres(address) => {
                let server = Arc::new(postgres::Server::new(address));
                let readers = postgres::Readers::new(Arc::clone(&server), clock.clone());
                let listener = Arc::new(postgres::Listener::new(Arc::clone(&server)));
                let writer = Postgres::open(server, clock, locks, doubts)?;
                (Box::new(writer), Reading::Postgres { readers, listener })
            }
        };
        Ok(Store { address: shown, writer: Writer::start(database)?, reading, doubt })
    }

    /// The address of the database, without a password.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// How many shared commits this process has attempted. Units can share a commit, so there can
    /// be more units.
    pub fn commits(&self) -> u64 {
        *self.writer.committed().borrow()
    }

    /// Checks whether the database is intact, and returns a short description.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn check(&self) -> Result<String, StoreError> {
        match &self.reading {
            Reading::Sqlite(readers) => sqlite::check(readers.path()),
            Reading::Postgres { readers, .. } => readers.check(),
        }
    }

    /// Watches for changes of a session by this process and others. It may
    /// also report other changes.
    ///
    /// # Errors
    /// If another connection to the database cannot be opened.
    pub fn changes(&self, session: SessionId) -> Result<Changes, StoreError> {
        let committed = self.writer.committed();
        match &self.reading {
            Reading::Sqlite(readers) => Changes::of_file(committed, readers.path()),
            Reading::Postgres { listener, .. } => {
                Ok(Changes::of_server(committed, listener.subscribe(session)?))
            }
        }
    }

    /// Waits until the server becomes unreachable in the middle of a commit, and returns the error.
    /// The commit itself only returns once its fate is known, which may take long.
    pub async fn in_doubt(&self) -> StoreError {
        let mut doubt = self.doubt.clone();
        match doubt.wait_for(Option::is_some).await.map(|doubt| doubt.clone()) {
            Ok(Some(error)) => error,
            // A file is never in doubt.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    /// Runs one unit of work to its commit.
    pub(crate) async fn commit<T, F>(&self, scope: Scope, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Unit<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        self.writer.commit(scope, work).await
    }

    /// Sends a letter.
    pub(crate) async fn post(&self, letter: Letter) -> Result<Outcome, StoreError> {
        self.writer.post(letter).await
    }

    /// Reads from one consistent view.
    pub(crate) async fn read<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Unit<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        match &self.reading {
            Reading::Sqlite(readers) => readers.read(read).await,
            Reading::Postgres { readers, .. } => readers.read(read).await,
        }
    }
}
