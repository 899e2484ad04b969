//! The store itself: opening, writing, reading.

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

/// An open database. Dropping it waits for what is still to be committed.
#[derive(Debug)]
pub struct Store {
    address: String,
    /// Closed before the writer: only the last connection to a file can empty its log.
    reading: Reading,
    writer: Writer,
    /// Why a commit is in doubt, while one is.
    doubt: watch::Receiver<Option<StoreError>>,
}

/// Where reads go, which never wait for the writer.
#[derive(Debug)]
enum Reading {
    Sqlite(sqlite::Readers),
    Postgres { readers: postgres::Readers, listener: Arc<postgres::Listener> },
}

/// How a database is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the time comes from: the database's own, but in tests.
    pub clock: Clock,
    /// Tells the name of a folder's file system when it is one of a network; replaced only in tests.
    pub network_file_system: fn(&Path) -> Option<&'static str>,
    /// Whether units lock what they are about; left out only in tests, to see what it is for.
    pub locks: Locks,
}

impl Default for Options {
    fn default() -> Options {
        Options { clock: Clock::Machine, network_file_system, locks: Locks::Taken }
    }
}

impl Store {
    /// Opens the database at `address` (`sqlite://PATH` or `postgres://…`), and makes its tables when they are not
    /// there.
    ///
    /// # Errors
    /// Says what is wrong with the ground it should stand on, and what to do about it.
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

    /// How many shared commits this process has tried so far; fewer than units when they share one.
    pub fn commits(&self) -> u64 {
        *self.writer.committed().borrow()
    }

    /// Looks whether the database is in order, and says in a few words what was found.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn check(&self) -> Result<String, StoreError> {
        match &self.reading {
            Reading::Sqlite(readers) => sqlite::check(readers.path()),
            Reading::Postgres { readers, .. } => readers.check(),
        }
    }

    /// A watch on changes of a session, by this process and by others. It may also tell of other changes.
    ///
    /// # Errors
    /// When the database cannot be opened once more.
    pub fn changes(&self, session: SessionId) -> Result<Changes, StoreError> {
        let committed = self.writer.committed();
        match &self.reading {
            Reading::Sqlite(readers) => Changes::of_file(committed, readers.path()),
            Reading::Postgres { listener, .. } => {
                Ok(Changes::heard(committed, listener.hear(session)?))
            }
        }
    }

    /// Waits until a server goes away in the middle of a commit, and says so. Whoever waits for that commit is
    /// answered only when it is known whether it happened, which may take long.
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
