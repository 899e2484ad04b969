//! File accesses of an agent's calls: recorded in the database and in the agent's memory.

use ikigai_conversation::{CommandId, NewMessage, Time};
use ikigai_mail::relative_time;
use ikigai_store::{self as store, Next, Requests, StoreError};
use ikigai_tools::{self as tools, Execution, FileMemory, FileUse, Fingerprint, Stale, ToolResult};

use crate::agent::Agent;

/// A message, and for the result of a call what the call did to a file or shows of commands.
pub(crate) struct Access {
    pub(crate) message: NewMessage,
    pub(crate) file: Option<FileUse>,
    /// The background commands that it shows to have ended.
    pub(crate) ended: Vec<CommandId>,
}

impl From<NewMessage> for Access {
    fn from(message: NewMessage) -> Access {
        Access { message, file: None, ended: Vec::new() }
    }
}

impl Agent {
    /// Restores what the agent had seen of files before this process ran it.
    pub(crate) async fn recall_files(&mut self) -> Result<(), StoreError> {
        let sights = self
            .with_retry(|agent| {
                let (store, session) = (agent.seat.store(), agent.seat.session);
                let id = agent.id().clone();
                Ok(async move { store.sights(session, id).await })
            })
            .await?;
        for store::SeenFile { path, looks } in sights {
            self.memory.note(tools::Sight { path, looks: Fingerprint::from(looks) });
        }
        Ok(())
    }

    /// Commits the result of a call together with its file access, then updates the agent's memory.
    pub(crate) async fn record_execution(
        &mut self,
        execution: Execution,
        close: impl FnOnce(ToolResult) -> NewMessage,
        next: Next,
    ) -> Result<Requests, StoreError> {
        let Execution { mut result, file, ended, .. } = execution;
        if let Some(FileUse::Stale(stale)) = &file
            && let Some(by) = self.who_changed(stale).await
        {
            result = ToolResult::stale(stale, &by);
        }
        let access = Access { file, ended, ..close(result).into() };
        self.record_accesses(vec![access], next).await
    }

    /// Commits messages together with what their calls did to files, then updates the agent's
    /// memory.
    pub(crate) async fn record_accesses(
        &mut self,
        accesses: Vec<Access>,
        next: Next,
    ) -> Result<Requests, StoreError> {
        let files = accesses.iter().filter_map(|access| access.file.as_ref());
        let seen: Vec<tools::Sight> = files.filter_map(sight_of).collect();
        let entry = |Access { message, file, ended }| store::LogEntry {
            message,
            file: file.and_then(to_store),
            ended,
        };
        let entries = accesses.into_iter().map(entry).collect();
        let requests = self.record_entries(entries, next).await?;
        seen.into_iter().for_each(|sight| self.memory.note(sight));
        Ok(requests)
    }

    /// The agent of the session that changed the file, as text, if it was one. A database error is
    /// ignored: it is no reason to end the turn.
    async fn who_changed(&self, stale: &Stale) -> Option<String> {
        let (session, id) = (self.seat.session, self.seat.agent.clone());
        let now =
            store::SeenFile { path: stale.now.path.clone(), looks: stale.now.looks.to_string() };
        let change = self.seat.store.changed_by(session, id, now).await.ok()??;
        Some(format!("by agent {}, {}", change.agent, ago(change.at, change.now)))
    }
}

/// How long ago, with seconds: among agents, seconds matter.
fn ago(then: Time, now: Time) -> String {
    match now.as_millis().saturating_sub(then.as_millis()) / 1_000 {
        1 => "1 second ago".to_owned(),
        seconds @ 2..60 => format!("{seconds} seconds ago"),
        _ => relative_time(then, now),
    }
}

/// What the agent knows of a file after this access. It knows a file that it changed itself.
fn sight_of(file: &FileUse) -> Option<tools::Sight> {
    match file {
        FileUse::Read(sight) => Some(sight.clone()),
        FileUse::Changed(tools::Change { path, looks, .. }) => {
            Some(tools::Sight { path: path.clone(), looks: looks.clone() })
        }
        FileUse::Stale(_) => None,
    }
}

fn to_store(file: FileUse) -> Option<store::FileAccess> {
    match file {
        FileUse::Read(tools::Sight { path, looks }) => {
            Some(store::FileAccess::Saw(store::SeenFile { path, looks: looks.to_string() }))
        }
        FileUse::Changed(tools::Change { path, before, looks, hash, new_folders }) => {
            let before = match before {
                tools::Before::Absent => store::StoredContent::Absent,
                tools::Before::Content(content) => store::StoredContent::Content(to_kept(content)),
                tools::Before::NotKept => store::StoredContent::NotKept,
            };
            let (looks, hash) = (looks.to_string(), hash.to_string());
            Some(store::FileAccess::Changed(store::Change {
                path,
                before,
                looks,
                hash,
                new_folders,
            }))
        }
        FileUse::Stale(_) => None,
    }
}

pub(crate) fn to_kept(content: tools::Content) -> store::Content {
    store::Content { bytes: content.bytes, mode: content.mode }
}

pub(crate) fn from_kept(content: store::Content) -> tools::Content {
    tools::Content { bytes: content.bytes, mode: content.mode }
}

// The two crates do not depend on each other, so the limits are compared here.
const _: () = assert!(FileMemory::LIMIT == store::SIGHTS as usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_below_a_minute_are_in_seconds() {
        let now = Time::from_millis(1_700_000_000_000);
        for (millis, expected) in [
            (-5_000, "just now"),
            (0, "just now"),
            (999, "just now"),
            (1_000, "1 second ago"),
            (40_999, "40 seconds ago"),
            (59_999, "59 seconds ago"),
            (60_000, "1 minute ago"),
            (7_200_000, "2 hours ago"),
        ] {
            assert_eq!(ago(Time::from_millis(now.as_millis() - millis), now), expected);
        }
    }
}
