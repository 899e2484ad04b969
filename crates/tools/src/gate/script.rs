//! What a command consists of, as far as that can be told from its text.

use super::words::Word;

/// What a command consists of.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Script {
    /// The simple commands, in order, each with its name and arguments.
    pub(super) parts: Vec<Part>,
    /// How much of what is run the parts show.
    pub(super) doubt: Doubt,
}

/// The words of a simple command; none where it only sets a variable or opens a file.
pub(super) type Part = Vec<Word>;

/// How certain it is that a script has no other parts than those that were found.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(super) enum Doubt {
    /// There are no others.
    #[default]
    Nothing,
    /// There may be others, made of words that are written in the command.
    Parts,
    /// Something may be run that is not even written there, for this reason.
    Words(&'static str),
}

/// Words that begin something other than a simple command.
pub(super) const KEYWORDS: [&str; 23] = [
    "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac",
    "in", "select", "function", "time", "coproc", "{", "}", "!", "[[", "]]", "((",
];

/// Those of them behind which no command begins.
pub(super) const NO_COMMAND: [&str; 10] =
    ["for", "case", "select", "function", "[[", "((", "fi", "done", "esac", "}"];

/// A part without the keywords before it; `None` when that is no command.
pub(super) fn without_keywords(mut part: Part) -> Option<Part> {
    if part.is_empty() {
        return Some(part);
    }
    let words = part.iter().enumerate();
    let count = words.take_while(|(number, word)| comes_before_name(*number, word)).count();
    if part[..count].iter().any(|word| is_one_of(word, &NO_COMMAND)) {
        return None;
    }
    part.drain(..count);
    (!part.is_empty()).then_some(part)
}

/// `for x do …`: what follows is on the same line, and is a command.
pub(super) fn is_loop_without_list(part: &Part) -> bool {
    let is_loop = part.first().is_some_and(|word| is_one_of(word, &["for", "select"]));
    is_loop && part.get(2).is_some_and(|word| !is_one_of(word, &["in"]))
}

/// Whether the name of the command is still to come behind such a word: a keyword, or an option of `time`.
pub(super) fn comes_before_name(number: usize, word: &Word) -> bool {
    is_one_of(word, &KEYWORDS) || (number > 0 && is_one_of(word, &["-p", "--"]))
}

pub(super) fn is_one_of(word: &Word, texts: &[&str]) -> bool {
    match word {
        Word::Known(text) => texts.contains(&text.as_str()),
        Word::Unknown => false,
    }
}
