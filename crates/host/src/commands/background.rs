//! Background commands: listing them, and ending one.

use ikigai_conversation::CommandId;
use ikigai_protocol::{CommandError, CommandSummary, Reply};
use ikigai_tools::Listed;

use crate::open::OpenSession;

impl OpenSession {
    /// The background commands of all agents that this process runs.
    pub(super) fn list_commands(&self) -> Reply {
        let summary = |listed: Listed| CommandSummary {
            id: listed.id,
            agent: listed.agent.to_string_lossy().into_owned(),
            line: listed.line,
            seconds: listed.elapsed.as_secs(),
            exit_code: listed.exit_code,
            last_line: listed.last_line,
        };
        Reply::Commands(self.commands.background().list().into_iter().map(summary).collect())
    }

    /// Ends a command. Its agent is told as if it had ended by itself.
    pub(super) fn stop_command(&self, id: CommandId) -> Result<Reply, CommandError> {
        match self.commands.background().stop(id) {
            true => Ok(Reply::CommandStopped(id)),
            false => Err(CommandError::Refused(format!("Command #{id} does not run"))),
        }
    }
}
