//! A database per test.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use ikigai_conversation::{AgentId, SessionId};
use ikigai_store::{AgentLimits, Budget, Clock, Location, Opening, Options, Process, Store};
use tempfile::TempDir;
use uuid::Uuid;

use crate::postgres_server::{drop_database, fresh_database};
use crate::raw::Raw;
use crate::test_agent::{ROOM, TestAgent};

/// A budget that no test uses up by accident.
pub const PLENTY: Budget = Budget { wakes: 1_000_000, requests: 1_000_000 };

/// 2024-01-15T10:30:00Z, when every test starts.
const BEGINNING: i64 = 1_705_314_600_000;

/// The kind of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    Sqlite,
    /// A database on the server for all tests.
    Postgres,
}

/// A store for one test. Its clock only moves when the test advances it.
#[derive(Debug)]
pub struct TestStore {
    // Declared first, so that it is closed before its database is removed.
    store: Store,
    clock: Arc<AtomicI64>,
    database: TestDatabase,
}

/// The database of a test, which is removed with it.
#[derive(Debug)]
pub struct TestDatabase {
    kind: Kind,
    address: String,
    folder: TempDir,
}

impl TestDatabase {
    fn new(kind: Kind, folder: TempDir) -> TestDatabase {
        let address = match kind {
            Kind::Sqlite => format!("sqlite://{}", folder.path().join("store.db").display()),
            Kind::Postgres => fresh_database(),
        };
        TestDatabase { kind, address, folder }
    }

    /// A connection to it.
    pub fn raw(&self) -> Raw {
        Raw::open(&self.address)
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        if self.kind == Kind::Postgres {
            drop_database(&self.address);
        }
    }
}

impl TestStore {
    /// An empty database in a file.
    pub fn new() -> TestStore {
        TestStore::of(Kind::Sqlite)
    }

    /// An empty database.
    pub fn of(kind: Kind) -> TestStore {
        TestStore::in_folder(kind, tempfile::tempdir().unwrap())
    }

    /// A database whose flushes cost nothing, for tests with many thousand
    /// commits and no power loss.
    pub fn fast(kind: Kind) -> TestStore {
        let memory = Path::new("/dev/shm");
        let folder = match memory.is_dir() {
            true => tempfile::tempdir_in(memory).unwrap(),
            false => tempfile::tempdir().unwrap(),
        };
        TestStore::in_folder(kind, folder)
    }

    fn in_folder(kind: Kind, folder: TempDir) -> TestStore {
        let clock = Arc::new(AtomicI64::new(BEGINNING));
        let database = TestDatabase::new(kind, folder);
        let store = open(&database.address, &clock);
        TestStore { store, clock, database }
    }

    /// Opens the same database again, like another process, with the same clock.
    pub fn open_again(&self) -> Store {
        open(&self.database.address, &self.clock)
    }

    /// The same with other options.
    pub fn open_with(&self, options: Options) -> Store {
        let mut options = options;
        options.clock = Clock::Manual(Arc::clone(&self.clock));
        Store::open(&self.database.address, options).unwrap()
    }

    /// Closes the store. The database stays, and contains everything that was queued.
    pub fn close(self) -> TestDatabase {
        drop(self.store);
        self.database
    }

    /// The kind of database.
    pub fn kind(&self) -> Kind {
        self.database.kind
    }

    /// The address, with everything that is needed to open it.
    pub fn database(&self) -> &str {
        &self.database.address
    }

    /// The path of a database in a file.
    pub fn path(&self) -> PathBuf {
        assert_eq!(self.database.kind, Kind::Sqlite);
        self.folder().join("store.db")
    }

    /// A folder that is removed with the test.
    pub fn folder(&self) -> &Path {
        self.database.folder.path()
    }

    /// A separate connection, for inspecting and changing the database.
    pub fn raw(&self) -> Raw {
        self.database.raw()
    }

    /// The number that a query returns.
    #[track_caller]
    pub fn number(&self, sql: &str) -> i64 {
        self.raw().number(sql)
    }

    /// Advances the clock.
    pub fn advance(&self, time: Duration) {
        self.clock.fetch_add(i64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }

    /// A new session with `agents` top-level agents, all claimed by this process.
    pub async fn session_of(&self, agents: u32) -> (SessionId, Vec<TestAgent>) {
        let session = self.session_with(PLENTY).await;
        let mut all = Vec::new();
        for number in 0..agents {
            if number > 0 {
                let limits = AgentLimits { agents: 1_000, depth: 64 };
                self.add_agent(session, None, location(), limits).await.unwrap();
            }
            all.push(TestAgent::claim(self, session, AgentId::top_level(number)).await.unwrap());
        }
        (session, all)
    }

    /// A new session with agent `0/`, which no process runs.
    pub async fn session_with(&self, budget: Budget) -> SessionId {
        let new = SessionId::new(Uuid::now_v7());
        self.create_session(location(), new, budget).await.unwrap()
    }
}

impl Default for TestStore {
    fn default() -> TestStore {
        TestStore::new()
    }
}

impl Deref for TestStore {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

/// A location that does not exist.
pub fn location() -> Location {
    Location { machine: "machine".to_owned(), directory: "/work".to_owned() }
}

/// A process that opens a session at that location, without folders to write.
pub fn opening(process: Process) -> Opening {
    Opening { location: location(), process, roots: Vec::new(), budget: PLENTY, limits: ROOM }
}

fn open(address: &str, clock: &Arc<AtomicI64>) -> Store {
    let clock = Clock::Manual(Arc::clone(clock));
    let options = Options { clock, ..Options::default() };
    Store::open(address, options).unwrap()
}
