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

use ikigai_conversation::SessionId;
use tokio::sync::{mpsc, oneshot, watch};

use crate::error::StoreError;
use crate::letters::Letter;
use crate::sessions::Place;
use crate::steps::Outcome;
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

    /// What may share a transaction.
    fn sharing(&self) -> Sharing;

    /// Posts letters of one session in one transaction, and returns the ids of their mail. Whatever is against one of
    /// them is for a unit to find out: it has no id, and nothing of it happened. Where everything is shared, all letters
    /// are units.
    fn post(
        &mut self,
        _session: &SessionId,
        letters: &[Letter],
    ) -> Result<Vec<Option<i64>>, StoreError> {
        Ok(vec![None; letters.len()])
    }

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

/// What may share a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// All units, whatever they are about. Letters are units.
    Everything,
    /// Units about one session; and letters of one session, which are posted together.
    Session,
}

/// Told after the commit: the outcome of a unit, or why there was none.
type Answer = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// A unit's work inside the shared transaction.
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
    pub(crate) async fn commit<T, F>(&self, scope: Scope, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Unit<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        self.enqueue(Job { scope, work: Work::Unit(unit_work(work, answer)) }).await?;
        answered.await.map_err(|_| StoreError::Closed)?
    }

    /// Sends a letter, as a unit would.
    ///
    /// # Cancel safety
    /// That of a unit.
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
            // Nobody may be waiting for it any more.
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
    /// Taken from the queue, and not for the transaction that was under way. Never more than the queue can hold, and the
    /// letters of one transaction that have to be units.
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
            self.database.say_news();
        }
        self.database.leave();
    }

    /// One transaction for `first` and all that wait behind it and may share it.
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
        let mut group = std::iter::from_fn(next).take(SHARED);
        let outcome = self.database.transaction(&scope, &mut |unit| {
            let mut last: Option<Answer> = None;
            for job in group.by_ref() {
                keep(&mut answers, last.take(), unit);
                last = Some(job.work.into_unit()(unit));
            }
            match answers.is_empty() {
                // Alone, its fate is that of the commit.
                true => answers.extend(last),
                false => keep(&mut answers, last, unit),
            }
        });
        for answer in answers {
            answer(outcome.clone());
        }
    }

    /// One transaction for a letter and all others of its session that wait.
    fn shared_post(&mut self, session: SessionId, first: Job) {
        let scope = first.scope.clone();
        let may_share = |job: &Job| job.scope == scope && matches!(job.work, Work::Letter(..));
        let (mut letters, mut answers) = (Vec::new(), Vec::new());
        let mut next = Some(first);
        while let Some(Job { work: Work::Letter(letter, answer), .. }) = next {
            letters.push(letter);
            answers.push(answer);
            let has_room = letters.len() < SHARED;
            next =
                has_room.then(|| next_for(may_share, &mut self.jobs, &mut self.waiting)).flatten();
        }
        let posted = self.database.post(&session, &letters);
        for (number, (letter, answer)) in letters.into_iter().zip(answers).enumerate().rev() {
            // Nobody may be waiting for it any more.
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

/// Keeps an answer for after the commit, unless the unit turns out to have failed.
fn keep(answers: &mut Vec<Answer>, answer: Option<Answer>, unit: &Unit<'_>) {
    let Some(answer) = answer else { return };
    match unit.settle() {
        Ok(()) => answers.push(answer),
        Err(error) => answer(Err(error)),
    }
}

/// The next one that may share a transaction; others go on waiting, in their order.
fn next_for(
    may_share: impl Fn(&Job) -> bool,
    jobs: &mut mpsc::Receiver<Job>,
    waiting: &mut VecDeque<Job>,
) -> Option<Job> {
    if let Some(at) = waiting.iter().position(&may_share) {
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
