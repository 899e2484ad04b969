//! `/undo` and `/redo`: undo or redo the file changes of the user's latest message.

use std::path::{Path, PathBuf};

use ikigai_agents::{AgentCommand, BetweenTurns, Fate, LeftFor, Report, Undone, undo};
use ikigai_conversation::{AgentId, Time};
use ikigai_mail::relative_time;
use ikigai_protocol::{CommandError, FileOutcome, LeftReason, Nothing, Reply, UndoReport};
use ikigai_store::{Direction, StoreError};

use super::refusal;
use crate::clock::now;
use crate::open::OpenSession;

impl OpenSession {
    /// Undoes or redoes file changes, and notes the command in the log of `agent`.
    pub(super) async fn undo(
        &self,
        agent: AgentId,
        direction: Direction,
    ) -> Result<Reply, CommandError> {
        let (command, nothing) = match direction {
            Direction::Undo => ("/undo", Nothing::Undo),
            Direction::Redo => ("/redo", Nothing::Redo),
        };
        match undo(&self.slot.store(), self.slot.session(), direction).await {
            Ok(Undone::Report(report)) => {
                let note = AgentCommand::BetweenTurns(BetweenTurns::Note(command.to_owned()));
                drop(self.send(agent, note).await);
                let report = undo_report(report, &self.environment().directory, now());
                Ok(match direction {
                    Direction::Undo => Reply::Undone(report),
                    Direction::Redo => Reply::Redone(report),
                })
            }
            Ok(Undone::Nothing) | Err(StoreError::SessionNotFound(_)) => {
                Err(CommandError::NothingToDo(nothing))
            }
            Ok(Undone::AtWork(agent)) => Err(CommandError::Working(agent)),
            Err(error) => Err(refusal(error)),
        }
    }
}

/// Converts the report of an undo or redo for front ends.
pub fn undo_report(report: Report, directory: &Path, now: Time) -> UndoReport {
    let Report { title, said_at, files } = report;
    let file = |(path, fate): (PathBuf, Fate)| (relative_path(&path, directory), outcome(fate));
    let files = files.into_iter().map(file).collect();
    UndoReport { title, said_at, age: relative_time(said_at, now), files }
}

/// A path relative to `directory`, which may be a link.
pub fn relative_path(path: &Path, directory: &Path) -> PathBuf {
    let real = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    path.strip_prefix(real).or_else(|_| path.strip_prefix(directory)).unwrap_or(path).to_owned()
}

fn outcome(fate: Fate) -> FileOutcome {
    match fate {
        Fate::Restored => FileOutcome::Restored,
        Fate::Removed => FileOutcome::Removed,
        Fate::InPart(reason) => FileOutcome::Partial(left_reason(reason)),
        Fate::Left(reason) => FileOutcome::Left(left_reason(reason)),
        Fate::Failed(error) => FileOutcome::Failed(error),
    }
}

fn left_reason(reason: LeftFor) -> LeftReason {
    match reason {
        LeftFor::ChangedSince => LeftReason::ChangedSince,
        LeftFor::Gone => LeftReason::Gone,
        LeftFor::NotKept => LeftReason::NotKept,
        LeftFor::Setting => LeftReason::GitSetting,
    }
}
