//! Patterns of rules for commands, split into words as by a shell.
//!
//! A word that is just `*` stands for any number of words, including none. In other words, `*`
//! stands for any characters, `?` for one, `[a-z]` and `[!a-z]` for one character in or not in a
//! set. Quotes and backslashes remove the special meaning.
//!
//! A granting rule must match for certain. A forbidding rule also matches what might be meant.

use std::iter::Peekable;
use std::str::Chars;

/// A pattern that matches a whole command or not.
#[derive(Debug, Clone)]
pub(super) struct WordPattern(Vec<Item>);

#[derive(Debug, Clone)]
enum Item {
    AnyWords,
    Word(Vec<Piece>),
}

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Char(char),
    AnyChar,
    AnyChars,
    Set { negated: bool, ranges: Vec<(char, char)> },
}

/// A word of a command.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Word {
    /// Exactly this text.
    Known(String),
    /// Any number of words, known only at run time.
    Unknown,
}

impl Word {
    /// The text, if it is known.
    pub(super) fn known(&self) -> Option<&str> {
        match self {
            Word::Known(text) => Some(text),
            Word::Unknown => None,
        }
    }
}

impl WordPattern {
    /// Why no command can ever match, if so.
    pub(super) fn futility(pattern: &str) -> Option<&'static str> {
        if pattern.trim().is_empty() {
            return Some("it is empty; write * for any command");
        }
        has_several_parts(pattern)
            .then_some("commands are judged part by part; write a rule for each part")
    }

    pub(super) fn parse(pattern: &str) -> WordPattern {
        let mut rest = pattern.chars().peekable();
        let mut items = Vec::new();
        loop {
            while rest.next_if(|c| c.is_whitespace()).is_some() {}
            if rest.peek().is_none() {
                return WordPattern(items);
            }
            items.push(match parse_word(&mut rest) {
                word if word == [Piece::AnyChars] => Item::AnyWords,
                word => Item::Word(word),
            });
        }
    }

    /// Whether the words match for certain, whatever the unknown ones are.
    pub(super) fn matches(&self, words: &[Word]) -> bool {
        self.run(words, |item, word| match (item, word) {
            (Item::AnyWords, _) => WordStep::Stay,
            (Item::Word(pieces), Word::Known(text)) if matches_text(pieces, text) => WordStep::Both,
            (Item::Word(_), _) => WordStep::Fail,
        })
    }

    /// Whether the words might match as intended: a rule against `git push*` also means what
    /// follows.
    pub(super) fn could_match(&self, words: &[Word]) -> bool {
        let mut meant = self.clone();
        if let Some(Item::Word(last)) = self.0.last()
            && last.last() == Some(&Piece::AnyChars)
        {
            meant.0.push(Item::AnyWords);
        }
        meant.run(words, |item, word| match (item, word) {
            (Item::AnyWords, _) => WordStep::Stay,
            (Item::Word(_), Word::Unknown) => WordStep::Linger,
            (Item::Word(pieces), Word::Known(text)) => match matches_text(pieces, text) {
                true => WordStep::Both,
                false => WordStep::Fail,
            },
        })
    }

    /// Whether some sequence of the words could match.
    pub(super) fn could_match_within(&self, words: &[Word]) -> bool {
        let around = || std::iter::once(Item::AnyWords);
        let items = around().chain(self.0.iter().cloned()).chain(around()).collect();
        WordPattern(items).could_match(words)
    }

    /// Follows all ways to match at once: in `reached`, index `n` stands for n matched items. The
    /// time is proportional to words times items, however many stars there are.
    fn run(&self, words: &[Word], step: impl Fn(&Item, &Word) -> WordStep) -> bool {
        let mut reached = vec![false; self.0.len() + 1];
        reached[0] = true;
        self.skip_stars(&mut reached);
        for word in words {
            let mut next = vec![false; self.0.len() + 1];
            for (at, item) in self.0.iter().enumerate().filter(|(at, _)| reached[*at]) {
                match step(item, word) {
                    WordStep::Stay => next[at] = true,
                    WordStep::Both => next[at + 1] = true,
                    // The unknown word is this item and any that follow, or no word at all.
                    WordStep::Linger => next[at..].fill(true),
                    WordStep::Fail => {}
                }
            }
            // After the last item only an unknown word may remain, which may be none.
            let is_unknown = *word == Word::Unknown;
            if reached[self.0.len()]
                && is_unknown
                && matches!(step(&Item::Word(Vec::new()), word), WordStep::Linger)
            {
                next[self.0.len()] = true;
            }
            self.skip_stars(&mut next);
            reached = next;
        }
        reached[self.0.len()]
    }

    fn skip_stars(&self, reached: &mut [bool]) {
        for (at, item) in self.0.iter().enumerate() {
            if reached[at] && matches!(item, Item::AnyWords) {
                reached[at + 1] = true;
            }
        }
    }
}

/// What a word of the command does to an item of the pattern.
enum WordStep {
    /// The item consumes the word and stays.
    Stay,
    /// The item matches the word.
    Both,
    /// The word may stand for this item and others.
    Linger,
    Fail,
}

/// Whether the pattern contains an unquoted separator of commands.
fn has_several_parts(pattern: &str) -> bool {
    let mut rest = pattern.chars().peekable();
    let mut quote = None;
    while let Some(c) = rest.next() {
        match c {
            _ if quote == Some(c) => quote = None,
            '\\' if quote != Some('\'') => drop(rest.next()),
            '`' if quote != Some('\'') => return true,
            '$' if quote != Some('\'') && rest.peek() == Some(&'(') => return true,
            _ if quote.is_some() => {}
            '\'' | '"' => quote = Some(c),
            ';' | '&' | '|' | '\n' => return true,
            _ => {}
        }
    }
    false
}

fn parse_word(rest: &mut Peekable<Chars<'_>>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut quote = None;
    while let Some(c) = rest.next_if(|c| quote.is_some() || !c.is_whitespace()) {
        match c {
            _ if quote == Some(c) => quote = None,
            '\\' if quote != Some('\'') => pieces.push(Piece::Char(rest.next().unwrap_or('\\'))),
            _ if quote.is_some() => pieces.push(Piece::Char(c)),
            '\'' | '"' => quote = Some(c),
            '*' => pieces.push(Piece::AnyChars),
            '?' => pieces.push(Piece::AnyChar),
            '[' => pieces.push(parse_set(rest)),
            _ => pieces.push(Piece::Char(c)),
        }
    }
    pieces
}

/// Parses what follows a `[`; an unclosed one is literal.
fn parse_set(rest: &mut Peekable<Chars<'_>>) -> Piece {
    let inside: String = rest.clone().take_while(|c| !c.is_whitespace()).collect();
    let negated = inside.starts_with(['!', '^']);
    let body = &inside[usize::from(negated)..];
    // In first position a bracket is literal.
    let Some(end) = body.char_indices().skip(1).find(|(_, c)| *c == ']').map(|(at, _)| at) else {
        return Piece::Char('[');
    };
    let members: Vec<char> = body[..end].chars().collect();
    rest.nth(usize::from(negated) + members.len());
    let mut ranges = Vec::new();
    let mut at = 0;
    while let Some(&from) = members.get(at) {
        let to = members.get(at + 2).filter(|_| members.get(at + 1) == Some(&'-'));
        ranges.push((from, *to.unwrap_or(&from)));
        at += if to.is_some() { 3 } else { 1 };
    }
    Piece::Set { negated, ranges }
}

/// Standard backtracking: only the last star is ever retried.
fn matches_text(pieces: &[Piece], text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut piece) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while at < text.len() {
        match pieces.get(piece) {
            Some(Piece::AnyChars) => {
                star = Some((piece, at));
                piece += 1;
            }
            Some(one) if matches_char(one, text[at]) => (at, piece) = (at + 1, piece + 1),
            _ => match star {
                Some((star_piece, star_at)) => {
                    star = Some((star_piece, star_at + 1));
                    (at, piece) = (star_at + 1, star_piece + 1);
                }
                None => return false,
            },
        }
    }
    pieces[piece..].iter().all(|piece| *piece == Piece::AnyChars)
}

fn matches_char(piece: &Piece, c: char) -> bool {
    match piece {
        Piece::Char(own) => *own == c,
        Piece::AnyChar => true,
        Piece::AnyChars => false,
        Piece::Set { negated, ranges } => {
            ranges.iter().any(|(from, to)| (*from..=*to).contains(&c)) != *negated
        }
    }
}

/// A pattern that matches only this word; `None` for an unknown one.
pub(super) fn quoted(word: &Word) -> Option<String> {
    let Word::Known(text) = word else { return None };
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=,+@%".contains(c);
    Some(match !text.is_empty() && text.chars().all(is_plain) {
        true => text.clone(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    })
}

/// Everything in a command that might be one of its words, wherever it is: for callers that prefer
/// false positives. Whether a line is continued depends on the context, so both readings count.
pub(super) fn loose_words(command: &str) -> Vec<Word> {
    const CONTINUED: &str = "\\\n";
    let mut words = loose_words_of(&command.replace(CONTINUED, ""));
    if command.contains(CONTINUED) {
        words.extend(loose_words_of(command));
    }
    words
}

fn loose_words_of(text: &str) -> Vec<Word> {
    let is_border = |c: char| c.is_whitespace() || c.is_control() || ";&|()<>`$={},".contains(c);
    let without_quotes = |word: &str| word.replace(['\'', '"', '\\'], "");
    let words = text.split(is_border).map(without_quotes).filter(|word| !word.is_empty());
    words.map(Word::Known).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, proptest};

    use super::{Word, WordPattern, quoted};

    fn words(text: &str) -> Vec<Word> {
        let word = |word: &str| match word {
            "$?" => Word::Unknown,
            known => Word::Known(known.to_owned()),
        };
        text.split(' ').filter(|word| !word.is_empty()).map(word).collect()
    }

    #[test]
    fn a_pattern_that_no_command_can_match_is_told() {
        let futile = [
            "",
            " ",
            "a; b",
            "a && b",
            "a | b",
            "a\nb",
            "echo `id`",
            "echo $(id)",
            r#"echo "$(id)""#,
        ];
        for pattern in futile {
            assert!(WordPattern::futility(pattern).is_some(), "{pattern}");
        }
        for pattern in
            ["*", "a ';' b", r"a \; b", "echo '$(id)'", r#"git commit -m "a; b | c""#, "echo $HOME"]
        {
            assert_eq!(WordPattern::futility(pattern), None, "{pattern}");
        }
    }

    #[track_caller]
    fn check(pattern: &str, command: &str, expected: (bool, bool, bool)) {
        let (pattern, words) = (WordPattern::parse(pattern), words(command));
        let found = (
            pattern.matches(&words),
            pattern.could_match(&words),
            pattern.could_match_within(&words),
        );
        assert_eq!(found, expected, "{pattern:?} {command}");
    }

    #[test]
    fn a_pattern_matches_whole_commands_word_by_word() {
        const YES: (bool, bool, bool) = (true, true, true);
        const NO: (bool, bool, bool) = (false, false, false);
        check("cargo *", "cargo", YES);
        check("cargo *", "cargo test --all", YES);
        check("cargo *", "cargot test", NO);
        check("cargo test", "cargo test --all", (false, false, true));
        check("git push*", "git push origin main", (false, true, true));
        check("git push*", "git pushy", YES);
        check("git push*", "git pull origin", NO);
        check("cargo * --all", "cargo test x --all", YES);
        check("* --all", "--all", YES);
        check("*", "", YES);
        check("", "", YES);
        check("", "x", (false, false, true));
        check("git-*", "git-log", YES);
        check("git-*", "git-log x", (false, true, true));
        check("l?", "ls", YES);
        check("[a-c]x", "bx", YES);
        check("[!a-c]x", "bx", NO);
        check("[]a]x", "]x", YES);
        check("[x", "[x", YES);
        check(r"\*", "*", YES);
        check(r"\*", "a", NO);
        check("'*' \"?\"", "* ?", YES);
        check("'*'", "a", NO);
        check("a**b*c", "aXXbYYbc", YES);
    }

    #[test]
    fn what_is_unknown_matches_a_star_for_certain_and_a_word_perhaps() {
        check("git *", "git $?", (true, true, true));
        check("git push *", "git $?", (false, true, true));
        check("git push", "git $? push", (false, true, true));
        check("git push", "git push $?", (false, true, true));
        check("git push", "env git $?", (false, false, true));
        check("rm *", "env -i rm x", (false, false, true));
    }

    proptest! {
        #[test]
        fn a_quoted_word_matches_itself(text in ".{0,12}") {
            let word = Word::Known(text);
            let pattern = WordPattern::parse(&quoted(&word).unwrap());
            prop_assert!(pattern.matches(std::slice::from_ref(&word)));
        }
    }
}
