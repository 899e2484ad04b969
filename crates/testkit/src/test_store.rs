//! A database per test.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use ikigai_conversation::{AgentId, SessionId};
use ikigai_store::{AgentLimits, Budget, Clock, Options, Place, Store};
use rusqlite::Connection;
use tempfile::TempDir;
use uuid::Uuid;

use crate::test_agent::TestAgent;

/// A budget that no test uses up by chance.
pub const PLENTY: Budget = Budget { wakes: 1_000_000, requests: 1_000_000 };

/// 2024-01-15T10:30:00Z, when every test begins.
const BEGINNING: i64 = 1_705_314_600_000;

/// A store in a folder of its own. Its clock stands still until the test turns it.
#[derive(Debug)]
pub struct TestStore {
    // Declared first, so that it is closed before its folder goes.
    store: Store,
    clock: Arc<AtomicI64>,
    folder: TempDir,
}

impl TestStore {
    /// An empty database.
    pub fn new() -> TestStore {
        TestStore::in_folder(tempfile::tempdir().unwrap())
    }

    /// One where a flush costs nothing, for tests that commit many thousand times and cut no power.
    pub fn fast() -> TestStore {
        let memory = Path::new("/dev/shm");
        TestStore::in_folder(match memory.is_dir() {
            true => tempfile::tempdir_in(memory).unwrap(),
            false => tempfile::tempdir().unwrap(),
        })
    }

    fn in_folder(folder: TempDir) -> TestStore {
        let clock = Arc::new(AtomicI64::new(BEGINNING));
        let store = open(&folder.path().join("store.db"), &clock);
        TestStore { store, clock, folder }
    }

    /// The same database, opened once more as another process would, with the same clock.
    pub fn open_again(&self) -> Store {
        open(&self.path(), &self.clock)
    }

    /// Closes the store; the folder stays, and what was queued is in the file.
    pub fn close(self) -> (TempDir, PathBuf) {
        let path = self.path();
        drop(self.store);
        (self.folder, path)
    }

    /// The file.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    /// The folder it lies in.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A connection beside the store's own, to look or to meddle.
    pub fn raw(&self) -> Connection {
        let connection = Connection::open(self.path()).unwrap();
        connection.busy_timeout(Duration::from_secs(60)).unwrap();
        connection
    }

    /// The number that `sql` asks for.
    #[track_caller]
    pub fn number(&self, sql: &str) -> i64 {
        self.raw().query_row(sql, [], |row| row.get(0)).unwrap()
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

fn open(path: &Path, clock: &Arc<AtomicI64>) -> Store {
    let clock = Clock::Manual(Arc::clone(clock));
    let options = Options { clock, ..Options::default() };
    Store::open(&format!("sqlite://{}", path.display()), options).unwrap()
}
