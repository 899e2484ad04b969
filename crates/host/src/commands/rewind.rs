//! `/rewind`: lists the points that a conversation can return to, and returns to one.

use std::collections::BTreeSet;

use ikigai_agents::{BetweenTurns, undo_range};
use ikigai_conversation::{AgentId, Body, Log, Message, MessageId};
use ikigai_mail::relative_time;
use ikigai_protocol::{
    CommandError, Nothing, Reply, RewindPart, RewindPoint, RewindReport, UndoReport, typed_text,
};
use ikigai_store::{StoreError, UndoEntry, UndoRange};

use super::{refusal, undo_report};
use crate::clock::now;
use crate::open::OpenSession;

impl OpenSession {
    /// The points that the conversation of an agent can return to.
    pub(super) async fn rewind_points(&self, agent: AgentId) -> Result<Reply, CommandError> {
        /// More than a user looks through.
        const POINTS: usize = 1_000;
        let log = self.own_log(&agent).await?;
        let points = Log::new(&log).rewind_points();
        let points = &points[points.len().saturating_sub(POINTS)..];
        let Some(first) = points.first() else { return Ok(Reply::RewindPoints(Vec::new())) };
        let range = UndoRange { agent, said_at: first.created_at };
        let (store, session) = (self.slot.store(), self.slot.session());
        let changes = store.undoable_in(session, range).await.map_err(refusal)?;
        let point = |message: &&Message| rewind_point(message, &changes);
        Ok(Reply::RewindPoints(points.iter().map(point).collect()))
    }

    /// Returns to a point. Files come first: if they cannot be changed now, nothing is done.
    pub(super) async fn rewind_to(
        &self,
        agent: AgentId,
        point: MessageId,
        part: RewindPart,
    ) -> Result<Reply, CommandError> {
        let files = match part.has_files() {
            true => self.undo_since(&agent, point).await?,
            false => Vec::new(),
        };
        if !part.has_conversation() {
            return Ok(Reply::RewoundTo(RewindReport { part, text: None, files }));
        }
        let reply = self.between_turns(agent, BetweenTurns::RewindTo(point)).await?;
        Ok(match reply {
            Reply::RewoundTo(RewindReport { text, .. }) => {
                Reply::RewoundTo(RewindReport { part, text, files })
            }
            other => other,
        })
    }

    /// Undoes the file changes of an agent and its descendants from a message on.
    async fn undo_since(
        &self,
        agent: &AgentId,
        point: MessageId,
    ) -> Result<Vec<UndoReport>, CommandError> {
        let log = self.own_log(agent).await?;
        let points = Log::new(&log).rewind_points();
        let found = points.into_iter().find(|message| message.id == point);
        let found = found.ok_or(CommandError::NothingToDo(Nothing::RewindPoint))?;
        let range = UndoRange { agent: agent.clone(), said_at: found.created_at };
        let undone = undo_range(&self.slot.store(), self.slot.session(), range).await;
        let reports = undone.map_err(refusal)?.map_err(CommandError::Working)?;
        let directory = &self.environment().directory;
        Ok(reports.into_iter().map(|report| undo_report(report, directory, now())).collect())
    }

    async fn own_log(&self, agent: &AgentId) -> Result<Vec<Message>, CommandError> {
        match self.slot.store().own_log(self.slot.session(), agent.clone(), None).await {
            Err(StoreError::SessionNotFound(_)) => Ok(Vec::new()),
            log => log.map_err(refusal),
        }
    }
}

fn rewind_point(message: &Message, changes: &[UndoEntry]) -> RewindPoint {
    /// Enough to recognize a message.
    const SHOWN: usize = 500;
    let (text, is_mark) = match &message.body {
        Body::Mark(mark) => (mark.label.as_deref().unwrap_or("mark"), true),
        _ => (typed_text(&message.content), false),
    };
    let since = changes.iter().filter(|entry| entry.said_at >= message.created_at);
    let files: BTreeSet<_> = since.flat_map(|entry| &entry.files).collect();
    RewindPoint {
        id: message.id,
        text: text.chars().take(SHOWN).collect(),
        is_mark,
        age: relative_time(message.created_at, now()),
        files: files.len(),
    }
}
