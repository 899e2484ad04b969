//! What a person's commands do, wherever they are typed. Each comes to a text for the person; errors begin with `Error: `
//! and say what to do.

mod agents;
mod context;
mod export;
mod model;
mod report;

use std::sync::Arc;

use ikigai_agents::{
    AgentCommand, Answer, BetweenTurns, Model, Models, Order, Permissions, Seat, Undone, undo,
};
use ikigai_conversation::{AgentId, SessionId};
use ikigai_mail::Command as MailCommand;
use ikigai_protocol::{Command, CommandError, Request};
use ikigai_store::{Direction, Store, StoreError};
use ikigai_tools::Mode;
use tokio::sync::{mpsc, oneshot};

use crate::command::now;
use crate::environment::Environment;
use crate::settings;
use crate::undo::{nothing, render};

pub(crate) use agents::cost_text;
pub(crate) use model::offered_models;

/// A session is made with the first thing that is said.
const NOT_YET: &str =
    "Error: the session begins with the first thing you say; there is only agent 0/ yet";

/// The person's hand in a session: what the agents of this process are told, and what is done beside them.
pub(crate) struct Hand<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) store: Arc<Store>,
    pub(crate) session: SessionId,
    pub(crate) seat: Seat,
    pub(crate) permissions: Arc<Permissions>,
    pub(crate) models: Arc<Models>,
    pub(crate) tell: mpsc::Sender<Order>,
    /// The key by which an agent is interrupted here.
    pub(crate) interrupt_key: &'static str,
}

/// How to come back to an agent, for somebody who leaves it.
pub(crate) fn way_back(session: SessionId, top: &AgentId) -> String {
    let agent = match *top == AgentId::top_level(0) {
        true => String::new(),
        false => format!(" --agent {top}"),
    };
    format!("To go on: ikigai -c{agent}, or ikigai --session {session}{agent}")
}

/// What a person has chosen for their agent. When it is gone, that holds for the next one.
pub(crate) struct Choice {
    pub(crate) mode: Mode,
    pub(crate) model: Model,
}

impl Hand<'_> {
    pub(crate) fn choice(&self) -> Choice {
        Choice { mode: self.permissions.mode(), model: self.models.of(self.seat.agent()) }
    }

    /// Passes an order on. Its answer arrives at the receiver.
    pub(crate) async fn order(
        &self,
        agent: &AgentId,
        command: AgentCommand,
    ) -> oneshot::Receiver<Answer> {
        let (order, answer) = Order::new(agent.clone(), command);
        // If the team has ended, the order is dropped, and that answers it.
        let _ = self.tell.send(order).await;
        answer
    }

    /// Passes a command on that is for the agent itself; `None` for any other.
    pub(crate) async fn request(&self, request: Request) -> Option<oneshot::Receiver<Answer>> {
        let command = match request.command {
            Command::Say { text } => AgentCommand::Say(text),
            Command::Continue => AgentCommand::Continue,
            Command::Interrupt => AgentCommand::Interrupt,
            Command::Answer(answer) => AgentCommand::Answer(answer),
            Command::HoldMail => AgentCommand::HoldMail,
            Command::ReleaseMail => AgentCommand::ReleaseMail,
            _ => return None,
        };
        Some(self.order(&request.agent, command).await)
    }

    async fn between_turns(&self, agent: &AgentId, command: BetweenTurns) -> Answer {
        let answer = self.order(agent, AgentCommand::BetweenTurns(command)).await;
        answer.await.unwrap_or(Err(CommandError::Closed))
    }

    /// Acts on the mailbox of an agent.
    pub(crate) async fn mail(&self, agent: &AgentId, rest: &str) -> String {
        let command = match MailCommand::parse(rest) {
            Ok(command) => command,
            Err(usage) => return usage,
        };
        let budget = Some(settings::budget(&self.environment.settings));
        match self.store.perform(self.session, agent.clone(), command.step, budget).await {
            Ok(outcome) => {
                MailCommand::render(agent, &outcome, now()).unwrap_or_else(|error| error)
            }
            Err(StoreError::SessionNotFound(_)) => {
                "Error: the session begins with the first thing you say; there is no mail yet"
                    .to_owned()
            }
            Err(error) => format!("Error: {error}"),
        }
    }

    /// Says which mode it is, or changes it.
    pub(crate) fn mode(&self, word: &str) -> String {
        match (word, Mode::parse(word)) {
            ("", _) => format!("Mode {}", self.permissions.mode().word()),
            (_, Some(mode)) => {
                self.permissions.set_mode(mode);
                format!("Mode {} from the next call on", mode.word())
            }
            (_, None) => "Error: modes are read, work and full: /mode work".to_owned(),
        }
    }

    /// Takes back what a message set going, or that taking back. The log of `agent` says that it was asked for.
    pub(crate) async fn undo(&self, agent: &AgentId, direction: Direction) -> String {
        match undo(&self.store, self.session, direction).await {
            Ok(Undone::Report(report)) => {
                let command = match direction {
                    Direction::Undo => "/undo",
                    Direction::Redo => "/redo",
                };
                let _ = self.between_turns(agent, BetweenTurns::Note(command.to_owned())).await;
                let text = render(&report, direction, &self.environment.directory, now());
                text.trim_end().to_owned()
            }
            Ok(Undone::Nothing) | Err(StoreError::SessionNotFound(_)) => {
                nothing(direction).to_owned()
            }
            Ok(Undone::AtWork(other)) if other == *agent => self.at_work(&format!("agent {other}")),
            Ok(Undone::AtWork(other)) => {
                let key = self.interrupt_key;
                format!(
                    "Error: agent {other} is at work; go there with /agent {other} and interrupt it with {key}, or end it with /kill {other}"
                )
            }
            Err(error) => format!("Error: {error}"),
        }
    }

    fn at_work(&self, who: &str) -> String {
        format!("Error: {who} is at work; interrupt it with {} first", self.interrupt_key)
    }
}
