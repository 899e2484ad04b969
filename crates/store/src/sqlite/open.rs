//! Opening the embedded database: where it may be, its settings, and its version.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, Transaction};

use crate::error::StoreError;

/// The migrations in their order. The version of a database is how many have been applied.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/sqlite/0001.sql"),
    include_str!("../../migrations/sqlite/0002.sql"),
    include_str!("../../migrations/sqlite/0003.sql"),
    include_str!("../../migrations/sqlite/0004.sql"),
    include_str!("../../migrations/sqlite/0005.sql"),
    include_str!("../../migrations/sqlite/0006.sql"),
    include_str!("../../migrations/sqlite/0007.sql"),
    include_str!("../../migrations/sqlite/0008.sql"),
    include_str!("../../migrations/sqlite/0009.sql"),
    include_str!("../../migrations/sqlite/0010.sql"),
];
const KNOWN: i64 = MIGRATIONS.len() as i64;
/// Marks our databases ("ikig"), so that no other program's file is ever changed.
const APPLICATION: i64 = 0x696b_6967;
/// Older versions of SQLite can damage a write-ahead log that several processes use.
const OLDEST_SQLITE: i32 = 3_051_003;
/// How long a reader, or the migration, waits for another process.
const PATIENCE: Duration = Duration::from_secs(10);

/// Identifies the file that was opened, to notice when it is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    fn of(path: &Path) -> io::Result<FileIdentity> {
        let metadata = fs::metadata(path)?;
        Ok(FileIdentity { device: metadata.dev(), inode: metadata.ino() })
    }

    /// SQLite would continue to write to a file that is no longer at its path.
    pub(crate) fn require_same(self, path: &Path) -> Result<(), StoreError> {
        match FileIdentity::of(path) {
            Ok(now) if now == self => Ok(()),
            _ => Err(StoreError::Vanished { path: path.to_owned() }),
        }
    }
}

/// Opens the database for its writer, and creates it if it does not exist.
pub(crate) fn open_writer(
    path: &Path,
    file_system: impl Fn(&Path) -> Option<&'static str>,
) -> Result<(Connection, FileIdentity), StoreError> {
    let failed = |error: rusqlite::Error| StoreError::from_sqlite(&error, path);
    if rusqlite::version_number() < OLDEST_SQLITE {
        return Err(StoreError::internal(format!("SQLite {} is too old", rusqlite::version())));
    }
    require_database_of_log(path)?;
    create_folder(path)?;
    if let Some(kind) = file_system(folder_of(path)) {
        return Err(StoreError::NetworkFileSystem { path: path.into(), kind: kind.to_owned() });
    }
    create_file(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(PATIENCE).map_err(failed)?;
    // A short log stays when the last process exits: emptying it would cost a short command more
    // flushes than its own commit. `close` limits its size.
    connection
        .set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .map_err(failed)?;
    keep_plans(&connection).map_err(failed)?;
    // Before any setting, which would already change another program's file.
    let found = version(&connection.unchecked_transaction().map_err(failed)?, path)?;
    patiently(|| set_up(&connection, path))?;
    if found < KNOWN {
        migrate(&mut connection, path)?;
    }
    // From here on the writer waits itself.
    connection.busy_timeout(Duration::ZERO).map_err(failed)?;
    connection.set_prepared_statement_cache_capacity(64);
    let identity = FileIdentity::of(path).map_err(|error| open_error(path, &error))?;
    Ok((connection, identity))
}

/// Closes the writer's connection. The last process empties a log that has grown: the next process
/// reads all of it, and cannot tell how much of it was emptied before.
pub(crate) fn close(connection: Connection, path: &Path) {
    // A new database alone writes more than half of it.
    const SHORT_LOG: u64 = 512 * 1024;
    if fs::metadata(log_of(path)).is_ok_and(|log| log.len() > SHORT_LOG) {
        let keep_log = rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
        // If that fails, the next process does it.
        let _ = connection.set_db_config(keep_log, false);
    }
    drop(connection);
}

/// The write-ahead log of a database.
fn log_of(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    PathBuf::from(log)
}

/// Another connection, only for reading.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let failed = |error: rusqlite::Error| StoreError::from_sqlite(&error, path);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    // Readers open after the writer, so the database exists.
    let connection =
        Connection::open_with_flags(path, flags).map_err(|error| match path.exists() {
            true => failed(error),
            false => StoreError::Vanished { path: path.to_owned() },
        })?;
    connection.busy_timeout(PATIENCE).map_err(failed)?;
    keep_plans(&connection).map_err(failed)?;
    Ok(connection)
}

/// A statement keeps its plan for all values: planning again takes longer than running it.
fn keep_plans(connection: &Connection) -> rusqlite::Result<()> {
    let keep_plans = rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG;
    connection.set_db_config(keep_plans, true).map(drop)
}

/// If the file is missing or empty, SQLite deletes the write-ahead log beside it, and with it all
/// mail that is only there.
fn require_database_of_log(path: &Path) -> Result<(), StoreError> {
    let is_empty = |path: &Path| fs::metadata(path).map_or(true, |metadata| metadata.len() == 0);
    let log = log_of(path);
    // In this order: while a database is created, the file exists before its log.
    match !is_empty(&log) && is_empty(path) {
        true => Err(StoreError::LogWithoutDatabase { path: path.to_owned(), log }),
        false => Ok(()),
    }
}

/// The folder of an absolute path.
fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

/// Only the user has access to the folder.
fn create_folder(path: &Path) -> Result<(), StoreError> {
    let folder = folder_of(path);
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            let reason = format!("{} is not a folder", folder.display());
            StoreError::Open { path: path.to_owned(), reason }
        }
        _ => create_error(path, &error),
    })
}

/// Only the user has access to the file. SQLite gives its other files the same mode.
fn create_file(path: &Path) -> Result<(), StoreError> {
    // SQLite considers a file of one byte empty.
    if let Ok(metadata) = fs::metadata(path)
        && (!metadata.is_file() || metadata.len() == 1)
    {
        return Err(StoreError::NotADatabase { path: path.to_owned() });
    }
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
    file.map(drop).map_err(|error| create_error(path, &error))
}

fn create_error(path: &Path, error: &io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            StoreError::ReadOnly { path: path.to_owned() }
        }
        io::ErrorKind::StorageFull => StoreError::Full { path: path.to_owned() },
        _ => open_error(path, error),
    }
}

fn open_error(path: &Path, error: &io::Error) -> StoreError {
    let reason = error.to_string();
    let reason = reason.split(" (os error").next().unwrap_or(&reason).to_owned();
    StoreError::Open { path: path.to_owned(), reason }
}

/// If two processes turn on the write-ahead log at once, SQLite reports an error to one of them
/// without waiting.
fn patiently(mut attempt: impl FnMut() -> Result<(), StoreError>) -> Result<(), StoreError> {
    let started = Instant::now();
    loop {
        match attempt() {
            Err(StoreError::Busy { .. }) if started.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(1));
            }
            done => return done,
        }
    }
}

fn set_up(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let failed = |error: rusqlite::Error| StoreError::from_sqlite(&error, path);
    let mode: String = connection
        .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))
        .map_err(failed)?;
    // FULL: every commit is flushed before its caller is answered (M1).
    connection.pragma_update(None, "synchronous", "full").map_err(failed)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(failed)?;
    let synchronous: i64 =
        connection.pragma_query_value(None, "synchronous", |row| row.get(0)).map_err(failed)?;
    if mode != "wal" || synchronous != 2 {
        return Err(StoreError::internal(format!(
            "the database does not take its settings (journal {mode}, synchronous {synchronous})"
        )));
    }
    Ok(())
}

/// Migrates the tables in one transaction.
fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let failed = |error: rusqlite::Error| StoreError::from_sqlite(&error, path);
    let transaction = connection
        .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
        .map_err(failed)?;
    // Another process may have been faster.
    let found = version(&transaction, path)?;
    for migration in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or(usize::MAX)) {
        transaction.execute_batch(migration).map_err(failed)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION).map_err(failed)?;
    transaction.pragma_update(None, "user_version", KNOWN).map_err(failed)?;
    transaction.commit().map_err(failed)
}

/// How many migrations have been applied. Refuses a database of another program or a newer version.
/// All is read from one view: otherwise a database that is being created would look like another
/// program's.
fn version(view: &Transaction<'_>, path: &Path) -> Result<i64, StoreError> {
    let failed = |error: rusqlite::Error| StoreError::from_sqlite(&error, path);
    let pragma = |name| view.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (application, found) =
        (pragma("application_id").map_err(failed)?, pragma("user_version").map_err(failed)?);
    if application != APPLICATION {
        let tables: i64 = view
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .map_err(failed)?;
        if tables > 0 {
            return Err(StoreError::NotADatabase { path: path.to_owned() });
        }
    }
    if found > KNOWN {
        return Err(StoreError::Newer {
            database: path.display().to_string(),
            found,
            known: KNOWN,
        });
    }
    Ok(found)
}

/// Reads the whole database, and returns its state.
pub(crate) fn check(path: &Path) -> Result<String, StoreError> {
    let failed = |error: rusqlite::Error| StoreError::from_sqlite(&error, path);
    let connection = open_reader(path)?;
    let verdict: String =
        connection.pragma_query_value(None, "quick_check", |row| row.get(0)).map_err(failed)?;
    if verdict != "ok" {
        return Err(StoreError::Damaged { path: path.to_owned() });
    }
    let count = |table: &str| -> Result<i64, StoreError> {
        let sql = format!("SELECT count(*) FROM {table}");
        connection.query_row(&sql, [], |row| row.get(0)).map_err(failed)
    };
    Ok(format!(
        "SQLite {}; sessions: {}, log messages: {}, mail: {}",
        rusqlite::version(),
        count("sessions")?,
        count("messages")?,
        count("mail")?
    ))
}

/// The name of a network file system, which does not support write-ahead
/// logs; `None` for a local one.
pub(crate) fn network_file_system(folder: &Path) -> Option<&'static str> {
    #[cfg(target_os = "linux")]
    {
        let kind = rustix::fs::statfs(folder).ok()?.f_type;
        // From linux/magic.h.
        match kind as u32 {
            0x6969 => Some("nfs"),
            0x517b | 0xff53_4d42 | 0xfe53_4d42 => Some("smb"),
            0x0102_1997 => Some("9p"),
            0x5346_414f => Some("afs"),
            0x00c3_6400 => Some("ceph"),
            _ => None,
        }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = folder;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The writer's connection: its settings apply to every commit.
    #[test]
    fn a_statement_is_planned_once_for_all_values() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let (writer, _) = open_writer(&path, |_| None).unwrap();
        for connection in [&writer, &open_reader(&path).unwrap()] {
            let sql = "SELECT a.key FROM agents a JOIN sessions s ON s.key = a.session
                WHERE s.id = ?1 AND a.id = ?2";
            for id in ["0/", "1/", "2/"] {
                let mut statement = connection.prepare_cached(sql).unwrap();
                assert_eq!(statement.get_status(rusqlite::StatementStatus::RePrepare), 0);
                statement.raw_bind_parameter(1, "session").unwrap();
                statement.raw_bind_parameter(2, id).unwrap();
                assert!(statement.raw_query().next().unwrap().is_none());
            }
        }
    }

    #[test]
    fn m1_the_writers_own_connection_flushes_every_commit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        // Both when it is created and when it exists.
        for _ in 0..2 {
            let (connection, _) = open_writer(&path, |_| None).unwrap();
            let pragma = |name: &str| -> String {
                let text = |row: &rusqlite::Row<'_>| {
                    row.get(0).map(|value: rusqlite::types::Value| format!("{value:?}"))
                };
                connection.pragma_query_value(None, name, text).unwrap()
            };
            assert_eq!(pragma("synchronous"), "Integer(2)");
            assert_eq!(pragma("journal_mode"), "Text(\"wal\")");
            assert_eq!(pragma("foreign_keys"), "Integer(1)");
        }
    }
}
