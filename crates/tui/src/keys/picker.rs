//! Keys while a list to choose from is open.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{CONTROL, NONE, edit};
use crate::app::{App, Dialog, Picking};

impl App {
    pub(super) fn press_in_picker(&mut self, mut picking: Picking, key: KeyEvent) {
        let page = self.page();
        if let Some(dialog) = picking.dialog.take() {
            return self.press_in_dialog(picking, dialog, key);
        }
        let selected = picking.picker.chosen();
        let picker = &mut picking.picker;
        match (key.code, key.modifiers) {
            (KeyCode::Tab, _) => self.toggle_folders(&mut picking),
            (KeyCode::Char('r'), CONTROL) => picking.start_renaming(),
            (KeyCode::Char('d'), CONTROL) => picking.start_deleting(),
            (KeyCode::Esc, _) => return self.leave_picker(picking),
            (KeyCode::Char('c'), CONTROL) => return,
            (KeyCode::Enter, _) => return self.pick(picking),
            (KeyCode::Up, NONE) | (KeyCode::Char('p'), CONTROL) => picker.go(-1),
            (KeyCode::Down, NONE) | (KeyCode::Char('n'), CONTROL) => picker.go(1),
            (KeyCode::PageUp, _) => picker.go(-page),
            (KeyCode::PageDown, _) => picker.go(page),
            (KeyCode::Home, _) => picker.go(isize::MIN),
            (KeyCode::End, _) => picker.go(isize::MAX),
            (KeyCode::Backspace, _) => picker.pop(),
            (KeyCode::Char('u'), CONTROL) => {
                picker.clear();
            }
            (KeyCode::Char(c), NONE | KeyModifiers::SHIFT) => {
                let is_chosen = picker.push(c.encode_utf8(&mut [0; 4]));
                if is_chosen {
                    return self.pick(picking);
                }
            }
            _ => {}
        }
        if key.code == KeyCode::Tab || picking.picker.chosen() != selected {
            self.request_preview(&picking);
        }
        self.show_picker(picking);
    }

    /// Keys while a session gets another title, or is about to be deleted.
    fn press_in_dialog(&mut self, mut picking: Picking, mut dialog: Dialog, key: KeyEvent) {
        match (key.code, key.modifiers, &mut dialog) {
            (KeyCode::Esc, _, _) | (KeyCode::Char('c'), CONTROL, _) => {}
            (KeyCode::Enter, _, Dialog::Rename(draft)) => {
                let title = draft.whole();
                self.rename_session(&mut picking, title);
            }
            (_, _, Dialog::Rename(draft)) => {
                edit(draft, key);
                picking.dialog = Some(dialog);
            }
            (KeyCode::Enter, _, Dialog::Delete) => self.delete_session(&mut picking),
            (_, _, Dialog::Delete) => {}
        }
        self.show_picker(picking);
    }
}
