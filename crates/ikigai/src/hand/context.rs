//! What a model still sees of its conversation: a fresh context, marks, and the way back to them.

use ikigai_agents::Command;
use ikigai_conversation::{AgentId, Body, Message};
use ikigai_store::{Agent, State, StoreError};

use super::{Hand, NOT_YET};

const NOTHING_SAID: &str = "Error: nothing was said yet, so there is nothing to mark";
const NO_MARK: &str = "Error: there is no mark to return to; /mark sets one";

impl Hand<'_> {
    /// Begins a fresh context.
    pub(crate) async fn clear(&self, agent: &AgentId) -> String {
        match self.require_idle(agent).await {
            Err(error) if error != NOT_YET => return error,
            Err(_) | Ok(()) => self.tell(agent, Command::Clear).await,
        }
        "A fresh context. The log keeps what was said before.".to_owned()
    }

    /// Sets a point to return to.
    pub(crate) async fn mark(&self, agent: &AgentId, label: Option<String>) -> String {
        match self.require_idle(agent).await {
            Err(error) if error == NOT_YET => return NOTHING_SAID.to_owned(),
            Err(error) => return error,
            Ok(()) => {}
        }
        let how = match &label {
            Some(label) => format!("Marked; /rewind {label} returns here"),
            None => "Marked; /rewind returns here".to_owned(),
        };
        self.tell(agent, Command::Mark(label)).await;
        how
    }

    /// Returns to a mark: the one of that name, or the newest.
    pub(crate) async fn rewind(&self, agent: &AgentId, label: Option<&str>) -> String {
        match self.require_idle(agent).await {
            Err(error) if error == NOT_YET => return NO_MARK.to_owned(),
            Err(error) => return error,
            Ok(()) => {}
        }
        let log = match self.store.own_log(self.session, agent.clone(), None).await {
            Ok(log) => log,
            Err(error) => return format!("Error: {error}"),
        };
        let Some((mark, name)) = find_mark(&log, label) else {
            return match label {
                Some(label) => {
                    format!("Error: there is no mark '{label}'; Tab offers those that are")
                }
                None => NO_MARK.to_owned(),
            };
        };
        let to = mark.id;
        self.tell(agent, Command::Rewind { to, label: name }).await;
        "What came after the mark is hidden from the model. Files stay as they are; /undo takes changes back."
            .to_owned()
    }

    async fn require_idle(&self, agent: &AgentId) -> Result<(), String> {
        let agents = match self.store.agents(self.session).await {
            Ok(agents) => agents,
            Err(StoreError::SessionNotFound(_)) => return Err(NOT_YET.to_owned()),
            Err(error) => return Err(format!("Error: {error}")),
        };
        let is_idle = |known: &Agent| known.id == *agent && known.state == State::Idle;
        match agents.iter().any(is_idle) {
            true => Ok(()),
            false => Err(self.at_work("the agent")),
        }
    }
}

/// The newest mark of a name, or of any.
fn find_mark<'a>(log: &'a [Message], label: Option<&str>) -> Option<(&'a Message, Option<String>)> {
    log.iter().rev().find_map(|message| match &message.body {
        Body::Mark(mark) if label.is_none() || mark.label.as_deref() == label => {
            Some((message, mark.label.clone()))
        }
        _ => None,
    })
}
