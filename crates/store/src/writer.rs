//! The one writer of a process: units of work wait in a queue, and those that wait together share a commit.
//!
//! A durable commit costs a flush of the disk, whatever it holds. So the writer takes all units that are
//! waiting into one transaction, each behind a savepoint of its own: one that fails takes back its own
//! changes and nobody else's. Everybody is answered after the commit, never before.
//!
//! In a shared database a transaction holds the lock of what its units are about, and only units about the same
//! session share one: a transaction that locked two sessions could meet one that locks them the other way round.

use std::collections::VecDeque;
use std::thread::JoinHandle;

use ikigai_conversation::{AgentId, SessionId};
use tokio::sync::{mpsc, oneshot, watch};

use crate::error::StoreError;
use crate::sessions::Place;
use crate::unit::Unit;

/// How many units may wait. A sender that finds the queue full waits for room.
const QUEUE: usize = 1_024;
/// How many units share a commit at most, so that the first of them is not kept waiting for long.
const SHARED: usize = 256;

/// A database, as its writer's thread uses it.
pub(crate) trait Database: Send {
    /// One transaction around `work`. When it could not begin, `work` is called all the same, with a unit that
    /// refuses everything.
    fn transaction(
        &mut self,
        scope: &Scope,
        work: &mut dyn FnMut(&Unit<'_>),
    ) -> Result<(), StoreError>;

    /// Whether units about different things may share a transaction.
    fn is_shared_by_all(&self) -> bool;

    /// Everybody was answered.
    fn say_news(&mut self) {}

    /// The last thing that is done.
    fn leave(self: Box<Self>);
}

/// What a unit is about: nobody else writes there until it is committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scope {
    /// A session and all that belongs to it.
    Session(SessionId),
    /// Which sessions a place has.
    Place(Place),
    /// Something that is nobody else's, or that one statement does.
    Own,
}

/// Mail that a unit is going to send, if nothing is against it. What is known beforehand of all units of a transaction is
/// asked for at once.
#[derive(Debug, Clone)]
pub(crate) struct Sending {
    pub(crate) from: AgentId,
    pub(crate) to: AgentId,
}

/// Told after the commit: the outcome of a unit, or why there was none.
type Answer = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// A unit's work inside the shared transaction.
struct Job {
    scope: Scope,
    sending: Option<Sending>,
    work: Box<dyn FnOnce(&Unit<'_>) -> Answer + Send>,
}

/// The queue to the writer's thread.
#[derive(Debug)]
pub(crate) struct Writer {
    /// `None` only while the writer is being dropped.
    queue: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    committed: watch::Receiver<u64>,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job").field("scope", &self.scope).finish_non_exhaustive()
    }
}

impl Writer {
    pub(crate) fn start(database: Box<dyn Database>) -> Result<Writer, StoreError> {
        let (queue, jobs) = mpsc::channel(QUEUE);
        let (commits, committed) = watch::channel(0);
        let work = WriterThread { database, jobs, waiting: VecDeque::new(), commits };
        let thread = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || work.run())
            .map_err(StoreError::internal)?;
        Ok(Writer { queue: Some(queue), thread: Some(thread), committed })
    }

    /// Runs `work` as one unit: when this returns `Ok` it is durable, else nothing of it happened. Only of
    /// [`StoreError::Uncertain`] nobody knows: a server went away in the moment of the commit, and stayed away.
    ///
    /// # Cancel safety
    /// A unit whose future is dropped may still be committed.
    pub(crate) async fn commit<T, F>(
        &self,
        scope: Scope,
        sending: Option<Sending>,
        work: F,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Unit<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let work: Box<dyn FnOnce(&Unit<'_>) -> Answer + Send> =
            Box::new(move |unit| match unit.in_savepoint(work) {
                Ok(value) => Box::new(move |committed| {
                    // Nobody may be waiting for it any more.
                    let _ = answer.send(committed.map(|()| value));
                }),
                Err(error) => Box::new(move |_| {
                    let _ = answer.send(Err(error));
                }),
            });
        let queue = self.queue.as_ref().ok_or(StoreError::Closed)?;
        queue.send(Job { scope, sending, work }).await.map_err(|_| StoreError::Closed)?;
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
    database: Box<dyn Database>,
    jobs: mpsc::Receiver<Job>,
    /// Taken from the queue, and about something else than the transaction that was under way. Never more than
    /// the queue can hold.
    waiting: VecDeque<Job>,
    commits: watch::Sender<u64>,
}

impl WriterThread {
    fn run(mut self) {
        while let Some(first) = self.waiting.pop_front().or_else(|| self.jobs.blocking_recv()) {
            let (outcome, answers) = self.shared_commit(first);
            for answer in answers {
                answer(outcome.clone());
            }
            self.commits.send_modify(|count| *count += 1);
            self.database.say_news();
        }
        self.database.leave();
    }

    /// One transaction for `first` and all that wait behind it and may share it.
    fn shared_commit(&mut self, first: Job) -> (Result<(), StoreError>, Vec<Answer>) {
        let mut answers = Vec::new();
        let scope = first.scope.clone();
        let is_shared_by_all = self.database.is_shared_by_all();
        let (jobs, waiting) = (&mut self.jobs, &mut self.waiting);
        let mut first = Some(first);
        let mut next =
            || first.take().or_else(|| next_about(&scope, is_shared_by_all, jobs, waiting));
        let outcome = self.database.transaction(&scope, &mut |unit| {
            let mut last: Option<Answer> = None;
            let mut room = SHARED;
            loop {
                let group: Vec<Job> = std::iter::from_fn(&mut next).take(room).collect();
                if group.is_empty() {
                    break;
                }
                room -= group.len();
                unit.expect(&scope, group.iter().filter_map(|job| job.sending.as_ref()));
                for job in group {
                    keep(&mut answers, last.take(), unit);
                    last = Some((job.work)(unit));
                }
            }
            match answers.is_empty() {
                // Alone, its fate is that of the commit.
                true => answers.extend(last),
                false => keep(&mut answers, last, unit),
            }
        });
        (outcome, answers)
    }
}

/// Keeps an answer for after the commit, unless the unit turns out to have failed.
fn keep(answers: &mut Vec<Answer>, answer: Option<Answer>, unit: &Unit<'_>) {
    let Some(answer) = answer else { return };
    match unit.settle() {
        Ok(()) => answers.push(answer),
        Err(error) => answer(Err(error)),
    }
}

/// The next unit that may share a transaction about `scope`; others go on waiting, in their order.
fn next_about(
    scope: &Scope,
    is_shared_by_all: bool,
    jobs: &mut mpsc::Receiver<Job>,
    waiting: &mut VecDeque<Job>,
) -> Option<Job> {
    let may_share =
        |job: &Job| is_shared_by_all || (matches!(scope, Scope::Session(_)) && job.scope == *scope);
    if let Some(at) = waiting.iter().position(may_share) {
        return waiting.remove(at);
    }
    while waiting.len() < QUEUE
        && let Ok(job) = jobs.try_recv()
    {
        if may_share(&job) {
            return Some(job);
        }
        waiting.push_back(job);
    }
    None
}
