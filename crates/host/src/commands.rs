//! Carrying out user commands.

mod agents;
mod answer;
mod attachments;
mod background;
mod context;
mod export;
mod lists;
mod mail;
mod model;
mod rewind;
mod sessions;
mod shell;
mod undo;
mod usage;

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use ikigai_agents::{AgentCommand, Answer, BetweenTurns, CompactRequest, Order};
use ikigai_conversation::{AgentId, Mode};
use ikigai_protocol::{Command, CommandError, EffortChoice, Reply, Request};
use ikigai_store::{Direction, StoreError};
use tokio::sync::oneshot;

use crate::open::OpenSession;

pub(crate) use lists::token_count;
pub use lists::tool_summary;
pub use mail::mail_reply;
pub use sessions::session_summary;
pub(crate) use shell::UserShell;
pub use undo::{relative_path, undo_report};
pub use usage::usage_table;

impl OpenSession {
    /// Carries out a command.
    ///
    /// # Errors
    /// When the command is refused.
    pub async fn execute(&self, request: Request) -> Result<Reply, CommandError> {
        let Request { agent, command } = request;
        match command {
            Command::Say { text } => {
                let text = self.with_attachments(&agent, &text);
                self.order(agent, AgentCommand::Say(text)).await
            }
            Command::Unqueue => self.order(agent, AgentCommand::Unqueue).await,
            Command::Shell { line } => self.run_shell(&agent, line).await,
            Command::Continue => self.order(agent, AgentCommand::Continue).await,
            Command::Interrupt if self.shell.interrupt(&agent) => Ok(Reply::Done),
            Command::Interrupt => self.order(agent, AgentCommand::Interrupt).await,
            Command::Answer(answer) => self.answer(agent, answer).await,
            Command::HoldMail => self.order(agent, AgentCommand::HoldMail).await,
            Command::ReleaseMail => self.order(agent, AgentCommand::ReleaseMail).await,
            Command::Clear => self.between_turns(agent, BetweenTurns::Clear).await,
            Command::Compact { focus, before } => {
                let request = CompactRequest { focus, before };
                self.order(agent, AgentCommand::Compact(request)).await
            }
            Command::Context => self.context(agent).await,
            Command::Mark { label } => self.between_turns(agent, BetweenTurns::Mark(label)).await,
            Command::Rewind { label } => {
                self.between_turns(agent, BetweenTurns::Rewind(label)).await
            }
            Command::ListRewindPoints => self.rewind_points(agent).await,
            Command::RewindTo { point, part } => self.rewind_to(agent, point, part).await,
            Command::Undo => self.undo(agent, Direction::Undo).await,
            Command::Redo => self.undo(agent, Direction::Redo).await,
            Command::Mail { line } => self.mail(agent, &line).await,
            Command::Fork { prompt } => self.fork(agent, prompt).await,
            Command::Kill { target } => self.kill(&agent, target).await,
            Command::Model { name } => self.model(agent, name.as_deref()).await,
            Command::Effort { effort } => Ok(self.effort(&agent, effort)),
            Command::Mode { mode } => Ok(self.mode(mode)),
            Command::Open { target } => self.open_agent(&agent, target).await,
            Command::Agents => self.agents().await.map(Reply::Agents).map_err(refusal),
            Command::Sessions => self.sessions().await,
            Command::ListCommands => Ok(self.list_commands()),
            Command::StopCommand { id } => self.stop_command(id),
            Command::Background => self.order(agent, AgentCommand::Background).await,
            Command::PreviewSession { session } => self.preview_session(session).await,
            Command::RenameSession { session, title } => self.rename_session(session, &title).await,
            Command::DeleteSession { session } => self.delete_session(session).await,
            Command::Tools => Ok(self.tools()),
            Command::Usage { by } => self.usage(by).await,
            Command::Config => Ok(Reply::Config(self.environment().settings.render())),
            Command::Export { file } => self.export(&agent, &file).await,
            Command::ListFiles => self.list_files().await,
            Command::ListModels => Ok(self.list_models(&agent).await),
        }
    }

    /// Starts a command immediately, so that commands keep their order. The answer can be awaited
    /// later.
    pub async fn start(self: &Arc<Self>, request: Request) -> PendingAnswer {
        let session = Arc::clone(self);
        let mut answer: PendingAnswer = Box::pin(async move { session.execute(request).await });
        let first =
            std::future::poll_fn(|context| Poll::Ready(answer.as_mut().poll(context))).await;
        match first {
            Poll::Ready(answer) => Box::pin(std::future::ready(answer)),
            Poll::Pending => answer,
        }
    }

    /// Sends an order to an agent and waits for the answer.
    async fn order(&self, agent: AgentId, command: AgentCommand) -> Answer {
        self.send(agent, command).await.await.unwrap_or(Err(CommandError::Closed))
    }

    async fn between_turns(&self, agent: AgentId, command: BetweenTurns) -> Answer {
        self.order(agent, AgentCommand::BetweenTurns(command)).await
    }

    async fn send(&self, agent: AgentId, command: AgentCommand) -> oneshot::Receiver<Answer> {
        let (order, answer) = Order::new(agent, command);
        // If the service has ended, the order is dropped, which closes the answer channel.
        let _ = self.orders.send(order).await;
        answer
    }

    /// Shows the effort of an agent, or changes it.
    fn effort(&self, agent: &AgentId, choice: Option<EffortChoice>) -> Reply {
        if let Some(choice) = choice {
            self.models.choose_effort(agent.clone(), choice.effort());
        }
        Reply::Effort { effort: self.models.effort_of(agent), changed: choice.is_some() }
    }

    fn mode(&self, mode: Option<Mode>) -> Reply {
        if let Some(mode) = mode {
            self.permissions.set_mode(mode);
        }
        Reply::Mode { mode: self.permissions.mode(), changed: mode.is_some() }
    }
}

/// The pending answer to a command.
pub type PendingAnswer = Pin<Box<dyn Future<Output = Result<Reply, CommandError>> + Send>>;

/// Converts a database error into a command error.
fn refusal(error: StoreError) -> CommandError {
    match error {
        StoreError::SessionNotFound(_) => CommandError::NotStarted,
        error => CommandError::Database(error.to_string()),
    }
}
