//! Key bindings. The topmost element gets a key first: a popup, a question, the input.

mod picker;
mod popups;
mod question;

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ikigai_conversation::Mode;
use ikigai_protocol::Command;

use crate::app::{Action, App, Focus, Popup, Search};
use crate::draft::{Draft, Motion, Moved, Pasted};
use crate::help::KeyTable;
use crate::pane::Pane;
use crate::question::Stage;
use crate::style::Colours;
use crate::team::Step;
use crate::team_list::TeamView;
use crate::transcript::Direction;
use crate::typed::Typed;
use crate::update::Effect;
pub(crate) use question::{QuestionInView, Typing};

const NONE: KeyModifiers = KeyModifiers::NONE;
const CONTROL: KeyModifiers = KeyModifiers::CONTROL;
const ALT: KeyModifiers = KeyModifiers::ALT;

impl App {
    /// Handles an input from the terminal.
    pub(crate) fn press(&mut self, typed: Typed, now: Duration) {
        match typed {
            Typed::Key(key) => {
                self.typing = Some(Typing::extend(self.typing, now));
                self.press_key(key);
            }
            Typed::Paste(text) => self.paste(&text),
            Typed::Wheel(rows) => self.turn_wheel(rows),
            Typed::Resize(size) => self.size = size,
            Typed::FocusGained => {
                self.focus = Focus::Here;
                // The user may have changed it meanwhile.
                self.push(Action::AskBackground);
            }
            Typed::FocusLost => self.focus = Focus::Away,
            Typed::Background(background) => {
                if let Colours::Many(current) = &mut self.colours {
                    *current = background;
                }
            }
        }
        self.note_question(now);
        self.update_completion();
        self.report_drafting();
    }

    fn press_key(&mut self, key: KeyEvent) {
        let keeps = matches!(key.code, KeyCode::Enter | KeyCode::Up | KeyCode::Down);
        if !keeps && self.pane_in_view().transcript.deselect() && key.code == KeyCode::Esc {
            return;
        }
        let was_leaving = std::mem::take(&mut self.leaving);
        let was_escaping = std::mem::take(&mut self.escaping);
        match std::mem::replace(&mut self.popup, Popup::None) {
            Popup::Team(view) => return self.press_in_team(view, key),
            Popup::Search(search) => return self.press_in_search(search, key),
            Popup::Picker(picking) => return self.press_in_picker(*picking, key),
            Popup::Keys(table) => {
                if self.press_in_keys(table, key) == Pressed::Taken {
                    return;
                }
            }
            Popup::None => {}
        }
        if self.is_question_shown() {
            return self.press_in_question(key, was_leaving);
        }
        if self.press_in_completion(key) == Pressed::Taken {
            return;
        }
        if key.code == KeyCode::Esc && self.is_at_rest() {
            return self.press_escape_at_rest(was_escaping);
        }
        if self.press_anywhere(key, was_leaving) == Pressed::PassedOn {
            self.press_in_input(key);
        }
    }

    /// Keys that do the same everywhere.
    fn press_anywhere(&mut self, key: KeyEvent, was_leaving: bool) -> Pressed {
        let is_empty = self.input().is_empty();
        match (key.code, key.modifiers) {
            (KeyCode::Esc, _) => self.interrupt(),
            (KeyCode::Char('c'), CONTROL) => self.press_control_c(was_leaving),
            (KeyCode::Char('d'), CONTROL) if is_empty => self.push(Action::Leave),
            (KeyCode::Char('t'), CONTROL) => {
                self.popup = Popup::Team(TeamView::open(&self.team, &self.view));
            }
            (KeyCode::Char('x'), CONTROL) => self.open_oldest_question(),
            (KeyCode::Char('r'), CONTROL) => self.search(Search::default()),
            (KeyCode::Char('o'), CONTROL) => {
                let window = self.window();
                self.pane_in_view().transcript.toggle_folds(window);
            }
            (KeyCode::Char('g'), CONTROL) => {
                let text = self.pane_in_view().draft.whole();
                self.editing = Some(self.view.clone());
                self.emit(Effect::OpenEditor(text));
            }
            (KeyCode::Char('b'), CONTROL) if self.pane_in_view().runs_call() => {
                self.send(Command::Background);
            }
            (KeyCode::Char('l'), CONTROL) => self.push(Action::Redraw),
            (KeyCode::Char('z'), CONTROL) => self.push(Action::Suspend),
            (KeyCode::PageUp, _) => {
                let page = self.page();
                self.scroll(-page);
            }
            (KeyCode::PageDown, _) => {
                let page = self.page();
                self.scroll(page);
            }
            (KeyCode::Home, CONTROL) => {
                let window = self.window();
                self.pane_in_view().transcript.scroll_to_top(window);
            }
            (KeyCode::End, CONTROL) => self.pane_in_view().transcript.scroll_to_end(),
            (KeyCode::Up, ALT) if is_empty && self.select_block(Direction::Up) => {}
            (KeyCode::Down, ALT) if is_empty && self.select_block(Direction::Down) => {}
            (code, modifiers) if modifiers == ALT || modifiers == CONTROL && is_empty => {
                match step(code) {
                    Some(step) => self.step(step),
                    None => return Pressed::PassedOn,
                }
            }
            _ => return Pressed::PassedOn,
        }
        Pressed::Taken
    }

    /// Keys that edit the draft.
    fn press_in_input(&mut self, key: KeyEvent) {
        match (key.code, key.modifiers) {
            (KeyCode::Enter, NONE) if self.pane_in_view().draft.expand() => {}
            (KeyCode::Enter, NONE) => return self.submit(),
            (KeyCode::Enter, _) | (KeyCode::Char('j'), CONTROL) => {
                self.pane_in_view().draft.insert("\n");
            }
            (KeyCode::Tab, _) => return self.complete(),
            (KeyCode::BackTab, _) => return self.change_mode(),
            (KeyCode::Char('?'), NONE | KeyModifiers::SHIFT) if self.input().is_empty() => {
                self.popup = Popup::Keys(KeyTable::default());
            }
            (KeyCode::Up, NONE) => return self.go_up(),
            (KeyCode::Down, NONE) => return self.go_down(),
            _ => edit(&mut self.pane_in_view().draft, key),
        }
        self.history.reset();
    }

    /// Selects a block of the conversation, which Enter unfolds. Returns whether there is one in this
    /// direction.
    fn select_block(&mut self, direction: Direction) -> bool {
        let window = self.window();
        self.pane_in_view().transcript.select(direction, window)
    }

    /// Shift+Tab: changes to the next mode. Mode full is never a key away.
    fn change_mode(&mut self) {
        let mode = match self.status.mode {
            Mode::Work => Mode::Read,
            Mode::Read | Mode::Full => Mode::Work,
        };
        self.send(Command::Mode { mode: Some(mode) });
    }

    fn interrupt(&mut self) {
        let pane = self.pane_in_view();
        // A message that was just sent may start a turn before its event arrives.
        if pane.is_busy() || !pane.queued.is_empty() || pane.is_shell_busy {
            self.send(Command::Interrupt);
        }
    }

    /// Whether nothing is typed and the agent in view has nothing to do.
    fn is_at_rest(&self) -> bool {
        let pane = self.panes.get(&self.view);
        pane.is_some_and(|pane| {
            let has_nothing_to_do = !pane.is_busy() && !pane.is_shell_busy;
            has_nothing_to_do && pane.draft.is_empty() && pane.queued.is_empty()
        })
    }

    /// The second Esc opens the undo menu.
    fn press_escape_at_rest(&mut self, was_escaping: bool) {
        match was_escaping {
            true => self.open_rewind(),
            false => self.escaping = true,
        }
    }

    fn press_control_c(&mut self, was_leaving: bool) {
        let is_draft_seen = !self.is_question_shown();
        let pane = self.pane_in_view();
        if is_draft_seen && !pane.draft.is_empty() {
            pane.draft.clear();
            self.history.reset();
        } else if pane.is_busy() || pane.is_shell_busy {
            self.send(Command::Interrupt);
        } else if was_leaving {
            self.push(Action::Leave);
        } else {
            self.leaving = true;
        }
    }

    fn go_up(&mut self) {
        let width = self.input_width();
        let pane = self.pane_in_view();
        if pane.draft.is_empty() && !pane.queued.is_empty() {
            return self.send(Command::Unqueue);
        }
        if pane.draft.go_up(width) == Moved::AtEdge {
            let draft = pane.draft.whole();
            if let Some(text) = self.history.earlier(&draft) {
                self.pane_in_view().draft.set(&text);
                self.close_completion();
            }
        }
    }

    fn go_down(&mut self) {
        let width = self.input_width();
        if self.pane_in_view().draft.go_down(width) == Moved::AtEdge
            && let Some(text) = self.history.later()
        {
            self.pane_in_view().draft.set(&text);
            self.close_completion();
        }
    }

    fn paste(&mut self, text: &str) {
        match std::mem::replace(&mut self.popup, Popup::None) {
            Popup::Search(search) => self.paste_into_search(search, text),
            Popup::Picker(mut picking) => {
                picking.picker.push(text);
                self.popup = Popup::Picker(picking);
            }
            Popup::None | Popup::Keys(_) | Popup::Team(_) => {
                // A paste never answers a question, so it goes into the text input.
                if self.input().paste(text) == Pasted::TooLong {
                    self.refuse(
                        "The pasted text is too long. Put it into a file and mention the \
                        file",
                    );
                }
                self.history.reset();
            }
        }
    }

    /// The text input: the reason for a denial, or else the draft.
    fn input(&mut self) -> &mut Draft {
        let Pane { questions, draft, .. } = self.pane_in_view();
        match questions.front_mut().map(|question| &mut question.stage) {
            Some(Stage::Reason(reason)) => reason,
            Some(Stage::Choice | Stage::Aside) | None => draft,
        }
    }

    /// Scrolls the topmost element, which may be a list.
    fn turn_wheel(&mut self, rows: isize) {
        let is_list_open = !self.is_question_shown() && self.completion.offers().is_some();
        match &mut self.popup {
            Popup::Team(view) => view.go(&self.team, rows),
            Popup::Keys(table) => table.scroll(rows),
            Popup::Picker(picking) => picking.picker.go(rows),
            Popup::None if is_list_open => self.move_in_completion(rows),
            Popup::Search(_) | Popup::None => self.scroll(rows),
        }
    }

    /// Scrolls the question or the conversation: down for positive numbers.
    fn scroll(&mut self, rows: isize) {
        let distance = rows.unsigned_abs();
        if self.is_question_shown() {
            let room = self.question_room();
            let (view, width) = (self.view.clone(), usize::from(self.size.width));
            if let Some(question) = self.pane_in_view().questions.front_mut() {
                question.scroll(&view, width, room, rows);
            }
            return;
        }
        let window = self.window();
        let transcript = &mut self.pane_in_view().transcript;
        match rows < 0 {
            true => transcript.scroll_up(distance, window),
            false => transcript.scroll_down(distance, window),
        }
    }

    /// The rows to scroll by for a page: one row stays visible for orientation.
    fn page(&mut self) -> isize {
        let (room, width) = (self.question_room(), usize::from(self.size.width));
        let is_asked = self.is_question_shown();
        let question = self.pane_in_view().questions.front().filter(|_| is_asked);
        let rows = match question {
            Some(question) => question.page(width, room),
            None => self.window().height.saturating_sub(1).max(1),
        };
        isize::try_from(rows).unwrap_or(1)
    }
}

/// Whether a key was handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pressed {
    Taken,
    PassedOn,
}

fn step(code: KeyCode) -> Option<Step> {
    match code {
        KeyCode::Left => Some(Step::PreviousSibling),
        KeyCode::Right => Some(Step::NextSibling),
        KeyCode::Up => Some(Step::Parent),
        KeyCode::Down => Some(Step::NewestChild),
        _ => None,
    }
}

/// Editing as in readline.
fn edit(draft: &mut Draft, key: KeyEvent) {
    match (key.code, key.modifiers) {
        (KeyCode::Char(c), NONE | KeyModifiers::SHIFT) => draft.insert(c.encode_utf8(&mut [0; 4])),
        (KeyCode::Char('a'), CONTROL) | (KeyCode::Home, _) => draft.go(Motion::LineStart),
        (KeyCode::Char('e'), CONTROL) | (KeyCode::End, _) => draft.go(Motion::LineEnd),
        (KeyCode::Char('b'), CONTROL) | (KeyCode::Left, NONE) => draft.go(Motion::Left),
        (KeyCode::Char('f'), CONTROL) | (KeyCode::Right, NONE) => draft.go(Motion::Right),
        (KeyCode::Char('b'), ALT) | (KeyCode::Left, _) => draft.go(Motion::WordLeft),
        (KeyCode::Char('f'), ALT) | (KeyCode::Right, _) => draft.go(Motion::WordRight),
        (KeyCode::Char('k'), CONTROL) => draft.kill(Motion::LineEnd),
        (KeyCode::Char('u'), CONTROL) => draft.kill(Motion::LineStart),
        (KeyCode::Char('w'), CONTROL) => draft.kill(Motion::SpaceLeft),
        (KeyCode::Backspace, ALT) => draft.kill(Motion::WordLeft),
        (KeyCode::Char('d'), ALT) => draft.kill(Motion::WordRight),
        (KeyCode::Char('y'), CONTROL) => draft.yank(),
        (KeyCode::Char('h'), CONTROL) | (KeyCode::Backspace, _) => draft.delete(Motion::Left),
        (KeyCode::Char('d'), CONTROL) | (KeyCode::Delete, _) => draft.delete(Motion::Right),
        _ => {}
    }
}
