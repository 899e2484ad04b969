//! Completing the word at the cursor.

use ikigai_protocol::SLASH_COMMANDS;

use super::App;
use crate::completion::{Completion, Kind, Listing, Offer, Offers, Word, matching};
use crate::team::Member;
use crate::update::Effect;

impl App {
    /// Tab: opens the list for the word at the cursor; a single offer is inserted at once.
    pub(crate) fn complete(&mut self) {
        let Some(word) = self.word() else { return };
        if let Kind::Listed(listing) = word.kind {
            // The list may have changed since it was loaded.
            self.request_list(listing);
        }
        let mut offers = Offers::new(word.clone(), self.offers(&word));
        offers.choose_any();
        match &*offers.offers {
            [offer] => {
                let offer = offer.clone();
                self.accept(&word, &offer);
            }
            _ => self.completion = Completion::Open(offers),
        }
    }

    /// Shows what completes the word at the cursor, if it is not the same word as before.
    pub(crate) fn update_completion(&mut self) {
        let word = self.word().filter(|word| self.is_offered(word));
        if word.as_ref() == self.completion.word() {
            return;
        }
        if let Some(word) = &word
            && let Kind::Listed(listing) = word.kind
        {
            // Once per word, not for every letter.
            let is_new = !self.completion.word().is_some_and(|before| word.is_same_word(before));
            if is_new || !self.listings.contains_key(&listing) {
                self.request_list(listing);
            }
        }
        self.completion = match word {
            Some(word) => self.completion_of(word),
            None => Completion::None,
        };
    }

    /// Whether offers are shown for a word: most are while they are typed, all are once Tab has
    /// opened the list.
    fn is_offered(&self, word: &Word) -> bool {
        let is_open = match &self.completion {
            Completion::Open(offers) => offers.word.is_same_word(word),
            Completion::None | Completion::Missing(_) | Completion::Closed(_) => false,
        };
        let draft = self.panes.get(&self.view).map(|pane| &pane.draft);
        is_open || draft.is_some_and(|draft| word.is_listed_while_typing(draft.before_cursor()))
    }

    fn word(&mut self) -> Option<Word> {
        Word::at_end_of(self.pane_in_view().draft.before_cursor())
    }

    fn completion_of(&mut self, word: Word) -> Completion {
        let offers = self.offers(&word);
        match offers.is_empty() && self.is_missing(&word) {
            true => Completion::Missing(word),
            false => Completion::Open(Offers::new(word, offers)),
        }
    }

    /// Whether a word without matches has none even without trailing punctuation.
    fn is_missing(&self, word: &Word) -> bool {
        let Kind::Listed(Listing::Files) = word.kind else { return false };
        let name = word.typed.trim_end_matches(|c: char| c.is_ascii_punctuation());
        let names = self.listings.get(&Listing::Files);
        names.is_some_and(|names| {
            name == word.typed || matching(name, names, String::as_str).is_empty()
        })
    }

    /// Hides the list for the word at the cursor: it was not typed, or the user closed it.
    pub(crate) fn close_completion(&mut self) {
        let word = self.word();
        self.completion = word.map_or(Completion::None, Completion::Closed);
    }

    /// Does the same after an input other than a key, if that has changed the word.
    pub(crate) fn close_completion_of_another_word(&mut self) {
        let word = self.word().filter(|word| self.is_offered(word));
        if word.as_ref() != self.completion.word() {
            self.close_completion();
        }
    }

    /// Requests a list, unless a request is pending.
    pub(crate) fn request_list(&mut self, listing: Listing) {
        if self.requested.insert(listing) {
            self.emit(Effect::LoadList(listing));
        }
    }

    /// Takes a list that was requested.
    pub(super) fn set_list(&mut self, listing: Listing, mut names: Vec<String>) {
        /// More files than completion needs; a larger tree is cut off.
        const NAMES: usize = 200_000;
        names.truncate(NAMES);
        self.requested.remove(&listing);
        self.listings.insert(listing, names);
        self.refresh_offers();
    }

    /// Updates the offers after a list has changed, and keeps the selection.
    pub(crate) fn refresh_offers(&mut self) {
        let (word, chosen) = match &self.completion {
            Completion::Open(offers) => (offers.word.clone(), offers.chosen().cloned()),
            Completion::Missing(word) => (word.clone(), None),
            Completion::None | Completion::Closed(_) => return,
        };
        self.completion = self.completion_of(word);
        if let (Completion::Open(offers), Some(chosen)) = (&mut self.completion, chosen) {
            offers.choose(&chosen.text);
        }
    }

    /// Replaces the word with an offer. A folder can be completed further.
    pub(crate) fn accept(&mut self, word: &Word, offer: &Offer) {
        let is_folder = word.kind == Kind::Listed(Listing::Files) && offer.text.ends_with('/');
        let end = if is_folder { "" } else { " " };
        let text = format!("{}{end}", offer.text);
        self.pane_in_view().draft.replace_from(word.from, &text);
        self.history.reset();
    }

    fn offers(&mut self, word: &Word) -> Vec<Offer> {
        let plain = |text: &str| Offer::new(text, "");
        match word.kind {
            Kind::Command => {
                let found = matching(&word.typed, SLASH_COMMANDS, |(name, _)| name);
                found.into_iter().map(|(name, help)| Offer::new(name, help)).collect()
            }
            Kind::Words(words) => matching(&word.typed, words, |word| word)
                .into_iter()
                .map(|text| plain(text))
                .collect(),
            Kind::Agent => self.agent_offers(&word.typed),
            Kind::Mark => {
                let marks = self.pane_in_view().transcript.marks();
                let found = matching(&word.typed, &marks, String::as_str);
                found.into_iter().map(|text| plain(text)).collect()
            }
            Kind::Listed(listing) => {
                let Some(names) = self.listings.get(&listing) else { return Vec::new() };
                let found = matching(&word.typed, names, String::as_str);
                found.into_iter().map(|text| plain(text)).collect()
            }
        }
    }

    /// The agents whose ID or name matches.
    fn agent_offers(&self, typed: &str) -> Vec<Offer> {
        let known: Vec<(String, &Member)> = (self.team.members().iter())
            .map(|member| {
                let name = member.name.as_deref().unwrap_or_default();
                (format!("{} {name}", member.id), member)
            })
            .collect();
        let offer = |(_, member): &(String, &Member)| {
            let name = member.name.as_ref().map(|name| format!("{name} · ")).unwrap_or_default();
            let help = format!("{name}{}", member.state.name());
            Offer { alias: member.name.clone(), ..Offer::new(&member.id.to_string(), &help) }
        };
        matching(typed, &known, |(text, _)| text).into_iter().map(offer).collect()
    }
}
