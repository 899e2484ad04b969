//! What can be completed at the cursor, and what matches it: commands, their arguments, agents,
//! models, and files after `@`.

mod list;

use std::cmp::Reverse;

use nucleo_matcher::pattern::{Atom, AtomKind, CaseMatching, Normalization};
use nucleo_matcher::{Config, Matcher, Utf32Str};

pub(crate) use list::{Completion, Offer, Offers};

/// The most offers: typing more narrows them down.
pub(crate) const OFFERS: usize = 50;

/// A list that the program around the screen provides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Listing {
    /// The files of the working tree that git does not ignore, as relative paths.
    Files,
    /// The available models.
    Models,
}

/// The kind of word at the cursor.
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
    /// The byte offset in the draft at which it starts.
    pub(crate) from: usize,
    pub(crate) typed: String,
}

impl Word {
    /// The word that ends at the cursor, if it can be completed.
    pub(crate) fn at_end_of(text: &str) -> Option<Word> {
        let from = text
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
        let word = &text[from..];
        let word_of = |kind, from, typed: &str| Some(Word { kind, from, typed: typed.to_owned() });
        if let Some(typed) = word.strip_prefix('@') {
            return word_of(Kind::Listed(Listing::Files), from + 1, typed);
        }
        let line = text.trim_start().strip_prefix('/')?;
        let mut earlier = line[..line.len() - word.len().min(line.len())].split_whitespace();
        if from == text.len() - text.trim_start().len() {
            return word_of(Kind::Command, from + 1, &word[1..]);
        }
        let kind = argument(earlier.next()?, earlier.next(), earlier.next())?;
        word_of(kind, from, word)
    }

    /// Whether matches are shown while it is typed; `text` ends with it. Models come from a server
    /// and `/export` wants a new file, so both wait for Tab.
    pub(crate) fn is_listed_while_typing(&self, text: &str) -> bool {
        /// No name is longer; a longer word was pasted.
        const LONGEST: usize = 1_024;
        let is_listed = match self.kind {
            Kind::Command | Kind::Agent | Kind::Mark | Kind::Words(_) => true,
            Kind::Listed(Listing::Files) => text[..self.from].ends_with('@'),
            Kind::Listed(Listing::Models) => false,
        };
        is_listed && self.typed.len() <= LONGEST
    }

    /// Whether it is the same word after more typing or deleting.
    pub(crate) fn is_same_word(&self, other: &Word) -> bool {
        (self.kind, self.from) == (other.kind, other.from)
    }
}

/// The kind of the argument that follows a command and its earlier arguments.
fn argument(command: &str, first: Option<&str>, second: Option<&str>) -> Option<Kind> {
    match (command, first, second) {
        ("agent" | "kill", None, _) => Some(Kind::Agent),
        ("mail", None, _) => Some(Kind::Words(&["inbox", "read", "peek", "send", "unread"])),
        ("mail", Some("send"), None) => Some(Kind::Agent),
        ("mode", None, _) => Some(Kind::Words(&["read", "work", "full"])),
        ("usage", None, _) => Some(Kind::Words(&["message", "agent", "model", "session", "day"])),
        ("effort", None, _) => Some(Kind::Words(&["off", "low", "medium", "high", "default"])),
        ("model", None, _) => Some(Kind::Listed(Listing::Models)),
        ("rewind", None, _) => Some(Kind::Mark),
        ("export", None, _) => Some(Kind::Listed(Listing::Files)),
        _ => None,
    }
}

/// The matches for what was typed, the best first and the shortest first among equals. `text` is
/// what is matched of an item.
pub(crate) fn matching<'a, T>(
    typed: &str,
    known: &'a [T],
    text: impl Fn(&T) -> &str,
) -> Vec<&'a T> {
    if typed.is_empty() {
        return known.iter().take(OFFERS).collect();
    }
    let mut scorer = Scorer::new(typed, known.len());
    let scored = known.iter().filter_map(|item| Some((Reverse(scorer.score(text(item))?), item)));
    let mut scored: Vec<_> = scored.collect();
    let order = |(score, item): &(Reverse<u16>, &T)| (*score, text(item).len());
    if scored.len() > OFFERS {
        scored.select_nth_unstable_by(OFFERS, |a, b| {
            (order(a), text(a.1)).cmp(&(order(b), text(b.1)))
        });
        scored.truncate(OFFERS);
    }
    scored.sort_by(|a, b| (order(a), text(a.1)).cmp(&(order(b), text(b.1))));
    scored.into_iter().map(|(_, item)| item).collect()
}

struct Scorer<'a> {
    matcher: Matcher,
    atom: Atom,
    /// Set for many names: then a good score has to do, since finding the best would delay every
    /// key.
    greedy: Option<&'a str>,
    buffer: Vec<char>,
}

impl Scorer<'_> {
    fn new(typed: &str, names: usize) -> Scorer<'_> {
        /// Up to so many names take a few milliseconds.
        const EXACT: usize = 10_000;
        let mut config = Config::DEFAULT.match_paths();
        config.ignore_case = !typed.contains(|c: char| c.is_ascii_uppercase());
        Scorer {
            matcher: Matcher::new(config),
            atom: Atom::new(
                typed,
                CaseMatching::Smart,
                Normalization::Smart,
                AtomKind::Fuzzy,
                false,
            ),
            greedy: (names > EXACT && typed.is_ascii()).then_some(typed),
            buffer: Vec::new(),
        }
    }

    fn score(&mut self, name: &str) -> Option<u16> {
        let name = Utf32Str::new(name, &mut self.buffer);
        match self.greedy {
            Some(typed) => {
                let typed = Utf32Str::Ascii(typed.as_bytes());
                self.matcher.fuzzy_match_greedy(name, typed)
            }
            None => self.atom.score(name, &mut self.matcher),
        }
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
    fn the_text_before_the_cursor_determines_the_completion() {
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

    fn best<'a>(typed: &str, known: &'a [String]) -> Vec<&'a str> {
        matching(typed, known, String::as_str).into_iter().map(String::as_str).collect()
    }

    #[test]
    fn files_match_by_some_of_their_letters() {
        let files = ["src/main.rs", "src/mail/box.rs", "README.md"].map(str::to_owned);
        assert_eq!(best("mbx", &files), ["src/mail/box.rs"]);
        assert_eq!(best("readme", &files), ["README.md"]);
        assert_eq!(best("", &files), files);
    }

    #[test]
    fn among_equals_the_shortest_is_first() {
        let commands = ["model", "agents", "mode", "agent"].map(str::to_owned);
        assert_eq!(best("mode", &commands), ["mode", "model"]);
        assert_eq!(best("agent", &commands), ["agent", "agents"]);
    }

    #[test]
    fn a_large_tree_gives_the_same_matches() {
        let mut files: Vec<String> =
            (0..20_000).map(|number| format!("lib/b{number}.rs")).collect();
        files.push("src/mail/box.rs".to_owned());
        files.push("README.md".to_owned());
        assert_eq!(best("mbx", &files), ["src/mail/box.rs"]);
        assert_eq!(best("readme", &files), ["README.md"]);
        assert_eq!(best("README", &files), ["README.md"]);
        assert_eq!(best("b19999", &files), ["lib/b19999.rs"]);
        assert_eq!(best("REAdme", &files), [""; 0]);
        assert_eq!(best("lib", &files).len(), OFFERS);
    }

    #[test]
    fn only_local_lists_and_files_are_offered_while_typing() {
        let is_offered =
            |text| Word::at_end_of(text).is_some_and(|word| word.is_listed_while_typing(text));
        let offered = ["/", "/mo", "/mode ", "/agent ", "/rewind x", "see @", "@src/ma"];
        let pasted = format!("@{}", "x".repeat(2_000));
        let not_offered =
            ["", "hello", "/model ", "/export ", "/help ", "me@home", "a\n/mo", &pasted];
        assert_eq!((offered.map(is_offered), not_offered.map(is_offered)), ([true; 7], [false; 8]));
    }
}
