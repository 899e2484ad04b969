//! A transaction on the server. Statements without a result are queued and sent together with the
//! next query.

use std::cell::RefCell;
use std::thread;
use std::time::{Duration, Instant};

use ikigai_conversation::Time;
use ikigai_postgres::{Client, Error, Reply, Value};

use crate::clock::Clock;
use crate::error::StoreError;
use crate::sql::{Param, Row};
use crate::writer::Scope;

use super::server::Server;

/// A transaction.
pub(crate) struct Transaction<'a> {
    pub(super) server: &'a Server,
    pub(super) inner: RefCell<Inner<'a>>,
}

pub(super) struct Inner<'a> {
    pub(super) client: &'a mut Client,
    /// How many statements were queued since the last query.
    pub(super) queued: usize,
    /// What to lock before the first statement.
    unlocked: Option<Scope>,
    /// Whether a queued statement may fail although the last query succeeded. Savepoints cannot.
    is_doubtful: bool,
    /// Which of them queries the time.
    clock_at: Option<usize>,
    pub(super) now: Option<Time>,
    /// Which of them posts letters, and the server's result.
    pub(super) posted_at: Option<usize>,
    posted: Option<String>,
    /// Whether the unit has a savepoint: it gets one before its first statement.
    has_savepoint: bool,
    /// Why the server refuses everything until the savepoint, and whether the
    /// connection is lost too.
    pub(super) failed: Option<(StoreError, bool)>,
    pub(super) has_written: bool,
    /// Whether other processes should be notified of what was written.
    has_changes: bool,
}

/// How long to retry locks that others hold, and the pause between attempts.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
const LOCK_PAUSE: Duration = Duration::from_millis(3);

/// The clock of the database. Units that wait for a lock read it afterwards.
pub(super) const CLOCK: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

impl<'a> Transaction<'a> {
    /// Starts a transaction that writes.
    pub(crate) fn begin(
        client: &'a mut Client,
        server: &'a Server,
        clock: &Clock,
    ) -> Transaction<'a> {
        let is_behind_pooler = client.is_behind_pooler();
        let transaction = Transaction::new(client, server, clock);
        transaction.queue_quietly("BEGIN ISOLATION LEVEL READ COMMITTED", &[]);
        if is_behind_pooler {
            let is_local = Value::Integer(Some(1));
            transaction.queue_quietly(&Server::settings(), &[is_local]);
        }
        transaction
    }

    /// Starts a transaction that reads one consistent view.
    pub(crate) fn view(
        client: &'a mut Client,
        server: &'a Server,
        clock: &Clock,
    ) -> Transaction<'a> {
        let transaction = Transaction::new(client, server, clock);
        // Nothing is rolled back in it.
        transaction.inner.borrow_mut().has_savepoint = true;
        transaction.queue_quietly("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", &[]);
        transaction
    }

    fn new(client: &'a mut Client, server: &'a Server, clock: &Clock) -> Transaction<'a> {
        let inner = Inner {
            client,
            queued: 0,
            unlocked: None,
            is_doubtful: true,
            clock_at: None,
            now: clock.manual_time(),
            posted_at: None,
            posted: None,
            has_savepoint: false,
            failed: None,
            has_written: false,
            has_changes: false,
        };
        Transaction { server, inner: RefCell::new(inner) }
    }

    /// Locks what the units of the transaction are about before their first statement.
    pub(crate) fn lock(&self, scope: &Scope) {
        self.inner.borrow_mut().unlocked = Some(scope.clone());
    }

    /// Queues a pending lock, followed by a query for the time.
    fn take_lock(&self) {
        if self.queue_lock() {
            self.ask_clock();
        }
    }

    /// Queues a pending lock. Returns whether there was one.
    pub(super) fn queue_lock(&self) -> bool {
        let Some(scope) = self.inner.borrow_mut().unlocked.take() else { return false };
        match scope {
            Scope::Session(session) => {
                let sql = "SELECT 1 FROM sessions WHERE id = ?1 FOR NO KEY UPDATE";
                self.queue_now(sql, &[Value::Text(Some(&session.to_string()))]);
            }
            Scope::Location(location) => {
                let sql = "SELECT 1 FROM pg_advisory_xact_lock(hashtextextended(?1, 0))";
                let location = format!("{}\n{}", location.machine, location.directory);
                self.queue_now(sql, &[Value::Text(Some(&location))]);
            }
            Scope::Own => {}
        }
        true
    }

    fn ask_clock(&self) {
        self.take_lock();
        let inner = self.inner.borrow();
        if inner.now.is_some() || inner.clock_at.is_some() {
            return;
        }
        let at = inner.queued;
        drop(inner);
        self.queue_now(&format!("SELECT {CLOCK}"), &[]);
        self.inner.borrow_mut().clock_at = Some(at);
    }

    /// The time of this transaction by the database's clock. If the server does not return it,
    /// nothing that is written with it will be kept.
    pub(crate) fn now(&self) -> Time {
        self.ask_clock();
        if self.inner.borrow().now.is_none() {
            // The next statement reports the error.
            let _ = self.run();
        }
        self.inner.borrow().now.unwrap_or(Time::from_millis(0))
    }

    /// Starts a unit.
    pub(crate) fn begin_unit(&self) -> Result<(), StoreError> {
        self.require_sound()?;
        self.inner.borrow_mut().has_savepoint = false;
        Ok(())
    }

    /// Ends a unit.
    pub(crate) fn end_unit(&self) -> Result<(), StoreError> {
        let has_savepoint = self.inner.borrow().has_savepoint;
        if has_savepoint { self.mark("RELEASE unit") } else { self.require_sound() }
    }

    /// Rolls back a unit. Returns whether that was possible.
    pub(crate) fn roll_back_unit(&self) -> bool {
        let inner = self.inner.borrow();
        let is_untouched = !inner.has_savepoint && inner.failed.is_none();
        drop(inner);
        is_untouched || self.roll_back_to_savepoint("unit")
    }

    /// Sets the savepoint of the unit, unless it has one.
    fn set_savepoint(&self) {
        if !self.inner.borrow().has_savepoint {
            self.queue_quietly("SAVEPOINT unit", &[]);
            self.inner.borrow_mut().has_savepoint = true;
        }
    }

    /// Queues a statement for a savepoint.
    fn mark(&self, sql: &str) -> Result<(), StoreError> {
        self.require_sound()?;
        self.queue_quietly(sql, &[]);
        Ok(())
    }

    /// Queues a statement that changes something. A long queue is sent.
    pub(crate) fn queue(&self, sql: &str, params: &[&dyn Param]) -> Result<(), StoreError> {
        self.inner.borrow_mut().has_changes = true;
        self.queue_silently(sql, params)
    }

    /// The same for a change that others need no notification of.
    pub(crate) fn queue_silently(
        &self,
        sql: &str,
        params: &[&dyn Param],
    ) -> Result<(), StoreError> {
        self.require_sound()?;
        self.will_write();
        self.set_savepoint();
        let values: Vec<Value<'_>> = params.iter().map(|param| param.value()).collect();
        self.queue_quietly(sql, &values);
        self.inner.borrow_mut().is_doubtful = true;
        let is_full = self.inner.borrow().client.is_full();
        if is_full { self.run().map(drop) } else { self.require_sound() }
    }

    pub(crate) fn execute(&self, sql: &str, params: &[&dyn Param]) -> Result<usize, StoreError> {
        Ok(self.ask(sql, params)?.count)
    }

    pub(crate) fn row<T>(
        &self,
        sql: &str,
        params: &[&dyn Param],
        read: impl FnOnce(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let reply = self.ask(sql, params)?;
        reply.rows.first().map(|row| read(&Row::Postgres(row))).transpose()
    }

    pub(crate) fn rows<T>(
        &self,
        sql: &str,
        params: &[&dyn Param],
        mut read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let reply = self.ask(sql, params)?;
        reply.rows.iter().map(|row| read(&Row::Postgres(row))).collect()
    }

    /// The value under the key of a commit that posted letters.
    pub(super) fn posted(&self) -> Option<String> {
        self.inner.borrow().posted.clone()
    }

    /// Whether other processes should be notified after the commit.
    pub(crate) fn has_changes(&self) -> bool {
        self.inner.borrow().has_changes
    }

    fn will_write(&self) {
        self.inner.borrow_mut().has_written = true;
    }

    /// Waits until all queued statements that may fail have run.
    pub(crate) fn settle(&self) -> Result<(), StoreError> {
        self.require_sound()?;
        let is_doubtful = self.inner.borrow().is_doubtful;
        if is_doubtful { self.run().map(drop) } else { Ok(()) }
    }

    /// Takes locks with a statement that does not wait, and repeats it until it gets all of them.
    /// Waiting for one lock while holding another could cause a deadlock.
    pub(crate) fn lock_at_once(&self, sql: &str) -> Result<(), StoreError> {
        let started = Instant::now();
        self.set_savepoint();
        loop {
            self.mark("SAVEPOINT locks")?;
            let Err(refused) = self.ask(sql, &[]) else { return self.mark("RELEASE locks") };
            if !matches!(refused, StoreError::ServerBusy { .. })
                || !self.roll_back_to_savepoint("locks")
            {
                return Err(refused);
            }
            if started.elapsed() > LOCK_TIMEOUT {
                let reason = "other transactions keep writing to it".to_owned();
                let server = self.server.shown();
                return Err(StoreError::ServerBusy { server, reason, advice: "try again" });
            }
            thread::sleep(LOCK_PAUSE);
        }
    }

    /// Rolls back to a savepoint. Returns whether that was possible.
    fn roll_back_to_savepoint(&self, savepoint: &str) -> bool {
        // The queued statements are sent first. If one of them fails, the server ignores the rest,
        // but then the second attempt is sent alone.
        for _ in 0..2 {
            let mut inner = self.inner.borrow_mut();
            if inner.failed.take().is_some_and(|(_, is_lost)| is_lost) {
                return false;
            }
            drop(inner);
            self.queue_quietly(&format!("ROLLBACK TO {savepoint}"), &[]);
            self.queue_quietly(&format!("RELEASE {savepoint}"), &[]);
            if self.run().is_ok() {
                return true;
            }
        }
        false
    }

    pub(super) fn is_lost(&self) -> bool {
        matches!(self.inner.borrow().failed, Some((_, true)))
    }

    pub(super) fn require_sound(&self) -> Result<(), StoreError> {
        match &self.inner.borrow().failed {
            Some((error, _)) => Err(error.clone()),
            None => Ok(()),
        }
    }

    fn ask(&self, sql: &str, params: &[&dyn Param]) -> Result<Reply, StoreError> {
        self.require_sound()?;
        // An insert or update that returns something is a query too.
        if !sql.trim_start().starts_with("SELECT") {
            self.will_write();
            self.inner.borrow_mut().has_changes = true;
        }
        self.set_savepoint();
        let values: Vec<Value<'_>> = params.iter().map(|param| param.value()).collect();
        self.queue_quietly(sql, &values);
        self.run()?.pop().ok_or_else(|| StoreError::internal("the server says nothing"))
    }

    /// Queues a statement after the lock. Errors are reported when the queue is run.
    pub(super) fn queue_quietly(&self, sql: &str, values: &[Value<'_>]) {
        self.take_lock();
        self.queue_now(sql, values);
    }

    pub(super) fn queue_now(&self, sql: &str, values: &[Value<'_>]) {
        let mut inner = self.inner.borrow_mut();
        match inner.client.queue(sql, values) {
            Ok(()) => inner.queued += 1,
            Err(error) => inner.fail(&error, self.server),
        }
    }

    pub(super) fn run(&self) -> Result<Vec<Reply>, StoreError> {
        self.require_sound()?;
        let mut inner = self.inner.borrow_mut();
        if std::mem::take(&mut inner.queued) == 0 {
            return Ok(Vec::new());
        }
        inner.is_doubtful = false;
        let replies = inner.client.run();
        let replies = match replies {
            Ok(replies) => replies,
            Err(error) => {
                inner.fail(&error, self.server);
                (inner.clock_at, inner.posted_at) = (None, None);
                return Err(self.server.error(&error));
            }
        };
        if let Some(at) = inner.clock_at.take() {
            let row = replies.get(at).and_then(|reply| reply.rows.first());
            let now = row.and_then(|row| row.integer(0).ok().flatten());
            inner.now = now.map(Time::from_millis);
        }
        if let Some(at) = inner.posted_at.take() {
            let row = replies.get(at).and_then(|reply| reply.rows.first());
            inner.posted = row.and_then(|row| row.text(0).ok().flatten()).map(String::from);
        }
        Ok(replies)
    }
}

impl Inner<'_> {
    fn fail(&mut self, error: &Error, server: &Server) {
        self.failed = Some((server.error(error), error.is_final()));
    }
}
