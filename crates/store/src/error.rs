//! What can be wrong with a database, in words that say what to do.

use std::path::PathBuf;
use std::sync::Arc;

use ikigai_conversation::{AgentId, SessionId};

use crate::refusal::Refusal;

/// Why the store could not do what it was asked. Cheap to clone: everybody in a shared commit is told.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The address is none that this program understands.
    #[error(
        "{address} is no address of a database that this version can use: use sqlite://PATH or postgres://…"
    )]
    Address {
        /// What was given, without a password.
        address: String,
    },
    /// The file holds something else.
    #[error("{} is not a database: move it away, or choose another place with --db sqlite://PATH", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file is damaged.
    #[error("The database {} is damaged: copy it away and restore a backup, or rescue what is left with 'sqlite3 FILE .recover'", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The file is gone, and what was last written to it is still in its log.
    #[error("The database {} is not there or empty, but its log {} is, and mail may be in it: put the database back, or move the log away", path.display(), log.display())]
    LogWithoutDatabase {
        /// The file.
        path: PathBuf,
        /// Its write-ahead log.
        log: PathBuf,
    },
    /// Another version of the program has changed the tables.
    #[error(
        "The database {database} was made by a newer version of ikigai (schema {found}, this version knows {known}): update ikigai"
    )]
    Newer {
        /// The file, or the address of the server.
        database: String,
        /// The number in the database.
        found: i64,
        /// The newest number that this program knows.
        known: i64,
    },
    /// Nothing may be written there.
    #[error("The database {} cannot be written: check the permissions of the file and its folder", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// There is no room left.
    #[error("No space left for the database {}: free some, nothing was lost", path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// Write-ahead logs need shared memory, which a network file system does not give.
    #[error("The database {} is on a network file system ({kind}), where SQLite can lose data: put it on a local disk, or use PostgreSQL with database_url = \"postgres://…\"", path.display())]
    NetworkFileSystem {
        /// The file.
        path: PathBuf,
        /// The type of the file system.
        kind: String,
    },
    /// Somebody deleted or replaced the file while it was in use.
    #[error("The database {} was moved or deleted while it was in use: put it back, or start again", path.display())]
    Vanished {
        /// The file.
        path: PathBuf,
    },
    /// Others kept it locked for too long.
    #[error("The database {} is kept busy by another process: try again, or find it with 'fuser {}'", path.display(), path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The address of a server cannot be understood.
    #[error("The address of the database is wrong: {0}")]
    ServerAddress(String),
    /// No server answers, or it went away.
    #[error(
        "The database server {server} cannot be reached ({reason}): start it, or check the address; nothing was lost"
    )]
    ServerAway {
        /// Its address, without a password.
        server: String,
        /// What the system or the server said.
        reason: String,
    },
    /// The server has more to do than it can.
    #[error("The database {server} is kept busy ({reason}): {advice}")]
    ServerBusy {
        /// Its address, without a password.
        server: String,
        /// What the server said.
        reason: String,
        /// What may help.
        advice: &'static str,
    },
    /// The server does not let us in, or not do what we must.
    #[error("The database {server} cannot be used ({reason}): {advice}")]
    ServerRefuses {
        /// Its address, without a password.
        server: String,
        /// What the server said.
        reason: String,
        /// What to do about it.
        advice: String,
    },
    /// The connection was lost in the moment of a commit, and the server did not come back to be asked.
    #[error(
        "The database server {server} went away during a commit, and it is not known whether what was last done is kept: look with 'ikigai log' or 'ikigai mail inbox' when it is back"
    )]
    Uncertain {
        /// Its address, without a password.
        server: String,
    },
    /// It was given up to wait for it.
    #[error("The database could not be reached in time; what was last done is not in the log")]
    Unreachable,
    /// The folder or the file cannot be made or opened.
    #[error("Cannot open the database {}: {reason}; choose another place with --db sqlite://PATH", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// Another process runs this agent now; what this one wanted to write is refused.
    #[error("Agent {agent} was taken over by another process ({holder})")]
    LeaseLost {
        /// Whose log it was about.
        agent: AgentId,
        /// Who has it now.
        holder: String,
    },
    /// A live process has the agent.
    #[error("Agent {agent} is run by another process ({holder})")]
    LeaseHeld {
        /// The agent that was wanted.
        agent: AgentId,
        /// Who has it.
        holder: String,
    },
    /// The agent was killed, or never lived.
    #[error("Agent {0} is dead")]
    AgentDead(AgentId),
    /// There is no such agent in the session.
    #[error("Agent {0} not found")]
    AgentNotFound(AgentId),
    /// There is no such session.
    #[error("Session {0} not found: 'ikigai sessions' lists them")]
    SessionNotFound(SessionId),
    /// Another folder is where agents of the session could write.
    #[error(
        "{} was moved or replaced since session {session} used it: another folder is there now. Put the old folder back, \
         or start a new session with --new", path.display()
    )]
    RootReplaced {
        /// The session that knew the old folder.
        session: SessionId,
        /// Where both were found.
        path: PathBuf,
    },
    /// The other database has it.
    #[error(
        "Session {0} is in that database already: delete it there first with 'ikigai sessions rm'"
    )]
    SessionExists(SessionId),
    /// What was asked for cannot be.
    #[error(transparent)]
    Refused(Refusal),
    /// A limit of the session.
    #[error("{0}")]
    Limit(String),
    /// The store's thread is gone: the program is ending.
    #[error("The database is closed")]
    Closed,
    /// The database refused a statement, or holds what it should not.
    #[error("Database error: {0}")]
    Internal(Arc<str>),
}

impl StoreError {
    /// Whether the same may succeed a little later, without anybody asking again.
    pub fn is_passing(&self) -> bool {
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

    /// What SQLite's error means for the person.
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
            // The shared memory of the write-ahead log is a file as well.
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
