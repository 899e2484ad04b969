//! Choosing from a list: an earlier message to return to.

use ikigai_protocol::{Command, CommandError, ModelSummary, RewindPart, RewindPoint};

use super::sessions::Sessions;
use super::{App, Popup};
use crate::completion::Listing;
use crate::draft::Draft;
use crate::picker::{Choosing, Item, Picker};

/// An open list, and what its entries stand for.
#[derive(Debug, Clone)]
pub(crate) struct Picking {
    pub(crate) picker: Picker,
    pub(crate) subject: Subject,
    /// What the user is asked about the selected entry.
    pub(crate) dialog: Option<Dialog>,
}

/// A dialog about the selected session.
#[derive(Debug, Clone)]
pub(crate) enum Dialog {
    /// Its new title.
    Rename(Draft),
    /// Whether to delete it.
    Delete,
}

/// What is chosen.
#[derive(Debug, Clone)]
pub(crate) enum Subject {
    /// The point to rewind to, the latest last.
    RewindPoint(Vec<RewindPoint>),
    /// What returns to the point.
    Rewind(RewindPoint, &'static [RewindChoice]),
    /// The session to continue.
    Session(Sessions),
    /// The model that answers from the next request on.
    Model(Vec<String>),
}

/// What returns to a point, or that everything before it is summarized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RewindChoice {
    Part(RewindPart),
    Summary,
}

const TO_MARK: &[RewindChoice] = &[
    RewindChoice::Part(RewindPart::Everything),
    RewindChoice::Part(RewindPart::Conversation),
    RewindChoice::Part(RewindPart::Files),
];
const TO_MESSAGE: &[RewindChoice] = &[
    RewindChoice::Part(RewindPart::Everything),
    RewindChoice::Part(RewindPart::Conversation),
    RewindChoice::Part(RewindPart::Files),
    RewindChoice::Summary,
];

impl App {
    /// Shows a list to choose from.
    pub(crate) fn show_picker(&mut self, picking: Picking) {
        self.popup = Popup::Picker(Box::new(picking));
    }

    /// Opens the undo menu.
    pub(crate) fn open_rewind(&mut self) {
        if self.pane_in_view().is_busy() {
            let why = CommandError::Working(self.view.clone());
            return self.refuse(&why.to_string());
        }
        let picker = Picker::loading("Rewind to before a message", Choosing::Filter);
        self.show_picker(Picking::new(picker, Subject::RewindPoint(Vec::new())));
        self.send(Command::ListRewindPoints);
    }

    /// Fills the undo menu, if it is still open.
    pub(super) fn show_rewind_points(&mut self, points: Vec<RewindPoint>) {
        let Some(Picking { picker, subject: subject @ Subject::RewindPoint(_), .. }) =
            self.popup.picking()
        else {
            return;
        };
        let last = points.len().saturating_sub(1);
        let items = points.iter().map(rewind_item).collect();
        picker.fill(items, last, "There is no earlier message to return to");
        *subject = Subject::RewindPoint(points);
    }

    /// Enter in a list.
    pub(crate) fn pick(&mut self, picking: Picking) {
        let Some(chosen) = picking.picker.chosen() else {
            self.show_picker(picking);
            return;
        };
        match picking.subject {
            Subject::RewindPoint(mut points) => self.open_rewind_parts(points.swap_remove(chosen)),
            Subject::Rewind(point, choices) => self.rewind(&point, choices[chosen]),
            Subject::Session(sessions) => self.resume(&sessions, chosen),
            Subject::Model(mut names) => {
                self.send(Command::Model { name: Some(names.swap_remove(chosen)) });
            }
        }
    }

    /// Esc in a list: clears the filter, goes back to the list before, or closes it.
    pub(crate) fn leave_picker(&mut self, mut picking: Picking) {
        if picking.picker.clear() {
            self.show_picker(picking);
            return;
        }
        match picking.subject {
            Subject::Rewind(..) => self.open_rewind(),
            Subject::RewindPoint(_) | Subject::Session(_) | Subject::Model(_) => {}
        }
    }

    fn open_rewind_parts(&mut self, point: RewindPoint) {
        let start: String =
            point.text.lines().next().unwrap_or_default().chars().take(60).collect();
        let (title, choices) = match point.is_mark {
            true => (format!("Rewind to mark {start}"), TO_MARK),
            false => (format!("Rewind to before \"{start}\""), TO_MESSAGE),
        };
        let mut picker = Picker::loading(&title, Choosing::Digits);
        let items = choices.iter().map(|choice| choice.item(point.files)).collect();
        picker.fill(items, 0, "");
        self.show_picker(Picking::new(picker, Subject::Rewind(point, choices)));
    }

    /// Opens the list of models.
    pub(crate) fn open_models(&mut self) {
        let picker = Picker::loading("Model", Choosing::Filter);
        self.show_picker(Picking::new(picker, Subject::Model(Vec::new())));
        self.request_list(Listing::Models);
    }

    /// Fills the list of models, if it is open, and the completion of their names.
    pub(super) fn show_models(&mut self, models: &[ModelSummary]) {
        let names: Vec<String> = models.iter().map(|model| model.label.clone()).collect();
        if let Some(Picking { picker, subject: Subject::Model(known), .. }) = self.popup.picking() {
            known.clone_from(&names);
            let model = self.panes.get(&self.view).and_then(|pane| pane.model.as_ref());
            let current = model.map_or(&self.status.model, |(name, _)| name);
            let is_current = |label: &str| {
                label == current || label.split_once('/').is_some_and(|(_, name)| name == current)
            };
            let chosen = names.iter().position(|name| is_current(name)).unwrap_or(0);
            let items = models.iter().map(|model| model_item(model, is_current(&model.label)));
            let empty = "The server lists no models. /model NAME chooses one";
            picker.fill(items.collect(), chosen, empty);
        }
        self.set_list(Listing::Models, names);
    }

    fn rewind(&mut self, point: &RewindPoint, choice: RewindChoice) {
        self.send(match choice {
            RewindChoice::Part(part) => Command::RewindTo { point: point.id, part },
            RewindChoice::Summary => Command::Compact { focus: None, before: Some(point.id) },
        });
        self.pane_in_view().transcript.scroll_to_end();
    }
}

impl Popup {
    /// The list to choose from, if it is open.
    pub(super) fn picking(&mut self) -> Option<&mut Picking> {
        match self {
            Popup::Picker(picking) => Some(picking),
            Popup::None | Popup::Keys(_) | Popup::Search(_) | Popup::Team(_) => None,
        }
    }
}

impl Picking {
    pub(super) fn new(picker: Picker, subject: Subject) -> Picking {
        Picking { picker, subject, dialog: None }
    }

    /// What is typed, and what to say while that is nothing; `None` if nothing can be typed.
    pub(crate) fn typed(&self) -> Option<(String, &'static str)> {
        match &self.dialog {
            Some(Dialog::Rename(draft)) => Some((draft.whole(), "the new title")),
            Some(Dialog::Delete) => None,
            None => self.picker.typed().map(|typed| (typed.to_owned(), "type to filter")),
        }
    }

    /// The keys that do something.
    pub(crate) fn keys(&self) -> &'static str {
        match (&self.dialog, &self.subject) {
            (Some(Dialog::Rename(_)), _) => "Enter renames · Esc cancels",
            (Some(Dialog::Delete), _) => "Enter deletes for good · Esc cancels",
            (None, Subject::Session(_)) => {
                "Enter resumes · Tab all folders · Ctrl+R rename · Ctrl+D delete"
            }
            (None, _) => "↑↓ Enter chooses · Esc closes",
        }
    }
}

impl RewindChoice {
    fn item(self, files: usize) -> Item {
        let changed = match files {
            0 => "no changed files".to_owned(),
            1 => "1 changed file".to_owned(),
            files => format!("{files} changed files"),
        };
        let (text, detail) = match self {
            RewindChoice::Part(RewindPart::Everything) => ("Conversation and files", changed),
            RewindChoice::Part(RewindPart::Conversation) => {
                ("Conversation only", "files stay as they are".to_owned())
            }
            RewindChoice::Part(RewindPart::Files) => ("Files only", changed),
            RewindChoice::Summary => {
                ("Summarize up to here", "what came before becomes a summary".to_owned())
            }
        };
        Item { text: text.to_owned(), detail, preview: String::new() }
    }
}

fn rewind_item(point: &RewindPoint) -> Item {
    let line = point.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let text = if point.is_mark { format!("── {line}") } else { line.to_owned() };
    let files = match point.files {
        0 => String::new(),
        1 => "1 file · ".to_owned(),
        files => format!("{files} files · "),
    };
    Item { text, detail: format!("{files}{}", point.age), preview: point.text.clone() }
}

/// A model with its window and its prices, as far as they are known.
fn model_item(model: &ModelSummary, is_current: bool) -> Item {
    let [window, input, output] = model.window_and_prices();
    let prices = match model.prices {
        Some(_) => format!("{input} in, {output} out"),
        None => String::new(),
    };
    let window = if model.context_tokens.is_some() { window } else { String::new() };
    let current = if is_current { "current".to_owned() } else { String::new() };
    let facts = [current, window, prices].into_iter().filter(|fact| !fact.is_empty());
    let detail = facts.collect::<Vec<_>>().join(" · ");
    Item { text: model.label.clone(), detail, preview: String::new() }
}
