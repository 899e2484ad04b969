//! Doing what the screen wants: orders to agents, commands, lists, files, the editor.

use std::time::{Duration, Instant};

use ikigai_agents::{BetweenTurns, Model};
use ikigai_conversation::{AgentId, ToolCall};
use ikigai_protocol::{Command, CommandError, Request};
use ikigai_store::{Content, Direction, Kept};
use ikigai_tui::{Before, Drafting, Effect, Feed, Listing, News, RECALLED, Slash, Status, When};
use tokio::sync::mpsc;

use super::editor::edit;
use super::files::list_files;
use super::history::HistoryFile;
use crate::exit::Exit;
use crate::hand::{Hand, offered_models};
use crate::model::context_tokens;
use crate::question::{SHOWN_BYTES, present};
use crate::signals::{Caught, Signals};

/// A Ctrl-C that ends the editor is one of ours, too: it may be heard only after the editor's end.
const LATE: Duration = Duration::from_secs(2);

pub(super) struct Desk<'a> {
    pub(super) hand: Hand<'a>,
    pub(super) feed: &'a Feed,
    pub(super) history: &'a HistoryFile,
    /// What is said to somebody who begins, if anything.
    pub(super) greeting: Option<String>,
    /// What the last line says, without what differs from agent to agent.
    pub(super) status: Status,
}

/// What a person wants whose agent is gone.
pub(super) enum Left {
    /// Another agent.
    Stays,
    By(Exit),
}

impl Desk<'_> {
    /// Does what the screen wants until it is closed.
    pub(super) async fn listen(
        &mut self,
        effects: &mut mpsc::Receiver<Effect>,
        signals: &mut Signals,
    ) -> Exit {
        let mut editor_left = None::<Instant>;
        loop {
            tokio::select! {
                effect = effects.recv() => match effect {
                    Some(Effect::Edit(text)) => match self.edit(text, signals).await {
                        Some(edited) => {
                            editor_left = Some(Instant::now());
                            self.feed.give(News::Edited(edited));
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

    /// The agent is gone: any word of the person asks for another one, which is not told what was meant for the first.
    pub(super) async fn wait_for_a_wish(
        &self,
        effects: &mut mpsc::Receiver<Effect>,
        signals: &mut Signals,
    ) -> Left {
        const OFFER: &str = "Enter begins as a new agent of the session, Ctrl+D leaves. What you type to this one is not sent.";
        self.tell(self.hand.seat.agent(), OFFER.to_owned());
        // An editor that was open is closed by now.
        self.feed.give(News::Edited(None));
        loop {
            let effect = tokio::select! {
                effect = effects.recv() => effect,
                _ = signals.next() => return Left::By(Exit::Interrupted),
            };
            match effect {
                Some(Effect::Request(Request {
                    command: Command::Say { .. } | Command::Continue,
                    ..
                })) => {
                    return Left::Stays;
                }
                Some(Effect::Edit(_)) => self.feed.give(News::Edited(None)),
                Some(_) => {}
                None => return Left::By(Exit::Done),
            }
        }
    }

    /// The terminal is the editor's, and so is Ctrl-C on it. `None` when the program is to end.
    async fn edit(&self, text: String, signals: &mut Signals) -> Option<Option<String>> {
        let mut editing = std::pin::pin!(edit(self.hand.environment, text));
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
            self.tell(self.hand.seat.agent(), format!("Error: {error:#}"));
            None
        }))
    }

    async fn take(&mut self, effect: Effect) {
        match effect {
            Effect::Request(request) => self.request(request).await,
            Effect::Obey { agent, command } => {
                if let Some(text) = self.obey(&agent, command).await {
                    self.tell(&agent, text);
                }
            }
            Effect::Recall(agent) => self.recall(agent).await,
            Effect::List(listing) => self.list(listing),
            Effect::FindBefore { agent, call, when } => self.find_before(agent, call, when).await,
            Effect::Remember(text) => self.history.add(text),
            Effect::Drafting { agent, draft } => {
                let command = match draft {
                    Drafting::Begun => Command::HoldMail,
                    Drafting::Ended => Command::ReleaseMail,
                };
                self.request(Request { agent, command }).await;
            }
            // It needs the signals, so it was taken before.
            Effect::Edit(_) => self.feed.give(News::Edited(None)),
        }
    }

    /// Passes a command on. A refusal is shown whenever it comes: an interrupt must not wait behind it.
    async fn request(&self, request: Request) {
        let agent = request.agent.clone();
        let Some(answer) = self.hand.request(request).await else { return };
        let feed = self.feed.clone();
        tokio::spawn(async move {
            if let Ok(Err(error)) = answer.await
                && !matches!(error, CommandError::Closed | CommandError::QueueFull(_))
            {
                feed.give(News::Told { agent, text: format!("Error: {error}") });
            }
        });
    }

    /// What there is to say about a command.
    async fn obey(&mut self, agent: &AgentId, command: Slash) -> Option<String> {
        let hand = &self.hand;
        Some(match command {
            Slash::Clear => hand.change_context(agent, BetweenTurns::Clear).await,
            Slash::Model(named) => self.choose_model(agent, named.as_deref()),
            Slash::Mail(rest) => hand.mail(agent, &rest).await,
            Slash::Fork(task) => hand.fork(agent, task.as_deref().unwrap_or_default()).await,
            Slash::Kill(named) => {
                return self.kill(agent, named.as_deref().unwrap_or_default()).await;
            }
            Slash::Mark(label) => hand.change_context(agent, BetweenTurns::Mark(label)).await,
            Slash::Rewind(label) => hand.change_context(agent, BetweenTurns::Rewind(label)).await,
            Slash::Sessions => hand.sessions().await,
            Slash::Export(file) => hand.export(agent, &file).await,
            Slash::Tools => hand.tools(),
            Slash::Mode(word) => self.change_mode(word.as_deref().unwrap_or_default()),
            Slash::Undo => hand.undo(agent, Direction::Undo).await,
            Slash::Redo => hand.undo(agent, Direction::Redo).await,
            Slash::Usage => hand.usage().await,
            Slash::Config => hand.config(),
            // The screen does these alone.
            Slash::Help | Slash::Agents | Slash::Agent(_) | Slash::Copy | Slash::Exit => {
                return None;
            }
        })
    }

    fn choose_model(&self, agent: &AgentId, named: Option<&str>) -> String {
        let text = self.hand.model(agent, named);
        self.tell_model(agent);
        text
    }

    fn tell_model(&self, agent: &AgentId) {
        let Model { name, label: model, .. } = self.hand.models.of(agent);
        let context_tokens = context_tokens(&name);
        self.feed.give(News::Model { agent: agent.clone(), model, context_tokens });
    }

    fn change_mode(&mut self, word: &str) -> String {
        let text = self.hand.mode(word);
        self.status.mode = self.hand.permissions.mode();
        self.feed.give(News::Status(self.status.clone()));
        text
    }

    async fn kill(&self, view: &AgentId, named: &str) -> Option<String> {
        let killed = self.hand.kill(view, named).await;
        let own = self.hand.seat.agent();
        if killed.dead.contains(view) && !killed.dead.contains(own) {
            self.feed.give(News::View(own.clone()));
            self.tell(own, killed.text);
            return None;
        }
        Some(killed.text)
    }

    async fn recall(&self, agent: AgentId) {
        self.tell_model(&agent);
        // An agent that never spoke has no log, nor has a session that is not made yet.
        let Hand { store, session, .. } = &self.hand;
        let log = store.newest_messages(*session, agent.clone(), RECALLED).await;
        let log = log.unwrap_or_default();
        let is_beginning = log.is_empty() && agent == *self.hand.seat.agent();
        if let Some(greeting) = self.greeting.clone().filter(|_| is_beginning) {
            self.tell(&agent, greeting);
        }
        self.feed.give(News::Recalled { agent, log });
    }

    /// Lists beside everything else: a large tree and a slow server take their time.
    fn list(&self, listing: Listing) {
        let feed = self.feed.clone();
        match listing {
            Listing::Files => {
                let directory = self.hand.environment.directory.clone();
                tokio::task::spawn_blocking(move || {
                    feed.give(News::Listed(Listing::Files, list_files(&directory)));
                });
            }
            Listing::Models => {
                let current = self.hand.models.of(self.hand.seat.agent());
                tokio::spawn(async move {
                    feed.give(News::Listed(Listing::Models, offered_models(current).await));
                });
            }
        }
    }

    /// Finds what a file held before a call.
    async fn find_before(&self, agent: AgentId, call: ToolCall, when: When) {
        let before = match when {
            When::Asked => present(&call, &self.hand.environment.directory),
            When::Done => self.kept(&agent, &call).await,
        };
        self.feed.give(News::Before { agent, call: call.tool_call_id, before });
    }

    /// What was kept of a file for an undo.
    async fn kept(&self, agent: &AgentId, call: &ToolCall) -> Before {
        let Hand { store, session, .. } = &self.hand;
        match store.before_call(*session, agent.clone(), call.tool_call_id.clone()).await {
            Ok(Some(Kept::Content(Content { bytes, .. }))) => match bytes.len() as u64 {
                length if length > SHOWN_BYTES => Before::NotShown { bytes: length },
                length => String::from_utf8(bytes)
                    .map_or(Before::NotShown { bytes: length }, Before::Text),
            },
            Ok(Some(Kept::Absent)) => Before::Nothing,
            Ok(Some(Kept::NotKept) | None) | Err(_) => Before::Unknown,
        }
    }

    fn tell(&self, agent: &AgentId, text: String) {
        self.feed.give(News::Told { agent: agent.clone(), text });
    }
}
