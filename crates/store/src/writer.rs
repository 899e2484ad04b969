//! The single writer of a process: units of work wait in a queue, and those that wait together
//! share a commit.
//!
//! A durable commit costs a disk flush, whatever it contains. So the writer runs all waiting units
//! in one transaction, each behind its own savepoint: a failed unit rolls back its own changes
//! only. Callers get their results after the commit, never before.
//!
//! In a shared database, a transaction locks what its units are about, and only units about the
//! same session share one. If a transaction locked two sessions, it could deadlock with one that
//! locks them in the other order.

use std::collections::VecDeque;
use std::thread::JoinHandle;

use ikigai_conversation::SessionId;
use tokio::sync::{mpsc, oneshot, watch};

use crate::error::StoreError;
use crate::letters::Letter;
use crate::sessions::Location;
use crate::steps::Outcome;
use crate::unit::Unit;

/// How many units may wait. Callers wait while the queue is full.
const QUEUE_LIMIT: usize = 1_024;
/// How many units may share a commit, so that the first does not wait for long.
const MAX_SHARED: usize = 256;

/// A database, as the writer's thread uses it.
pub(crate) trait Database: Send {
    /// Runs `work` in a transaction. If the transaction cannot start, `work` is still called, with
    /// a unit that refuses everything.
    fn transaction(
        &mut self,
        scope: &Scope,
        work: &mut dyn FnMut(&Unit<'_>),
    ) -> Result<(), StoreError>;

    /// What may share a transaction.
    fn sharing(&self) -> Sharing;

    /// Posts letters of one session in one transaction, and returns the ids of their mail. A letter
    /// that cannot be sent has no id, and nothing of it is done: a unit finds out why. If
    /// everything is shared, all letters are units.
    fn post(
        &mut self,
        _session: &SessionId,
        letters: &[Letter],
    ) -> Result<Vec<Option<i64>>, StoreError> {
        Ok(vec![None; letters.len()])
    }

    /// Called when all callers have their results.
    fn notify(&mut self) {}

    /// Called last.
    fn close(self: Box<Self>);
}

/// What a unit is about. Nothing else writes there until it is committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scope {
    /// A session with everything that belongs to it.
    Session(SessionId),
    /// Which sessions a location has.
    Location(Location),
    /// Something that no other unit uses, or that a single statement does.
    Own,
}

/// What may share a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// All units, whatever they are about. Letters are run as units.
    Everything,
    /// Units about one session; and letters of one session, which are posted together.
    Session,
}

/// Called after the commit with its result, to answer the caller.
type Answer = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// The work of a unit inside the shared transaction.
type UnitWork = Box<dyn FnOnce(&Unit<'_>) -> Answer + Send>;

enum Work {
    Unit(UnitWork),
    Letter(Letter, oneshot::Sender<Result<Outcome, StoreError>>),
}

struct Job {
    scope: Scope,
    work: Work,
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
        let (queue, jobs) = mpsc::channel(QUEUE_LIMIT);
        let (commits, committed) = watch::channel(0);
        let work = WriterThread { database, jobs, waiting: VecDeque::new(), commits };
        let thread = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || work.run())
            .map_err(StoreError::internal)?;
        Ok(Writer { queue: Some(queue), thread: Some(thread), committed })
    }

    /// Runs `work` as one unit. `Ok` means that it is durable, `Err` that nothing of it was done,
    /// except for [`StoreError::Uncertain`]: the server became unreachable during the commit and
    /// did not come back.
    ///
    /// # Cancel safety
    /// A unit whose future is dropped may still be committed.
    pub(crate) async fn commit<T, F>(&self, scope: Scope, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Unit<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        self.enqueue(Job { scope, work: Work::Unit(unit_work(work, answer)) }).await?;
        answered.await.map_err(|_| StoreError::Closed)?
    }

    /// Sends a letter.
    ///
    /// # Cancel safety
    /// The same as for a unit.
    pub(crate) async fn post(&self, letter: Letter) -> Result<Outcome, StoreError> {
        let (answer, answered) = oneshot::channel();
        let scope = Scope::Session(letter.session);
        self.enqueue(Job { scope, work: Work::Letter(letter, answer) }).await?;
        answered.await.map_err(|_| StoreError::Closed)?
    }

    async fn enqueue(&self, job: Job) -> Result<(), StoreError> {
        let queue = self.queue.as_ref().ok_or(StoreError::Closed)?;
        queue.send(job).await.map_err(|_| StoreError::Closed)
    }

    /// Counts this process's commits: a signal that something changed, without saying what.
    pub(crate) fn committed(&self) -> watch::Receiver<u64> {
        self.committed.clone()
    }
}

fn unit_work<T: Send + 'static>(
    work: impl FnOnce(&Unit<'_>) -> Result<T, StoreError> + Send + 'static,
    answer: oneshot::Sender<Result<T, StoreError>>,
) -> UnitWork {
    Box::new(move |unit| match unit.in_savepoint(work) {
        Ok(value) => Box::new(move |committed| {
            // The caller may be gone.
            let _ = answer.send(committed.map(|()| value));
        }),
        Err(error) => Box::new(move |_| {
            let _ = answer.send(Err(error));
        }),
    })
}

impl Work {
    fn into_unit(self) -> UnitWork {
        match self {
            Work::Unit(work) => work,
            Work::Letter(letter, answer) => unit_work(move |unit| letter.send(unit), answer),
        }
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
    /// Jobs that were taken from the queue and did not fit the transaction at that time. At most as
    /// many as the queue can hold, plus the letters of one transaction that have to become units.
    waiting: VecDeque<Job>,
    commits: watch::Sender<u64>,
}

impl WriterThread {
    fn run(mut self) {
        while let Some(first) = self.waiting.pop_front().or_else(|| self.jobs.blocking_recv()) {
            match (self.database.sharing(), &first.scope, &first.work) {
                (Sharing::Session, &Scope::Session(session), Work::Letter(..)) => {
                    self.shared_post(session, first);
                }
                _ => self.shared_commit(first),
            }
            self.commits.send_modify(|count| *count += 1);
            self.database.notify();
        }
        self.database.close();
    }

    /// Runs `first`, and all waiting jobs that may share its transaction.
    fn shared_commit(&mut self, first: Job) {
        let mut answers = Vec::new();
        let scope = first.scope.clone();
        let sharing = self.database.sharing();
        let may_share = |job: &Job| match sharing {
            Sharing::Everything => true,
            Sharing::Session => {
                matches!(scope, Scope::Session(_))
                    && job.scope == scope
                    && matches!(job.work, Work::Unit(_))
            }
        };
        let (jobs, waiting) = (&mut self.jobs, &mut self.waiting);
        let mut first = Some(first);
        let next = || first.take().or_else(|| next_for(may_share, jobs, waiting));
        let mut group = std::iter::from_fn(next).take(MAX_SHARED);
        let outcome = self.database.transaction(&scope, &mut |unit| {
            let mut last: Option<Answer> = None;
            for job in group.by_ref() {
                keep(&mut answers, last.take(), unit);
                last = Some(job.work.into_unit()(unit));
            }
            match answers.is_empty() {
                // Alone, it succeeds or fails with the commit.
                true => answers.extend(last),
                false => keep(&mut answers, last, unit),
            }
        });
        for answer in answers {
            answer(outcome.clone());
        }
    }

    /// Posts a letter, and all waiting letters of the same session, in one transaction.
    fn shared_post(&mut self, session: SessionId, first: Job) {
        let scope = first.scope.clone();
        let may_share = |job: &Job| job.scope == scope && matches!(job.work, Work::Letter(..));
        let (mut letters, mut answers) = (Vec::new(), Vec::new());
        let mut next = Some(first);
        while let Some(Job { work: Work::Letter(letter, answer), .. }) = next {
            letters.push(letter);
            answers.push(answer);
            let has_room = letters.len() < MAX_SHARED;
            next =
                has_room.then(|| next_for(may_share, &mut self.jobs, &mut self.waiting)).flatten();
        }
        let posted = self.database.post(&session, &letters);
        for (number, (letter, answer)) in letters.into_iter().zip(answers).enumerate().rev() {
            // The caller may be gone.
            let _ = match posted.as_ref().map(|ids| ids.get(number).copied().flatten()) {
                Ok(Some(id)) => answer.send(letter.sent(id)),
                Err(error) => answer.send(Err(error.clone())),
                Ok(None) => {
                    let work = Work::Unit(Work::Letter(letter, answer).into_unit());
                    self.waiting.push_front(Job { scope: scope.clone(), work });
                    Ok(())
                }
            };
        }
    }
}

/// Keeps an answer until the commit, unless the unit has failed.
fn keep(answers: &mut Vec<Answer>, answer: Option<Answer>, unit: &Unit<'_>) {
    let Some(answer) = answer else { return };
    match unit.settle() {
        Ok(()) => answers.push(answer),
        Err(error) => answer(Err(error)),
    }
}

/// The next job that may share a transaction. Others keep waiting in their order.
fn next_for(
    may_share: impl Fn(&Job) -> bool,
    jobs: &mut mpsc::Receiver<Job>,
    waiting: &mut VecDeque<Job>,
) -> Option<Job> {
    if let Some(at) = waiting.iter().position(&may_share) {
        return waiting.remove(at);
    }
    while waiting.len() < QUEUE_LIMIT
        && let Ok(job) = jobs.try_recv()
    {
        if may_share(&job) {
            return Some(job);
        }
        waiting.push_back(job);
    }
    None
}
