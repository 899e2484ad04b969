//! What can be typed with a slash before it.

use ikigai_agents::{Command, Undone, undo};
use ikigai_mail::Command as MailCommand;
use ikigai_store::{Direction, StoreError};
use ikigai_tools::Mode;

use super::{Person, lock};
use crate::command::now;
use crate::config::nearest_name;
use crate::undo::{nothing, render};

/// Whether the person wants to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    ToStay,
    ToLeave,
}

/// Every command with its line of help, in the order of the help.
const COMMANDS: &[(&str, &str)] = &[
    ("/help", "this list"),
    ("/mail", "the mailbox: /mail read 5, /mail send 1/ text, /mail unread 5"),
    ("/agents", "the agents of the session, as a tree"),
    ("/agent", "talk to another agent: /agent 0/1/"),
    ("/fork", "a child that knows the conversation: /fork, /fork TASK"),
    ("/kill", "end an agent and its children: /kill 0/1/"),
    ("/mode", "what agents may touch: /mode read, /mode work, /mode full"),
    ("/undo", "take back what your newest message did to files"),
    ("/redo", "take the last /undo back"),
    ("/clear", "a fresh context; the log keeps all"),
    ("/exit", "leave; 'ikigai -c' goes on with the session"),
];

const UNDO_USAGE: &str =
    "Error: /undo and /redo take nothing more; 'ikigai undo --list' shows what can be taken back";

const HELP_ON_KEYS: &str = "\
Type to say something; while the agent works it waits for the next step.
A \\ at the end of a line goes on in the next one.
Ctrl-C interrupts the agent, Ctrl-D leaves.";

impl Person<'_> {
    /// Does what `/command` says; the slash is off.
    pub(super) async fn obey(&mut self, command: &str) -> anyhow::Result<Asked> {
        let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        match name {
            "help" => lock(&self.screen).say(&help()),
            "mail" => self.mail(rest).await,
            "agents" => self.agents().await,
            "agent" => self.look_at(rest.trim()).await,
            "fork" => self.fork(rest.trim()).await,
            "kill" => self.kill(rest.trim()).await,
            "mode" => self.mode(rest.trim()),
            "undo" | "redo" if !rest.trim().is_empty() => lock(&self.screen).say(UNDO_USAGE),
            "undo" => self.undo(Direction::Undo).await,
            "redo" => self.undo(Direction::Redo).await,
            "clear" => self.clear().await,
            "exit" | "quit" => return Ok(Asked::ToLeave),
            _ => lock(&self.screen).say(&unknown(name)),
        }
        Ok(Asked::ToStay)
    }

    /// Acts on the mailbox as the person's hand.
    async fn mail(&self, rest: &str) {
        let text = match MailCommand::parse(rest) {
            Ok(command) => {
                let budget = Some(self.environment.settings.budget());
                let agent = lock(&self.screen).view().clone();
                match self.store.perform(self.session, agent.clone(), command.step, budget).await {
                    Ok(outcome) => MailCommand::render(&agent, &outcome, now())
                        .unwrap_or_else(|error| error),
                    Err(StoreError::SessionNotFound(_)) => {
                        "Error: the session begins with the first thing you say; there is no mail yet"
                            .to_owned()
                    }
                    Err(error) => format!("Error: {error}"),
                }
            }
            Err(usage) => usage,
        };
        lock(&self.screen).say(&text);
    }

    /// Says which mode it is, or changes it.
    fn mode(&self, word: &str) {
        let text = match (word, Mode::parse(word)) {
            ("", _) => format!("Mode {}", self.permissions.mode().word()),
            (_, Some(mode)) => {
                self.permissions.set_mode(mode);
                format!("Mode {} from the next call on", mode.word())
            }
            (_, None) => "Error: modes are read, work and full: /mode work".to_owned(),
        };
        lock(&self.screen).say(&text);
    }

    /// Takes back what a message set going, or that taking back. The log says that it was asked for.
    async fn undo(&self, direction: Direction) {
        let text = match undo(&self.store, self.session, direction).await {
            Ok(Undone::Report(report)) => {
                let command = match direction {
                    Direction::Undo => "/undo",
                    Direction::Redo => "/redo",
                };
                self.tell(Command::Note(command.to_owned())).await;
                render(&report, direction, &self.environment.directory, now())
            }
            Ok(Undone::Nothing) | Err(StoreError::SessionNotFound(_)) => {
                nothing(direction).to_owned()
            }
            Ok(Undone::AtWork(agent)) => {
                format!("Error: agent {agent} is at work; interrupt it with Ctrl-C first")
            }
            Err(error) => format!("Error: {error}"),
        };
        lock(&self.screen).say(text.trim_end());
    }

    async fn clear(&self) {
        if lock(&self.screen).is_busy() {
            lock(&self.screen).say("Error: the agent is at work; interrupt it with Ctrl-C first");
        } else {
            self.tell(Command::Clear).await;
            lock(&self.screen).say("A fresh context. The log keeps what was said before.");
        }
    }
}

fn help() -> String {
    let lines = COMMANDS.iter().map(|(name, help)| format!("  {name:<8} {help}\n"));
    format!("{}{HELP_ON_KEYS}", lines.collect::<String>())
}

fn unknown(name: &str) -> String {
    let shown: String = name.chars().take(64).collect();
    let names = COMMANDS.iter().map(|(name, _)| &name[1..]);
    match nearest_name(name, names) {
        Some(nearest) => {
            format!("Error: Unknown command '/{shown}'; did you mean /{nearest}? /help lists all")
        }
        None => format!("Error: Unknown command '/{shown}'; /help lists all"),
    }
}
