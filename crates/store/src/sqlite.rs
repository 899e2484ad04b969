//! The embedded database: one file, one writer at a time.

mod open;
mod readers;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ikigai_conversation::Time;
use ikigai_postgres::Value;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, ErrorCode};

use crate::clock::Clock;
use crate::error::StoreError;
use crate::sql::{Param, Row};
use crate::unit::{Connection, Unit};
use crate::writer::{Database, Scope, Sharing};

pub(crate) use open::{FileIdentity, check, network_file_system, open_reader, open_writer};
pub(crate) use readers::Readers;

/// How long another process may hold the write lock. A commit takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the writer's thread uses.
pub(crate) struct Sqlite {
    pub(crate) connection: rusqlite::Connection,
    pub(crate) path: PathBuf,
    pub(crate) identity: FileIdentity,
    pub(crate) clock: Clock,
}

impl Database for Sqlite {
    /// The write lock covers the whole file, whatever the units are about.
    fn transaction(
        &mut self,
        _: &Scope,
        work: &mut dyn FnMut(&Unit<'_>),
    ) -> Result<(), StoreError> {
        if let Err(error) = self.begin_here() {
            // Without a transaction, they only return the error.
            work(&Unit::refused(error.clone()));
            return Err(error);
        }
        let unit = Unit::new(Connection::Sqlite(Transaction {
            connection: &self.connection,
            path: &self.path,
            now: self.clock.now(),
        }));
        work(&unit);
        let committed = unit.finish().and_then(|()| {
            self.connection
                .execute_batch("COMMIT")
                .map_err(|error| StoreError::from_sqlite(&error, &self.path))
        });
        if committed.is_err() && !self.connection.is_autocommit() {
            // An open transaction would prevent the next one.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        committed
    }

    fn sharing(&self) -> Sharing {
        Sharing::Everything
    }

    fn close(self: Box<Self>) {
        open::close(self.connection, &self.path);
    }
}

impl Sqlite {
    /// Takes the write lock, and then checks that the file is still at its path: it may have been
    /// moved while we waited.
    fn begin_here(&self) -> Result<(), StoreError> {
        self.begin()?;
        self.identity.require_same(&self.path).inspect_err(|_| {
            let _ = self.connection.execute_batch("ROLLBACK");
        })
    }

    /// Takes the write lock.
    ///
    /// BEGIN IMMEDIATE: a plain BEGIN takes the write lock late and fails with BUSY although we
    /// would wait. We wait ourselves, for short random times: SQLite's own pauses grow, and then
    /// the last to arrive wins against the one that has waited longest.
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

/// A transaction for reading or for writing.
#[derive(Clone, Copy)]
pub(crate) struct Transaction<'a> {
    pub(crate) connection: &'a rusqlite::Connection,
    pub(crate) path: &'a Path,
    pub(crate) now: Time,
}

impl Transaction<'_> {
    /// Rolls back to the savepoint. Returns whether that was possible.
    pub(crate) fn roll_back_to_savepoint(&self) -> bool {
        // If the disk is full, SQLite rolls back the whole transaction. Later statements would then
        // run outside of one, and be kept although their callers get an error.
        !self.connection.is_autocommit()
            && self.connection.execute_batch("ROLLBACK TO unit; RELEASE unit").is_ok()
    }

    pub(crate) fn execute(&self, sql: &str, params: &[&dyn Param]) -> Result<usize, StoreError> {
        self.prepare(sql, params)
            .and_then(|mut statement| statement.raw_execute())
            .map_err(|error| self.error(&error))
    }

    pub(crate) fn row<T>(
        &self,
        sql: &str,
        params: &[&dyn Param],
        read: impl FnOnce(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let mut statement = self.prepare(sql, params).map_err(|error| self.error(&error))?;
        let mut rows = statement.raw_query();
        let row = rows.next().map_err(|error| self.error(&error))?;
        let value = row.map(|row| read(&Row::Sqlite(row))).transpose()?;
        // Read to the end: only then an insert that returns its key is done.
        while value.is_some() && rows.next().map_err(|error| self.error(&error))?.is_some() {}
        Ok(value)
    }

    pub(crate) fn rows<T>(
        &self,
        sql: &str,
        params: &[&dyn Param],
        mut read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut statement = self.prepare(sql, params).map_err(|error| self.error(&error))?;
        let mut rows = statement.raw_query();
        let mut values = Vec::new();
        while let Some(row) = rows.next().map_err(|error| self.error(&error))? {
            values.push(read(&Row::Sqlite(row))?);
        }
        Ok(values)
    }

    fn prepare(&self, sql: &str, params: &[&dyn Param]) -> rusqlite::Result<CachedStatement<'_>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        for (number, param) in params.iter().enumerate() {
            let value = match param.value() {
                Value::Integer(number) => number.map(ValueRef::Integer),
                Value::Text(text) => text.map(|text| ValueRef::Text(text.as_bytes())),
                Value::Bytes(bytes) => bytes.map(ValueRef::Blob),
            };
            let value = ToSqlOutput::Borrowed(value.unwrap_or(ValueRef::Null));
            statement.raw_bind_parameter(number + 1, value)?;
        }
        Ok(statement)
    }

    fn error(&self, error: &rusqlite::Error) -> StoreError {
        StoreError::from_sqlite(error, self.path)
    }
}

/// Random pauses between 0.1 and 2 ms. The randomness only has to differ between processes.
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
