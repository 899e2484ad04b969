//! What a model still sees of its conversation: a fresh context, marks, and the way back to them.

use ikigai_agents::BetweenTurns;
use ikigai_conversation::AgentId;
use ikigai_protocol::render_reply;

use super::Hand;

impl Hand<'_> {
    /// Starts a fresh context, sets a mark or returns to one. During a turn that is queued until the turn ends.
    pub(crate) async fn change_context(&self, agent: &AgentId, command: BetweenTurns) -> String {
        match self.between_turns(agent, command).await {
            Ok(reply) => {
                render_reply(&reply, agent, &self.environment.directory).unwrap_or_default()
            }
            Err(error) => format!("Error: {error}"),
        }
    }
}
