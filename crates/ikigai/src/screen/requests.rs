//! Carrying out requests from the screen: commands, lists, files, the editor.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ikigai_conversation::{AgentId, MessageId, SessionId};
use ikigai_host::OpenSession;
use ikigai_protocol::{
    Command, CommandError, ModelChoice, QueuedUntil, Reply, Request, RewindReport, render_reply,
};
use ikigai_tui::{Drafting, Effect, Feed, Listing, Status, Update};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::editor::edit;
use super::history::HistoryFile;
use super::setting::model_name;
use crate::exit::Exit;
use crate::signals::{Signals, StopSignal};

/// A Ctrl-C that ends the editor reaches us as well, possibly only after the editor has exited.
const LATE: Duration = Duration::from_secs(2);

pub(super) struct RequestHandler<'a> {
    pub(super) session: Arc<OpenSession>,
    pub(super) feed: &'a Feed,
    pub(super) history: &'a HistoryFile,
    /// Shown when the conversation is new.
    pub(super) greeting: Option<String>,
    /// The status line, without what differs between agents.
    pub(super) status: Status,
    /// Follows the agent of another process that is in view.
    pub(super) following: Option<AbortOnDrop>,
}

/// A task that ends with its owner.
pub(super) struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Why listening to the screen ended.
pub(super) enum Heard {
    Exit(Exit),
    /// The user continues with this session, or with a new one.
    Session(Option<SessionId>),
}

/// How the user continues after losing the agent.
pub(super) enum NextAction {
    /// With another agent.
    Continue,
    Leave(Exit),
}

impl RequestHandler<'_> {
    /// Carries out requests until the screen is closed.
    pub(super) async fn listen(
        &mut self,
        effects: &mut mpsc::Receiver<Effect>,
        signals: &mut Signals,
    ) -> Heard {
        let mut editor_left = None::<Instant>;
        loop {
            tokio::select! {
                effect = effects.recv() => match effect {
                    Some(Effect::OpenEditor(text)) => match self.edit(text, signals).await {
                        Some(edited) => {
                            editor_left = Some(Instant::now());
                            self.feed.send(Update::Edited(edited));
                        }
                        None => return Heard::Exit(Exit::Interrupted),
                    },
                    Some(Effect::OpenSession(session)) => return Heard::Session(session),
                    Some(effect) => self.handle(effect).await,
                    None => return Heard::Exit(Exit::Done),
                },
                signal = signals.next() => match signal {
                    StopSignal::Interrupt if editor_left.is_some_and(|at| at.elapsed() < LATE) => {}
                    StopSignal::Interrupt | StopSignal::Terminate => {
                        return Heard::Exit(Exit::Interrupted);
                    }
                },
            }
        }
    }

    /// Waits after the agent was lost. Any message starts a new agent, which does not receive that
    /// message.
    pub(super) async fn wait_to_continue(
        &self,
        effects: &mut mpsc::Receiver<Effect>,
        signals: &mut Signals,
    ) -> NextAction {
        const OFFER: &str = "Enter starts a new agent of the session, Ctrl+D leaves. What you type to this one is not sent.";
        self.show_text(self.session.slot().agent(), OFFER.to_owned());
        // An open editor is closed by now.
        self.feed.send(Update::Edited(None));
        loop {
            let effect = tokio::select! {
                effect = effects.recv() => effect,
                _ = signals.next() => return NextAction::Leave(Exit::Interrupted),
            };
            match effect {
                Some(Effect::Request(Request {
                    command: Command::Say { .. } | Command::Continue,
                    ..
                })) => return NextAction::Continue,
                Some(Effect::OpenEditor(_)) => self.feed.send(Update::Edited(None)),
                Some(_) => {}
                None => return NextAction::Leave(Exit::Done),
            }
        }
    }

    /// Runs the editor, which owns the terminal and Ctrl-C meanwhile. `None` if the program has to
    /// end.
    async fn edit(&self, text: String, signals: &mut Signals) -> Option<Option<String>> {
        let slot = self.session.slot();
        let mut editing = std::pin::pin!(edit(slot.environment(), text));
        let edited = loop {
            tokio::select! {
                edited = &mut editing => break edited,
                signal = signals.next() => match signal {
                    StopSignal::Interrupt => {}
                    StopSignal::Terminate => return None,
                },
            }
        };
        Some(edited.unwrap_or_else(|error| {
            self.show_error(slot.agent(), format!("{error:#}"));
            None
        }))
    }

    async fn handle(&mut self, effect: Effect) {
        match effect {
            Effect::Request(request) => self.request(request).await,
            Effect::LoadLog(agent) => drop(self.recall(agent).await),
            Effect::Follow(agent) => self.follow(agent).await,
            Effect::Unfollow => self.following = None,
            Effect::LoadList(listing) => self.list(listing).await,
            Effect::AddToHistory(text) => self.history.add(text),
            Effect::Drafting { agent, draft } => {
                let command = match draft {
                    Drafting::Started => Command::HoldMail,
                    Drafting::Ended => Command::ReleaseMail,
                };
                self.start(Request { agent, command }).await;
            }
            // Handled in `listen`, which ends with it.
            Effect::OpenSession(_) => {}
            // Handled in `listen`, since it needs the signals.
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
            Err(error) => self.show_error(&agent, error.to_string()),
        }
    }

    /// Sends a command to its agent. The answer is shown when it arrives: an interrupt must not
    /// wait for it.
    async fn start(&self, request: Request) {
        let agent = request.agent.clone();
        let is_shell = matches!(request.command, Command::Shell { .. });
        let answer = self.session.start(request).await;
        let (feed, directory) = (self.feed.clone(), self.directory());
        tokio::spawn(async move {
            let answer = answer.await;
            if is_shell {
                feed.send(Update::ShellEnded(agent.clone()));
            }
            match answer {
                // Events and the list of queued messages show these.
                Ok(Reply::Queued(QueuedUntil::NextStep)) => {}
                Err(CommandError::Closed | CommandError::QueueFull(_)) => {}
                Ok(Reply::Unqueued(text)) => feed.send(Update::Unqueued { agent, text }),
                Ok(reply) => {
                    if let Reply::RewoundTo(RewindReport { text: Some(text), .. }) = &reply {
                        // To be edited and sent again.
                        let (agent, text) = (agent.clone(), text.clone());
                        feed.send(Update::Suggestion { agent, text });
                    }
                    if let Some(text) = render_reply(&reply, &agent, &directory) {
                        feed.send(Update::Note { agent, text });
                    }
                }
                Err(error) => feed.send(Update::Error { agent, text: error.to_string() }),
            }
        });
    }

    /// Shows the result of a command.
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
        let reply = match reply {
            Reply::RewindPoints(points) => return self.feed.send(Update::RewindPoints(points)),
            Reply::Sessions { sessions, current, here, .. } => {
                return self.feed.send(Update::Sessions { sessions, current, here });
            }
            Reply::SessionPreview { session, text } => {
                return self.feed.send(Update::SessionPreview { session, text });
            }
            Reply::SessionRenamed { session, title }
                if session == self.session.slot().session() =>
            {
                return self.feed.send(Update::Title(title));
            }
            reply => reply,
        };
        if let Reply::Model(model) = reply {
            self.give_model(model);
        }
        if let Some(text) = text {
            self.show_text(&shown_in, text);
        }
    }

    fn give_model(&self, model: ModelChoice) {
        let ModelChoice { agent, label, context_tokens, .. } = model;
        let model = model_name(self.session.slot().environment(), &label);
        self.feed.send(Update::Model { agent, model, context_tokens });
    }

    /// Shows the log of an agent that another process runs, and what that adds to it.
    async fn follow(&mut self, agent: AgentId) {
        let after = self.recall(agent.clone()).await;
        let (feed, slot) = (self.feed.clone(), self.session.slot().clone());
        let task = tokio::spawn(async move {
            let report = |messages| {
                let agent = agent.clone();
                feed.send(Update::Followed { agent, messages });
            };
            match slot.follow(agent.clone(), after, report).await {}
        });
        self.following = Some(AbortOnDrop(task));
    }

    /// Shows the log of an agent. Returns its last message.
    async fn recall(&self, agent: AgentId) -> Option<MessageId> {
        let request = |command| Request { agent: agent.clone(), command };
        if let Ok(Reply::Model(model)) = self.execute(request(Command::Model { name: None })).await
        {
            self.give_model(model);
        }
        let opened = self.execute(request(Command::Open { target: None })).await;
        let Ok(Reply::Opened { agent, log }) = opened else { return None };
        let last = log.last().map(|message| message.id);
        let is_start = log.is_empty() && agent == *self.session.slot().agent();
        if let Some(greeting) = self.greeting.clone().filter(|_| is_start) {
            self.show_text(&agent, greeting);
        }
        self.feed.send(Update::Log { agent, log });
        last
    }

    async fn execute(&self, request: Request) -> Result<Reply, CommandError> {
        self.session.execute(request).await
    }

    /// Lists in the background: a large tree or a slow server takes time.
    async fn list(&self, listing: Listing) {
        let command = match listing {
            Listing::Files => Command::ListFiles,
            Listing::Models => Command::ListModels,
        };
        let agent = self.session.slot().agent().clone();
        let answer = self.session.start(Request { agent, command }).await;
        let feed = self.feed.clone();
        tokio::spawn(async move {
            match answer.await {
                Ok(Reply::Files(names)) => feed.send(Update::List(listing, names)),
                Ok(Reply::Models(models)) => feed.send(Update::Models(models)),
                Ok(_) | Err(_) => {}
            }
        });
    }

    fn show_text(&self, agent: &AgentId, text: String) {
        self.feed.send(Update::Note { agent: agent.clone(), text });
    }

    fn show_error(&self, agent: &AgentId, text: String) {
        self.feed.send(Update::Error { agent: agent.clone(), text });
    }

    fn directory(&self) -> PathBuf {
        self.session.slot().environment().directory.clone()
    }
}

/// Whether an agent carries out the command, which may have to wait for the database.
fn is_for_agent(command: &Command) -> bool {
    matches!(
        command,
        Command::Say { .. }
            | Command::Continue
            | Command::Interrupt
            | Command::Background
            | Command::Answer(_)
            | Command::Clear
            | Command::Mark { .. }
            | Command::Rewind { .. }
            | Command::RewindTo { .. }
            | Command::Unqueue
            | Command::Shell { .. }
            | Command::HoldMail
            | Command::ReleaseMail
    )
}
