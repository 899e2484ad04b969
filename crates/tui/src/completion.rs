//! Completions for the word at the cursor, shown while typing or by Tab: commands, their arguments,
//! agents, models, marks, and files after `@`.

use std::cmp::Reverse;

use ikigai_protocol::SLASH_COMMANDS;
use nucleo_matcher::pattern::{Atom, AtomKind, CaseMatching, Normalization};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use ratatui_core::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use crate::safe::safe_line;
use crate::style::{DIM, PLAIN, REVERSED};
use crate::wrap::fit;

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

    /// The same, if matches are shown while it is typed. Models come from a server and `/export`
    /// wants a new file, so both wait for Tab.
    pub(crate) fn previewed(text: &str) -> Option<Word> {
        /// No name is longer; a longer word was pasted.
        const LONGEST: usize = 1_024;
        let word = Word::at_end_of(text).filter(|word| word.typed.len() <= LONGEST);
        word.filter(|word| match word.kind {
            Kind::Command | Kind::Agent | Kind::Mark | Kind::Words(_) => true,
            Kind::Listed(Listing::Files) => text[..word.from].ends_with('@'),
            Kind::Listed(Listing::Models) => false,
        })
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
    SLASH_COMMANDS.iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// The matches for what was typed, the best first and the shortest first among equals.
pub(crate) fn matching(typed: &str, known: &[String]) -> Vec<String> {
    if typed.is_empty() {
        return known.iter().take(OFFERS).cloned().collect();
    }
    let mut scorer = Scorer::new(typed, known.len());
    let scored = known.iter().filter_map(|name| Some((Reverse(scorer.score(name)?), name)));
    let mut scored: Vec<_> = scored.collect();
    let order = |(score, name): &(Reverse<u16>, &String)| (*score, name.len());
    if scored.len() > OFFERS {
        scored.select_nth_unstable_by_key(OFFERS, |found| (order(found), found.1));
        scored.truncate(OFFERS);
    }
    scored.sort_by_key(|found| (order(found), found.1));
    scored.into_iter().map(|(_, name)| name.clone()).collect()
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

/// The matches for the word at the cursor, shown while typing. They do not change what any key
/// does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Preview {
    None,
    Shown {
        word: Word,
        offers: Vec<String>,
    },
    /// No file matches. The word is sent anyway: `@` attaches nothing, the model reads the named
    /// file.
    Missing(Word),
    /// Dismissed until the word changes.
    Closed(Word),
}

impl Preview {
    pub(crate) fn word(&self) -> Option<&Word> {
        match self {
            Preview::Shown { word, .. } | Preview::Missing(word) | Preview::Closed(word) => {
                Some(word)
            }
            Preview::None => None,
        }
    }

    pub(crate) fn offers(&self) -> &[String] {
        match self {
            Preview::Shown { offers, .. } => offers,
            Preview::None | Preview::Missing(_) | Preview::Closed(_) => &[],
        }
    }

    /// The number of rows it needs.
    pub(crate) fn height(&self) -> usize {
        match self {
            Preview::Shown { offers, .. } => offers.len(),
            Preview::Missing(_) => 1,
            Preview::None | Preview::Closed(_) => 0,
        }
    }

    pub(crate) fn rows(&self, width: usize, height: usize) -> Vec<Line<'static>> {
        let (word, offers) = match self {
            Preview::Shown { word, offers } => (word, offers),
            Preview::Missing(_) => {
                return vec![Line::styled(fit("  (no file fits; sent as typed)", width), DIM)];
            }
            Preview::None | Preview::Closed(_) => return Vec::new(),
        };
        let rows = offers.iter().map(|offer| offer_row(word.kind, offer, width));
        let mut rows: Vec<Line<'static>> = rows.take(height).collect();
        if height > 1
            && offers.len() > height
            && let Some(last) = rows.last_mut()
        {
            *last = Line::styled(fit("  … more: type on, or Tab", width), DIM);
        }
        rows
    }
}

/// The list of offers and its selection.
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

    /// Moves the selection by so many rows, down for positive numbers, but not beyond the ends.
    pub(crate) fn go(&mut self, by: isize) {
        let last = self.offers.len().saturating_sub(1);
        self.chosen = self.chosen.saturating_add_signed(by).min(last);
    }

    pub(crate) fn text(&self) -> Option<&str> {
        self.offers.get(self.chosen).map(String::as_str)
    }

    pub(crate) fn rows(&self, width: usize, height: usize) -> Vec<Line<'static>> {
        if self.offers.is_empty() {
            return vec![Line::styled("  (nothing fits)", DIM)];
        }
        let from = (self.chosen + 1).saturating_sub(height);
        let row = |(number, offer): (usize, &String)| {
            let row = offer_row(self.word.kind, offer, width);
            if number == self.chosen { row.patch_style(REVERSED) } else { row }
        };
        self.offers.iter().enumerate().skip(from).take(height).map(row).collect()
    }
}

/// An offer; a command with its description.
fn offer_row(kind: Kind, offer: &str, width: usize) -> Line<'static> {
    let help = SLASH_COMMANDS.iter().find(|(name, _)| kind == Kind::Command && *name == offer);
    let Some((name, help)) = help else {
        return Line::styled(fit(&format!("  {}", safe_line(offer)), width), PLAIN);
    };
    let name = fit(&format!("  /{name:<9} "), width);
    let help = fit(help, width.saturating_sub(name.width()));
    Line::from(vec![Span::raw(name), Span::styled(help, DIM)])
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

    #[test]
    fn files_match_by_some_of_their_letters() {
        let files = ["src/main.rs", "src/mail/box.rs", "README.md"].map(str::to_owned);
        assert_eq!(matching("mbx", &files), ["src/mail/box.rs"]);
        assert_eq!(matching("readme", &files), ["README.md"]);
        assert_eq!(matching("", &files), files);
    }

    #[test]
    fn among_equals_the_shortest_is_first() {
        assert_eq!(matching("mode", &command_names()), ["mode", "model"]);
        assert_eq!(matching("agent", &command_names()), ["agent", "agents"]);
    }

    #[test]
    fn a_large_tree_gives_the_same_matches() {
        let mut files: Vec<String> =
            (0..20_000).map(|number| format!("lib/b{number}.rs")).collect();
        files.push("src/mail/box.rs".to_owned());
        files.push("README.md".to_owned());
        assert_eq!(matching("mbx", &files), ["src/mail/box.rs"]);
        assert_eq!(matching("readme", &files), ["README.md"]);
        assert_eq!(matching("README", &files), ["README.md"]);
        assert_eq!(matching("b19999", &files), ["lib/b19999.rs"]);
        assert_eq!(matching("REAdme", &files), [""; 0]);
        assert_eq!(matching("lib", &files).len(), OFFERS);
    }

    #[test]
    fn previews_only_show_local_lists_and_files() {
        let is_shown = |text| Word::previewed(text).is_some();
        let shown = ["/", "/mo", "/mode ", "/agent ", "/rewind x", "see @", "@src/ma"];
        let pasted = format!("@{}", "x".repeat(2_000));
        let not_shown =
            ["", "hello", "/model ", "/export ", "/help ", "me@home", "a\n/mo", &pasted];
        assert_eq!((shown.map(is_shown), not_shown.map(is_shown)), ([true; 7], [false; 8]));
    }
}
