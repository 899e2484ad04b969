//! The list of sessions: resuming, renaming and deleting one.

use ikigai_conversation::SessionId;
use ikigai_protocol::{Command, CommandError, SessionSummary};

use super::picking::{Dialog, Picking, Subject};
use super::{App, Popup};
use crate::draft::Draft;
use crate::picker::{Choosing, Item, Picker};
use crate::update::Effect;

/// The sessions behind the entries of the list.
#[derive(Debug, Clone)]
pub(crate) struct Sessions {
    all: Vec<SessionSummary>,
    current: Option<SessionId>,
    here: String,
    scope: Scope,
    /// Those of the scope, as indices.
    listed: Vec<usize>,
}

/// Which sessions are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Folder,
    All,
}

impl App {
    /// Opens the list of sessions.
    pub(crate) fn open_sessions(&mut self) {
        let picker = Picker::loading("Sessions", Choosing::Filter);
        let (all, listed, here) = (Vec::new(), Vec::new(), String::new());
        let sessions = Sessions { all, current: None, here, scope: Scope::Folder, listed };
        self.show_picker(Picking::new(picker, Subject::Session(sessions)));
        self.send(Command::Sessions);
    }

    /// Fills the list of sessions, if it is open: those of the folder, or all if it has none.
    pub(super) fn show_sessions(
        &mut self,
        all: Vec<SessionSummary>,
        current: SessionId,
        here: String,
    ) {
        let Popup::Picker(mut picking) = std::mem::replace(&mut self.popup, Popup::None) else {
            return;
        };
        if let Subject::Session(sessions) = &mut picking.subject {
            let has_own = all.iter().any(|session| session.directory == here);
            let scope = if has_own { Scope::Folder } else { Scope::All };
            *sessions = Sessions { all, current: Some(current), here, scope, listed: Vec::new() };
            sessions.fill(&mut picking.picker);
        }
        self.request_preview(&picking);
        self.popup = Popup::Picker(picking);
    }

    /// Shows the end of a conversation beside its session.
    pub(super) fn show_preview(&mut self, session: SessionId, text: &str) {
        if let Some(Picking { picker, subject: Subject::Session(sessions), .. }) =
            self.popup.picking()
            && let Some(index) = sessions.index_of(session)
        {
            picker.set_preview(index, text);
        }
    }

    /// Requests a preview of the selected session.
    pub(crate) fn request_preview(&mut self, picking: &Picking) {
        if let Some(session) = picking.session().map(|session| session.id) {
            self.send(Command::PreviewSession { session });
        }
    }

    /// Tab: lists the sessions of the folder, or those of all folders.
    pub(crate) fn toggle_folders(&mut self, picking: &mut Picking) {
        if let Subject::Session(sessions) = &mut picking.subject {
            sessions.scope = match sessions.scope {
                Scope::Folder => Scope::All,
                Scope::All => Scope::Folder,
            };
            sessions.fill(&mut picking.picker);
        }
    }

    /// Continues with the chosen session.
    pub(super) fn resume(&mut self, sessions: &Sessions, chosen: usize) {
        match sessions.session(chosen).map(|session| session.id) {
            Some(session) if Some(session) == sessions.current => {}
            Some(session) => self.open_other_session(Some(session)),
            None => {}
        }
    }

    /// Switches to another session, or to a new one, unless that would interrupt an agent.
    pub(super) fn open_other_session(&mut self, session: Option<SessionId>) {
        match self.panes.iter().find(|(_, pane)| pane.is_busy()).map(|(agent, _)| agent.clone()) {
            Some(agent) => self.refuse(&CommandError::Working(agent).to_string()),
            None => self.emit(Effect::OpenSession(session)),
        }
    }

    pub(crate) fn rename_session(&mut self, picking: &mut Picking, title: String) {
        let (Some(session), Some(chosen)) =
            (picking.session().map(|session| session.id), picking.picker.chosen())
        else {
            return;
        };
        picking.picker.set_text(chosen, &title);
        self.send(Command::RenameSession { session, title });
    }

    /// Deletes the selected session. The list is loaded again, since the session may be in use.
    pub(crate) fn delete_session(&mut self, picking: &mut Picking) {
        if let Some(session) = picking.session().map(|session| session.id) {
            self.send(Command::DeleteSession { session });
            self.send(Command::Sessions);
        }
    }
}

impl Picking {
    fn session(&self) -> Option<&SessionSummary> {
        let Subject::Session(sessions) = &self.subject else { return None };
        sessions.session(self.picker.chosen()?)
    }

    pub(crate) fn start_renaming(&mut self) {
        if let Some(session) = self.session() {
            let mut draft = Draft::default();
            draft.set(&session.title);
            self.dialog = Some(Dialog::Rename(draft));
        }
    }

    pub(crate) fn start_deleting(&mut self) {
        if self.session().is_some() {
            self.dialog = Some(Dialog::Delete);
        }
    }
}

impl Sessions {
    fn session(&self, index: usize) -> Option<&SessionSummary> {
        self.all.get(*self.listed.get(index)?)
    }

    fn index_of(&self, session: SessionId) -> Option<usize> {
        self.listed.iter().position(|index| self.all[*index].id == session)
    }

    /// Fills the list with the sessions of the scope.
    fn fill(&mut self, picker: &mut Picker) {
        let is_listed = |session: &SessionSummary| match self.scope {
            Scope::Folder => session.directory == self.here,
            Scope::All => true,
        };
        let all = self.all.iter().enumerate().filter(|(_, session)| is_listed(session));
        self.listed = all.map(|(index, _)| index).collect();
        picker.set_title(match self.scope {
            Scope::Folder => "Sessions of this folder",
            Scope::All => "Sessions of all folders",
        });
        let items = self.listed.iter().map(|index| self.item(&self.all[*index])).collect();
        picker.fill(items, 0, "No sessions yet");
    }

    fn item(&self, session: &SessionSummary) -> Item {
        let title = match session.title.is_empty() {
            true => "(nothing said yet)",
            false => &session.title,
        };
        let folder = match self.scope {
            Scope::Folder => String::new(),
            Scope::All => format!("{} · ", session.directory),
        };
        let messages = match session.messages {
            1 => "1 message".to_owned(),
            count => format!("{count} messages"),
        };
        let age = match Some(session.id) == self.current {
            true => "open",
            false => &session.age,
        };
        let detail = format!("{folder}{messages} · {age}");
        Item { text: title.to_owned(), detail, preview: String::new() }
    }
}
