//! Splits any command into the simple commands that bash would run, for forbidding rules.
//!
//! This is not a shell: it understands common syntax and reports how certain it is. No grant
//! depends on it (`strict.rs` is for that), so a mistake here costs an unnecessary question, or a
//! denial that a script could evade anyway.
//!
//! As in bash, a backslash before a line break is removed before anything else is read, except in
//! single quotes, comments and here-documents with a quoted delimiter: see [`Reader::next`].

mod documents;
mod expansions;

use std::iter::Peekable;
use std::rc::Rc;
use std::str::Chars;

use super::script::{
    Doubt, Input, KEYWORDS, NO_COMMAND, Part, Script, WRITERS, comes_before_name,
    is_evaluated_variable, is_loop_without_list, is_one_of,
};
use super::words::Word;
use documents::Document;

/// Splits `command` into its parts.
pub(super) fn split(command: &str) -> Script {
    split_at(0, command)
}

fn split_at(depth: usize, command: &str) -> Script {
    let mut reader = Reader::new(depth, command);
    while let Some(c) = reader.next() {
        reader.take(c);
    }
    reader.end_part();
    reader.insert_documents();
    reader.script
}

struct Reader<'a> {
    /// How many commands this one is nested in.
    depth: usize,
    rest: Peekable<Chars<'a>>,
    script: Script,
    part: Part,
    /// Whether there is a part, even if it has no word yet.
    has_part: bool,
    /// The word being read.
    word: Option<Draft>,
    /// Whether the next word is the target of a redirection.
    is_redirected: bool,
    /// Whether that word itself is the input (`<<<`).
    is_here_string: bool,
    /// The default input of the next part.
    next_input: Input,
    /// Whether the next word is the name of a command, or a keyword before it.
    is_named_next: bool,
    /// The number of open parentheses.
    open: usize,
    /// The number of open `case`s, in which patterns may come that end with a parenthesis.
    cases: usize,
    /// The here-documents that start on the next line.
    documents: Vec<Document>,
    /// The contents of here-documents by number; `None` if not known.
    texts: Vec<Option<Rc<str>>>,
}

#[derive(Default)]
struct Draft {
    text: String,
    is_unknown: bool,
    /// Whether it was written without quotes and expansions.
    is_plain: bool,
}

impl Draft {
    /// Marks part of it as known only at run time.
    fn expand(&mut self) {
        self.is_unknown = true;
        self.is_plain = false;
    }
}

impl<'a> Reader<'a> {
    fn new(depth: usize, command: &'a str) -> Reader<'a> {
        Reader {
            depth,
            rest: command.chars().peekable(),
            script: Script::default(),
            part: Part::default(),
            has_part: false,
            word: None,
            is_redirected: false,
            is_here_string: false,
            next_input: Input::default(),
            is_named_next: true,
            open: 0,
            cases: 0,
            documents: Vec::new(),
            texts: Vec::new(),
        }
    }

    /// The next character after line continuations.
    fn next(&mut self) -> Option<char> {
        self.skip_continuations();
        self.rest.next()
    }

    fn peek(&mut self) -> Option<char> {
        self.skip_continuations();
        self.rest.peek().copied()
    }

    fn next_if(&mut self, is_wanted: impl Fn(char) -> bool) -> Option<char> {
        self.peek().filter(|c| is_wanted(*c))?;
        self.rest.next()
    }

    fn skip_continuations(&mut self) {
        while self.rest.peek() == Some(&'\\') {
            let mut behind = self.rest.clone();
            behind.next();
            match behind.next() {
                Some('\n') => self.rest = behind,
                Some(_) | None => return,
            }
        }
    }

    fn doubt(&mut self) {
        if self.script.doubt == Doubt::Nothing {
            self.script.doubt = Doubt::Parts;
        }
    }

    /// The same if the other parts could be anything.
    fn hidden(&mut self, why: &'static str) {
        if !matches!(self.script.doubt, Doubt::Words(_)) {
            self.script.doubt = Doubt::Words(why);
        }
    }

    fn draft(&mut self) -> &mut Draft {
        self.word.get_or_insert_with(|| Draft { is_plain: true, ..Draft::default() })
    }

    fn take(&mut self, c: char) {
        match c {
            ' ' | '\t' => self.end_word(),
            '\n' => {
                self.end_part();
                self.read_documents();
            }
            ';' => self.end_part(),
            '|' => self.pipe(),
            '&' if self.peek() == Some('>') => self.end_word(),
            '&' => self.end_part(),
            '#' if self.word.is_none() => self.skip_comment(),
            '(' | ')' => self.parenthesis(c),
            '<' | '>' => self.redirect(c),
            '\'' => self.single_quotes(),
            '"' => self.double_quotes(),
            '\\' => self.escape(),
            '$' => self.expand(),
            '`' => self.back_ticks(),
            // The command `[`.
            '[' if self.word.is_none() && self.peek() == Some(' ') => {
                self.draft().text.push('[');
            }
            '{' if self.is_literal_braces() => self.draft().text.push(c),
            '*' | '?' | '[' | '{' => self.unknown(c),
            '~' if self.word.is_none() => self.unknown(c),
            c if c.is_control() => self.hidden("it has a control character"),
            c => self.draft().text.push(c),
        }
    }

    /// A part after a pipe reads the output of the part before.
    fn pipe(&mut self) {
        let count = self.script.parts.len();
        self.end_part();
        if self.next_if(|c| c == '|').is_none() {
            self.next_if(|c| c == '&');
            self.next_input = self.script.parts.get(count).map_or(Input::Unwritten, Part::output);
        }
    }

    /// A `{}` at the end of a word is not a brace expansion.
    fn is_literal_braces(&self) -> bool {
        let mut behind = self.rest.clone();
        behind.next() == Some('}') && behind.next().is_none_or(|c| " \t\n;".contains(c))
    }

    fn parenthesis(&mut self, c: char) {
        self.doubt();
        // Parts in a group may read something else.
        self.next_input = Input::Inherited;
        match (c, self.open) {
            ('(', open) => {
                self.end_word();
                if self.part.words.first().is_some_and(|name| is_one_of(name, &WRITERS)) {
                    self.hidden("it defines a command of the shell");
                }
                self.open = open + 1;
            }
            // A pattern is not a command.
            (_, 0) if self.cases > 0 => {
                (self.part, self.word, self.has_part) = (Part::default(), None, false);
            }
            (_, open) => self.open = open.saturating_sub(1),
        }
        self.end_part();
    }

    /// A character that expands a word to other words.
    fn unknown(&mut self, c: char) {
        let draft = self.draft();
        draft.text.push(c);
        draft.is_unknown = true;
    }

    fn skip_comment(&mut self) {
        while self.rest.next_if(|c| *c != '\n').is_some() {}
    }

    fn redirect(&mut self, c: char) {
        // A number right before it is a file descriptor, not a word.
        let is_number =
            |draft: &Draft| draft.is_plain && draft.text.chars().all(|c| c.is_ascii_digit());
        let number = self.word.take_if(|draft| is_number(draft)).map(|draft| draft.text);
        self.end_word();
        let mut operator = String::from(c);
        while let Some(more) = self.next_if(|c| "<>&|(".contains(c)) {
            operator.push(more);
        }
        self.is_here_string = operator == "<<<" && number.is_none();
        let is_output = match &number {
            Some(number) => ["1", "2"].contains(&number.as_str()),
            None => c == '>',
        };
        match operator.as_str() {
            ">" | ">>" | "<" | ">|" | ">&" | "<&" | "<>" | "<<<" => {
                if !is_output {
                    self.part.input = Input::Unwritten;
                }
            }
            "<<" => return self.begin_document(number.is_none()),
            "<(" | ">(" => {
                let inner = self.inside_parentheses(1);
                return self.command_within("it has a process substitution", inner);
            }
            _ => self.hidden("it has a redirection that is not known"),
        }
        (self.is_redirected, self.has_part) = (true, true);
    }

    fn end_word(&mut self) {
        let Some(mut draft) = self.word.take() else {
            return;
        };
        if is_evaluated_variable(&draft.text) {
            self.hidden("it sets a variable that the shell evaluates");
        }
        if std::mem::take(&mut self.is_redirected) {
            if self.is_here_string && !draft.is_unknown {
                self.part.input = Input::Written(draft.text.into());
            }
            return;
        }
        self.has_part = true;
        if self.is_named_next {
            if is_assignment(&draft) {
                return;
            }
            if draft.is_plain && KEYWORDS.contains(&draft.text.as_str()) {
                self.keyword(&draft.text);
                // Some of them are characters that would make other words unknown.
                draft.is_unknown = false;
            }
            if draft.is_unknown {
                self.hidden("the name of a command is not spelled out");
            }
        }
        let word = match draft.is_unknown {
            true => Word::Unknown,
            false => Word::Known(draft.text),
        };
        self.is_named_next &=
            comes_before_name(self.part.words.len(), &word) && !is_one_of(&word, &NO_COMMAND);
        self.part.words.push(word);
    }

    fn keyword(&mut self, keyword: &str) {
        self.doubt();
        match keyword {
            // The parts of these can be in more places than this reader examines.
            "function" | "coproc" => self.hidden("it has a keyword of the shell"),
            "case" if self.depth > 0 || self.open > 0 => {
                self.hidden("it has a keyword of the shell");
            }
            "case" => self.cases += 1,
            "esac" => self.cases = self.cases.saturating_sub(1),
            _ => {}
        }
    }

    fn end_part(&mut self) {
        self.end_word();
        if is_loop_without_list(&self.part) {
            self.hidden("it has a keyword of the shell");
        }
        if std::mem::take(&mut self.is_redirected) {
            self.hidden("a redirection leads nowhere");
        }
        self.is_named_next = true;
        let mut part = std::mem::take(&mut self.part);
        if !std::mem::take(&mut self.has_part) {
            return;
        }
        let piped = std::mem::take(&mut self.next_input);
        if part.input == Input::Inherited && piped != Input::Inherited {
            // A redirection after a group or loop applies to what is inside.
            let is_group = part.words.first().is_some_and(|word| is_one_of(word, &KEYWORDS));
            part.input = if is_group { Input::Unwritten } else { piped };
        }
        self.script.parts.push(part);
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// `NAME=…`, `NAME+=…` or `NAME[…]=…` before the name of a command. With quotes it would be a name,
/// but ignoring that is safer.
fn is_assignment(draft: &Draft) -> bool {
    let name: String = draft.text.chars().take_while(|c| is_of_name(*c)).collect();
    let behind = &draft.text[name.len()..];
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && (behind.starts_with('=') || behind.starts_with("+=") || behind.starts_with('['))
        && behind.contains('=')
}

#[cfg(test)]
mod tests {
    use super::split;
    use crate::gate::script::{Doubt, Part};
    use crate::gate::words::Word;

    /// The parts as text: an unknown word is `$?`.
    fn show(part: &Part) -> String {
        let words = part.words.iter().map(|word| match word {
            Word::Known(text) => text.as_str(),
            Word::Unknown => "$?",
        });
        words.collect::<Vec<_>>().join(" ")
    }

    #[track_caller]
    fn check(command: &str, parts: &[&str]) {
        let script = split(command);
        assert_eq!(script.parts.iter().map(show).collect::<Vec<_>>(), parts, "{command}");
        assert_eq!(script.doubt, Doubt::Nothing, "{command}");
    }

    #[track_caller]
    fn doubted(command: &str) {
        assert_ne!(split(command).doubt, Doubt::Nothing, "{command}: {:?}", split(command));
    }

    #[test]
    fn plain_commands_are_split_where_bash_splits_them() {
        check("", &[]);
        check("cargo test", &["cargo test"]);
        check("a;b&&c||d|e&f\ng|&h", &["a", "b", "c", "d", "e", "f", "g", "h"]);
        check("a 'b;c' \"d&&e\" f\\;g", &["a b;c d&&e f;g"]);
        check("a # b; c\nd", &["a", "d"]);
        check("a b#c ''#d", &["a b#c #d"]);
        check("a $X ${Y} \"$Z\" *.rs {x,y} ~/z", &["a $? $? $? $? $? $?"]);
        check("a '$X' \\$X \"\\$X\" a$", &["a $X $X $X a$"]);
        check("[ -f a ] && b", &["[ -f a ]", "b"]);
        check("r''m \"x\"y", &["rm xy"]);
        check("a\u{a0}b c", &["a\u{a0}b c"]);
    }

    #[test]
    fn variables_and_redirections_are_no_words_but_make_a_part() {
        check("a > f", &["a"]);
        check("a >1 2>&1 &>f b", &["a b"]);
        check("> f a < f; b", &["a", "b"]);
        check("a <<< 'text' >&f > $F", &["a"]);
        check("> f; X=1", &["", ""]);
        check("X=1 Y+=$Z a X=1", &["a X=1"]);
    }

    #[test]
    fn a_continued_line_is_joined_before_it_is_read() {
        check("a \\\n b", &["a b"]);
        check("a\\\nb \"c\\\nd\" $\\\nX ${X}\\\n", &["ab cd $? $?"]);
        check("a '\\\n' \\\\\nb # \\\nc", &["a \\\n \\", "b", "c"]);
        for command in
            ["a $\\\n(b)", "a \"$\\\n(b)\"", "a <\\\n(b)", "a <<\\\nX\nX\nb", "a `\\\nb`"]
        {
            let parts = split(command).parts;
            let is_b = |part: &Part| part.words == [Word::Known("b".to_owned())];
            assert!(parts.iter().any(is_b), "{command:?}: {parts:?}");
        }
        // A document ends where bash ends it, and no later.
        for command in ["a <<X\nX\\\n\nb", "a <<X\n\\\\\nX\nb", "a <<'X'\n\\\nX\nb"] {
            assert_eq!(
                split(command).parts.iter().map(show).collect::<Vec<_>>(),
                ["a", "b"],
                "{command:?}"
            );
        }
    }

    #[test]
    fn what_could_be_anything_is_doubted() {
        for command in [
            "a $(b)",
            "a \"$(b)\"",
            "a `b`",
            "a \"`b`\"",
            "a <(b)",
            "a >(b)",
            "a > >(b)",
            "(a)",
            "{ a; }",
            "a <<X\nb\nX",
            "a <<-X",
            "a <<'X'\nb\nX",
            "$X",
            "${X} a",
            "\"$X\" a",
            "a; $X",
            "* a",
            "{a,b}",
            "~/a",
            "${X@P}",
            "a ${X:-$(b)}",
            "a ${X[0]}",
            "a $((1))",
            "a $[1]",
            "a $'\\x41'",
            "a $\"b\"",
            "f() { a; }",
            "function f { a; }",
            "if a; then b; fi",
            "for x in a; do b; done",
            "while a; do b; done",
            "case a in a) b;; esac",
            "[[ a ]]",
            "! a",
            "time a",
            "coproc a",
            "X=(a b)",
            "a 'b",
            "a \"b",
            "a \\",
            "a >",
            "a\rb",
            "a\0b",
            "a >; b",
            "select x in a; do b; done",
        ] {
            doubted(command);
        }
    }
}
