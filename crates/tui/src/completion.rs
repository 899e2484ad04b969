//! What Tab offers: commands, their arguments, agents, models, marks, and files after `@`.

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher};

use crate::slash::COMMANDS;

/// More is not offered: who wants something else types on.
pub(crate) const OFFERS: usize = 50;

/// A list that only the outside knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Listing {
    /// The files of the working tree, without what git ignores, as relative paths.
    Files,
    /// The models that can be chosen.
    Models,
}

/// What could stand at the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Command,
    Agent,
    Mark,
    Words(&'static [&'static str]),
    Listed(Listing),
}

/// The word at the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) kind: Kind,
    /// Where in the draft it begins.
    pub(crate) from: usize,
    pub(crate) typed: String,
}

impl Word {
    /// The word that ends at the cursor, if it is one that can be completed.
    pub(crate) fn at_end_of(text: &str) -> Option<Word> {
        let from = text
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
        let word = &text[from..];
        let made = |kind, from, typed: &str| Some(Word { kind, from, typed: typed.to_owned() });
        if let Some(typed) = word.strip_prefix('@') {
            return made(Kind::Listed(Listing::Files), from + 1, typed);
        }
        let line = text.trim_start().strip_prefix('/')?;
        let mut earlier = line[..line.len() - word.len().min(line.len())].split_whitespace();
        if from == text.len() - text.trim_start().len() {
            return made(Kind::Command, from + 1, &word[1..]);
        }
        let kind = argument(earlier.next()?, earlier.next(), earlier.next())?;
        made(kind, from, word)
    }
}

/// What stands behind a command and the words that follow it.
fn argument(command: &str, first: Option<&str>, second: Option<&str>) -> Option<Kind> {
    match (command, first, second) {
        ("agent" | "kill", None, _) => Some(Kind::Agent),
        ("mail", None, _) => Some(Kind::Words(&["inbox", "read", "send", "unread"])),
        ("mail", Some("send"), None) => Some(Kind::Agent),
        ("mode", None, _) => Some(Kind::Words(&["read", "work", "full"])),
        ("model", None, _) => Some(Kind::Listed(Listing::Models)),
        ("rewind", None, _) => Some(Kind::Mark),
        ("export", None, _) => Some(Kind::Listed(Listing::Files)),
        _ => None,
    }
}

/// The names of all commands.
pub(crate) fn command_names() -> Vec<String> {
    COMMANDS.iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// Those that fit what was typed, the best first.
pub(crate) fn matching(typed: &str, known: &[String]) -> Vec<String> {
    if typed.is_empty() {
        return known.iter().take(OFFERS).cloned().collect();
    }
    let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
    let pattern = Pattern::new(typed, CaseMatching::Smart, Normalization::Smart, AtomKind::Fuzzy);
    let found = pattern.match_list(known.iter(), &mut matcher);
    found.into_iter().take(OFFERS).map(|(text, _)| text.clone()).collect()
}

/// The offers that are shown, one of them chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Completion {
    pub(crate) word: Word,
    pub(crate) offers: Vec<String>,
    pub(crate) chosen: usize,
}

impl Completion {
    pub(crate) fn next(&mut self) {
        self.chosen = (self.chosen + 1) % self.offers.len().max(1);
    }

    pub(crate) fn previous(&mut self) {
        let count = self.offers.len().max(1);
        self.chosen = (self.chosen + count - 1) % count;
    }

    /// Chooses the one that is so many rows further down, or up, but not beyond the ends.
    pub(crate) fn go(&mut self, by: isize) {
        let last = self.offers.len().saturating_sub(1);
        self.chosen = self.chosen.saturating_add_signed(by).min(last);
    }

    pub(crate) fn text(&self) -> Option<&str> {
        self.offers.get(self.chosen).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(Kind, usize, &str)>) {
        let expected =
            expected.map(|(kind, from, typed)| Word { kind, from, typed: typed.to_owned() });
        assert_eq!(Word::at_end_of(text), expected);
    }

    #[test]
    fn what_can_stand_at_the_cursor_follows_from_what_is_before_it() {
        check("/he", Some((Kind::Command, 1, "he")));
        check("/agent 0", Some((Kind::Agent, 7, "0")));
        check("/mail send ", Some((Kind::Agent, 11, "")));
        check("/mail send 1/ x", None);
        check("/model g", Some((Kind::Listed(Listing::Models), 7, "g")));
        check("look at @src/ma", Some((Kind::Listed(Listing::Files), 9, "src/ma")));
        check("/fork read @x", Some((Kind::Listed(Listing::Files), 12, "x")));
        check("hello", None);
        check("", None);
    }

    #[test]
    fn files_are_found_by_some_of_their_letters() {
        let files = ["src/main.rs", "src/mail/box.rs", "README.md"].map(str::to_owned);
        assert_eq!(matching("mbx", &files), ["src/mail/box.rs"]);
        assert_eq!(matching("readme", &files), ["README.md"]);
        assert_eq!(matching("", &files), files);
    }
}
