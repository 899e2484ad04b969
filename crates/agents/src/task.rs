//! An agent at work: it owns its state, takes commands and emits events, until it is idle.

use ikigai_conversation::MessageId;
use ikigai_store::{Ending, Requests, Sleep, StoreError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::agent::{Agent, Unfinished};
use crate::turn::Turn;
use ikigai_protocol::ApprovalAnswer;
use ikigai_protocol::{EventKind, StartReason};

/// What an agent is told.
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
    /// A point to return to, with a name perhaps. Only an idle agent sets one.
    Mark(Option<String>),
    /// Back to such a point; what came after it is hidden from the model. Only an idle agent goes back.
    Rewind {
        /// The last message that counts.
        to: MessageId,
        /// Its name, if it has one.
        label: Option<String>,
    },
    /// While the agent is idle, its mail waits: the person is writing to it.
    HoldMail,
    /// It waits no longer.
    FreeMail,
    /// A person's answer to a call that needs a yes.
    Answer(ApprovalAnswer),
    /// The person has used this command, with its slash; the log says so, and no model sees it.
    Note(String),
    /// There may be mail, or a turn that was cut off.
    Look,
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
            Start::Said(_) | Start::Queued => StartReason::UserMessage,
            Start::GoOn => StartReason::CutOff,
            Start::Resumed => StartReason::Continued,
            Start::Mail => StartReason::Mail,
        }
    }
}

/// An agent that works through what it is told.
pub(crate) struct Task<'a> {
    pub(crate) agent: &'a mut Agent,
    pub(crate) commands: &'a mut mpsc::Receiver<Command>,
    /// Cancelling it interrupts the turn, and every further one.
    pub(crate) shutdown: CancellationToken,
}

impl Task<'_> {
    /// Works until the agent is idle and nothing that it was told waits.
    ///
    /// # Errors
    /// When the database refuses, when the agent was killed or another process has taken it over.
    pub(crate) async fn run(mut self) -> Result<(), StoreError> {
        let unfinished = self.agent.load().await?;
        // What somebody has to say already goes in before the model is asked again.
        let first = self.commands.try_recv().unwrap_or(Command::Look);
        match (unfinished, first) {
            (Unfinished::Turn, Command::Look) => self.work(Start::GoOn).await?,
            (Unfinished::Turn | Unfinished::Nothing, first) => self.obey(first).await?,
        }
        while let Ok(command) = self.commands.try_recv() {
            self.obey(command).await?;
        }
        Ok(())
    }

    /// Does what an idle agent is told.
    async fn obey(&mut self, command: Command) -> Result<(), StoreError> {
        match command {
            Command::Say(text) => self.work(Start::Said(text)).await,
            Command::GoOn if self.agent.log().needs_turn() => self.work(Start::Resumed).await,
            Command::Clear => self.agent.clear().await,
            Command::Mark(label) => self.agent.mark(label).await,
            Command::Rewind { to, label } => self.agent.rewind(to, label).await,
            Command::Note(command) => self.agent.note(command).await,
            Command::Look => {
                self.work(Start::Queued).await?;
                self.work(Start::Mail).await
            }
            // Nothing goes on, and nothing is asked.
            Command::GoOn | Command::Interrupt | Command::Answer(_) => Ok(()),
            // The team's.
            Command::HoldMail | Command::FreeMail => Ok(()),
        }
    }

    /// Works until the agent is idle.
    async fn work(&mut self, start: Start) -> Result<(), StoreError> {
        self.agent.interrupt = self.shutdown.child_token();
        let mut reason = start.reason();
        let Some(mut requests) = self.begin(start).await? else { return Ok(()) };
        loop {
            self.agent.emit(EventKind::TurnStarted(reason));
            let turn = self.attend(requests).await?;
            let (agent, stop) = (self.agent.id().to_string(), turn.done.stop.name());
            info!(agent, stop, "turn ended");
            self.agent.emit(EventKind::TurnEnded(turn.done));
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
                return Ok(Some((StartReason::UserMessage, requests)));
            }
            if sleep == Sleep::Asleep {
                return Ok(None);
            }
            if self.agent.record_news().await? {
                return Ok(Some((StartReason::Mail, Requests::Granted)));
            }
            // The mail was read or taken back in the meantime, and other mail may have come.
            sleep = self.agent.record_end(Vec::new(), Ending::Answered).await?;
        }
    }

    /// Writes down why a turn starts; `None` when there is no reason any more.
    async fn begin(&mut self, start: Start) -> Result<Option<Requests>, StoreError> {
        let budget = self.agent.limits().budget;
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
            Start::Mail => Ok(self.tell_or_rest().await?.then_some(Requests::Granted)),
        }
    }

    /// Tells the agent of its mail. One that was kept awake by mail that is gone now becomes idle instead, or it
    /// would be looked after for ever.
    async fn tell_or_rest(&mut self) -> Result<bool, StoreError> {
        loop {
            if self.agent.record_news().await? {
                return Ok(true);
            }
            if self.agent.log().needs_turn() || self.agent.rest().await? == Sleep::Asleep {
                return Ok(false);
            }
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
        let mut lost = std::pin::pin!(self.agent.seat.lost());
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
                    // Mail is looked for when the turn ends.
                    Some(Command::GoOn | Command::Clear | Command::Note(_) | Command::Look) => {}
                    Some(Command::Mark(_) | Command::Rewind { .. }) => {}
                    Some(Command::HoldMail | Command::FreeMail) => {}
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
