//! A unit of work: what one step does to the database, all or nothing.
//!
//! This is the boundary between the guarantees and the databases. Code above it is written once, in
//! SQL that both databases understand. Code below it runs statements on one of them.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{self, AssertUnwindSafe};

use ikigai_conversation::Time;

use crate::dialect::Dialect;
use crate::error::StoreError;
use crate::postgres;
use crate::sessions::note_written;
use crate::sql::{Param, Row};
use crate::sqlite;
use crate::tables::TABLES;

/// A transaction that units of work may share. Each unit runs behind its own savepoint.
pub(crate) struct Unit<'a> {
    connection: Connection<'a>,
    /// The sessions that units of this transaction wrote to. They are updated once for all units,
    /// before the commit.
    written: RefCell<BTreeSet<i64>>,
    /// Why nothing can be done: the transaction could not start, or was rolled back completely.
    broken: RefCell<Option<StoreError>>,
}

/// Where statements are run.
pub(crate) enum Connection<'a> {
    Sqlite(sqlite::Transaction<'a>),
    Postgres(&'a postgres::Transaction<'a>),
    /// There is no transaction, so no statement is run.
    None,
}

impl<'a> Unit<'a> {
    pub(crate) fn new(connection: Connection<'a>) -> Unit<'a> {
        Unit::with(connection, None)
    }

    /// For a transaction that could not start: every unit in it gets `error`.
    pub(crate) fn refused(error: StoreError) -> Unit<'static> {
        Unit::with(Connection::None, Some(error))
    }

    fn with(connection: Connection<'_>, broken: Option<StoreError>) -> Unit<'_> {
        Unit { connection, written: RefCell::default(), broken: RefCell::new(broken) }
    }

    /// The time of this unit.
    pub(crate) fn now(&self) -> Time {
        match &self.connection {
            Connection::Sqlite(transaction) => transaction.now,
            Connection::Postgres(transaction) => transaction.now(),
            Connection::None => Time::from_millis(0),
        }
    }

    /// The dialect of this database.
    pub(crate) fn dialect(&self) -> Dialect {
        match &self.connection {
            Connection::Sqlite(_) | Connection::None => Dialect::Sqlite,
            Connection::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Notes that a unit writes to a session.
    pub(crate) fn touch(&self, session: i64) {
        self.written.borrow_mut().insert(session);
    }

    /// Does what is left to do before the commit.
    pub(crate) fn finish(&self) -> Result<(), StoreError> {
        if let Some(error) = self.broken() {
            return Err(error);
        }
        let written = self.written.take();
        written.into_iter().try_for_each(|session| note_written(self, session))
    }

    /// Why the whole transaction is lost, if it is.
    fn broken(&self) -> Option<StoreError> {
        self.broken.borrow().clone()
    }

    /// Runs `work`. If it fails or panics, its own changes are rolled back, and no others.
    pub(crate) fn in_savepoint<T>(
        &self,
        work: impl FnOnce(&Unit<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if let Some(error) = self.broken() {
            return Err(error);
        }
        self.begin_unit()?;
        let written_before = self.written.borrow().clone();
        // Units of different callers share this transaction and this thread, so they must survive a
        // panic, such as one while rendering a text. The savepoint rolls back what the panic left
        // half done.
        let done = panic::catch_unwind(AssertUnwindSafe(|| work(self)))
            .unwrap_or_else(|_| Err(StoreError::internal("a unit of work panicked")));
        match done.and_then(|value| self.end_unit().map(|()| value)) {
            Ok(value) => Ok(value),
            Err(error) => {
                self.written.replace(written_before);
                Err(self.roll_back_to_savepoint(error))
            }
        }
    }

    /// Waits until all statements of the last unit have run.
    ///
    /// # Errors
    /// If one failed. Then the changes of the unit are rolled back.
    pub(crate) fn settle(&self) -> Result<(), StoreError> {
        if self.broken().is_some() {
            // The callers have their error, or get it at the commit.
            return Ok(());
        }
        match &self.connection {
            Connection::Postgres(transaction) => {
                transaction.settle().map_err(|error| self.roll_back_to_savepoint(error))
            }
            Connection::Sqlite(_) | Connection::None => Ok(()),
        }
    }

    /// Rolls back to the savepoint. If that fails, the whole transaction is lost.
    fn roll_back_to_savepoint(&self, error: StoreError) -> StoreError {
        let is_rolled_back = match &self.connection {
            Connection::Sqlite(transaction) => transaction.roll_back_to_savepoint(),
            Connection::Postgres(transaction) => transaction.roll_back_unit(),
            Connection::None => true,
        };
        if !is_rolled_back {
            self.broken.replace(Some(error.clone()));
        }
        error
    }

    fn begin_unit(&self) -> Result<(), StoreError> {
        match &self.connection {
            Connection::Sqlite(transaction) => transaction.execute("SAVEPOINT unit", &[]).map(drop),
            Connection::Postgres(transaction) => transaction.begin_unit(),
            Connection::None => Err(StoreError::Closed),
        }
    }

    fn end_unit(&self) -> Result<(), StoreError> {
        match &self.connection {
            Connection::Sqlite(transaction) => transaction.execute("RELEASE unit", &[]).map(drop),
            Connection::Postgres(transaction) => transaction.end_unit(),
            Connection::None => Err(StoreError::Closed),
        }
    }

    /// Prevents others from assigning numbers to new rows until the commit.
    pub(crate) fn lock_numbering(&self) -> Result<(), StoreError> {
        match &self.connection {
            Connection::Postgres(transaction) => {
                let numbered = TABLES.iter().filter(|table| table.key.is_some());
                let names: Vec<&str> = numbered.map(|table| table.name).collect();
                let (names, mode) = (names.join(", "), "SHARE ROW EXCLUSIVE MODE NOWAIT");
                transaction.lock_at_once(&format!("LOCK TABLE {names} IN {mode}"))
            }
            // The write lock covers the whole file.
            Connection::Sqlite(_) | Connection::None => Ok(()),
        }
    }

    /// Runs a statement whose result does not matter. If it fails, what follows fails too.
    pub(crate) fn run(&self, sql: &str, params: &[&dyn Param]) -> Result<(), StoreError> {
        match &self.connection {
            Connection::Sqlite(transaction) => transaction.execute(sql, params).map(drop),
            Connection::Postgres(transaction) => transaction.queue(sql, params),
            Connection::None => Err(StoreError::Closed),
        }
    }

    /// The same for a change that others do not need to know: other processes are not notified.
    pub(crate) fn run_silently(&self, sql: &str, params: &[&dyn Param]) -> Result<(), StoreError> {
        match &self.connection {
            Connection::Postgres(transaction) => transaction.queue_silently(sql, params),
            Connection::Sqlite(_) | Connection::None => self.run(sql, params),
        }
    }

    /// Runs a statement, and returns how many rows it changed.
    pub(crate) fn execute(&self, sql: &str, params: &[&dyn Param]) -> Result<usize, StoreError> {
        match &self.connection {
            Connection::Sqlite(transaction) => transaction.execute(sql, params),
            Connection::Postgres(transaction) => transaction.execute(sql, params),
            Connection::None => Err(StoreError::Closed),
        }
    }

    /// Inserts a row with a statement that returns its key.
    pub(crate) fn insert(&self, sql: &str, params: &[&dyn Param]) -> Result<i64, StoreError> {
        debug_assert!(sql.contains("RETURNING"), "{sql}");
        let key = self.row(sql, params, |row| row.get(0))?;
        key.ok_or_else(|| StoreError::internal("nothing was inserted"))
    }

    /// The first row of a query, if there is one.
    pub(crate) fn row<T>(
        &self,
        sql: &str,
        params: &[&dyn Param],
        read: impl FnOnce(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        match &self.connection {
            Connection::Sqlite(transaction) => transaction.row(sql, params, read),
            Connection::Postgres(transaction) => transaction.row(sql, params, read),
            Connection::None => Err(StoreError::Closed),
        }
    }

    /// All rows of a query.
    pub(crate) fn rows<T>(
        &self,
        sql: &str,
        params: &[&dyn Param],
        read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        match &self.connection {
            Connection::Sqlite(transaction) => transaction.rows(sql, params, read),
            Connection::Postgres(transaction) => transaction.rows(sql, params, read),
            Connection::None => Err(StoreError::Closed),
        }
    }
}
