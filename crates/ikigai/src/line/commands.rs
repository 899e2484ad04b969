//! Slash commands.

use std::sync::Arc;

use ikigai_protocol::{Command, Request, SLASH_COMMANDS, SlashCommand};

use super::{User, lock};

/// What to do after a line of input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Stay,
    Leave,
}

const HELP_ON_KEYS: &str = "\
Type a message and press Enter. While the agent works, messages are queued for the next step.
A \\ at the end of a line continues it in the next one.
Ctrl-C interrupts the agent, Ctrl-D leaves.";

impl User {
    /// Handles a slash command.
    pub(super) async fn handle_command(&self, line: &str) -> Next {
        match SlashCommand::parse(line) {
            Ok(SlashCommand::Exit) => return Next::Leave,
            Ok(SlashCommand::Session(command)) => {
                let agent = lock(&self.screen).view().clone();
                self.execute(Request { agent, command }).await;
            }
            Ok(SlashCommand::Help) => lock(&self.screen).respond(&help()),
            Ok(SlashCommand::Copy) => {
                lock(&self.screen).respond_error("/copy needs the full screen");
            }
            Err(error) => lock(&self.screen).respond_error(&error.to_string()),
        }
        Next::Stay
    }

    /// Carries out a command and shows the reply.
    async fn execute(&self, request: Request) {
        // Commands that wait for an agent must not block the keyboard.
        let is_for_agent = matches!(
            request.command,
            Command::Clear | Command::Mark { .. } | Command::Rewind { .. }
        );
        let answer = self.session.start(request).await;
        let screen = Arc::clone(&self.screen);
        let show = async move {
            match answer.await {
                Ok(reply) => lock(&screen).reply(&reply),
                Err(error) => lock(&screen).respond_error(&error.to_string()),
            }
        };
        match is_for_agent {
            true => drop(tokio::spawn(show)),
            false => show.await,
        }
    }
}

/// The help text. `/copy` is omitted: it needs the full screen.
fn help() -> String {
    let commands = SLASH_COMMANDS.iter().filter(|(name, _)| *name != "copy");
    let lines = commands.map(|(name, help)| format!("  /{name:<8} {help}\n"));
    format!("{}{HELP_ON_KEYS}", lines.collect::<String>())
}
