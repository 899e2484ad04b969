//! The state of the whole screen. Only updates and keys change it; drawing changes nothing visible.
//!
//! It never reads the clock: every input carries `now`, the time since the screen was opened.

mod attention;
mod commands;
mod completing;
mod picking;
mod sessions;
mod visits;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ikigai_conversation::{AgentId, CommandId};
use ikigai_protocol::{AgentState, BlockContent, Command, Event, EventKind, Request};
use ratatui_core::layout::Size;

use crate::activity::SPINNER_INTERVAL;
use crate::completion::{Completion, Listing};
use crate::help::KeyTable;
use crate::history::History;
use crate::keys::{QuestionInView, Typing};
use crate::pane::{Consequence, Pane};
use crate::style::Colours;
use crate::team::{Step, Team};
use crate::team_list::TeamView;
use crate::update::{Drafting, Effect, Status, Update};
pub(crate) use picking::{Dialog, Picking};

/// The initial state of the screen.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The agent in view.
    pub view: AgentId,
    /// The contents of the status line.
    pub status: Status,
    /// The styles that the terminal supports.
    pub colours: Colours,
}

/// The screen.
#[derive(Debug)]
pub struct App {
    pub(crate) size: Size,
    pub(crate) colours: Colours,
    pub(crate) view: AgentId,
    pub(crate) panes: BTreeMap<AgentId, Pane>,
    pub(crate) team: Team,
    /// When the list of agents was last updated.
    pub(crate) team_since: Duration,
    /// How much unread mail the user has.
    pub(crate) unread: u32,
    /// The agent in view if another process runs it, or none: it can only be read.
    pub(crate) followed: Option<AgentId>,
    pub(crate) status: Status,
    /// The background commands of all agents that run.
    pub(crate) commands: BTreeSet<CommandId>,
    pub(crate) history: History,
    /// The agent whose draft is in the editor.
    pub(crate) editing: Option<AgentId>,
    pub(crate) popup: Popup,
    /// The list under the input.
    pub(crate) completion: Completion,
    /// The lists for completion that have been loaded.
    listings: BTreeMap<Listing, Vec<String>>,
    /// The lists that have been requested and not loaded yet.
    requested: BTreeSet<Listing>,
    /// Pending actions, in order.
    actions: Vec<Action>,
    pub(crate) focus: Focus,
    pub(crate) typing: Option<Typing>,
    pub(crate) question_in_view: Option<QuestionInView>,
    /// Ctrl+C was pressed once with nothing to clear or interrupt.
    pub(crate) leaving: bool,
    /// Esc was pressed once with nothing to close, clear or interrupt.
    pub(crate) escaping: bool,
    /// The title of the session: the first line of the user's first message.
    title: String,
}

/// A popup, which gets keys first.
#[derive(Debug)]
pub(crate) enum Popup {
    None,
    /// The table of keys.
    Keys(KeyTable),
    Search(Search),
    Team(TeamView),
    /// A list to choose from.
    Picker(Box<Picking>),
}

/// A search through the history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Search {
    pub(crate) typed: String,
    /// How many matches to skip.
    pub(crate) nth: usize,
    /// The match, cached: it is drawn with every frame.
    pub(crate) found: Option<String>,
}

/// Whether the terminal has the focus, as far as it reports that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Focus {
    Here,
    Away,
}

/// An action for the program around the screen or for the owner of the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Effect(Effect),
    /// Draw the user's attention.
    Ring(String),
    Copy(String),
    /// Show this text on the normal screen until a key is pressed.
    ShowPlain(String),
    Redraw,
    /// Ask the terminal whether its background is dark or light.
    AskBackground,
    Suspend,
    Leave,
}

/// What to print on the normal screen after this one is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitSummary {
    /// The last answer of the agent in view, as the model wrote it: not yet safe for a terminal.
    pub last_answer: Option<String>,
    /// Whether there is a conversation to continue.
    pub has_spoken: bool,
}

impl App {
    /// Creates an empty screen.
    pub fn new(setup: Setup, size: Size) -> App {
        let mut app = App {
            size,
            colours: setup.colours,
            view: setup.view.clone(),
            panes: BTreeMap::new(),
            team: Team::default(),
            team_since: Duration::ZERO,
            unread: 0,
            followed: None,
            status: setup.status,
            commands: BTreeSet::new(),
            history: History::default(),
            editing: None,
            popup: Popup::None,
            completion: Completion::None,
            listings: BTreeMap::new(),
            requested: BTreeSet::new(),
            actions: Vec::new(),
            focus: Focus::Here,
            typing: None,
            question_in_view: None,
            leaving: false,
            escaping: false,
            title: String::new(),
        };
        app.team.ensure(&setup.view);
        app.look_at(setup.view);
        app
    }

    /// Updates the state.
    pub fn update(&mut self, update: Update, now: Duration) {
        match update {
            Update::Event(event) => self.handle_event(event, now),
            Update::Log { agent, log } => {
                log.iter().for_each(|message| self.note_title(message));
                self.pane(&agent).recall(&log);
            }
            Update::Team(members) => {
                self.team_since = now;
                self.set_team(Team::new(members));
            }
            Update::Questions(open) => self.set_questions(open, now),
            Update::Unread(unread) => self.unread = unread,
            Update::Followed { agent, messages } => self.pane(&agent).follow(&messages),
            Update::Status(status) => {
                let branch = std::mem::take(&mut self.status.branch);
                self.status = Status { branch, ..status };
            }
            Update::Branch(branch) => self.status.branch = branch,
            Update::Note { agent, text } => {
                self.pane(&agent).transcript.add(BlockContent::Reply(text));
            }
            Update::Error { agent, text } => {
                self.pane(&agent).transcript.add(BlockContent::Refusal(text));
            }
            Update::List(listing, names) => self.set_list(listing, names),
            Update::Models(models) => self.show_models(&models),
            Update::Edited(text) => self.end_editing(text),
            Update::Suggestion { agent, text } => self.pane(&agent).offered = Some(text),
            Update::History { texts, size } => self.history.load(texts, size),
            Update::Model { agent, model, context_tokens } => {
                self.pane(&agent).model = Some((model, context_tokens));
            }
            Update::RewindPoints(points) => self.show_rewind_points(points),
            Update::Sessions { sessions, current, here } => {
                self.show_sessions(sessions, current, here);
            }
            Update::SessionPreview { session, text } => self.show_preview(session, &text),
            Update::Unqueued { agent, text } => self.take_back(&agent, &text),
            Update::ShellEnded(agent) => self.pane(&agent).is_shell_busy = false,
            Update::Title(title) => self.title = title,
            Update::Session(view) => self.open_session(view),
            Update::View(agent) => self.move_to(agent),
            Update::Dropped => self.reload(),
        }
        self.note_question(now);
        self.report_drafting();
        self.close_completion_of_another_word();
    }

    /// Takes the pending actions, in order.
    pub(crate) fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// How often the screen changes without input, if it does.
    pub(crate) fn animation(&self) -> Option<Duration> {
        let pane = self.panes.get(&self.view);
        // A dialog shows when it takes keys: a moment after the last one was typed.
        let changes = pane.is_some_and(Pane::is_busy) || self.is_question_shown();
        changes.then_some(SPINNER_INTERVAL)
    }

    /// The summary for the normal screen.
    pub fn exit_summary(&self) -> ExitSummary {
        let pane = self.panes.get(&self.view);
        let answer = pane.and_then(|pane| pane.transcript.last_answer());
        let has_spoken = self.panes.values().any(|pane| pane.has_spoken);
        ExitSummary { last_answer: answer.map(str::to_owned), has_spoken }
    }

    pub(crate) fn push(&mut self, action: Action) {
        self.actions.push(action);
    }

    pub(crate) fn emit(&mut self, effect: Effect) {
        self.actions.push(Action::Effect(effect));
    }

    /// Sends a command to the agent in view.
    pub(crate) fn send(&mut self, command: Command) {
        let agent = self.view.clone();
        self.emit(Effect::Request(Request { agent, command }));
    }

    pub(crate) fn pane(&mut self, agent: &AgentId) -> &mut Pane {
        self.panes.entry(agent.clone()).or_insert_with(Pane::new)
    }

    pub(crate) fn pane_in_view(&mut self) -> &mut Pane {
        self.panes.entry(self.view.clone()).or_insert_with(Pane::new)
    }

    /// Shows a message in the conversation in view.
    pub(crate) fn note(&mut self, text: &str) {
        let transcript = &mut self.pane_in_view().transcript;
        transcript.add(BlockContent::Reply(text.to_owned()));
        transcript.scroll_to_end();
    }

    /// Shows an error in the conversation in view.
    pub(crate) fn refuse(&mut self, why: &str) {
        let transcript = &mut self.pane_in_view().transcript;
        transcript.add(BlockContent::Refusal(why.to_owned()));
        transcript.scroll_to_end();
    }

    /// Puts the text into the draft that it came from: another agent may be in view by now.
    fn end_editing(&mut self, text: Option<String>) {
        let agent = self.editing.take();
        let (Some(agent), Some(text)) = (agent, text) else { return };
        self.pane(&agent).draft.set(text.trim_end_matches('\n'));
        self.history.reset();
    }

    /// Shows another agent.
    pub(crate) fn look_at(&mut self, agent: AgentId) {
        self.popup = Popup::None;
        self.completion = Completion::None;
        // The agent that was asked may be gone, so its reply may never come.
        self.requested.clear();
        self.history.reset();
        self.team.ensure(&agent);
        self.view = agent.clone();
        if self.followed.take().is_some() {
            self.emit(Effect::Unfollow);
        }
        if !self.is_run_here(&agent) {
            // What was logged since it was last in view is loaded with the rest.
            self.pane(&agent).forget();
            self.pane(&agent).is_recalled = true;
            self.followed = Some(agent.clone());
            return self.emit(Effect::Follow(agent));
        }
        let pane = self.pane(&agent);
        if !pane.is_recalled {
            pane.is_recalled = true;
            self.emit(Effect::LoadLog(agent));
        }
    }

    /// Continues with another agent, which gets the draft.
    fn move_to(&mut self, agent: AgentId) {
        let draft = std::mem::take(&mut self.pane_in_view().draft);
        self.look_at(agent);
        let pane = self.pane_in_view();
        if pane.draft.is_empty() {
            pane.draft = draft;
        }
    }

    /// Shows a relative of the agent in view, if it has one.
    pub(crate) fn step(&mut self, step: Step) {
        let Some(agent) = self.team.relative(&self.view, step).cloned() else { return };
        self.visit(&agent);
    }

    /// Reloads all conversations from the logs.
    fn reload(&mut self) {
        for pane in self.panes.values_mut() {
            pane.forget();
        }
        self.look_at(self.view.clone());
    }

    fn handle_event(&mut self, event: Event, now: Duration) {
        let Event { agent, kind } = event;
        if let EventKind::Message(message) = &kind {
            self.note_title(message);
        }
        self.team.ensure(&agent);
        match &kind {
            EventKind::CommandStarted { command, .. } => drop(self.commands.insert(*command)),
            EventKind::CommandEnded { command, .. } => drop(self.commands.remove(command)),
            _ => {}
        }
        let pane = self.pane(&agent);
        let consequence = pane.handle_event(kind, now);
        if let Some(state) = pane.state() {
            self.team.set_state(&agent, state);
        }
        let is_top = agent.depth() == 1;
        match consequence {
            Some(Consequence::NeedsApproval(tool)) => {
                self.notify(&agent, &format!("needs approval for {tool}"));
            }
            Some(Consequence::Finished) if is_top => self.notify(&agent, "has finished"),
            Some(Consequence::Failed) if is_top => self.notify(&agent, "has failed"),
            Some(Consequence::Lost) => self.stop_tree(&agent.top()),
            Some(Consequence::Finished | Consequence::Failed | Consequence::Interrupted) | None => {
            }
        }
    }

    /// Shows another session, of which nothing is known yet.
    fn open_session(&mut self, view: AgentId) {
        self.panes.clear();
        self.team = Team::default();
        self.title.clear();
        self.editing = None;
        self.look_at(view);
    }

    /// This process no longer runs a tree of agents.
    fn stop_tree(&mut self, top: &AgentId) {
        for (agent, pane) in self.panes.iter_mut().filter(|(agent, _)| agent.top() == *top) {
            pane.stop();
            self.team.set_state(agent, AgentState::Idle);
        }
    }

    /// Replaces the list of living agents and drops the panes of dead ones.
    fn set_team(&mut self, mut team: Team) {
        team.ensure(&self.view);
        for (agent, pane) in &self.panes {
            if let Some(state) = pane.state() {
                team.set_state(agent, state);
            }
        }
        self.team = team;
        let (team, view) = (&self.team, &self.view);
        self.panes
            .retain(|agent, pane| agent == view || pane.is_busy() || team.member(agent).is_some());
    }

    /// Reports when the user starts or finishes a draft.
    pub(crate) fn report_drafting(&mut self) {
        let agent = self.view.clone();
        let pane = self.pane_in_view();
        if pane.draft.is_empty()
            && let Some(text) = pane.offered.take()
        {
            pane.draft.set(&text);
            self.close_completion();
        }
        let pane = self.pane_in_view();
        let is_drafting = !pane.draft.is_empty();
        if is_drafting != pane.is_drafting {
            pane.is_drafting = is_drafting;
            let draft = if is_drafting { Drafting::Started } else { Drafting::Ended };
            self.emit(Effect::Drafting { agent, draft });
        }
    }
}
