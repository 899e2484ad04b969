//! Keys while a question is to be answered. Only what cannot be meant otherwise is an answer.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ikigai_agents::{Command, Order};
use ikigai_conversation::Decision;

use super::{CONTROL, NONE, Pressed, edit};
use crate::app::App;
use crate::draft::Draft;
use crate::news::Effect;
use crate::question::{PAUSE, Stage};

impl App {
    pub(super) fn press_in_question(&mut self, key: KeyEvent, now: Duration) -> Pressed {
        let is_typing = self.last_key.is_some_and(|last| now.saturating_sub(last) < PAUSE);
        let Some(question) = self.pane_in_view().questions.front_mut() else {
            return Pressed::PassedOn;
        };
        let is_fresh = now.saturating_sub(question.since) < PAUSE;
        match &mut question.stage {
            Stage::Aside => return Pressed::PassedOn,
            Stage::Reason(reason) => match (key.code, key.modifiers) {
                (KeyCode::Esc, _) => question.stage = Stage::Choice,
                (KeyCode::Enter, _) => {
                    let reason =
                        Some(reason.whole().trim().to_owned()).filter(|reason| !reason.is_empty());
                    self.answer(Decision::No, reason);
                }
                (KeyCode::PageUp | KeyCode::PageDown, _) => return Pressed::PassedOn,
                (KeyCode::Char('c'), CONTROL) => question.stage = Stage::Choice,
                _ => edit(reason, key),
            },
            Stage::Choice => match (key.code, key.modifiers) {
                (KeyCode::Esc, _) => question.stage = Stage::Aside,
                // What was under way before the question came up is not meant for it.
                (KeyCode::Char(_) | KeyCode::Enter, NONE | KeyModifiers::SHIFT)
                    if is_fresh && is_typing =>
                {
                    return Pressed::PassedOn;
                }
                (KeyCode::Char('y' | 'Y'), NONE | KeyModifiers::SHIFT) => {
                    self.answer(Decision::Once, None);
                }
                (KeyCode::Char('a' | 'A'), NONE | KeyModifiers::SHIFT) => {
                    self.answer(Decision::Always, None);
                }
                (KeyCode::Char('n' | 'N'), NONE | KeyModifiers::SHIFT) => {
                    question.stage = Stage::Reason(Draft::default());
                }
                // Any other letter is no answer, and is not taken for a text either.
                (
                    KeyCode::Char(_) | KeyCode::Enter | KeyCode::Backspace,
                    NONE | KeyModifiers::SHIFT,
                ) => {}
                _ => return Pressed::PassedOn,
            },
        }
        Pressed::Taken
    }

    fn answer(&mut self, decision: Decision, reason: Option<String>) {
        let agent = self.view.clone();
        let Some(question) = self.pane_in_view().questions.pop_front() else { return };
        let command = Command::Answer(question.answer(decision, reason));
        self.wish(Effect::Order(Order { agent, command }));
    }

    pub(crate) fn is_question_shown(&self) -> bool {
        let question = self.panes.get(&self.view).and_then(|pane| pane.questions.front());
        question.is_some_and(|question| !matches!(question.stage, Stage::Aside))
    }
}
