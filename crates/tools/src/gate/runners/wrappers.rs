//! Programs that run the rest of their words: `env`, `timeout`, `xargs`.

use super::{Run, WORDS, replace};
use crate::gate::script::{Part, is_evaluated_variable};
use crate::gate::strict::is_listed;
use crate::gate::words::Word;

/// Programs that run the rest of their words, with the options that take a value, and the number of
/// operands before the program's name.
pub(super) const WRAPPERS: [(&str, &str, usize); 14] = [
    ("builtin", "", 0),
    ("busybox", "", 0),
    ("command", "", 0),
    ("env", "-a -C -u --argv0 --chdir --unset", 0),
    ("exec", "-a", 0),
    ("ionice", "-c -n -p -P -u --class --classdata --pid --pgid --uid", 0),
    ("nice", "-n --adjustment", 0),
    ("nohup", "", 0),
    ("setsid", "", 0),
    ("stdbuf", "-i -o -e --input --output --error", 0),
    ("time", "-f -o --format --output", 0),
    ("timeout", "-k -s --kill-after --signal", 1),
    ("toybox", "", 0),
    (
        "xargs",
        "-a -d -E -I -L -n -P -s --arg-file --delimiter --max-args --max-procs --max-chars \
         --process-slot-var",
        0,
    ),
];

/// What follows the options of a wrapper and its operands.
pub(super) fn run_of_wrapper(
    part: &Part,
    name: &str,
    options: &str,
    operands: usize,
) -> Option<Run> {
    let words = &part.words;
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let Word::Known(text) = word else {
            return Some(Run::Unknown(WORDS));
        };
        at += 1;
        match (name, text.as_str()) {
            // Variables may still follow.
            ("env", "--") => {}
            (_, "--") => break,
            ("command", "-v" | "-V") => return None,
            ("env", text) if is_evaluated_variable(text) => return Some(Run::Unknown(WORDS)),
            ("env", text) if split_string(text).is_some() => {
                let attached = split_string(text).unwrap_or_default();
                return Some(run_of_split_string(part, attached, at));
            }
            ("env", text) if text.contains('=') && !text.starts_with('-') => {}
            (_, text) if text.starts_with('-') => at += usize::from(takes_next(options, text)),
            _ => {
                at -= 1;
                break;
            }
        }
    }
    let program = at + operands;
    if words.get(at..program)?.contains(&Word::Unknown) {
        return Some(Run::Unknown(WORDS));
    }
    let mut words = words.get(program..).filter(|words| !words.is_empty())?.to_vec();
    if name == "xargs" {
        add_what_xargs_reads(&part.words[..program], &mut words);
    }
    Some(Run::Part(Part { words, input: part.input.clone() }))
}

/// Whether the value of an option is the next word.
pub(super) fn takes_next(options: &str, option: &str) -> bool {
    if option.starts_with("--") {
        return options.split(' ').any(|listed| listed.starts_with(option));
    }
    let has_value = |c: &char| is_listed(options, &format!("-{c}"));
    let letters: Vec<char> = option.chars().skip(1).collect();
    letters.iter().position(has_value).is_some_and(|at| at + 1 == letters.len())
}

/// The text after `-S` or `--split-string=` of `env`; empty if it is the next word.
fn split_string(option: &str) -> Option<&str> {
    if option.starts_with("--") {
        return long_value(option, "split-string");
    }
    let (before, text) = option.strip_prefix('-')?.split_once('S')?;
    // After these it is part of a value.
    (!before.contains(['a', 'C', 'u'])).then_some(text)
}

/// The value after the `=` of a long option, whose name may be abbreviated; empty if there is none.
fn long_value<'a>(option: &'a str, name: &str) -> Option<&'a str> {
    let long = option.strip_prefix("--")?;
    let (long, value) = long.split_once('=').unwrap_or((long, ""));
    (!long.is_empty() && name.starts_with(long)).then_some(value)
}

/// `env` splits the text and parses the words as its own arguments.
fn run_of_split_string(part: &Part, attached: &str, mut at: usize) -> Run {
    let text = match (attached, part.words.get(at)) {
        ("", Some(Word::Known(next))) => {
            at += 1;
            next
        }
        ("", _) => return Run::Unknown(WORDS),
        (attached, _) => attached,
    };
    if text.contains(['\\', '$', '\'', '"', '#']) {
        return Run::Unknown(WORDS);
    }
    let split = text.split_whitespace().map(|word| Word::Known(word.to_owned()));
    let words = std::iter::once(Word::Known("env".to_owned())).chain(split);
    let words = words.chain(part.words[at..].iter().cloned()).collect();
    Run::Part(Part { words, input: part.input.clone() })
}

/// The input of `xargs` is appended to the words, or replaces a text given as an option's value.
fn add_what_xargs_reads(options: &[Word], words: &mut Vec<Word>) {
    let mut options = options.iter().filter_map(Word::known);
    while let Some(option) = options.next() {
        let replaced = match long_value(option, "replace") {
            Some(text) => text,
            None if option.starts_with("--") || !option.starts_with('-') => continue,
            None => match (option.split_once('I'), option.split_once('i')) {
                (Some((_, "")), _) => options.next().unwrap_or_default(),
                (Some((_, text)), _) | (None, Some((_, text))) => text,
                (None, None) => continue,
            },
        };
        replace(words, if replaced.is_empty() { "{}" } else { replaced });
    }
    words.push(Word::Unknown);
}
