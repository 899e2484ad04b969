//! Undoing the file changes of one user message, file by file, and redoing them.
//!
//! Undoing a change takes three steps: the current content is committed, the file is restored if it
//! still is as the change left it, and the outcome is recorded. If the process is killed in
//! between, the undo is simply repeated: a file that already has the desired content counts as
//! done. A file that has changed since is left alone.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ikigai_conversation::{AgentId, SessionId, Time};
use ikigai_store::{
    Change, ChangeId, ChangeOutcome, Direction, Process, Store, StoreError, StoredChange,
    StoredContent, Undo, UndoRange, UndoStart,
};
use ikigai_tools::{ContentHash, DesiredState, FileState, RestoreOutcome, find, restore};

use crate::files::{from_kept, to_kept};

/// The outcome of an undo or a redo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undone {
    /// What was done.
    Report(Report),
    /// There was nothing to do.
    Nothing,
    /// Nothing was done, because this agent of the session is working.
    AtWork(AgentId),
}

/// What an undo or a redo did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The first line of the user message.
    pub title: String,
    /// When the message was sent.
    pub said_at: Time,
    /// What happened to each file.
    pub files: Vec<(PathBuf, Fate)>,
}

/// What happened to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// Its other content was restored.
    Restored,
    /// It was removed.
    Removed,
    /// Some of its changes were undone or redone; the rest was left alone, for this reason.
    InPart(Reason),
    /// It was left alone, for this reason.
    Left(Reason),
    /// It could not be changed, with an error message. Repeating the command tries again.
    Failed(String),
}

/// Why a file was left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It was changed since.
    ChangedSince,
    /// It was removed since.
    Gone,
    /// The content to restore was too large to keep.
    NotKept,
    /// It has become one of Git's settings.
    Setting,
}

/// Undoes the file changes of the latest message, or redoes the latest undo.
///
/// # Errors
/// When the database refuses. What was done until then is recorded, and a repeated call continues.
pub async fn undo(
    store: &Store,
    session: SessionId,
    direction: Direction,
) -> Result<Undone, StoreError> {
    Ok(match store.start_undo(session, direction, Process::current()).await? {
        UndoStart::Undo(undo) => Undone::Report(carry_out(store, undo, direction).await?),
        UndoStart::Nothing => Undone::Nothing,
        UndoStart::AtWork(agent) => Undone::AtWork(agent),
    })
}

/// Undoes the file changes of several messages, the latest first. Stops where a file cannot be
/// changed, so that a repeated call continues there.
///
/// # Errors
/// When the database refuses. What was done until then is recorded.
pub async fn undo_range(
    store: &Store,
    session: SessionId,
    range: UndoRange,
) -> Result<Result<Vec<Report>, AgentId>, StoreError> {
    let mut reports = Vec::new();
    loop {
        let undo = match store.start_undo_in(session, range.clone(), Process::current()).await? {
            UndoStart::Undo(undo) => undo,
            UndoStart::Nothing => return Ok(Ok(reports)),
            UndoStart::AtWork(agent) => return Ok(Err(agent)),
        };
        let report = carry_out(store, undo, Direction::Undo).await?;
        let has_failed = report.files.iter().any(|(_, fate)| matches!(fate, Fate::Failed(_)));
        reports.push(report);
        if has_failed {
            return Ok(Ok(reports));
        }
    }
}

async fn carry_out(store: &Store, undo: Undo, direction: Direction) -> Result<Report, StoreError> {
    let mut files = Files::default();
    for id in &undo.changes {
        let StoredChange { change, after } = store.change(*id).await?;
        let path = change.path.clone();
        let fate = match files.obstacle(&path) {
            Some(obstacle) => obstacle,
            None => match direction {
                Direction::Undo => undo_change(store, *id, change).await?,
                Direction::Redo => redo_change(change, after).await?,
            },
        };
        settle(store, &undo, *id, direction, &fate).await?;
        files.note(path, fate);
    }
    if direction == Direction::Redo && !files.has_failed() {
        store.end_redo(&undo).await?;
    }
    let Undo { title, said_at, .. } = undo;
    Ok(Report { title, said_at, files: files.fates })
}

async fn undo_change(store: &Store, id: ChangeId, change: Change) -> Result<Fate, StoreError> {
    let wanted = match change.before {
        StoredContent::Absent => DesiredState::Absent { folders: change.new_folders },
        StoredContent::Content(content) => DesiredState::Content(from_kept(content)),
        StoredContent::NotKept => return Ok(Fate::Left(Reason::NotKept)),
    };
    let expected = ContentHash::from(change.hash);
    let looked = change.path.clone();
    let found = blocking(move || find(&looked)).await;
    let (is_absent, has_expected) = match &found {
        Ok(FileState::File { hash, .. }) => (false, *hash == expected),
        Ok(FileState::Absent) => (true, false),
        Ok(FileState::Other) | Err(_) => (false, false),
    };
    if let Ok(FileState::File { content, .. }) = found
        && has_expected
    {
        let after = content
            .map_or(StoredContent::NotKept, |content| StoredContent::Content(to_kept(content)));
        store.keep_after(id, after).await?;
    }
    let gone = if is_absent { Reason::Gone } else { Reason::ChangedSince };
    Ok(exchange(change.path, Some(expected), wanted, gone).await)
}

async fn redo_change(change: Change, after: Option<StoredContent>) -> Result<Fate, StoreError> {
    let wanted = match after {
        Some(StoredContent::Content(content)) => DesiredState::Content(from_kept(content)),
        Some(StoredContent::Absent | StoredContent::NotKept) | None => {
            return Ok(Fate::Left(Reason::NotKept));
        }
    };
    let expected = match change.before {
        StoredContent::Absent => None,
        StoredContent::Content(content) => Some(ContentHash::of_content(&from_kept(content))),
        StoredContent::NotKept => return Ok(Fate::Left(Reason::NotKept)),
    };
    Ok(exchange(change.path, expected, wanted, Reason::ChangedSince).await)
}

async fn exchange(
    path: PathBuf,
    expected: Option<ContentHash>,
    wanted: DesiredState,
    otherwise: Reason,
) -> Fate {
    let done = match wanted {
        DesiredState::Absent { .. } => Fate::Removed,
        DesiredState::Content(_) => Fate::Restored,
    };
    match blocking(move || restore(&path, expected.as_ref(), &wanted)).await {
        Ok(RestoreOutcome::Done | RestoreOutcome::Already) => done,
        Ok(RestoreOutcome::Differs) => Fate::Left(otherwise),
        Ok(RestoreOutcome::Setting) => Fate::Left(Reason::Setting),
        Err(error) => Fate::Failed(error),
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(error.to_string()))
}

/// Records the outcome of a change. One that failed keeps its state, to be tried again.
async fn settle(
    store: &Store,
    undo: &Undo,
    id: ChangeId,
    direction: Direction,
    fate: &Fate,
) -> Result<(), StoreError> {
    let settled = match (direction, fate) {
        (_, Fate::Failed(_)) => return Ok(()),
        (Direction::Undo, Fate::Restored | Fate::Removed) => ChangeOutcome::Undone,
        (Direction::Undo, Fate::Left(_) | Fate::InPart(_)) => ChangeOutcome::Left,
        (Direction::Redo, Fate::Restored | Fate::Removed) => ChangeOutcome::Redone,
        // It is still undone.
        (Direction::Redo, Fate::Left(_) | Fate::InPart(_)) => return Ok(()),
    };
    store.settle(undo, id, settled).await
}

/// What happened to the files so far.
#[derive(Default)]
struct Files {
    fates: Vec<(PathBuf, Fate)>,
    positions: HashMap<PathBuf, usize>,
}

impl Files {
    /// Why no more changes of this file can be undone or redone: an earlier one was not.
    fn obstacle(&self, path: &Path) -> Option<Fate> {
        let (_, fate) = &self.fates[*self.positions.get(path)?];
        match fate {
            Fate::Left(_) | Fate::InPart(_) | Fate::Failed(_) => Some(fate.clone()),
            Fate::Restored | Fate::Removed => None,
        }
    }

    fn note(&mut self, path: PathBuf, fate: Fate) {
        match self.positions.get(&path) {
            Some(position) => {
                let so_far = &mut self.fates[*position].1;
                *so_far = match (&*so_far, fate) {
                    (Fate::Restored | Fate::Removed, Fate::Left(reason)) => Fate::InPart(reason),
                    (_, fate) => fate,
                };
            }
            None => {
                self.positions.insert(path.clone(), self.fates.len());
                self.fates.push((path, fate));
            }
        }
    }

    fn has_failed(&self) -> bool {
        self.fates.iter().any(|(_, fate)| matches!(fate, Fate::Failed(_)))
    }
}
