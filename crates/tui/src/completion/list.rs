//! The list of completions under the input: its offers, its selection and its rows.

use ratatui_core::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::{Kind, Word};
use crate::safe::safe_line;
use crate::style::{DIM, PLAIN, REVERSED};
use crate::wrap::fit;

/// A completion of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) text: String,
    /// What it stands for; empty if the text says it all.
    pub(crate) help: String,
    /// Another text that means the same.
    pub(crate) alias: Option<String>,
}

impl Offer {
    pub(crate) fn new(text: &str, help: &str) -> Offer {
        Offer { text: text.to_owned(), help: help.to_owned(), alias: None }
    }

    fn is(&self, typed: &str) -> bool {
        let text = self.text.trim_end_matches('/');
        text == typed.trim_end_matches('/') || self.alias.as_deref() == Some(typed)
    }
}

/// The list under the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Completion {
    None,
    Open(Offers),
    /// No file matches. The word is sent anyway.
    Missing(Word),
    /// Closed until the word changes.
    Closed(Word),
}

/// The completions of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offers {
    pub(crate) word: Word,
    pub(crate) offers: Vec<Offer>,
    /// The selection. An argument that was not started has none until an arrow key makes one:
    /// Enter sends the command without it.
    chosen: Option<usize>,
}

impl Completion {
    pub(crate) fn word(&self) -> Option<&Word> {
        match self {
            Completion::Open(Offers { word, .. })
            | Completion::Missing(word)
            | Completion::Closed(word) => Some(word),
            Completion::None => None,
        }
    }

    /// The list, if it is open and has anything to choose from.
    pub(crate) fn offers(&self) -> Option<&Offers> {
        match self {
            Completion::Open(offers) if !offers.offers.is_empty() => Some(offers),
            Completion::Open(_) | Completion::None => None,
            Completion::Missing(_) | Completion::Closed(_) => None,
        }
    }

    /// The number of rows it needs.
    pub(crate) fn height(&self) -> usize {
        match self {
            Completion::Open(Offers { offers, .. }) => offers.len(),
            Completion::Missing(_) => 1,
            Completion::None | Completion::Closed(_) => 0,
        }
    }

    pub(crate) fn rows(&self, width: usize, height: usize) -> Vec<Line<'static>> {
        match self {
            Completion::Open(offers) => offers.rows(width, height),
            Completion::Missing(_) => {
                vec![Line::styled(fit("  No such file; sent as typed", width), DIM)]
            }
            Completion::None | Completion::Closed(_) => Vec::new(),
        }
    }
}

impl Offers {
    pub(crate) fn new(word: Word, offers: Vec<Offer>) -> Offers {
        let has_choice = match word.kind {
            Kind::Command | Kind::Listed(_) => true,
            Kind::Agent | Kind::Mark | Kind::Words(_) => !word.typed.is_empty(),
        };
        let chosen = (has_choice && !offers.is_empty()).then_some(0);
        Offers { word, offers, chosen }
    }

    /// Selects the offer with this text, if there is one.
    pub(crate) fn choose(&mut self, text: &str) {
        if let Some(at) = self.offers.iter().position(|offer| offer.text == text) {
            self.chosen = Some(at);
        }
    }

    /// Makes a selection if there is none.
    pub(crate) fn choose_any(&mut self) {
        if self.chosen.is_none() && !self.offers.is_empty() {
            self.chosen = Some(0);
        }
    }

    /// Moves the selection by so many rows, down for positive numbers. It wraps around.
    pub(crate) fn go(&mut self, by: isize) {
        let count = isize::try_from(self.offers.len()).unwrap_or(isize::MAX).max(1);
        let at = match self.chosen.and_then(|at| isize::try_from(at).ok()) {
            Some(at) => at.saturating_add(by).rem_euclid(count),
            None if by < 0 => count - 1,
            None => 0,
        };
        self.chosen = usize::try_from(at).ok();
    }

    pub(crate) fn chosen(&self) -> Option<&Offer> {
        self.offers.get(self.chosen?)
    }

    /// What Tab accepts: the selection, or else the first offer.
    pub(crate) fn chosen_or_first(&self) -> Option<&Offer> {
        self.chosen().or(self.offers.first())
    }

    /// What Enter accepts. Nothing if the word already is an offer: then Enter sends it.
    pub(crate) fn accepted_by_enter(&self) -> Option<&Offer> {
        let typed = &self.word.typed;
        match self.chosen {
            Some(0) if self.offers.iter().any(|offer| offer.is(typed)) => None,
            Some(_) | None => self.chosen().filter(|offer| !offer.is(typed)),
        }
    }

    fn rows(&self, width: usize, height: usize) -> Vec<Line<'static>> {
        let column = self.offers.iter().map(|offer| offer.text.width()).max().unwrap_or(0);
        let column = column.min(width / 2);
        // The selection is always visible.
        let from = (self.chosen.unwrap_or(0) + 1).saturating_sub(height);
        let row = |(number, offer): (usize, &Offer)| {
            let row = self.row(offer, column, width);
            if Some(number) == self.chosen { row.patch_style(REVERSED) } else { row }
        };
        self.offers.iter().enumerate().skip(from).take(height).map(row).collect()
    }

    /// An offer, with its description behind the widest one.
    fn row(&self, offer: &Offer, column: usize, width: usize) -> Line<'static> {
        let mark = if self.word.kind == Kind::Command { "/" } else { "" };
        let text = format!("  {mark}{}", safe_line(&offer.text));
        if offer.help.is_empty() {
            return Line::styled(fit(&text, width), PLAIN);
        }
        let space = (column + mark.len() + 4).saturating_sub(text.width()).max(1);
        let text = fit(&format!("{text}{}", " ".repeat(space)), width);
        let help = fit(&safe_line(&offer.help), width.saturating_sub(text.width()));
        Line::from(vec![Span::raw(text), Span::styled(help, DIM)])
    }
}
