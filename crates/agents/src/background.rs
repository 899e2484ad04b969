//! Background commands of agents: their start is committed with the result of their call, and their
//! end in a commit of its own, which wakes the agent if it is idle.

use std::sync::Arc;
use std::time::Duration;

use ikigai_conversation::CommandId;
use ikigai_protocol::{Event, EventKind};
use ikigai_store::{CommandEnd, MatchedLine, Refusal, Requests, StartedCommand, Step, StoreError};
use ikigai_tools::{
    Adopted, Call, CommandReport, Ended, Leaving, LiveOutput, LiveSink, ToolResult,
};
use tokio::time::sleep;
use tracing::{info, warn};

use crate::agent::{Agent, TeamSetup};
use crate::call::OpenCall;
use crate::seat::Seat;

/// How long to wait before an unreachable database is tried again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

impl Agent {
    /// Commits that a command continues in the background, with the result of its call, and follows
    /// it from then on.
    pub(crate) async fn record_background(
        &mut self,
        open: &OpenCall,
        call: &Call<Step>,
        leaving: Leaving,
    ) -> Result<Requests, StoreError> {
        let command = StartedCommand { line: leaving.line() };
        let (result, repairs) = (leaving.result(), call.repairs().cloned());
        let (open, next) = (open.clone(), open.after.next);
        let render = move |started: Result<CommandId, Refusal>| {
            let result = match started {
                Ok(id) => result.clone().of(id),
                Err(refusal) => ToolResult::failure(&refusal.to_string()),
            };
            open.close(result.with_repairs(repairs.as_ref()))
        };
        let (id, recorded) = self
            .with_retry(|agent| {
                let (lease, id) = agent.lease_and_id()?;
                let (store, command) = (agent.seat.store(), command.clone());
                let render = render.clone();
                Ok(async move { store.start_command(lease, id, command, render, next).await })
            })
            .await?;
        let requests = self.log_outcome(recorded);
        let Some(id) = id else { return Ok(requests) };
        info!(agent = self.id().to_string(), command = id.value(), "in the background");
        self.emit(EventKind::CommandStarted { command: id, line: command.line });
        let (seat, setup) = (self.seat.clone(), self.setup());
        let context = self.context();
        let live = self.command_sink(id);
        let background = self.toolbox().commands.background();
        let adopted = background.adopt(id, context.agent(), leaving, live);
        tokio::spawn(async move {
            match adopted {
                Ok(adopted) => follow(&seat, &setup, id, adopted).await,
                Err(error) => {
                    let tail = format!("[There is no place for its output: {error}]");
                    let end = Ended { exit_code: NOT_FOLLOWED, tail };
                    record_end(&seat, &setup, id, end).await;
                }
            }
        });
        Ok(requests)
    }

    /// Passes on what a background command prints.
    fn command_sink(&self, command: CommandId) -> LiveSink {
        let (setup, agent) = (self.setup(), self.id().clone());
        LiveSink::new(move |LiveOutput { text: delta, skipped }| {
            let kind = EventKind::CommandOutput { command, delta, skipped };
            (setup.events)(Event { agent: agent.clone(), kind });
        })
    }

    /// Tells the agent of commands that were ended with the process that ran them, once after its
    /// log was loaded.
    pub(crate) async fn tell_lost_commands(&mut self) -> Result<(), StoreError> {
        if std::mem::replace(&mut self.knows_lost_commands, true) {
            return Ok(());
        }
        let (session, id) = (self.seat.session(), self.id().clone());
        let has_lost = self
            .with_retry(|agent| {
                let (store, id) = (agent.seat.store(), id.clone());
                Ok(async move { store.has_lost_commands(session, id).await })
            })
            .await?;
        if !has_lost {
            return Ok(());
        }
        let told = self
            .with_retry(|agent| {
                let (lease, id) = agent.lease_and_id()?;
                let store = agent.seat.store();
                Ok(async move { store.tell_lost_commands(lease, id).await })
            })
            .await?;
        told.into_iter().for_each(|message| self.log_message(message));
        Ok(())
    }
}

/// The exit code of a command that could not be followed, as shells have it for one that cannot be
/// run.
const NOT_FOLLOWED: i32 = 126;

/// Follows a command to its end, unless the program ends first.
async fn follow(seat: &Seat, setup: &Arc<TeamSetup>, id: CommandId, mut adopted: Adopted) {
    while let Some(report) = adopted.next().await {
        match report {
            CommandReport::Line(line) => record_line(seat, id, line).await,
            CommandReport::Ended(end) => {
                let exit_code = end.exit_code;
                record_end(seat, setup, id, end).await;
                return adopted.settle(exit_code);
            }
        }
    }
}

/// Commits the line that an agent waits for.
async fn record_line(seat: &Seat, id: CommandId, line: String) {
    let Some(lease) = seat.lease() else { return };
    let matched = MatchedLine { id, line };
    until_written(id, || {
        let (store, lease) = (seat.store(), lease.clone());
        let (agent, matched) = (seat.agent().clone(), matched.clone());
        async move { store.note_matched_line(lease, agent, matched).await }
    })
    .await;
}

/// Commits the end of a command. The commit is a change of the session, so that the team finds an
/// agent to wake.
async fn record_end(seat: &Seat, setup: &Arc<TeamSetup>, id: CommandId, end: Ended) {
    let Some(lease) = seat.lease() else { return };
    let agent = seat.agent().clone();
    let Ended { exit_code, tail } = end;
    let end = CommandEnd { exit_code, tail };
    let is_written = until_written(id, || {
        let (store, lease) = (seat.store(), lease.clone());
        let (agent, end) = (agent.clone(), end.clone());
        async move { store.end_command(lease, agent, id, end).await }
    });
    if is_written.await {
        let kind = EventKind::CommandEnded { command: id, exit_code };
        (setup.events)(Event { agent, kind });
    }
}

/// Writes to the database, and retries that while it is unreachable. It fails if the agent was
/// killed, or another process has taken it over.
async fn until_written<W>(id: CommandId, write: impl Fn() -> W) -> bool
where
    W: Future<Output = Result<(), StoreError>>,
{
    loop {
        match write().await {
            Ok(()) => return true,
            Err(error) if error.is_transient() => sleep(RETRY_DELAY).await,
            Err(error) => {
                warn!(%error, command = id.value(), "a report of a command was not noted");
                return false;
            }
        }
    }
}
