//! An agent as a task: it owns its state, takes commands and emits events.

use std::time::Duration;

use ikigai_store::{Changes, Ending, Requests, Sleep, StoreError};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::agent::{Agent, Unfinished};
use crate::event::{Happening, Reason};
use crate::permission::Answer;
use crate::turn::Turn;

/// What an agent is told. When nobody is left to tell it anything, it ends as soon as it is idle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// A person says this. While the agent works it waits for the next boundary.
    Say(String),
    /// A person wants a turn to go on that had stopped for want of requests or by a fault.
    GoOn,
    /// The turn is to end at once.
    Interrupt,
    /// A fresh context.
    Clear,
    /// A person's answer to a call that needs a yes.
    Answer(Answer),
    /// The person has used this command, with its slash; the log says so, and no model sees it.
    Note(String),
}

/// A signal may be lost, so a look is due from time to time all the same (mail.md, M6).
const SWEEP: Duration = Duration::from_secs(2);

/// Runs an agent until it is idle and nobody can tell it anything any more. Cancelling `shutdown` interrupts
/// its turn, and every further one. The lease is given back at the end.
///
/// # Errors
/// When the database refuses, or another process has taken the agent over.
pub async fn serve(
    mut agent: Agent,
    mut commands: mpsc::Receiver<Command>,
    shutdown: CancellationToken,
) -> Result<(), StoreError> {
    let served = Task { agent: &mut agent, commands: &mut commands, shutdown, changes: None };
    let served = served.run().await;
    if let Err(error) = &served {
        agent.emit(Happening::Lost(error.to_string()));
    }
    agent.toolbox.commands.close().await;
    give_back(&mut agent).await;
    served
}

/// Gives the lease back. One that cannot be given back runs out by itself, and is nobody's trouble before.
async fn give_back(agent: &mut Agent) {
    const PATIENCE: Duration = Duration::from_secs(2);
    agent.keeper = None;
    let Some(lease) = agent.seat.lease.take() else { return };
    match timeout(PATIENCE, agent.seat.store.release(lease)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => warn!(%error, "lease not given back"),
        Err(_) => warn!("lease not given back in time"),
    }
}

struct Task<'a> {
    agent: &'a mut Agent,
    commands: &'a mut mpsc::Receiver<Command>,
    shutdown: CancellationToken,
    /// Watched from the first time that the agent waits for mail.
    changes: Option<Changes>,
}

/// Why a turn starts.
enum Start {
    Said(String),
    /// Something that was said before may wait still.
    Queued,
    /// A turn was cut off.
    GoOn,
    /// The person wants it.
    Resumed,
    Mail,
}

impl Start {
    fn reason(&self) -> Reason {
        match self {
            Start::Said(_) | Start::Queued => Reason::Said,
            Start::GoOn => Reason::CutOff,
            Start::Resumed => Reason::Resumed,
            Start::Mail => Reason::Mail,
        }
    }
}

impl Task<'_> {
    async fn run(mut self) -> Result<(), StoreError> {
        let unfinished = self.agent.load().await?;
        // What somebody has to say already goes in before the model is asked again.
        if unfinished == Unfinished::Turn && self.commands.is_empty() {
            self.work(Start::GoOn).await?;
        } else if self.commands.is_empty() {
            self.work(Start::Queued).await?;
        }
        while let Some(start) = self.next().await? {
            self.work(start).await?;
        }
        Ok(())
    }

    /// Waits, idle, for a reason to work; `None` when there will be none.
    async fn next(&mut self) -> Result<Option<Start>, StoreError> {
        let mut lost = std::pin::pin!(self.agent.lost());
        loop {
            tokio::select! {
                biased;
                command = self.commands.recv() => match command {
                    Some(Command::Say(text)) => return Ok(Some(Start::Said(text))),
                    Some(Command::GoOn) if self.agent.log().needs_turn() => return Ok(Some(Start::Resumed)),
                    Some(Command::Clear) => self.agent.clear().await?,
                    Some(Command::Note(command)) => self.agent.note(command).await?,
                    // Nothing is asked.
                    Some(Command::GoOn | Command::Interrupt | Command::Answer(_)) => {}
                    None => return Ok(None),
                },
                error = &mut lost => return Err(error),
                woken = wait_for_mail(self.agent, &mut self.changes) => if woken? {
                    return Ok(Some(Start::Mail));
                },
            }
        }
    }

    /// Works until the agent is idle.
    async fn work(&mut self, start: Start) -> Result<(), StoreError> {
        self.agent.interrupt = self.shutdown.child_token();
        let mut reason = start.reason();
        let Some(mut requests) = self.begin(start).await? else { return Ok(()) };
        loop {
            self.agent.emit(Happening::Started(reason));
            let turn = self.attend(requests).await?;
            let (agent, stop) = (self.agent.id().to_string(), turn.done.stop.name());
            info!(agent, stop, "turn ended");
            self.agent.emit(Happening::Done(turn.done));
            self.agent.interrupt = self.shutdown.child_token();
            let Some(further) = self.further_work(turn.sleep).await? else { return Ok(()) };
            (reason, requests) = further;
        }
    }

    /// Why a further turn is due right behind one, if it is.
    async fn further_work(
        &mut self,
        mut sleep: Sleep,
    ) -> Result<Option<(Reason, Requests)>, StoreError> {
        loop {
            if let Some(requests) = self.agent.record_queued().await? {
                return Ok(Some((Reason::Said, requests)));
            }
            if sleep == Sleep::Asleep {
                return Ok(None);
            }
            if self.agent.record_news().await? {
                return Ok(Some((Reason::Mail, Requests::Granted)));
            }
            // The mail was read or taken back in the meantime, and other mail may have come.
            sleep = self.agent.record_end(Vec::new(), Ending::Answered).await?;
        }
    }

    /// Writes down why a turn starts; `None` when there is no reason any more.
    async fn begin(&mut self, start: Start) -> Result<Option<Requests>, StoreError> {
        let budget = self.agent.limits.budget;
        match start {
            Start::Said(text) => {
                self.agent.record_queued().await?;
                self.agent.say(text).await.map(Some)
            }
            Start::Queued => self.agent.record_queued().await,
            Start::GoOn => match self.agent.record_queued().await? {
                Some(requests) => Ok(Some(requests)),
                None => self.agent.resume(None).await.map(Some),
            },
            Start::Resumed => self.agent.resume(Some(budget)).await.map(Some),
            Start::Mail => Ok(self.agent.record_news().await?.then_some(Requests::Granted)),
        }
    }

    /// Runs a turn, and listens meanwhile.
    async fn attend(&mut self, requests: Requests) -> Result<Turn, StoreError> {
        let (interrupt, shutdown) = (self.agent.interrupt.clone(), self.shutdown.clone());
        let (typed, texts) = mpsc::unbounded_channel();
        // One question at a time; an answer too many is to none.
        let (answer, answers) = mpsc::channel(1);
        self.agent.answers = answers;
        let mut writing = std::pin::pin!(self.agent.queue_writer(texts)?);
        let mut lost = std::pin::pin!(self.agent.lost());
        let mut turn = std::pin::pin!(self.agent.run_turn(requests));
        let mut is_open = true;
        let done = loop {
            tokio::select! {
                done = &mut turn => break done?,
                command = self.commands.recv(), if is_open => match command {
                    // The other end is in here, so it listens.
                    Some(Command::Say(text)) => drop(typed.send(text)),
                    Some(Command::Interrupt) => interrupt.cancel(),
                    Some(Command::Answer(given)) => drop(answer.try_send(given)),
                    Some(Command::GoOn | Command::Clear | Command::Note(_)) => {}
                    None => is_open = false,
                },
                error = &mut lost => return Err(error),
                // It ends by itself only when `typed` is gone.
                Err(error) = &mut writing => return Err(error),
            }
        };
        drop(typed);
        // What is still to be written down is; only the end of the program does not wait for it.
        shutdown.run_until_cancelled(writing).await.unwrap_or(Ok(())).map(|()| done)
    }
}

/// Waits until something may have come, and says whether the agent has mail that would wake it.
///
/// # Cancel safety
/// A change that is noticed and not looked at is found by the next sweep.
async fn wait_for_mail(agent: &Agent, changes: &mut Option<Changes>) -> Result<bool, StoreError> {
    let (store, session) = (&agent.seat.store, agent.seat.session);
    if agent.seat.lease.is_none() {
        return std::future::pending().await;
    }
    match changes {
        Some(changes) => changes.wait(SWEEP).await?,
        // Mail that came before is found by the first look.
        None => *changes = Some(store.changes()?),
    }
    Ok(store.agents_to_wake(session).await?.contains(agent.id()))
}
