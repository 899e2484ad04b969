//! The terminal's answer to the question for its background, which arrives as keys: Alt+], the
//! colour as text, and Alt+\\ or Ctrl+G.

use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};

use crate::style::Background;

/// How the text of an answer starts.
const START: &str = "11;rgb";
/// No answer is longer.
const LONGEST: usize = 40;

/// An answer of which the start has arrived. Keys that only look like one are given back.
#[derive(Debug, Default)]
pub(crate) struct PartialAnswer {
    held: Vec<Event>,
    text: String,
}

/// What became of an event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It may be part of an answer.
    Held,
    /// It completed an answer.
    Background(Background),
    /// These events are no answer.
    Keys(Vec<Event>),
}

impl PartialAnswer {
    pub(crate) fn take(&mut self, event: Event) -> Taken {
        let key = match &event {
            Event::Key(key) if key.kind == KeyEventKind::Press => Some((key.code, key.modifiers)),
            _ => None,
        };
        match (key, self.held.is_empty()) {
            (Some((KeyCode::Char(']'), KeyModifiers::ALT)), true) => {
                self.held.push(event);
                Taken::Held
            }
            (_, true) => Taken::Keys(vec![event]),
            (
                Some((KeyCode::Char('\\'), KeyModifiers::ALT))
                | Some((KeyCode::Char('g'), KeyModifiers::CONTROL)),
                false,
            ) => match background(&self.text) {
                Some(background) => {
                    self.held.clear();
                    self.text.clear();
                    Taken::Background(background)
                }
                None => self.give_back(event),
            },
            (Some((KeyCode::Char(c), KeyModifiers::NONE | KeyModifiers::SHIFT)), false) => {
                self.text.push(c);
                let is_start = START.starts_with(&*self.text) || self.text.starts_with(START);
                match is_start && self.text.len() <= LONGEST {
                    true => {
                        self.held.push(event);
                        Taken::Held
                    }
                    false => self.give_back(event),
                }
            }
            (_, false) => self.give_back(event),
        }
    }

    fn give_back(&mut self, event: Event) -> Taken {
        self.text.clear();
        let mut events = std::mem::take(&mut self.held);
        events.push(event);
        Taken::Keys(events)
    }
}

/// The background in an answer such as `11;rgb:1e1e/1e1e/2e2e`.
fn background(answer: &str) -> Option<Background> {
    let colour = answer.strip_prefix(START)?.trim_start_matches('a').strip_prefix(':')?;
    let mut parts = colour.split('/').map(brightness);
    let (red, green, blue) = (parts.next()??, parts.next()??, parts.next()??);
    // As bright as the colours look.
    let bright = 0.299 * red + 0.587 * green + 0.114 * blue;
    Some(if bright > 0.5 { Background::Light } else { Background::Dark })
}

/// From 0 to 1, written with one to four hexadecimal digits.
fn brightness(digits: &str) -> Option<f64> {
    let digits_count = u32::try_from(digits.len()).ok().filter(|count| (1..=4).contains(count))?;
    let most = 16_u32.pow(digits_count) - 1;
    u32::from_str_radix(digits, 16).ok().map(|value| f64::from(value) / f64::from(most))
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyEvent;

    use super::*;

    fn key(c: char, modifiers: KeyModifiers) -> Event {
        Event::Key(KeyEvent::new(KeyCode::Char(c), modifiers))
    }

    /// What becomes of Alt+], a text and a last key.
    fn taken(text: &str, last: Event) -> Vec<Taken> {
        let mut answer = PartialAnswer::default();
        let keys = text.chars().map(|c| key(c, KeyModifiers::NONE));
        let all = std::iter::once(key(']', KeyModifiers::ALT)).chain(keys).chain([last]);
        all.map(|event| answer.take(event)).filter(|taken| *taken != Taken::Held).collect()
    }

    #[test]
    fn an_answer_is_dark_or_light_and_no_key() {
        let ends = [key('\\', KeyModifiers::ALT), key('g', KeyModifiers::CONTROL)];
        for end in ends {
            for (text, expected) in [
                ("11;rgb:1e1e/1e1e/2e2e", Background::Dark),
                ("11;rgb:ff/fa/e0", Background::Light),
                ("11;rgba:ffff/ffff/ffff/ffff", Background::Light),
                ("11;rgb:0000/0000/ffff", Background::Dark),
            ] {
                assert_eq!(taken(text, end.clone()), [Taken::Background(expected)], "{text}");
            }
        }
    }

    #[test]
    fn keys_that_are_no_answer_are_given_back_in_order() {
        for text in ["x", "11;rgb:zz/0/0", "1"] {
            let end = key('\\', KeyModifiers::ALT);
            let given: usize = (taken(text, end).iter())
                .map(|taken| match taken {
                    Taken::Keys(events) => events.len(),
                    Taken::Held | Taken::Background(_) => 0,
                })
                .sum();
            assert_eq!(given, text.len() + 2, "{text}");
        }
    }
}
