//! The structure of a command, as far as its text shows it.

use std::rc::Rc;

use super::words::Word;

/// The structure of a command.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Script {
    /// The simple commands, in order, each with its name and arguments.
    pub(super) parts: Vec<Part>,
    /// How much of what runs is covered by the parts.
    pub(super) doubt: Doubt,
}

/// A simple command.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Part {
    /// Its name and arguments; empty if it only sets a variable or opens a file.
    pub(super) words: Vec<Word>,
    /// Its standard input.
    pub(super) input: Input,
}

/// Commands whose output is known if their words or their input are.
pub(super) const WRITERS: [&str; 3] = ["cat", "echo", "printf"];

impl Part {
    /// Its output, as input of the next part in a pipe.
    pub(super) fn output(&self) -> Input {
        let Some(words) = self.words.iter().map(Word::known).collect::<Option<Vec<&str>>>() else {
            return Input::Unwritten;
        };
        let text = match words.as_slice() {
            ["cat"] if self.input != Input::Inherited => return self.input.clone(),
            ["echo", texts @ ..] => {
                let is_option = |text: &&&str| text.starts_with('-');
                texts[texts.iter().take_while(is_option).count()..].join(" ")
            }
            ["printf", format] if !format.contains('%') => format.replace("\\n", "\n"),
            ["printf", "%s" | "%s\\n", text] => (*text).to_owned(),
            _ => return Input::Unwritten,
        };
        // Some of these commands, or some shells, interpret backslashes.
        if text.contains('\\') { Input::Unwritten } else { Input::Written(text.into()) }
    }
}

/// The standard input of a part.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) enum Input {
    /// The same as that of its surroundings.
    #[default]
    Inherited,
    /// This text from the command, which any number of parts may pass on.
    Written(Rc<str>),
    /// The here-document with this number. Replaced once the whole command has been read.
    Document(usize),
    /// Something that is not written out.
    Unwritten,
}

/// Variables that bash evaluates, that name a file it runs, or that give a command another name.
const EVALUATED: [&str; 8] =
    ["BASH_ALIASES", "BASH_CMDS", "BASH_ENV", "PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS4"];

/// Whether a word names or sets a variable through which bash runs something. One of these is a
/// function.
pub(super) fn is_evaluated_variable(word: &str) -> bool {
    let name = word.split_once(['=', '+', '[']).map_or(word, |(name, _)| name);
    EVALUATED.contains(&name) || name.starts_with("BASH_FUNC_")
}

/// Whether a script may have other parts than those found.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(super) enum Doubt {
    /// There are no others.
    #[default]
    Nothing,
    /// There may be others, consisting of words in the command.
    Parts,
    /// Something may run that is not even written there, for this reason.
    Words(&'static str),
}

/// Words that start something other than a simple command.
pub(super) const KEYWORDS: [&str; 23] = [
    "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac",
    "in", "select", "function", "time", "coproc", "{", "}", "!", "[[", "]]", "((",
];

/// Those that no command follows.
pub(super) const NO_COMMAND: [&str; 10] =
    ["for", "case", "select", "function", "[[", "((", "fi", "done", "esac", "}"];

/// A part without leading keywords; `None` if it is not a command.
pub(super) fn without_keywords(mut part: Part) -> Option<Part> {
    let words = &mut part.words;
    if words.is_empty() {
        return Some(part);
    }
    let numbered = words.iter().enumerate();
    let count = numbered.take_while(|(number, word)| comes_before_name(*number, word)).count();
    if words[..count].iter().any(|word| is_one_of(word, &NO_COMMAND)) {
        return None;
    }
    words.drain(..count);
    (!words.is_empty()).then_some(part)
}

/// `for x do …`: a command follows on the same line.
pub(super) fn is_loop_without_list(part: &Part) -> bool {
    let is_loop = part.words.first().is_some_and(|word| is_one_of(word, &["for", "select"]));
    is_loop && part.words.get(2).is_some_and(|word| !is_one_of(word, &["in"]))
}

/// Whether the name of the command is still to come after this word: a keyword, or an option of
/// `time`.
pub(super) fn comes_before_name(number: usize, word: &Word) -> bool {
    is_one_of(word, &KEYWORDS) || (number > 0 && is_one_of(word, &["-p", "--"]))
}

pub(super) fn is_one_of(word: &Word, texts: &[&str]) -> bool {
    match word {
        Word::Known(text) => texts.contains(&text.as_str()),
        Word::Unknown => false,
    }
}
