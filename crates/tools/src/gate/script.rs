//! What a command consists of, as far as that can be told.

use super::words::Word;

/// What a command consists of.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Script {
    /// The simple commands, in order.
    pub(super) parts: Vec<Part>,
    /// Why the parts may not be all that is run, or not what they seem.
    pub(super) doubt: Option<&'static str>,
    /// Whether something may be run that is not even written there.
    pub(super) is_hidden: bool,
}

/// A simple command.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Part {
    /// Its name and arguments.
    pub(super) words: Vec<Word>,
    /// What happens besides that the words do not say, such as a redirection into a file.
    pub(super) besides: Option<&'static str>,
}

/// Words that begin something other than a simple command.
pub(super) const KEYWORDS: [&str; 23] = [
    "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac",
    "in", "select", "function", "time", "coproc", "{", "}", "!", "[[", "]]", "((",
];

/// Those of them behind which no command begins.
pub(super) const NO_COMMAND: [&str; 10] =
    ["for", "case", "select", "function", "[[", "((", "fi", "done", "esac", "}"];

impl Part {
    /// The same without the keywords before it; `None` when that is no command.
    pub(super) fn without_keywords(mut self) -> Option<Part> {
        let count = self.keywords();
        if self.words[..count].iter().any(|word| is_one_of(word, &NO_COMMAND)) {
            return None;
        }
        self.words.drain(..count);
        (!self.words.is_empty()).then_some(self)
    }

    /// How many words come before the name of the command.
    fn keywords(&self) -> usize {
        let words = self.words.iter().enumerate();
        words.take_while(|(number, word)| comes_before_name(*number, word)).count()
    }

    /// `for x do …`: what follows is on the same line, and is a command.
    pub(super) fn is_loop_without_list(&self) -> bool {
        let is_loop = self.words.first().is_some_and(|word| is_one_of(word, &["for", "select"]));
        is_loop && self.words.get(2).is_some_and(|word| !is_one_of(word, &["in"]))
    }
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
