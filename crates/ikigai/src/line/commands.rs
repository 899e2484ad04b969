//! What can be typed with a slash before it.

use ikigai_agents::BetweenTurns;
use ikigai_store::Direction;
use ikigai_tui::{COMMANDS, unknown_command};

use super::{Person, lock};

/// Whether the person wants to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    ToStay,
    ToLeave,
}

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
        if matches!(name, "exit" | "quit") {
            return Ok(Asked::ToLeave);
        }
        if let Some(text) = self.carry_out(name, rest.trim()).await {
            lock(&self.screen).say(&text);
        }
        Ok(Asked::ToStay)
    }

    /// What there is to be said about a command, unless that was said.
    async fn carry_out(&mut self, name: &str, rest: &str) -> Option<String> {
        let (hand, view) = (&self.hand, lock(&self.screen).view().clone());
        let maybe = || Some(rest.to_owned()).filter(|rest| !rest.is_empty());
        Some(match name {
            "help" => help(),
            "mail" => hand.mail(&view, rest).await,
            "agents" => hand.tree(&view).await,
            "agent" => return self.look_at(rest).await,
            "fork" => hand.fork(&view, rest).await,
            "kill" => {
                let killed = hand.kill(&view, rest).await;
                if killed.dead.contains(&view) {
                    lock(&self.screen).look_at(hand.seat.agent().clone());
                }
                killed.text
            }
            "model" => hand.model(&view, maybe().as_deref()),
            "mode" => hand.mode(rest),
            "undo" | "redo" if !rest.is_empty() => UNDO_USAGE.to_owned(),
            "undo" => hand.undo(&view, Direction::Undo).await,
            "redo" => hand.undo(&view, Direction::Redo).await,
            "mark" => hand.change_context(&view, BetweenTurns::Mark(maybe())).await,
            "rewind" => hand.change_context(&view, BetweenTurns::Rewind(maybe())).await,
            "clear" => hand.change_context(&view, BetweenTurns::Clear).await,
            "sessions" => hand.sessions().await,
            "export" if rest.is_empty() => "Error: usage: /export FILE".to_owned(),
            "export" => hand.export(&view, rest).await,
            "tools" => hand.tools(),
            "usage" => hand.usage().await,
            "config" => hand.config(),
            _ => unknown_command(name),
        })
    }

    /// Talks to another agent from now on.
    async fn look_at(&self, named: &str) -> Option<String> {
        let agent = match self.hand.talkable(named).await {
            Ok(agent) => agent,
            Err(error) => return Some(error),
        };
        let said = self.hand.store.own_log(self.hand.session, agent.clone(), None).await;
        let mut screen = lock(&self.screen);
        screen.look_at(agent.clone());
        screen.recall(&said.unwrap_or_default());
        screen.say(&format!("You talk to agent {agent} now"));
        screen.catch_up();
        None
    }
}

/// Every command with its line of help. `/copy` is for the full screen: here a terminal copies what it shows.
fn commands() -> impl Iterator<Item = (&'static str, &'static str)> {
    COMMANDS.iter().copied().filter(|(name, _)| *name != "copy")
}

fn help() -> String {
    let lines = commands().map(|(name, help)| format!("  /{name:<8} {help}\n"));
    format!("{}{HELP_ON_KEYS}", lines.collect::<String>())
}
