//! Keys while the team list, the table of keys, a search or a completion list is open.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use ikigai_conversation::AgentId;
use ikigai_protocol::Command;

use super::{CONTROL, NONE, Pressed};
use crate::app::{App, Popup, Search};
use crate::completion::Completion;
use crate::help::KeyTable;
use crate::team_list::TeamView;

impl App {
    pub(super) fn press_in_team(&mut self, mut view: TeamView, key: KeyEvent) {
        if let Some(agent) = view.to_kill.take() {
            if matches!(key.code, KeyCode::Char('y' | 'Y')) {
                self.send(Command::Kill { target: Some(agent.to_string()) });
            }
            self.popup = Popup::Team(view);
            return;
        }
        match (key.code, key.modifiers) {
            (KeyCode::Esc, _) if view.peeked.is_some() => view.peeked = None,
            (KeyCode::Esc, _) | (KeyCode::Char('t' | 'c'), CONTROL) => return self.end_peek(),
            (KeyCode::Up, _) => view.go(&self.team, -1),
            (KeyCode::Down, _) => view.go(&self.team, 1),
            (KeyCode::PageUp, _) => {
                let page = self.page();
                view.go(&self.team, -page);
            }
            (KeyCode::PageDown, _) => {
                let page = self.page();
                view.go(&self.team, page);
            }
            (KeyCode::Enter, _) => return self.visit(&view.chosen),
            (KeyCode::Char('a'), NONE) => return self.open_question(&view.chosen),
            (KeyCode::Char('m'), NONE) => return self.write_to(&view.chosen),
            (KeyCode::Char('k'), NONE) => view.to_kill = Some(view.chosen.clone()),
            (KeyCode::Char('p'), NONE) => {
                view.peeked = match view.peeked.as_ref() == Some(&view.chosen) {
                    true => None,
                    false => Some(view.chosen.clone()),
                };
            }
            (KeyCode::Char(digit @ '1'..='9'), NONE) => {
                let number = digit.to_digit(10).unwrap_or(1) as usize - 1;
                let agent = view.members(&self.team).get(number).map(|member| member.id.clone());
                if let Some(agent) = agent {
                    return self.visit(&agent);
                }
            }
            _ => {}
        }
        // The peek follows the cursor.
        if view.peeked.is_some() {
            view.peeked = Some(view.chosen.clone());
            self.load_to_peek(&view.chosen);
        }
        self.popup = Popup::Team(view);
    }

    /// Starts a mail to an agent in the input.
    fn write_to(&mut self, agent: &AgentId) {
        let line = format!("/mail send {agent} ");
        let pane = self.pane_in_view();
        match pane.draft.is_empty() {
            true => pane.draft.set(&line),
            false => self.refuse("The input has text already: send or clear it first"),
        }
    }

    /// Any key but those that scroll closes the table, and does what it does elsewhere.
    pub(super) fn press_in_keys(&mut self, mut table: KeyTable, key: KeyEvent) -> Pressed {
        let page = self.page();
        match (key.code, key.modifiers) {
            (KeyCode::Esc, _) | (KeyCode::Char('?'), NONE | KeyModifiers::SHIFT) => {
                return Pressed::Taken;
            }
            (KeyCode::Up, NONE) => table.scroll(-1),
            (KeyCode::Down, NONE) => table.scroll(1),
            (KeyCode::PageUp, _) => table.scroll(-page),
            (KeyCode::PageDown, _) => table.scroll(page),
            _ => return Pressed::PassedOn,
        }
        self.popup = Popup::Keys(table);
        Pressed::Taken
    }

    pub(super) fn press_in_completion(&mut self, key: KeyEvent) -> Pressed {
        let Some(offers) = self.completion.offers() else {
            if key.code == KeyCode::Esc && self.completion.height() > 0 {
                self.close_completion();
                return Pressed::Taken;
            }
            return Pressed::PassedOn;
        };
        let accepted = match (key.code, key.modifiers) {
            (KeyCode::Esc, _) => {
                self.close_completion();
                return Pressed::Taken;
            }
            (KeyCode::Down, NONE) => {
                self.move_in_completion(1);
                return Pressed::Taken;
            }
            (KeyCode::Up, NONE) => {
                self.move_in_completion(-1);
                return Pressed::Taken;
            }
            (KeyCode::Tab, _) => offers.chosen_or_first(),
            (KeyCode::Enter, NONE) => offers.accepted_by_enter(),
            _ => None,
        };
        let Some(offer) = accepted.cloned() else { return Pressed::PassedOn };
        let word = offers.word.clone();
        self.accept(&word, &offer);
        Pressed::Taken
    }

    /// Moves the selection of the completion list by so many rows, down for positive numbers.
    pub(super) fn move_in_completion(&mut self, rows: isize) {
        if let Completion::Open(offers) = &mut self.completion {
            offers.go(rows);
        }
    }

    pub(super) fn press_in_search(&mut self, mut search: Search, key: KeyEvent) {
        match (key.code, key.modifiers) {
            (KeyCode::Esc, _) | (KeyCode::Char('c' | 'g'), CONTROL) => return,
            (KeyCode::Char('r'), CONTROL) => {
                if self.history.find(&search.typed, search.nth + 1).is_some() {
                    search.nth += 1;
                }
            }
            (KeyCode::Char(c), NONE | KeyModifiers::SHIFT) => {
                search.push(c.encode_utf8(&mut [0; 4]));
            }
            (KeyCode::Backspace, _) => {
                search.typed.pop();
                search.nth = 0;
            }
            _ => {
                if let Some(found) = search.found {
                    self.pane_in_view().draft.set(&found);
                    self.history.reset();
                    self.close_completion();
                }
                return;
            }
        }
        self.search(search);
    }

    pub(super) fn paste_into_search(&mut self, mut search: Search, text: &str) {
        search.push(text.lines().next().unwrap_or_default());
        self.search(search);
    }

    /// Searches the history and shows the match.
    pub(super) fn search(&mut self, mut search: Search) {
        search.found = self.history.find(&search.typed, search.nth).map(str::to_owned);
        self.popup = Popup::Search(search);
    }
}

impl Search {
    fn push(&mut self, text: &str) {
        /// Longer than any useful search.
        const TYPED: usize = 200;
        let room = TYPED.saturating_sub(self.typed.len());
        self.typed.push_str(&text[..text.floor_char_boundary(room)]);
        self.nth = 0;
    }
}
