//! A unit of work: what one step does to the database, all of it or nothing.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;

use ikigai_conversation::Time;
use rusqlite::{Connection, Params, Row};

use crate::error::StoreError;
use crate::sessions::note_written;

/// The inside of a transaction that units of work may share. Each works behind a savepoint of its own.
pub(crate) struct Unit<'a> {
    connection: &'a Connection,
    now: Time,
    path: &'a Path,
    /// The sessions that units of this transaction wrote to: noted once for all of them, before the commit.
    written: RefCell<BTreeSet<i64>>,
    /// Why nothing can be done: the transaction could not begin, or was taken back as a whole.
    broken: RefCell<Option<StoreError>>,
}

impl<'a> Unit<'a> {
    pub(crate) fn new(connection: &'a Connection, now: Time, path: &'a Path) -> Unit<'a> {
        Unit { connection, now, path, written: RefCell::default(), broken: RefCell::new(None) }
    }

    /// For a transaction that could not begin: every unit in it gets `error`.
    pub(crate) fn refused(connection: &'a Connection, error: StoreError) -> Unit<'a> {
        let broken = RefCell::new(Some(error));
        Unit {
            connection,
            now: Time::from_millis(0),
            path: Path::new(""),
            written: RefCell::default(),
            broken,
        }
    }

    /// The time of this unit.
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// Notes that something is written to a session.
    pub(crate) fn touch(&self, session: i64) {
        self.written.borrow_mut().insert(session);
    }

    /// What is left to do before the commit.
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

    /// Runs `work`; when it fails or panics, its changes are taken back, and only its own.
    pub(crate) fn in_savepoint<T>(
        &self,
        work: impl FnOnce(&Unit<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if let Some(error) = self.broken() {
            return Err(error);
        }
        self.savepoint("SAVEPOINT unit")?;
        let written_before = self.written.borrow().clone();
        // Strangers share this transaction and this thread: they outlive one whose text cannot be made. What
        // a panic left half done is taken back with the savepoint.
        let done = panic::catch_unwind(AssertUnwindSafe(|| work(self)))
            .unwrap_or_else(|_| Err(StoreError::internal("a unit of work panicked")));
        match done.and_then(|value| self.savepoint("RELEASE unit").map(|()| value)) {
            Ok(value) => Ok(value),
            Err(error) => {
                self.written.replace(written_before);
                // A full disk makes SQLite take back the whole transaction. What follows would then run
                // outside of one and be kept although everybody is told that it failed.
                if self.connection.is_autocommit()
                    || self.connection.execute_batch("ROLLBACK TO unit; RELEASE unit").is_err()
                {
                    self.broken.replace(Some(error.clone()));
                }
                Err(error)
            }
        }
    }

    /// Runs a statement, and returns how many rows it changed.
    pub(crate) fn execute(&self, sql: &str, params: impl Params) -> Result<usize, StoreError> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(params))
            .map_err(|error| self.error(&error))
    }

    /// Inserts a row, and returns its key.
    pub(crate) fn insert(&self, sql: &str, params: impl Params) -> Result<i64, StoreError> {
        self.execute(sql, params)?;
        Ok(self.connection.last_insert_rowid())
    }

    /// The first row of a query, if there is one.
    pub(crate) fn row<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        let mut statement =
            self.connection.prepare_cached(sql).map_err(|error| self.error(&error))?;
        let mut rows = statement.query(params).map_err(|error| self.error(&error))?;
        let row = rows.next().map_err(|error| self.error(&error))?;
        row.map(read).transpose().map_err(|error| self.error(&error))
    }

    /// All rows of a query.
    pub(crate) fn rows<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let mut statement =
            self.connection.prepare_cached(sql).map_err(|error| self.error(&error))?;
        let rows = statement.query_map(params, read).map_err(|error| self.error(&error))?;
        rows.collect::<Result<_, _>>().map_err(|error| self.error(&error))
    }

    fn savepoint(&self, sql: &str) -> Result<(), StoreError> {
        self.execute(sql, []).map(drop)
    }

    fn error(&self, error: &rusqlite::Error) -> StoreError {
        StoreError::from_sqlite(error, self.path)
    }
}
