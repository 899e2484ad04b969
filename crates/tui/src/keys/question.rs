//! Keys while an approval dialog is shown. It takes keys only after the input was idle, and no key
//! changes anything that is not visible.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ikigai_conversation::{AgentId, ToolCallId};
use ikigai_protocol::{Command, Request};

use super::{CONTROL, NONE, Pressed, edit};
use crate::app::App;
use crate::draft::Draft;
use crate::question::{Attention, Choice, Question, Stage};
use crate::update::Effect;

const SHIFT: KeyModifiers = KeyModifiers::SHIFT;

/// A key that follows the one before sooner than this belongs to ongoing typing, so it cannot
/// approve anything.
const PAUSE: Duration = Duration::from_millis(500);

/// A burst of keys without a pause.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Typing {
    since: Duration,
    last: Duration,
    /// Whether one of them answered a question, so that none of the others is text.
    is_answer: bool,
}

impl Typing {
    pub(super) fn extend(typing: Option<Typing>, now: Duration) -> Typing {
        match typing {
            Some(typing) if now.saturating_sub(typing.last) < PAUSE => {
                Typing { last: now, ..typing }
            }
            Some(_) | None => Typing { since: now, last: now, is_answer: false },
        }
    }
}

/// The question in view: the oldest one of the agent.
#[derive(Debug)]
pub(crate) struct QuestionInView {
    agent: AgentId,
    call: ToolCallId,
    /// When it came into view, which may be long after it was asked.
    since: Duration,
}

impl App {
    /// Updates the question in view.
    pub(crate) fn note_question(&mut self, now: Duration) {
        let question = self.panes.get(&self.view).and_then(|pane| pane.questions.front());
        let call = question.map(|question| &question.request.call.tool_call_id);
        let known = self.question_in_view.as_ref().filter(|seen| seen.agent == self.view);
        if known.map(|seen| &seen.call) != call {
            let agent = self.view.clone();
            self.question_in_view =
                call.map(|call| QuestionInView { agent, call: call.clone(), since: now });
        }
    }

    pub(super) fn press_in_question(&mut self, key: KeyEvent, was_leaving: bool) {
        let Some(question) = self.pane_in_view().questions.front_mut() else { return };
        match (key.code, key.modifiers, &question.stage) {
            // These act on text that is not visible now.
            (KeyCode::Char('g' | 'r'), CONTROL, _) => {}
            (_, _, Stage::Choice) => self.press_in_choice(key, was_leaving),
            (_, _, Stage::Reason(_)) => self.press_in_reason(key, was_leaving),
            (_, _, Stage::Aside) => {}
        }
    }

    fn press_in_choice(&mut self, key: KeyEvent, was_leaving: bool) {
        match (key.code, key.modifiers) {
            (KeyCode::Esc, _) => self.set_stage(Stage::Aside),
            // Typing that started before the question came up is not meant for it.
            (KeyCode::Char(_) | KeyCode::Enter | KeyCode::Backspace, NONE | SHIFT)
                if self.is_mid_typing() =>
            {
                if self.typing.is_some_and(|typing| !typing.is_answer) {
                    self.press_in_input(key);
                }
            }
            (KeyCode::Up, NONE) => self.select(-1),
            (KeyCode::Down, NONE) => self.select(1),
            (KeyCode::Enter, NONE) => self.choose(Question::selected),
            (KeyCode::Char('y' | 'Y'), NONE | SHIFT) => self.choose(|_| Choice::Once),
            (KeyCode::Char('a' | 'A'), NONE | SHIFT) => self.choose(|_| Choice::Session),
            (KeyCode::Char('n' | 'N'), NONE | SHIFT) => self.choose(|_| Choice::No),
            (KeyCode::Char(digit @ '1'..='4'), NONE) => self.choose_number(digit),
            // Any other key is neither an answer nor text.
            _ => {
                self.press_anywhere(key, was_leaving);
            }
        }
    }

    fn press_in_reason(&mut self, key: KeyEvent, was_leaving: bool) {
        match (key.code, key.modifiers) {
            (KeyCode::Esc, _) | (KeyCode::Char('c'), CONTROL) => self.set_stage(Stage::Choice),
            (KeyCode::Enter, NONE) => {
                let reason = self.input().whole().trim().to_owned();
                self.answer(Choice::No, Some(reason).filter(|reason| !reason.is_empty()));
            }
            _ => {
                if self.press_anywhere(key, was_leaving) == Pressed::PassedOn {
                    edit(self.input(), key);
                }
            }
        }
    }

    fn set_stage(&mut self, stage: Stage) {
        if let Some(question) = self.pane_in_view().questions.front_mut() {
            question.stage = stage;
        }
    }

    /// Whether the user was already typing when the question came into view.
    fn is_mid_typing(&self) -> bool {
        match (&self.typing, &self.question_in_view) {
            (Some(typing), Some(seen)) => typing.since <= seen.since,
            (None, _) | (_, None) => false,
        }
    }

    /// Whether the dialog in view takes keys.
    pub(crate) fn attention(&self, now: Duration) -> Attention {
        let is_typing = self.typing.is_some_and(|typing| now.saturating_sub(typing.last) < PAUSE);
        match is_typing && self.is_mid_typing() {
            true => Attention::Typing,
            false => Attention::Ready,
        }
    }

    fn select(&mut self, by: isize) {
        if let Some(question) = self.pane_in_view().questions.front_mut() {
            question.select(by);
        }
    }

    fn choose_number(&mut self, digit: char) {
        let number = digit.to_digit(10).map_or(0, |digit| digit as usize - 1);
        let question = self.pane_in_view().questions.front();
        if question.is_some_and(|question| number < question.choices().len()) {
            self.choose(|question| question.choices()[number]);
        }
    }

    fn choose(&mut self, choice: impl FnOnce(&Question) -> Choice) {
        let Some(choice) = self.pane_in_view().questions.front().map(choice) else { return };
        match choice {
            Choice::No => self.set_stage(Stage::Reason(Draft::default())),
            Choice::Once | Choice::Session | Choice::Always => self.approve(choice),
        }
    }

    fn approve(&mut self, choice: Choice) {
        let (room, view) = (self.question_room(), self.view.clone());
        let width = usize::from(self.size.width);
        let question = self.pane_in_view().questions.front_mut();
        if question.is_some_and(|question| question.confirms_approval(&view, width, room)) {
            self.answer(choice, None);
        }
    }

    fn answer(&mut self, choice: Choice, reason: Option<String>) {
        let agent = self.view.clone();
        let Some(question) = self.pane_in_view().questions.pop_front() else { return };
        if let Some(typing) = &mut self.typing {
            typing.is_answer = true;
        }
        let command = Command::Answer(question.answer(choice, reason));
        self.emit(Effect::Request(Request { agent, command }));
    }

    pub(crate) fn is_question_shown(&self) -> bool {
        let question = self.panes.get(&self.view).and_then(|pane| pane.questions.front());
        question.is_some_and(|question| !matches!(question.stage, Stage::Aside))
    }
}
