//! A database per test.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use ikigai_conversation::{AgentId, SessionId};
use ikigai_store::{AgentLimits, Budget, Clock, Options, Place, Store};
use tempfile::TempDir;
use uuid::Uuid;

use crate::postgres_server::{drop_database, fresh_database};
use crate::raw::Raw;
use crate::test_agent::TestAgent;

/// A budget that no test uses up by chance.
pub const PLENTY: Budget = Budget { wakes: 1_000_000, requests: 1_000_000 };

/// 2024-01-15T10:30:00Z, when every test begins.
const BEGINNING: i64 = 1_705_314_600_000;

/// Which database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    Sqlite,
    /// A database on the server of all tests.
    Postgres,
}

/// A store of its own. Its clock stands still until the test turns it.
#[derive(Debug)]
pub struct TestStore {
    // Declared first, so that it is closed before its database goes.
    store: Store,
    clock: Arc<AtomicI64>,
    database: TestDatabase,
}

/// What goes with the test.
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

    /// One where a flush costs nothing, for tests that commit many thousand times and cut no power.
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

    /// The same database, opened once more as another process would, with the same clock.
    pub fn open_again(&self) -> Store {
        open(&self.database.address, &self.clock)
    }

    /// The same, with options of the test's own beside that clock.
    pub fn open_with(&self, options: Options) -> Store {
        let mut options = options;
        options.clock = Clock::Manual(Arc::clone(&self.clock));
        Store::open(&self.database.address, options).unwrap()
    }

    /// Closes the store; the database stays, and what was queued is in it.
    pub fn close(self) -> TestDatabase {
        drop(self.store);
        self.database
    }

    /// Which database it is.
    pub fn kind(&self) -> Kind {
        self.database.kind
    }

    /// The address, with all that is needed to open it.
    pub fn database(&self) -> &str {
        &self.database.address
    }

    /// The file, of a database that is one.
    pub fn path(&self) -> PathBuf {
        assert_eq!(self.database.kind, Kind::Sqlite);
        self.folder().join("store.db")
    }

    /// A folder that goes with the test.
    pub fn folder(&self) -> &Path {
        self.database.folder.path()
    }

    /// A connection beside the store's own, to look or to meddle.
    pub fn raw(&self) -> Raw {
        self.database.raw()
    }

    /// The number that `sql` asks for.
    #[track_caller]
    pub fn number(&self, sql: &str) -> i64 {
        self.raw().number(sql)
    }

    /// Turns the clock on.
    pub fn advance(&self, time: Duration) {
        self.clock.fetch_add(i64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }

    /// A new session with `agents` top-level agents, all run by this process.
    pub async fn session_of(&self, agents: u32) -> (SessionId, Vec<TestAgent>) {
        let session = self.session_with(PLENTY).await;
        let mut all = Vec::new();
        for number in 0..agents {
            if number > 0 {
                let limits = AgentLimits { agents: 1_000, depth: 64 };
                self.add_agent(session, None, place(), limits).await.unwrap();
            }
            all.push(TestAgent::claim(self, session, AgentId::top_level(number)).await.unwrap());
        }
        (session, all)
    }

    /// A new session with agent `0/`, which nobody runs.
    pub async fn session_with(&self, budget: Budget) -> SessionId {
        let new = SessionId::new(Uuid::now_v7());
        self.create_session(place(), new, budget).await.unwrap()
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

/// A place that is nobody's.
pub fn place() -> Place {
    Place { machine: "machine".to_owned(), directory: "/work".to_owned() }
}

fn open(address: &str, clock: &Arc<AtomicI64>) -> Store {
    let clock = Clock::Manual(Arc::clone(clock));
    let options = Options { clock, ..Options::default() };
    Store::open(address, options).unwrap()
}
