//! The background commands of a team: whose they are, and what becomes of them.

use std::ffi::OsString;

use ikigai_conversation::AgentId;
use ikigai_protocol::EventKind;

use super::Team;
use crate::agent::CommandsAtEnd;

impl Team {
    /// The agents with background commands that run.
    pub(super) fn with_commands(&self) -> Vec<AgentId> {
        let agents = self.setup.toolbox.commands.background().agents();
        agents.iter().filter_map(|agent| AgentId::parse(agent.to_str()?).ok()).collect()
    }

    pub(super) fn end_commands_of(&self, agent: &AgentId) {
        let agent = OsString::from(agent.to_string());
        self.setup.toolbox.commands.background().stop_all_of(&agent);
    }

    /// Whether the team stays for background commands.
    pub(super) fn awaits_commands(&self) -> bool {
        self.setup.limits.commands_at_end == CommandsAtEnd::Awaited
            && !self.shutdown.is_cancelled()
            && !self.with_commands().is_empty()
    }

    /// Says which commands run in the background. They are about to be ended.
    pub(super) fn report_running_commands(&self) {
        let listed = self.setup.toolbox.commands.background().list();
        for command in listed.iter().filter(|command| command.exit_code.is_none()) {
            let (command, line) = (command.id, command.line.clone());
            self.emit(self.own.clone(), EventKind::CommandLost { command, line });
        }
    }
}
