//! `/context`: what an agent's context consists of.

use ikigai_agents::{context_parts, offered_tools, tokens_of_tools};
use ikigai_conversation::{AgentId, Log};
use ikigai_protocol::{CommandError, ContextReport, Reply};
use ikigai_store::StoreError;

use super::refusal;
use crate::open::OpenSession;
use crate::settings;

impl OpenSession {
    /// Shows what fills the context of an agent.
    pub(super) async fn context(&self, agent: AgentId) -> Result<Reply, CommandError> {
        let (store, session) = (self.slot.store(), self.slot.session());
        let log = match store.needed_log(session, agent.clone()).await {
            Err(StoreError::SessionNotFound(_)) => Vec::new(),
            log => log.map_err(refusal)?,
        };
        let (inherited, own) = log.split_at(log.partition_point(|message| message.agent != agent));
        let log = Log::forked(inherited, own);
        let tools = settings::tools(&self.environment().settings);
        let tools = offered_tools(&tools, self.permissions.mode());
        Ok(Reply::Context(ContextReport {
            used: log.used_tokens(tokens_of_tools(&tools)),
            window: self.models.of(&agent).facts.now().context_window,
            parts: context_parts(&log, &tools),
            agent,
        }))
    }
}
