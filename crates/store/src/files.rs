//! What agents did to files, and which state of files they have seen. It is written together with
//! the result of the call.
//!
//! The fingerprint of a file and the hash of its content are opaque texts,
//! which are only compared here.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use ikigai_conversation::{AgentId, CommandId, MessageId, NewMessage, SessionId, Time};

use crate::agents::{AgentRow, agent_by_id};
use crate::causes;
use crate::commands;
use crate::error::StoreError;
use crate::leases::{Lease, fence};
use crate::log::{AppendOutcome, Next, append};
use crate::sql::params;
use crate::store::Store;
use crate::unit::Unit;

/// The maximum number of seen files that are returned: an agent does not read so many, and reads
/// forgotten ones again.
pub const SIGHTS: u32 = 10_000;

/// What a call did to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileAccess {
    /// It read the file.
    Saw(SeenFile),
    /// It created or changed the file.
    Changed(Change),
}

/// A file in the state that an agent has last seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenFile {
    /// An absolute path without links.
    pub path: PathBuf,
    /// Its fingerprint at that time.
    pub looks: String,
}

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// An absolute path without links.
    pub path: PathBuf,
    /// The content that the change has replaced.
    pub before: StoredContent,
    /// The fingerprint of the file right after the change.
    pub looks: String,
    /// The hash of the content right after the change.
    pub hash: String,
    /// How many of the folders above the file were created for it, counted from the file.
    pub new_folders: u32,
}

/// The earlier content of a file, as far as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredContent {
    /// There was no file.
    Absent,
    /// All of it.
    Content(Content),
    /// Not kept: it was too large, or could not be read.
    NotKept,
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// All of it.
    pub bytes: Vec<u8>,
    /// Its permissions.
    pub mode: u32,
}

/// A message, and for the result of a call what the call did to a file or tells of commands.
#[derive(Debug, Clone, PartialEq)]
pub struct LogEntry {
    /// The message.
    pub message: NewMessage,
    /// What its call did to a file.
    pub file: Option<FileAccess>,
    /// The background commands that it shows to have ended.
    pub ended: Vec<CommandId>,
}

/// The agent that has last changed a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedBy {
    /// The agent.
    pub agent: AgentId,
    /// When it changed the file.
    pub at: Time,
    /// The current time by the same clock.
    pub now: Time,
}

impl Store {
    /// Appends messages together with what the calls that they report did to files, all or nothing.
    pub async fn append_entries(
        &self,
        lease: Lease,
        agent: AgentId,
        entries: Vec<LogEntry>,
        next: Next,
    ) -> Result<AppendOutcome, StoreError> {
        self.commit(lease.scope(), move |unit| {
            let agent = fence(unit, &lease, &agent)?;
            let mut messages = Vec::with_capacity(entries.len());
            for LogEntry { message, file, ended } in entries {
                let message = append(unit, &agent, message)?;
                commands::mark_told(unit, &agent, &ended, message.id)?;
                match file {
                    Some(FileAccess::Saw(sight)) => note_sight(unit, &agent, &sight, message.id)?,
                    Some(FileAccess::Changed(change)) => {
                        note_change(unit, &agent, change, message.id)?;
                    }
                    None => {}
                }
                messages.push(message);
            }
            next.note_after(unit, &agent, messages)
        })
        .await
    }

    /// The files that an agent has seen. For a full fork, including those that its parent had seen
    /// at the fork.
    pub async fn sights(
        &self,
        session: SessionId,
        agent: AgentId,
    ) -> Result<Vec<SeenFile>, StoreError> {
        self.read(move |unit| sights(unit, agent_by_id(unit, &session, &agent)?.key)).await
    }

    /// The other agent of the session that left a file in its current state, and when.
    pub async fn changed_by(
        &self,
        session: SessionId,
        agent: AgentId,
        now: SeenFile,
    ) -> Result<Option<ChangedBy>, StoreError> {
        self.read(move |unit| {
            let agent = agent_by_id(unit, &session, &agent)?;
            let sql = "SELECT a.id, c.created_at FROM agents a JOIN changes c ON c.agent = a.key
                WHERE a.session = ?1 AND a.key <> ?2 AND c.path = ?3 AND c.looks = ?4
                ORDER BY c.key DESC LIMIT 1";
            let params = params![agent.session, agent.key, path_bytes(&now.path), now.looks];
            unit.row(sql, params, |row| {
                Ok(ChangedBy { agent: row.get(0)?, at: row.get(1)?, now: unit.now() })
            })
        })
        .await
    }
}

fn note_sight(
    unit: &Unit<'_>,
    agent: &AgentRow,
    sight: &SeenFile,
    message: MessageId,
) -> Result<(), StoreError> {
    let sql = format!(
        "INSERT INTO sights (agent, path, looks, message) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT (agent, {}) DO UPDATE SET looks = ?3, message = ?4",
        unit.dialect().path_in_index()
    );
    let params = params![agent.key, path_bytes(&sight.path), sight.looks, message.value()];
    unit.run(&sql, params)
}

fn note_change(
    unit: &Unit<'_>,
    agent: &AgentRow,
    change: Change,
    message: MessageId,
) -> Result<(), StoreError> {
    let Change { path, before, looks, hash, new_folders } = change;
    let (before_is, content) = before.into_columns();
    let (mode, bytes) = content.map(|content| (content.mode, content.bytes)).unzip();
    let cause = causes::of_agent(unit, agent)?;
    unit.run(
        "INSERT INTO changes (cause, agent, message, path, looks, hash, new_folders, created_at,
                before_is, before_mode, before)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        params![
            cause,
            agent.key,
            message.value(),
            path_bytes(&path),
            looks,
            hash,
            new_folders,
            unit.now().as_millis(),
            before_is,
            mode,
            bytes,
        ],
    )?;
    note_sight(unit, agent, &SeenFile { path, looks }, message)
}

impl StoredContent {
    /// As two columns: the kind, and the content.
    pub(crate) fn into_columns(self) -> (&'static str, Option<Content>) {
        match self {
            StoredContent::Absent => ("absent", None),
            StoredContent::Content(content) => ("content", Some(content)),
            StoredContent::NotKept => ("not kept", None),
        }
    }

    pub(crate) fn from_columns(
        is: &str,
        mode: Option<u32>,
        bytes: Option<Vec<u8>>,
    ) -> Result<StoredContent, StoreError> {
        match (is, mode, bytes) {
            ("absent", ..) => Ok(StoredContent::Absent),
            ("content", Some(mode), Some(bytes)) => {
                Ok(StoredContent::Content(Content { bytes, mode }))
            }
            ("not kept", ..) => Ok(StoredContent::NotKept),
            _ => Err(StoreError::internal(format!("no content of a file: {is}"))),
        }
    }
}

/// Follows the chain of full forks: the closest entry for a file counts.
fn sights(unit: &Unit<'_>, agent: i64) -> Result<Vec<SeenFile>, StoreError> {
    let (mut sights, mut known) = (Vec::new(), HashSet::new());
    let (mut key, mut up_to) = (agent, i64::MAX);
    loop {
        let sql = "SELECT path, looks FROM sights WHERE agent = ?1 AND message <= ?2
            ORDER BY message DESC LIMIT ?3";
        let own = unit.rows(sql, params![key, up_to, SIGHTS], |row| {
            Ok(SeenFile { path: path_from(row.get(0)?), looks: row.get(1)? })
        })?;
        sights.extend(own.into_iter().filter(|sight| known.insert(sight.path.clone())));
        let sql = "SELECT inherits, inherits_up_to FROM agents
            WHERE key = ?1 AND inherits IS NOT NULL";
        let parent =
            unit.row(sql, params![key], |row| Ok((row.get(0)?, row.get::<Option<i64>>(1)?)))?;
        match parent {
            Some((parent, last)) => (key, up_to) = (parent, up_to.min(last.unwrap_or(0))),
            None => return Ok(sights),
        }
    }
}

pub(crate) fn path_bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

pub(crate) fn path_from(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes))
}
