//! Carrying out what the screen requests: commands, lists, files, the editor.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ikigai_conversation::AgentId;
use ikigai_host::OpenSession;
use ikigai_protocol::{
    Command, CommandError, ModelChoice, QueuedUntil, Reply, Request, render_reply,
};
use ikigai_tui::{Drafting, Effect, Feed, Listing, Status, Update};
use tokio::sync::mpsc;

use super::editor::edit;
use super::history::HistoryFile;
use crate::exit::Exit;
use crate::signals::{Caught, Signals};

/// A Ctrl-C that ends the editor reaches us, too: it may be heard only after the editor's end.
const LATE: Duration = Duration::from_secs(2);

pub(super) struct RequestHandler<'a> {
    pub(super) session: Arc<OpenSession>,
    pub(super) feed: &'a Feed,
    pub(super) history: &'a HistoryFile,
    /// What a new user should know, if anything.
    pub(super) greeting: Option<String>,
    /// The last line, without what differs from agent to agent.
    pub(super) status: Status,
}

/// What a user wants whose agent is gone.
pub(super) enum Wish {
    /// Another agent.
    Continue,
    Leave(Exit),
}

impl RequestHandler<'_> {
    /// Carries out requests until the screen is closed.
    pub(super) async fn listen(
        &mut self,
        effects: &mut mpsc::Receiver<Effect>,
        signals: &mut Signals,
    ) -> Exit {
        let mut editor_left = None::<Instant>;
        loop {
            tokio::select! {
                effect = effects.recv() => match effect {
                    Some(Effect::OpenEditor(text)) => match self.edit(text, signals).await {
                        Some(edited) => {
                            editor_left = Some(Instant::now());
                            self.feed.send(Update::Edited(edited));
                        }
                        None => return Exit::Interrupted,
                    },
                    Some(effect) => self.take(effect).await,
                    None => return Exit::Done,
                },
                caught = signals.next() => match caught {
                    Caught::Interrupt if editor_left.is_some_and(|at| at.elapsed() < LATE) => {}
                    Caught::Interrupt | Caught::Ending => return Exit::Interrupted,
                },
            }
        }
    }

    /// The agent is gone: any message of the user starts another one, which does not get what was meant for the first.
    pub(super) async fn wait_to_continue(
        &self,
        effects: &mut mpsc::Receiver<Effect>,
        signals: &mut Signals,
    ) -> Wish {
        const OFFER: &str = "Enter starts a new agent of the session, Ctrl+D leaves. What you type to this one is not sent.";
        self.tell(self.session.slot().agent(), OFFER.to_owned());
        // An editor that was open is closed by now.
        self.feed.send(Update::Edited(None));
        loop {
            let effect = tokio::select! {
                effect = effects.recv() => effect,
                _ = signals.next() => return Wish::Leave(Exit::Interrupted),
            };
            match effect {
                Some(Effect::Request(Request {
                    command: Command::Say { .. } | Command::Continue,
                    ..
                })) => return Wish::Continue,
                Some(Effect::OpenEditor(_)) => self.feed.send(Update::Edited(None)),
                Some(_) => {}
                None => return Wish::Leave(Exit::Done),
            }
        }
    }

    /// The terminal is the editor's, and so is Ctrl-C on it. `None` when the program is to end.
    async fn edit(&self, text: String, signals: &mut Signals) -> Option<Option<String>> {
        let slot = self.session.slot();
        let mut editing = std::pin::pin!(edit(slot.environment(), text));
        let edited = loop {
            tokio::select! {
                edited = &mut editing => break edited,
                caught = signals.next() => match caught {
                    Caught::Interrupt => {}
                    Caught::Ending => return None,
                },
            }
        };
        Some(edited.unwrap_or_else(|error| {
            self.refuse(slot.agent(), format!("{error:#}"));
            None
        }))
    }

    async fn take(&mut self, effect: Effect) {
        match effect {
            Effect::Request(request) => self.request(request).await,
            Effect::LoadLog(agent) => self.recall(agent).await,
            Effect::LoadList(listing) => self.list(listing).await,
            Effect::AddToHistory(text) => self.history.add(text),
            Effect::Drafting { agent, draft } => {
                let command = match draft {
                    Drafting::Started => Command::HoldMail,
                    Drafting::Ended => Command::ReleaseMail,
                };
                self.start(Request { agent, command }).await;
            }
            // It needs the signals, so it was taken before.
            Effect::OpenEditor(_) => self.feed.send(Update::Edited(None)),
        }
    }

    async fn request(&mut self, request: Request) {
        if is_for_agent(&request.command) {
            return self.start(request).await;
        }
        let agent = request.agent.clone();
        match self.session.execute(request).await {
            Ok(reply) => self.show(&agent, reply),
            Err(error) => self.refuse(&agent, error.to_string()),
        }
    }

    /// Passes a command on to its agent. The answer is shown whenever it comes: an interrupt must not wait behind it.
    async fn start(&self, request: Request) {
        let agent = request.agent.clone();
        let answer = self.session.start(request).await;
        let (feed, directory) = (self.feed.clone(), self.directory());
        tokio::spawn(async move {
            match answer.await {
                // Events and the list of queued messages show these.
                Ok(Reply::Queued(QueuedUntil::NextStep)) => {}
                Err(CommandError::Closed | CommandError::QueueFull(_)) => {}
                Ok(reply) => {
                    if let Some(text) = render_reply(&reply, &agent, &directory) {
                        feed.send(Update::Note { agent, text });
                    }
                }
                Err(error) => feed.send(Update::Error { agent, text: error.to_string() }),
            }
        });
    }

    /// Shows what a command did.
    fn show(&mut self, agent: &AgentId, reply: Reply) {
        let text = render_reply(&reply, agent, &self.directory());
        let own = self.session.slot().agent().clone();
        let mut shown_in = agent.clone();
        if let Reply::Mode { mode, .. } = reply {
            self.status.mode = mode;
            self.feed.send(Update::Status(self.status.clone()));
        }
        if let Reply::Killed(dead) = &reply
            && dead.contains(agent)
            && !dead.contains(&own)
        {
            self.feed.send(Update::View(own.clone()));
            shown_in = own;
        }
        if let Reply::Model(model) = reply {
            self.give_model(model);
        }
        if let Some(text) = text {
            self.tell(&shown_in, text);
        }
    }

    fn give_model(&self, model: ModelChoice) {
        let ModelChoice { agent, label: model, context_tokens, .. } = model;
        self.feed.send(Update::Model { agent, model, context_tokens });
    }

    async fn recall(&self, agent: AgentId) {
        let request = |command| Request { agent: agent.clone(), command };
        if let Ok(Reply::Model(model)) = self.execute(request(Command::Model { name: None })).await
        {
            self.give_model(model);
        }
        let opened = self.execute(request(Command::Open { target: None })).await;
        let Ok(Reply::Opened { agent, log }) = opened else { return };
        let is_start = log.is_empty() && agent == *self.session.slot().agent();
        if let Some(greeting) = self.greeting.clone().filter(|_| is_start) {
            self.tell(&agent, greeting);
        }
        self.feed.send(Update::Log { agent, log });
    }

    async fn execute(&self, request: Request) -> Result<Reply, CommandError> {
        self.session.execute(request).await
    }

    /// Lists beside everything else: a large tree and a slow server take their time.
    async fn list(&self, listing: Listing) {
        let command = match listing {
            Listing::Files => Command::ListFiles,
            Listing::Models => Command::ListModels,
        };
        let agent = self.session.slot().agent().clone();
        let answer = self.session.start(Request { agent, command }).await;
        let feed = self.feed.clone();
        tokio::spawn(async move {
            if let Ok(Reply::Files(names) | Reply::Models(names)) = answer.await {
                feed.send(Update::List(listing, names));
            }
        });
    }

    fn tell(&self, agent: &AgentId, text: String) {
        self.feed.send(Update::Note { agent: agent.clone(), text });
    }

    fn refuse(&self, agent: &AgentId, text: String) {
        self.feed.send(Update::Error { agent: agent.clone(), text });
    }

    fn directory(&self) -> PathBuf {
        self.session.slot().environment().directory.clone()
    }
}

/// Whether an agent carries it out, which may take as long as the database does.
fn is_for_agent(command: &Command) -> bool {
    matches!(
        command,
        Command::Say { .. }
            | Command::Continue
            | Command::Interrupt
            | Command::Answer(_)
            | Command::Clear
            | Command::Mark { .. }
            | Command::Rewind { .. }
            | Command::HoldMail
            | Command::ReleaseMail
    )
}
