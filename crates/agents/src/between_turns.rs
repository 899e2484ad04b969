//! What the user can tell an agent to do between turns: clear the context, set marks, rewind to
//! them.

use ikigai_conversation::{Body, Message, MessageId, NewMessage};
use ikigai_protocol::{CommandError, Nothing, Reply, RewindPart, RewindReport, typed_text};
use ikigai_store::{Ending, StoreError};

use crate::agent::Agent;
use crate::order::{Answer, BetweenTurns};

impl Agent {
    /// Carries out a command that is only possible between turns.
    pub(crate) async fn between_turns(
        &mut self,
        command: BetweenTurns,
    ) -> Result<Answer, StoreError> {
        let is_started = !self.log.is_empty();
        Ok(match command {
            BetweenTurns::Clear => {
                if is_started {
                    self.append_between(NewMessage::clear()).await?;
                    self.forget_hidden();
                }
                Ok(Reply::Cleared)
            }
            BetweenTurns::Mark(label) if is_started => {
                self.append_between(NewMessage::mark(label.clone())).await?;
                Ok(Reply::Marked { label })
            }
            BetweenTurns::Note(command) if is_started => {
                self.append_between(NewMessage::command(command)).await?;
                Ok(Reply::Done)
            }
            BetweenTurns::Mark(_) | BetweenTurns::Note(_) => {
                Err(CommandError::NothingToDo(Nothing::Conversation))
            }
            BetweenTurns::Rewind(label) => self.rewind(label.as_deref()).await?,
            BetweenTurns::RewindTo(point) => self.rewind_to(point).await?,
        })
    }

    async fn append_between(&mut self, message: NewMessage) -> Result<(), StoreError> {
        self.record_end(vec![message], Ending::Answered).await.map(drop)
    }

    /// Rewinds to a mark. Mail that was read after it becomes unread again (M10).
    async fn rewind(&mut self, label: Option<&str>) -> Result<Answer, StoreError> {
        self.load_whole_log().await?;
        let Some((to, label)) = find_mark(self.own_log(), label) else {
            self.forget_hidden();
            return Ok(Err(CommandError::NothingToDo(Nothing::Mark)));
        };
        self.record_rewind(to, label.clone()).await?;
        Ok(Ok(Reply::Rewound { label }))
    }

    /// Rewinds to before a message of the user, or to a mark.
    async fn rewind_to(&mut self, point: MessageId) -> Result<Answer, StoreError> {
        self.load_whole_log().await?;
        let Some(to) = self.log().rewind_target(point) else {
            self.forget_hidden();
            return Ok(Err(CommandError::NothingToDo(Nothing::RewindPoint)));
        };
        let (text, label) = match self.own_log().iter().find(|message| message.id == point) {
            Some(Message { body: Body::Mark(mark), .. }) => (None, mark.label.clone()),
            said => (said.map(|said| typed_text(&said.content).to_owned()), None),
        };
        self.record_rewind(to, label).await?;
        let (part, files) = (RewindPart::Conversation, Vec::new());
        Ok(Ok(Reply::RewoundTo(RewindReport { part, text, files })))
    }

    async fn record_rewind(
        &mut self,
        to: MessageId,
        label: Option<String>,
    ) -> Result<(), StoreError> {
        let rewind = NewMessage::rewind(to, label);
        let message = self
            .with_retry(|agent| {
                let (lease, id) = agent.lease_and_id()?;
                let (store, rewind) = (agent.seat.store.clone(), rewind.clone());
                Ok(async move { store.rewind(lease, id, to, rewind).await })
            })
            .await?;
        self.log_message(message);
        self.forget_hidden();
        Ok(())
    }

    /// Loads what a summary or a clear hides as well: the mark may be there.
    async fn load_whole_log(&mut self) -> Result<(), StoreError> {
        if self.seat.lease().is_none() {
            return Ok(());
        }
        let log = self
            .with_retry(|agent| {
                let (store, session) = (agent.seat.store(), agent.seat.session());
                let id = agent.id().clone();
                Ok(async move { store.whole_log(session, id).await })
            })
            .await?;
        self.replace_log(log);
        Ok(())
    }
}

/// The latest mark, or the latest with this label.
fn find_mark(log: &[Message], label: Option<&str>) -> Option<(MessageId, Option<String>)> {
    log.iter().rev().find_map(|message| match &message.body {
        Body::Mark(mark) if label.is_none() || mark.label.as_deref() == label => {
            Some((message.id, mark.label.clone()))
        }
        _ => None,
    })
}
