//! What a part of a command runs besides itself: the rest of its words, a text, or its input.
//!
//! This is only for forbidding rules. Unknown programs count as ordinary ones, as do scripts.

mod wrappers;

use super::script::{Input, Part};
use super::strict::is_listed;
use super::words::Word;
use wrappers::{WRAPPERS, run_of_wrapper, takes_next};

/// Something that a part runs.
#[derive(Debug, PartialEq)]
pub(super) enum Run {
    Part(Part),
    /// Commands for a shell.
    Text(String),
    /// Something that is not written out, for this reason.
    Unknown(&'static str),
}

const WORDS: &str = "it runs a command that is not spelled out";
const INPUT: &str = "a shell reads commands that are not spelled out";
const NAMES: &str = "it gives a command another name";

/// Shells: they run a text, a script, or their input.
const SHELLS: &str = "ash bash csh dash ksh mksh rbash sh tcsh zsh";

/// Their long options. Bash accepts them with one dash as well.
const LONG_OPTIONS: &str = "debugger dump-po-strings dump-strings login noediting noprofile norc posix pretty-print \
    restricted verbose";

/// Other programs that run their arguments, each in its own way.
const OTHERS: &str = ". alias at batch bind bwrap capsh chroot chrt compgen complete dbus-run-session declare doas \
    entr eval export fakeroot faketime fc find fish flock gosu hash history i386 jobs linux32 linux64 local ltrace \
    mapfile newgrp nsenter numactl parallel pkexec proot readarray readonly run-parts runuser rush screen script \
    setarch setpriv sg source ssh start-stop-daemon strace su sudo systemd-run taskset tmux trap typeset \
    unbuffer unshare valgrind watch x86_64 xvfb-run";

/// Those that start a shell if given no command, and those that do so with an option.
const SHELL_STARTERS: &str =
    "at batch chroot fish newgrp nsenter runuser rush script sg su unshare";
const SHELL_STARTERS_BY_OPTION: &str = "doas sudo";

/// Programs besides shells that run their input: the commands may be in another part.
const READERS: &str = ". at batch busybox chroot doas fish newgrp nsenter parallel runuser rush script sg source su \
    sudo toybox unshare xargs";

/// Whether a part runs its arguments.
pub(super) fn runs_arguments(part: &Part) -> bool {
    let is_exec = |word: &Word| match word {
        Word::Known(text) => is_exec(text),
        Word::Unknown => true,
    };
    match name(part) {
        Some("find") => part.words.iter().any(is_exec),
        Some(name) => {
            is_listed(SHELLS, name)
                || is_listed(OTHERS, name)
                || is_loader(name)
                || WRAPPERS.iter().any(|(wrapper, ..)| *wrapper == name)
        }
        None => false,
    }
}

/// `sh`, `env bash -x`, `xargs`
pub(super) fn may_read_commands(part: &Part) -> bool {
    let is_reader = |word: &Word| match word {
        Word::Known(text) => is_listed(READERS, base(text)) || is_listed(SHELLS, base(text)),
        Word::Unknown => false,
    };
    runs_arguments(part) && part.words.iter().any(is_reader)
}

/// What a part runs. Each result is smaller than the part, or is in its input.
pub(super) fn runs(part: &Part) -> Vec<Run> {
    let Some(name) = name(part).filter(|_| runs_arguments(part)) else {
        return Vec::new();
    };
    let arguments = &part.words[1..];
    match name {
        "find" => runs_of_find(part),
        "parallel" => vec![run_of_parallel(arguments)],
        "eval" => vec![run_of_eval(arguments)],
        "trap" => first_operand(arguments).into_iter().collect(),
        "." | "source" => run_of_source(arguments).into_iter().collect(),
        "declare" | "export" | "local" | "readonly" | "typeset" => runs_of_declaring(arguments),
        "alias" | "hash" => run_of_renaming(name, arguments).into_iter().collect(),
        shell if is_listed(SHELLS, shell) => run_of_shell(part).into_iter().collect(),
        name => match WRAPPERS.iter().find(|(wrapper, ..)| *wrapper == name) {
            Some((_, options, operands)) => {
                run_of_wrapper(part, name, options, *operands).into_iter().collect()
            }
            None => runs_of_other(part, name),
        },
    }
}

/// Bash evaluates array values in a declaration, even quoted ones.
fn runs_of_declaring(arguments: &[Word]) -> Vec<Run> {
    let values = arguments.iter().filter_map(Word::known);
    values
        .filter(|value| value.contains("$(") || value.contains('`'))
        .map(|value| Run::Text(value.to_owned()))
        .collect()
}

/// After the options comes a text or a script; otherwise a shell reads its input.
fn run_of_shell(part: &Part) -> Option<Run> {
    let mut words = part.words[1..].iter();
    let (mut has_text, mut reads_input, mut has_options) = (false, false, true);
    while let Some(word) = words.next() {
        let Word::Known(text) = word else {
            return Some(Run::Unknown(WORDS));
        };
        match text.as_str() {
            "-" | "--" if has_options => has_options = false,
            option if has_options && option.starts_with(['-', '+']) => {
                match option.trim_start_matches('-') {
                    "version" | "help" => return None,
                    "rcfile" | "init-file" if is_known_file(words.next()) => {}
                    "rcfile" | "init-file" => return Some(Run::Unknown(WORDS)),
                    long if is_listed(LONG_OPTIONS, long) => {}
                    _ if option.starts_with("--") => return Some(Run::Unknown(WORDS)),
                    letters => {
                        has_text |= letters.contains('c');
                        reads_input |= letters.contains('s');
                        // Each of these takes a name.
                        for _ in letters.matches(['o', 'O']) {
                            if words.next() == Some(&Word::Unknown) {
                                return Some(Run::Unknown(WORDS));
                            }
                        }
                    }
                }
            }
            text if has_text => return Some(Run::Text(text.to_owned())),
            _ if reads_input => break,
            script => return is_stream(script).then_some(Run::Unknown(INPUT)),
        }
    }
    Some(match &part.input {
        Input::Written(text) => Run::Text(text.to_string()),
        Input::Inherited | Input::Document(_) | Input::Unwritten => Run::Unknown(INPUT),
    })
}

fn is_known_file(word: Option<&Word>) -> bool {
    word.and_then(Word::known).is_some_and(|path| !is_stream(path))
}

/// A path that is not a script but the output of another program.
fn is_stream(path: &str) -> bool {
    let is_in = ["/dev/", "/proc/"].iter().any(|folder| path.starts_with(folder));
    is_in || base(path) == "stdin" || path.split('/').any(|name| name == "fd")
}

/// Makes words unknown that contain this text.
fn replace(words: &mut [Word], replaced: &str) {
    for word in words {
        if word.known().is_some_and(|text| text.contains(replaced)) {
            *word = Word::Unknown;
        }
    }
}

fn is_exec(text: &str) -> bool {
    text.starts_with("-exec") || text.starts_with("-ok")
}

/// The words between `-exec` and its end. An unknown word elsewhere may be a whole `-exec`.
fn runs_of_find(part: &Part) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut rest = part.words[1..].iter();
    while let Some(word) = rest.next() {
        match word {
            Word::Unknown => runs.push(Run::Unknown(WORDS)),
            Word::Known(text) if is_exec(text) => {
                let mut words: Vec<Word> = Vec::new();
                for word in rest.by_ref() {
                    let is_behind_name = words.last().and_then(Word::known) == Some("{}");
                    match word.known() {
                        Some(";") => break,
                        Some("+") if is_behind_name => break,
                        Some(_) | None => words.push(word.clone()),
                    }
                }
                // One of the two is a value, and it is not known which.
                let has_another = words.iter().filter_map(Word::known).any(is_exec);
                replace(&mut words, "{}");
                runs.push(match has_another {
                    true => Run::Unknown(WORDS),
                    false => Run::Part(Part { words, input: part.input.clone() }),
                });
            }
            Word::Known(_) => {}
        }
    }
    runs
}

/// Runs a text for a shell, with input in place of `{}` or at the end. Without a text, all of it is
/// input.
fn run_of_parallel(arguments: &[Word]) -> Run {
    const VALUES: &str = "-a -C -d -D -E -j -l -L -n -N -P -s -S";
    let Some(texts) = known(arguments) else {
        return Run::Unknown(WORDS);
    };
    let mut texts = texts.into_iter().peekable();
    while let Some(option) = texts.next_if(|text| text.starts_with('-')) {
        if option.contains('I') || (option.starts_with("--") && !option.contains('=')) {
            return Run::Unknown(WORDS);
        }
        if takes_next(VALUES, option) {
            texts.next();
        }
    }
    match texts.peek() {
        Some(text) if !text.starts_with(":::") => {
            let text = texts.collect::<Vec<_>>().join(" ");
            Run::Text(format!("{} $READ", text.replace("{}", "$READ")))
        }
        Some(_) | None => Run::Unknown(WORDS),
    }
}

fn run_of_eval(arguments: &[Word]) -> Run {
    match known(arguments).as_deref() {
        Some(["--", texts @ ..] | texts) => Run::Text(texts.join(" ")),
        None => Run::Unknown(WORDS),
    }
}

/// The text that `trap` stores for later.
fn first_operand(arguments: &[Word]) -> Option<Run> {
    let is_operand = |word: &&Word| !word.known().is_some_and(|text| text.starts_with('-'));
    let operand = arguments.iter().find(is_operand)?;
    Some(operand.known().map_or(Run::Unknown(WORDS), |text| Run::Text(text.to_owned())))
}

fn run_of_source(arguments: &[Word]) -> Option<Run> {
    let Some(texts) = known(arguments) else {
        return Some(Run::Unknown(WORDS));
    };
    texts.into_iter().any(is_stream).then_some(Run::Unknown(INPUT))
}

/// After `alias x=git` or `hash -p /usr/bin/git x`, `x` is not what it seems.
fn run_of_renaming(name: &str, arguments: &[Word]) -> Option<Run> {
    let renames = |text: &str| match name {
        "alias" => text.contains('='),
        _ => text.starts_with('-') && text.contains('p'),
    };
    let renames = |word: &Word| word.known().is_none_or(renames);
    arguments.iter().any(renames).then_some(Run::Unknown(NAMES))
}

/// Their words may be commands, options or texts, so they must be known and contain nothing that a
/// shell would expand.
fn runs_of_other(part: &Part, name: &str) -> Vec<Run> {
    let is_certain =
        |word: &Word| word.known().is_some_and(|text| !text.contains(['$', '`', '\\']));
    if !part.words.iter().all(is_certain) {
        return vec![Run::Unknown(WORDS)];
    }
    let is_shell = |word: &Word| {
        let name = word.known().map(base);
        name.is_some_and(|name| is_listed(SHELLS, name) || is_listed(SHELL_STARTERS, name))
    };
    if let Some(at) = part.words[1..].iter().position(is_shell) {
        let words = part.words[1 + at..].to_vec();
        return vec![Run::Part(Part { words, input: part.input.clone() })];
    }
    let starts_shell = is_listed(SHELL_STARTERS, name)
        || (is_listed(SHELL_STARTERS_BY_OPTION, name) && part.words.iter().any(asks_for_shell));
    match &part.input {
        Input::Written(text) if starts_shell => vec![Run::Text(text.to_string())],
        Input::Unwritten if starts_shell => vec![Run::Unknown(INPUT)],
        // If its input is inherited, it was given a command.
        Input::Inherited | Input::Document(_) | Input::Written(_) | Input::Unwritten => Vec::new(),
    }
}

/// An option of `sudo`: `-s`, `-iu`, `--login`
fn asks_for_shell(word: &Word) -> bool {
    word.known().is_some_and(|text| match text.strip_prefix("--") {
        Some(long) => ["shell", "login"].contains(&long),
        None => text.starts_with('-') && text.contains(['i', 's']),
    })
}

/// The dynamic loader, which can start programs: `/lib64/ld-linux-x86-64.so.2`
fn is_loader(name: &str) -> bool {
    name.starts_with("ld") && name.contains(".so")
}

/// The texts of the words, if all are known.
fn known(words: &[Word]) -> Option<Vec<&str>> {
    words.iter().map(Word::known).collect()
}

/// The name of a part's program, without its folder.
pub(super) fn name(part: &Part) -> Option<&str> {
    part.words.first()?.known().map(base)
}

pub(super) fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}
