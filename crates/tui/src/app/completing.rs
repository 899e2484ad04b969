//! Completing the word at the cursor.

use super::{App, Popup};
use crate::completion::{Completion, Kind, Listing, Preview, Word, command_names, matching};
use crate::update::Effect;

impl App {
    /// Offers completions for the word at the cursor; a single one is inserted at once.
    pub(crate) fn complete(&mut self) {
        let Some(word) = Word::at_end_of(self.pane_in_view().draft.before_cursor()) else { return };
        if let Kind::Listed(listing) = word.kind {
            // The list may have changed since it was loaded.
            self.request_list(listing);
        }
        let offers = self.offers(&word);
        match offers.len() {
            1 => self.insert(&Completion { word, offers, chosen: 0 }),
            _ => self.popup = Popup::Completion(Completion { word, offers, chosen: 0 }),
        }
    }

    /// Updates the offers after the word has changed.
    pub(crate) fn refresh_completion(&mut self) {
        let word = Word::at_end_of(self.pane_in_view().draft.before_cursor());
        self.popup = match word {
            Some(word) => {
                let offers = self.offers(&word);
                Popup::Completion(Completion { word, offers, chosen: 0 })
            }
            None => Popup::None,
        };
    }

    /// Shows matches for the word at the cursor, if it is not the same word as before.
    pub(crate) fn preview(&mut self) {
        let Popup::None = self.popup else { return };
        let word = Word::previewed(self.pane_in_view().draft.before_cursor());
        if word.as_ref() == self.preview.word() {
            return;
        }
        if let Some(word) = &word
            && let Kind::Listed(listing) = word.kind
        {
            // Once per word, not for every letter.
            let is_new = !self.preview.word().is_some_and(|before| word.is_same_word(before));
            if is_new || !self.listings.contains_key(&listing) {
                self.request_list(listing);
            }
        }
        self.preview = match word {
            Some(word) => self.preview_of(word),
            None => Preview::None,
        };
    }

    fn preview_of(&mut self, word: Word) -> Preview {
        let offers = self.offers(&word);
        match offers.is_empty() && self.is_missing(&word) {
            true => Preview::Missing(word),
            false => Preview::Shown { word, offers },
        }
    }

    /// Whether a word without matches has none even without trailing punctuation.
    fn is_missing(&self, word: &Word) -> bool {
        let Kind::Listed(listing) = word.kind else { return false };
        let name = word.typed.trim_end_matches(|c: char| c.is_ascii_punctuation());
        let names = self.listings.get(&listing);
        names.is_some_and(|names| name == word.typed || matching(name, names).is_empty())
    }

    /// Hides the preview for the word at the cursor: it was not typed, or the user dismissed it.
    pub(crate) fn close_preview(&mut self) {
        let word = Word::previewed(self.pane_in_view().draft.before_cursor());
        self.preview = word.map_or(Preview::None, Preview::Closed);
    }

    /// Does the same after an input other than a key, if that has changed the word.
    pub(crate) fn close_preview_of_another_word(&mut self) {
        let word = Word::previewed(self.pane_in_view().draft.before_cursor());
        if matches!(self.popup, Popup::None) && word.as_ref() != self.preview.word() {
            self.close_preview();
        }
    }

    /// Requests a list, unless a request is pending.
    fn request_list(&mut self, listing: Listing) {
        if self.requested.insert(listing) {
            self.emit(Effect::LoadList(listing));
        }
    }

    /// Updates the offers after a list has changed, and keeps the selection.
    pub(crate) fn refresh_offers(&mut self) {
        if let Preview::Shown { word, .. } | Preview::Missing(word) = &self.preview {
            self.preview = self.preview_of(word.clone());
        }
        let Popup::Completion(completion) = &self.popup else { return };
        let chosen = completion.text().map(str::to_owned);
        self.refresh_completion();
        if let Popup::Completion(completion) = &mut self.popup {
            let offers = &completion.offers;
            let place = offers.iter().position(|offer| Some(offer) == chosen.as_ref());
            completion.chosen = place.unwrap_or(0);
        }
    }

    /// Replaces the word with the selected offer.
    pub(crate) fn insert(&mut self, completion: &Completion) {
        self.popup = Popup::None;
        let Some(text) = completion.text() else { return };
        let text = format!("{text} ");
        self.pane_in_view().draft.replace_from(completion.word.from, &text);
    }

    fn offers(&mut self, word: &Word) -> Vec<String> {
        let known = match word.kind {
            Kind::Command => command_names(),
            Kind::Words(words) => words.iter().map(|word| (*word).to_owned()).collect(),
            Kind::Agent => {
                let ids = self.team.members().iter().map(|member| member.id.to_string());
                ids.collect()
            }
            Kind::Mark => self.pane_in_view().transcript.marks(),
            Kind::Listed(listing) => {
                return self
                    .listings
                    .get(&listing)
                    .map(|names| matching(&word.typed, names))
                    .unwrap_or_default();
            }
        };
        matching(&word.typed, &known)
    }
}
