//! The one writer of a process: units of work wait in a queue, and those that wait together share a commit.
//!
//! A durable commit costs a flush of the disk, whatever it holds. So the writer takes all units that are
//! waiting into one transaction, each behind a savepoint of its own: one that fails takes back its own
//! changes and nobody else's. Everybody is answered after the commit, never before.

use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};
use tokio::sync::{mpsc, oneshot, watch};

use crate::clock::Clock;
use crate::error::StoreError;
use crate::open::{FileIdentity, leave};
use crate::unit::Unit;

/// How many units may wait. A sender that finds the queue full waits for room.
const QUEUE: usize = 1_024;
/// How many units share a commit at most, so that the first of them is not kept waiting for long.
const SHARED: usize = 256;
/// How long another process may keep the database to itself. A commit takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// Told after the commit: the outcome of a unit, or why there was none.
type Answer = Box<dyn FnOnce(Result<(), StoreError>) + Send>;
/// A unit's work inside the shared transaction.
type Job = Box<dyn FnOnce(&Unit<'_>) -> Answer + Send>;

/// The queue to the writer's thread.
#[derive(Debug)]
pub(crate) struct Writer {
    /// `None` only while the writer is being dropped.
    queue: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    committed: watch::Receiver<u64>,
}

impl Writer {
    pub(crate) fn start(
        connection: Connection,
        path: PathBuf,
        identity: FileIdentity,
        clock: Clock,
    ) -> Result<Writer, StoreError> {
        let (queue, jobs) = mpsc::channel(QUEUE);
        let (commits, committed) = watch::channel(0);
        let work = WriterThread { connection, path, identity, clock, jobs, commits };
        let thread = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || work.run())
            .map_err(StoreError::internal)?;
        Ok(Writer { queue: Some(queue), thread: Some(thread), committed })
    }

    /// Runs `work` as one unit: when this returns `Ok` it is durable, else nothing of it happened.
    ///
    /// # Cancel safety
    /// A unit whose future is dropped may still be committed.
    pub(crate) async fn commit<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Unit<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |unit| match unit.in_savepoint(work) {
            Ok(value) => Box::new(move |committed| {
                // Nobody may be waiting for it any more.
                let _ = answer.send(committed.map(|()| value));
            }),
            Err(error) => Box::new(move |_| {
                let _ = answer.send(Err(error));
            }),
        });
        let queue = self.queue.as_ref().ok_or(StoreError::Closed)?;
        queue.send(job).await.map_err(|_| StoreError::Closed)?;
        answered.await.map_err(|_| StoreError::Closed)?
    }

    /// Counts this process's commits: a signal that something changed, without saying what.
    pub(crate) fn committed(&self) -> watch::Receiver<u64> {
        self.committed.clone()
    }
}

/// Waits until everything in the queue is committed.
impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct WriterThread {
    connection: Connection,
    path: PathBuf,
    identity: FileIdentity,
    clock: Clock,
    jobs: mpsc::Receiver<Job>,
    commits: watch::Sender<u64>,
}

impl WriterThread {
    fn run(mut self) {
        while let Some(first) = self.jobs.blocking_recv() {
            let mut answers = Vec::new();
            let outcome = self.shared_commit(first, &mut answers);
            for answer in answers {
                answer(outcome.clone());
            }
            self.commits.send_modify(|count| *count += 1);
        }
        leave(self.connection, &self.path);
    }

    /// One transaction for `first` and all that wait behind it.
    fn shared_commit(&mut self, first: Job, answers: &mut Vec<Answer>) -> Result<(), StoreError> {
        if let Err(error) = self.begin_here() {
            // Run outside of a transaction, they do nothing but answer; who has waited with the first has
            // waited long enough.
            let refused = Unit::refused(&self.connection, error.clone());
            answers.push(first(&refused));
            while let Ok(job) = self.jobs.try_recv() {
                answers.push(job(&refused));
            }
            return Err(error);
        }
        let unit = Unit::new(&self.connection, self.clock.now(), &self.path);
        answers.push(first(&unit));
        while answers.len() < SHARED
            && let Ok(job) = self.jobs.try_recv()
        {
            answers.push(job(&unit));
        }
        let committed = unit.finish().and_then(|()| {
            self.connection
                .execute_batch("COMMIT")
                .map_err(|error| StoreError::from_sqlite(&error, &self.path))
        });
        if committed.is_err() && !self.connection.is_autocommit() {
            // Left open, it would let no other one begin.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        committed
    }

    /// Takes the write lock, and then looks whether the file is still the one that others would open: it may
    /// have been moved while we waited.
    fn begin_here(&self) -> Result<(), StoreError> {
        self.begin()?;
        self.identity.require_same(&self.path).inspect_err(|_| {
            let _ = self.connection.execute_batch("ROLLBACK");
        })
    }

    /// Takes the write lock.
    ///
    /// BEGIN IMMEDIATE: a plain BEGIN takes the write lock late and fails with BUSY although we would wait.
    /// The waiting is our own, short and random: SQLite's back-off grows, and then whoever came last wins
    /// against who has waited longest.
    fn begin(&self) -> Result<(), StoreError> {
        let started = Instant::now();
        let mut jitter = Jitter::new();
        loop {
            match self.connection.execute_batch("BEGIN IMMEDIATE") {
                Err(error)
                    if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                        && started.elapsed() < PATIENCE =>
                {
                    std::thread::sleep(jitter.pause());
                }
                begun => return begun.map_err(|error| StoreError::from_sqlite(&error, &self.path)),
            }
        }
    }
}

/// Random pauses between 0.1 and 2 ms; the randomness need not be good, only different per process.
struct Jitter(u64);

impl Jitter {
    fn new() -> Jitter {
        let seed = u64::from(std::process::id()) << 20;
        let time = Instant::now();
        Jitter(seed ^ (std::ptr::from_ref(&time).addr() as u64) | 1)
    }

    fn pause(&mut self) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        Duration::from_micros(100 + self.0 % 1_900)
    }
}
