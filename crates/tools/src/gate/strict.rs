//! The subset of the shell language in which rules can grant something.
//!
//! A grant is only as reliable as the parser of the command: whatever bash reads differently runs
//! without a question, and outside the sandbox if the rule says `trust`. Bash cannot be parsed
//! almost correctly. It removes a backslash before a line break even between `$` and `(`, expands
//! words after splitting them, evaluates array subscripts in what looks like a name, and lets the
//! locale decide what is a blank or a letter. A parser that handled all of this would be another
//! bash.
//!
//! So this parser knows a language in which none of that occurs, and rejects everything else:
//!
//! ```text
//! command = part { ( "&&" | "||" | ";" | "|" ) part } [ ";" ]
//! part    = word { word }                          separated by spaces and tabs
//! word    = piece { piece }
//! piece   = plain | "'" text "'" | '"' text '"'    no $ ` \ in double quotes
//! plain   = one of A-Z a-z 0-9 _ - . / , : = @ % +
//! text    = printable ASCII
//! ```
//!
//! The name of a part contains no `=`, is not a keyword, and is not one of bash's builtins that
//! evaluate their arguments or change the meaning of later parts. Line breaks and other control
//! characters are rejected even in quotes, and so is everything outside ASCII: then no locale
//! encoding can see one character where there are two.
//!
//! The small language costs little. A command outside of it is not refused, but judged as if no
//! rule granted anything: in mode work it runs in the sandbox, and more needs approval. A
//! differential test (`tests/gate_fuzz.rs`) compares this parser with a real bash.

use std::iter::Peekable;
use std::str::Chars;

use super::script::KEYWORDS;

/// Builtins that change the meaning of later words or evaluate their arguments. Others do neither,
/// or are only dangerous with certain arguments (see [`is_program`]).
pub(super) const BUILTINS: &str = ". [ alias bg bind break builtin caller command compgen complete compopt continue declare \
    dirs disown enable eval exec exit export fc fg getopts hash history jobs let local logout \
    mapfile popd printf pushd read readarray readonly return set shift shopt source suspend times \
    trap typeset ulimit umask unalias unset wait";

/// The parts of a command, each as a list of words; `None` if the command is not in the language.
pub(super) fn parts(command: &str) -> Option<Vec<Vec<String>>> {
    let mut rest = command.chars().peekable();
    let mut parts = Vec::new();
    loop {
        parts.push(part(&mut rest)?);
        match rest.next() {
            None => return Some(parts),
            Some(';') => {
                skip_blanks(&mut rest);
                if rest.peek().is_none() {
                    return Some(parts);
                }
            }
            Some('|') => drop(rest.next_if_eq(&'|')),
            Some('&') => drop(rest.next_if_eq(&'&')?),
            Some(_) => return None,
        }
    }
}

fn part(rest: &mut Peekable<Chars<'_>>) -> Option<Vec<String>> {
    let mut words = Vec::new();
    skip_blanks(rest);
    while rest.peek().is_some_and(|c| is_of_word(*c)) {
        words.push(word(rest)?);
        skip_blanks(rest);
    }
    is_program(&words).then_some(words)
}

fn skip_blanks(rest: &mut Peekable<Chars<'_>>) {
    while rest.next_if(|c| [' ', '\t'].contains(c)).is_some() {}
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-./,:=@%+'\"".contains(c)
}

fn word(rest: &mut Peekable<Chars<'_>>) -> Option<String> {
    let mut word = String::new();
    while let Some(c) = rest.next_if(|c| is_of_word(*c)) {
        match c {
            '\'' | '"' => text(rest, c, &mut word)?,
            plain => word.push(plain),
        }
    }
    Some(word)
}

/// Reads the text up to the closing quote.
fn text(rest: &mut Peekable<Chars<'_>>, quote: char, word: &mut String) -> Option<()> {
    loop {
        match rest.next()? {
            c if c == quote => return Some(()),
            '$' | '`' | '\\' if quote == '"' => return None,
            c @ ' '..='~' => word.push(c),
            _ => return None,
        }
    }
}

/// Whether the words are a program's name and arguments for bash as well. A quoted keyword is a
/// name, but excluding it costs nothing. A name with a percent sign resumes a job.
fn is_program(words: &[String]) -> bool {
    let Some((name, arguments)) = words.split_first() else {
        return false;
    };
    let is_special = match name.as_str() {
        // `-v` evaluates the subscript of an array.
        "test" => arguments.iter().any(|argument| argument.contains('[')),
        name => KEYWORDS.contains(&name) || is_listed(BUILTINS, name),
    };
    !is_special && !name.is_empty() && !name.contains('=') && !name.starts_with('%')
}

/// Whether a space-separated list contains a name.
pub(super) fn is_listed(list: &str, name: &str) -> bool {
    list.split(' ').any(|listed| listed == name)
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[track_caller]
    fn check(command: &str, expected: &[&[&str]]) {
        let found = parts(command);
        let found: Option<Vec<Vec<&str>>> = found.as_ref().map(|parts| {
            parts.iter().map(|part| part.iter().map(String::as_str).collect()).collect()
        });
        assert_eq!(found, Some(expected.iter().map(|part| part.to_vec()).collect()), "{command}");
    }

    #[test]
    fn plain_commands_are_read_as_bash_reads_them() {
        check("cargo test", &[&["cargo", "test"]]);
        check(" \ta\tb ", &[&["a", "b"]]);
        check("a&&b||c;d|e ;", &[&["a"], &["b"], &["c"], &["d"], &["e"]]);
        check(r#"a 'b;c$(d)\' "e && 'f'" ''"#, &[&["a", r"b;c$(d)\", "e && 'f'", ""]]);
        check(r#"r''m x"y z"'"'_-./,:=@%+"#, &[&["rm", "xy z\"_-./,:=@%+"]]);
        check("a if X=1 %b eval", &[&["a", "if", "X=1", "%b", "eval"]]);
        check("echo 'a -v' && test -f b", &[&["echo", "a -v"], &["test", "-f", "b"]]);
    }

    #[test]
    fn everything_else_is_refused() {
        let plain = "_-./,:=@%+ \t\"'&|;";
        for c in (0..=0xffff).filter_map(char::from_u32) {
            if !c.is_ascii_alphanumeric() && !plain.contains(c) {
                assert_eq!(parts(&format!("a b{c} c")), None, "{c:?}");
            }
            if !(' '..='~').contains(&c) {
                assert_eq!(parts(&format!("a 'b{c} c'")), None, "{c:?}");
                assert_eq!(parts(&format!("a \"b{c} c\"")), None, "{c:?}");
            }
        }
        for command in [
            "",
            " ",
            ";",
            "; a",
            "a;;",
            "a; ;",
            "a && ",
            "a &&; b",
            "a ||| b",
            "a |& b",
            "a & b",
            "a &",
            "a &&& b",
            "a | | b",
            "a '",
            "a \"",
            "a \"$\"",
            "a \"`\"",
            "a \"\\\"\"",
            "a \"\\\n\"",
            "a \\\n b",
            "a\nb",
            "a \"$\\\n(b)\"",
            "X=1",
            "X=1 a",
            "'X'=1 a",
            "a; X=1",
            "if a",
            "a; then b",
            "time a",
            "a | time b",
            "coproc a",
            "'if' a",
            "'' a",
            "%1",
            "eval a",
            "a; . b",
            "'[' a ']'",
            "printf -v PATH b",
            // This sets PATH to 0, so programs come from the folder with that name.
            "printf '%n' PATH; b",
            "test -v 'a[$(b)]'",
            "a >b",
            "a 2>&1",
            "a # b",
            "a *",
            "a ~",
            "a {b,c}",
        ] {
            assert_eq!(parts(command), None, "{command:?}");
        }
    }
}
