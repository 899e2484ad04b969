//! Input from the terminal: keys and pastes, and the wheel as distinct from arrow keys.

use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseEventKind};
use ratatui_core::layout::Size;

use crate::answers::{PartialAnswer, Taken};
use crate::style::Background;

/// How long to wait for more arrow keys after one.
pub(crate) const BURST: Duration = Duration::from_millis(3);

/// Rows per step of the wheel when the mouse is captured.
const WHEEL: isize = 3;

/// An input of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Typed {
    Key(KeyEvent),
    Paste(String),
    /// Rows: down for positive numbers.
    Wheel(isize),
    Resize(Size),
    FocusGained,
    FocusLost,
    /// The terminal says which background it has.
    Background(Background),
}

/// Tells keys apart from what terminals send like keys.
#[derive(Debug, Default)]
pub(crate) struct Sorter {
    answer: PartialAnswer,
}

impl Sorter {
    /// Converts events that arrived together. On the alternate screen, terminals send the wheel as
    /// several arrow keys in one write; no user types that fast.
    pub(crate) fn sort(&mut self, events: Vec<Event>) -> Vec<Typed> {
        let mut sorted: Vec<Typed> = Vec::new();
        let mut keys = Vec::new();
        for event in events {
            match self.answer.take(event) {
                Taken::Held => {}
                Taken::Background(background) => {
                    sorted.extend(sort(std::mem::take(&mut keys)));
                    sorted.push(Typed::Background(background));
                }
                Taken::Keys(events) => keys.extend(events),
            }
        }
        sorted.extend(sort(keys));
        sorted
    }
}

fn sort(events: Vec<Event>) -> Vec<Typed> {
    let mut sorted: Vec<Typed> = Vec::new();
    let mut events = events.into_iter().peekable();
    while let Some(event) = events.next() {
        let Some(rows) = arrow(&event) else {
            sorted.extend(typed(event));
            continue;
        };
        let mut run = 1;
        while events.next_if(|next| arrow(next) == Some(rows)).is_some() {
            run += 1;
        }
        match run {
            1 => sorted.extend(typed(event)),
            run => sorted.push(Typed::Wheel(rows * run)),
        }
    }
    sorted
}

/// Whether it may be the first arrow key of a burst.
pub(crate) fn may_be_wheel(event: &Event) -> bool {
    arrow(event).is_some()
}

/// The direction of a bare arrow key.
fn arrow(event: &Event) -> Option<isize> {
    match event {
        Event::Key(KeyEvent {
            code,
            modifiers: KeyModifiers::NONE,
            kind: KeyEventKind::Press,
            ..
        }) => match code {
            KeyCode::Up => Some(-1),
            KeyCode::Down => Some(1),
            _ => None,
        },
        _ => None,
    }
}

fn typed(event: Event) -> Option<Typed> {
    match event {
        Event::Key(key) => (key.kind != KeyEventKind::Release).then_some(Typed::Key(key)),
        Event::Paste(text) => Some(Typed::Paste(text)),
        Event::Resize(width, height) => Some(Typed::Resize(Size::new(width, height))),
        Event::FocusGained => Some(Typed::FocusGained),
        Event::FocusLost => Some(Typed::FocusLost),
        Event::Mouse(mouse) => match mouse.kind {
            MouseEventKind::ScrollUp => Some(Typed::Wheel(-WHEEL)),
            MouseEventKind::ScrollDown => Some(Typed::Wheel(WHEEL)),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(code: KeyCode) -> Event {
        Event::Key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn a_burst_of_arrow_keys_is_the_wheel_and_a_single_one_is_a_key() {
        let up = || key(KeyCode::Up);
        assert_eq!(sort(vec![up(), up(), up()]), [Typed::Wheel(-3)]);
        let alone = sort(vec![up(), key(KeyCode::Down), key(KeyCode::Char('x'))]);
        let expected = [KeyCode::Up, KeyCode::Down, KeyCode::Char('x')];
        assert_eq!(alone, expected.map(|code| Typed::Key(KeyEvent::new(code, KeyModifiers::NONE))));
    }

    #[test]
    fn releasing_a_key_does_nothing() {
        let mut event = KeyEvent::new(KeyCode::Char('x'), KeyModifiers::NONE);
        event.kind = KeyEventKind::Release;
        assert_eq!(sort(vec![Event::Key(event)]), []);
    }
}
