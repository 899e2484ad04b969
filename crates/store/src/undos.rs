//! Undoing and redoing the file changes of one user message.
//!
//! Many files cannot change in one transaction, so an undo has many: its start is recorded, then
//! each change is settled separately, always in the same order. An interrupted undo is started
//! again, and finds what is left to do.

use std::path::PathBuf;

use ikigai_conversation::{AgentId, SessionId, Time};

use crate::error::StoreError;
use crate::files::{Change, StoredContent, path_from};
use crate::leases;
use crate::process::Process;
use crate::sessions;
use crate::sql::{Row, params};
use crate::store::Store;
use crate::unit::Unit;
use crate::writer::Scope;

/// A user message whose changes can be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoEntry {
    /// The first line of the message.
    pub title: String,
    /// When it was sent.
    pub said_at: Time,
    /// The changed files, in the order of their first change.
    pub files: Vec<PathBuf>,
}

/// Undo or redo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Undo changes.
    Undo,
    /// Redo undone changes.
    Redo,
}

/// The user's messages whose changes are undone together: those from `said_at` on for which an agent
/// or one of its descendants changed files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoRange {
    /// The agent.
    pub agent: AgentId,
    /// When the first of the messages was sent.
    pub said_at: Time,
}

/// The result of starting an undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoStart {
    /// There are changes to settle.
    Undo(Undo),
    /// There is nothing to do.
    Nothing,
    /// An agent of the session is at work, and might change files meanwhile.
    AtWork(AgentId),
}

/// A started undo or redo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undo {
    /// The first line of the message.
    pub title: String,
    /// When it was sent.
    pub said_at: Time,
    /// The changes to settle, in this order.
    pub changes: Vec<ChangeId>,
    key: i64,
}

/// The id of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeId(i64);

/// A change with its kept contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredChange {
    /// The change.
    pub change: Change,
    /// The content that an undo removed; `None` before the first undo.
    pub after: Option<StoredContent>,
}

/// The outcome of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeOutcome {
    /// It was undone.
    Undone,
    /// It cannot be undone.
    Left,
    /// It was redone.
    Redone,
}

/// How many entries a list shows.
const LIST_LIMIT: u32 = 100;

impl Store {
    /// What can be undone, the latest first.
    pub async fn undoable(&self, session: SessionId) -> Result<Vec<UndoEntry>, StoreError> {
        self.read(move |unit| {
            let session = sessions::key_of(unit, &session)?;
            let sql = "SELECT s.key, s.title, s.created_at FROM causes s WHERE s.session = ?1
                AND EXISTS (SELECT 1 FROM changes WHERE cause = s.key AND state = 'made')
                ORDER BY s.key DESC LIMIT ?2";
            entries(unit, unit.rows(sql, params![session, LIST_LIMIT], read_cause)?)
        })
        .await
    }

    /// What can be undone of a range, the latest first.
    pub async fn undoable_in(
        &self,
        session: SessionId,
        range: UndoRange,
    ) -> Result<Vec<UndoEntry>, StoreError> {
        self.read(move |unit| {
            let session = sessions::key_of(unit, &session)?;
            let sql = format!(
                "SELECT s.key, s.title, s.created_at FROM causes s WHERE {IN_RANGE}
                ORDER BY s.key DESC"
            );
            let params = params![session, range.said_at.as_millis(), range.agent.to_string()];
            entries(unit, unit.rows(&sql, params, read_cause)?)
        })
        .await
    }

    /// Starts to undo the latest message that is not undone yet, or to redo what was undone last.
    /// `by` checks whether agents are at work.
    pub async fn start_undo(
        &self,
        session: SessionId,
        direction: Direction,
        by: Process,
    ) -> Result<UndoStart, StoreError> {
        self.commit(Scope::Session(session), move |unit| {
            let session = sessions::key_of(unit, &session)?;
            if let Some(agent) = leases::at_work(unit, session, &by)? {
                return Ok(UndoStart::AtWork(agent));
            }
            let undo = match direction {
                Direction::Undo => start(unit, session)?,
                Direction::Redo => last_undo(unit, session)?,
            };
            undo.map_or(Ok(UndoStart::Nothing), |undo| {
                read_undo(unit, undo, direction).map(UndoStart::Undo)
            })
        })
        .await
    }

    /// Starts to undo the latest message of a range that is not undone yet.
    pub async fn start_undo_in(
        &self,
        session: SessionId,
        range: UndoRange,
        by: Process,
    ) -> Result<UndoStart, StoreError> {
        self.commit(Scope::Session(session), move |unit| {
            let session = sessions::key_of(unit, &session)?;
            if let Some(agent) = leases::at_work(unit, session, &by)? {
                return Ok(UndoStart::AtWork(agent));
            }
            let sql =
                format!("SELECT s.key FROM causes s WHERE {IN_RANGE} ORDER BY s.key DESC LIMIT 1");
            let params = params![session, range.said_at.as_millis(), range.agent.to_string()];
            let Some(cause) = unit.row(&sql, params, |row| row.get(0))? else {
                return Ok(UndoStart::Nothing);
            };
            let undo = open(unit, session, cause)?;
            read_undo(unit, undo, Direction::Undo).map(UndoStart::Undo)
        })
        .await
    }

    /// A change with its contents. They are large, so read them one by one.
    pub async fn change(&self, id: ChangeId) -> Result<StoredChange, StoreError> {
        self.read(move |unit| read_change(unit, id)).await
    }

    /// Keeps the content that an undo is about to remove.
    pub async fn keep_after(&self, id: ChangeId, after: StoredContent) -> Result<(), StoreError> {
        self.commit(Scope::Own, move |unit| {
            let (is, content) = after.into_columns();
            let (mode, bytes) = content.map(|content| (content.mode, content.bytes)).unzip();
            let sql = "UPDATE changes SET after_is = ?2, after_mode = ?3, after = ?4
                WHERE key = ?1";
            unit.run(sql, params![id.0, is, mode, bytes])
        })
        .await
    }

    /// Records the outcome of a change.
    pub async fn settle(
        &self,
        undo: &Undo,
        id: ChangeId,
        settled: ChangeOutcome,
    ) -> Result<(), StoreError> {
        let (state, undo) = match settled {
            ChangeOutcome::Undone => ("undone", Some(undo.key)),
            ChangeOutcome::Left => ("left", Some(undo.key)),
            ChangeOutcome::Redone => ("made", None),
        };
        self.commit(Scope::Own, move |unit| {
            let sql = "UPDATE changes SET state = ?2, undo = ?3 WHERE key = ?1";
            unit.run(sql, params![id.0, state, undo])
        })
        .await
    }

    /// Records that everything that could be redone was redone. All is as before the undo, and the
    /// next undo may retry changes that this one left.
    pub async fn end_redo(&self, undo: &Undo) -> Result<(), StoreError> {
        let undo = undo.key;
        self.commit(Scope::Own, move |unit| {
            unit.run("UPDATE undos SET redone = 1 WHERE key = ?1", params![undo])?;
            let sql = "UPDATE changes SET state = 'made', undo = NULL
                WHERE undo = ?1 AND state = 'left'";
            unit.run(sql, params![undo])
        })
        .await
    }
}

/// The causes `s` of a range: of session `?1`, from `?2` on, with changes of agent `?3` or one of its
/// descendants.
const IN_RANGE: &str = "s.session = ?1 AND s.created_at >= ?2
    AND EXISTS (SELECT 1 FROM changes c JOIN agents a ON a.key = c.agent
        WHERE c.cause = s.key AND c.state = 'made' AND a.id LIKE ?3 || '%')";

fn read_cause(row: &Row<'_>) -> Result<(i64, String, i64), StoreError> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}

fn entries(unit: &Unit<'_>, causes: Vec<(i64, String, i64)>) -> Result<Vec<UndoEntry>, StoreError> {
    let entry = |(cause, title, said_at): (i64, String, i64)| {
        let said_at = Time::from_millis(said_at);
        Ok(UndoEntry { title, said_at, files: files(unit, cause)? })
    };
    causes.into_iter().map(entry).collect()
}

fn files(unit: &Unit<'_>, cause: i64) -> Result<Vec<PathBuf>, StoreError> {
    let sql = "SELECT path FROM changes WHERE cause = ?1 AND state = 'made'
        GROUP BY path ORDER BY min(key)";
    unit.rows(sql, params![cause], |row| Ok(path_from(row.get(0)?)))
}

/// Starts an undo of the latest cause with changes.
fn start(unit: &Unit<'_>, session: i64) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT key FROM causes s WHERE session = ?1
        AND EXISTS (SELECT 1 FROM changes WHERE cause = s.key AND state = 'made')
        ORDER BY key DESC LIMIT 1";
    let Some(cause) = unit.row(sql, params![session], |row| row.get::<i64>(0))? else {
        return Ok(None);
    };
    open(unit, session, cause).map(Some)
}

/// Starts an undo of a cause, or continues an interrupted one.
fn open(unit: &Unit<'_>, session: i64, cause: i64) -> Result<i64, StoreError> {
    let sql = "SELECT key FROM undos WHERE cause = ?1 AND redone = 0 ORDER BY key DESC LIMIT 1";
    if let Some(open) = unit.row(sql, params![cause], |row| row.get(0))? {
        return Ok(open);
    }
    let sql = "INSERT INTO undos (cause, created_at) VALUES (?1, ?2) RETURNING key";
    unit.touch(session);
    unit.insert(sql, params![cause, unit.now().as_millis()])
}

fn last_undo(unit: &Unit<'_>, session: i64) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT u.key FROM undos u JOIN causes s ON s.key = u.cause
        WHERE s.session = ?1 AND u.redone = 0
        AND EXISTS (SELECT 1 FROM changes WHERE undo = u.key AND state = 'undone')
        ORDER BY u.key DESC LIMIT 1";
    unit.row(sql, params![session], |row| row.get(0))
}

fn read_undo(unit: &Unit<'_>, undo: i64, direction: Direction) -> Result<Undo, StoreError> {
    let sql = "SELECT s.key, s.title, s.created_at FROM undos u JOIN causes s ON s.key = u.cause
        WHERE u.key = ?1";
    let found = unit.row(sql, params![undo], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let (cause, title, said_at): (i64, String, i64) =
        found.ok_or_else(|| StoreError::internal("the undo is gone"))?;
    let (sql, key) = match direction {
        Direction::Undo => {
            ("SELECT key FROM changes WHERE cause = ?1 AND state = 'made' ORDER BY key DESC", cause)
        }
        Direction::Redo => {
            ("SELECT key FROM changes WHERE undo = ?1 AND state = 'undone' ORDER BY key", undo)
        }
    };
    let changes = unit.rows(sql, params![key], |row| row.get(0).map(ChangeId))?;
    Ok(Undo { title, said_at: Time::from_millis(said_at), changes, key: undo })
}

fn read_change(unit: &Unit<'_>, id: ChangeId) -> Result<StoredChange, StoreError> {
    let sql = "SELECT path, looks, hash, new_folders, before_is, before_mode, before, after_is,
            after_mode, after FROM changes WHERE key = ?1";
    let read = unit.row(sql, params![id.0], |row| {
        let before: (String, _, _) = (row.get(4)?, row.get(5)?, row.get(6)?);
        let after: (Option<String>, _, _) = (row.get(7)?, row.get(8)?, row.get(9)?);
        Ok((path_from(row.get(0)?), row.get(1)?, row.get(2)?, row.get(3)?, before, after))
    })?;
    let (path, looks, hash, new_folders, before, after) =
        read.ok_or_else(|| StoreError::internal("the change is gone"))?;
    let before = StoredContent::from_columns(&before.0, before.1, before.2)?;
    let kept_after = |is: String| StoredContent::from_columns(&is, after.1, after.2);
    let after = after.0.map(kept_after).transpose()?;
    Ok(StoredChange { change: Change { path, before, looks, hash, new_folders }, after })
}
