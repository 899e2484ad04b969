//! Errors of the database, with advice.

use std::path::PathBuf;
use std::sync::Arc;

use ikigai_conversation::{AgentId, SessionId};

use crate::refusal::Refusal;

/// Why the store could not do something. Cheap to clone, because all units
/// of a shared commit get it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The address is not supported.
    #[error("{address} is not a supported database address: use sqlite://PATH or postgres://…")]
    Address {
        /// The given address, without a password.
        address: String,
    },
    /// The file is not a database.
    #[error("{} is not a database: move it, or choose another path with --db sqlite://PATH", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file is damaged.
    #[error("The database {} is damaged: make a copy and restore a backup, or rescue what is left with 'sqlite3 FILE .recover'", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The file is gone, but its log still has the latest changes.
    #[error("The database {} is missing or empty, but its log {} exists and may contain mail: \
        put the database back, or move the log", path.display(), log.display())]
    LogWithoutDatabase {
        /// The file.
        path: PathBuf,
        /// Its write-ahead log.
        log: PathBuf,
    },
    /// A newer version of the program has changed the tables.
    #[error(
        "The database {database} was made by a newer version of ikigai (schema {found}, this version knows {known}): update ikigai"
    )]
    Newer {
        /// The file, or the address of the server.
        database: String,
        /// The version of the database.
        found: i64,
        /// The latest version that this program supports.
        known: i64,
    },
    /// The file or its folder is read-only.
    #[error("The database {} cannot be written: check the permissions of the file and its folder", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The disk is full.
    #[error("No space left for the database {}: free some space; nothing was lost", path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// Write-ahead logs need shared memory, which network file systems do not support.
    #[error("The database {} is on a network file system ({kind}), where SQLite can lose data: put it on a local disk, or use PostgreSQL with database_url = \"postgres://…\"", path.display())]
    NetworkFileSystem {
        /// The file.
        path: PathBuf,
        /// The type of the file system.
        kind: String,
    },
    /// The file was deleted or replaced while it was in use.
    #[error("The database {} was moved or deleted while it was in use: put it back, or restart", path.display())]
    Vanished {
        /// The file.
        path: PathBuf,
    },
    /// Other processes kept it locked for too long.
    #[error("The database {} is locked by another process: try again, or find the process with 'fuser {}'", path.display(), path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The address of a server is malformed.
    #[error("Invalid database address: {0}")]
    ServerAddress(String),
    /// The server cannot be reached.
    #[error(
        "The database server {server} cannot be reached ({reason}): start it, or check the address; nothing was lost"
    )]
    ServerAway {
        /// Its address, without a password.
        server: String,
        /// The message of the system or the server.
        reason: String,
    },
    /// The server is overloaded.
    #[error("The database {server} is busy ({reason}): {advice}")]
    ServerBusy {
        /// Its address, without a password.
        server: String,
        /// The message of the server.
        reason: String,
        /// What may help.
        advice: &'static str,
    },
    /// The server refuses the login, or something that the store needs.
    #[error("The database {server} cannot be used ({reason}): {advice}")]
    ServerRefuses {
        /// Its address, without a password.
        server: String,
        /// The message of the server.
        reason: String,
        /// What to do about it.
        advice: String,
    },
    /// The connection was lost during a commit, and the server did not come back.
    #[error(
        "The database server {server} was lost during a commit, so the last action may or may \
            not have been saved: check with 'ikigai log' or 'ikigai mail inbox' when it is back"
    )]
    Uncertain {
        /// Its address, without a password.
        server: String,
    },
    /// Waiting for it was given up.
    #[error("The database could not be reached in time; the last action is not in the log")]
    Unreachable,
    /// The folder or the file cannot be created or opened.
    #[error("Cannot open the database {}: {reason}; choose another path with --db sqlite://PATH", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The message of the system.
        reason: String,
    },
    /// Another process runs this agent now. The write was refused.
    #[error("Agent {agent} was taken over by another process ({holder})")]
    LeaseLost {
        /// The agent of the log.
        agent: AgentId,
        /// The current holder.
        holder: String,
    },
    /// A live process has the agent.
    #[error("Agent {agent} is run by another process ({holder})")]
    LeaseHeld {
        /// The agent.
        agent: AgentId,
        /// The holder.
        holder: String,
    },
    /// The agent was killed.
    #[error("Agent {0} is dead")]
    AgentDead(AgentId),
    /// There is no such agent in the session.
    #[error("Agent {0} not found")]
    AgentNotFound(AgentId),
    /// There is no such session.
    #[error("Session {0} not found: 'ikigai sessions' lists them")]
    SessionNotFound(SessionId),
    /// The folder where agents of the session could write was replaced.
    #[error(
        "{} was moved or replaced since session {session} used it: another folder is there now. Put the old folder back, \
         or start a new session with --new", path.display()
    )]
    RootReplaced {
        /// The session that used the old folder.
        session: SessionId,
        /// The path of both.
        path: PathBuf,
    },
    /// The other database already has the session.
    #[error(
        "Session {0} is already in that database: delete it there first with 'ikigai sessions rm'"
    )]
    SessionExists(SessionId),
    /// A condition for the request does not hold.
    #[error(transparent)]
    Refused(Refusal),
    /// A limit of the session was reached.
    #[error("{0}")]
    Limit(String),
    /// The store's thread has ended: the program is exiting.
    #[error("The database is closed")]
    Closed,
    /// The database refused a statement, or contains invalid data.
    #[error("Database error: {0}")]
    Internal(Arc<str>),
}

impl StoreError {
    /// Whether a retry may succeed a little later.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            StoreError::Busy { .. }
                | StoreError::Full { .. }
                | StoreError::ServerAway { .. }
                | StoreError::ServerBusy { .. }
                | StoreError::Unreachable
        )
    }

    pub(crate) fn internal(error: impl std::fmt::Display) -> StoreError {
        StoreError::Internal(error.to_string().into())
    }

    /// What SQLite's error means for the user.
    pub(crate) fn from_sqlite(error: &rusqlite::Error, path: &std::path::Path) -> StoreError {
        use rusqlite::ErrorCode;
        let path = path.to_owned();
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => StoreError::NotADatabase { path },
            Some(ErrorCode::DatabaseCorrupt) => StoreError::Damaged { path },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                StoreError::ReadOnly { path }
            }
            Some(ErrorCode::DiskFull) => StoreError::Full { path },
            // The shared memory of the write-ahead log is a file too.
            Some(ErrorCode::SystemIoFailure)
                if error.sqlite_extended_error_code()
                    == Some(rusqlite::ffi::SQLITE_IOERR_SHMSIZE) =>
            {
                StoreError::Full { path }
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy { path },
            Some(ErrorCode::CannotOpen) => {
                StoreError::Open { path, reason: "the file cannot be opened".to_owned() }
            }
            _ => StoreError::internal(error),
        }
    }
}
