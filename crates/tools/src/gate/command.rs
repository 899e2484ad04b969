//! Judging a command: part by part, and with care for what is not certain.

use super::rule::{Decision, Rule, render_rules};
use super::shell::{Part, loose_words, split};
use super::words::{Word, quoted};

/// What the rules say of a command.
#[derive(Debug, PartialEq)]
pub(super) enum Said {
    Deny(String),
    Ask(String),
    /// Every part is trusted.
    Trust,
    /// No part is denied or asked for, and at least one is not trusted. With the rule that would trust it.
    Nothing {
        rule: Option<String>,
    },
}

/// Longer commands are split in vain: bash does not take them.
const LONGEST: usize = 128 * 1024;
/// A rule with a longer pattern is nothing that a person would read.
const LONGEST_PATTERN: usize = 1_000;

/// Programs and builtins that run what their arguments say. A rule grants something only if it names them; what
/// may be in the arguments is looked at by those that forbid.
const RUNNERS: [&str; 47] = [
    ".",
    "ash",
    "bash",
    "builtin",
    "busybox",
    "chroot",
    "command",
    "csh",
    "dash",
    "doas",
    "env",
    "eval",
    "exec",
    "find",
    "fish",
    "flock",
    "ionice",
    "ksh",
    "nice",
    "nohup",
    "nsenter",
    "parallel",
    "pkexec",
    "rush",
    "script",
    "setarch",
    "setpriv",
    "setsid",
    "sh",
    "source",
    "ssh",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "tcsh",
    "time",
    "timeout",
    "trap",
    "unshare",
    "watch",
    "xargs",
    "zsh",
    "bwrap",
    "runuser",
];

/// Builtins that change what later words mean. Beside other parts nothing is certain after them.
const CHANGERS: [&str; 22] = [
    "alias",
    "bind",
    "complete",
    "declare",
    "enable",
    "export",
    "getopts",
    "hash",
    "let",
    "local",
    "mapfile",
    "read",
    "readarray",
    "readonly",
    "set",
    "shopt",
    "typeset",
    "unalias",
    "unset",
    "wait",
    "printf",
    "test",
];

pub(super) fn judge(rules: &[&Rule], command: &str) -> Said {
    if command.len() > LONGEST {
        return Said::Ask("the command is too long".to_owned());
    }
    let script = split(command);
    let doubt = script.doubt.or_else(|| changes_meaning(&script.parts));
    if let Some(doubt) = doubt {
        return judge_doubtful(rules, command, doubt);
    }
    let mut asked = None;
    let mut untrusted = Vec::new();
    for part in &script.parts {
        let rule = deciding(rules, part);
        match rule.map(|rule| rule.decision) {
            Some(Decision::Deny) => {
                return Said::Deny(rule.map(Rule::sentence).unwrap_or_default());
            }
            Some(Decision::Ask) => asked = asked.or(rule),
            Some(Decision::Trust) => {}
            Some(Decision::Allow) | None => untrusted.push(part),
        }
        match hidden(rules, part) {
            Some(rule) if rule.decision == Decision::Deny => {
                return Said::Deny(rule.sentence());
            }
            hidden => asked = asked.or(hidden),
        }
    }
    if let Some(rule) = asked {
        return Said::Ask(rule.sentence());
    }
    match script.parts.is_empty() || !untrusted.is_empty() {
        true => Said::Nothing { rule: trusting(&untrusted) },
        false => Said::Trust,
    }
}

/// What cannot be split for certain might be anything that a rule forbids, and is nothing that one grants.
fn judge_doubtful(rules: &[&Rule], command: &str, doubt: &str) -> Said {
    let words = loose_words(command);
    let mut forbidding = rules.iter().filter(|rule| !rule.decision.grants());
    let found = forbidding.clone().find(|rule| rule.words.could_match_within(&words));
    match found {
        Some(rule) if rule.decision == Decision::Deny => Said::Deny(rule.sentence()),
        Some(rule) => Said::Ask(rule.sentence()),
        None if forbidding.next().is_some() => {
            Said::Ask(format!("it cannot be told whether a rule forbids the command: {doubt}"))
        }
        None => Said::Nothing { rule: None },
    }
}

/// The first rule that is about a part.
fn deciding<'r>(rules: &[&'r Rule], part: &Part) -> Option<&'r Rule> {
    rules.iter().copied().find(|rule| match rule.decision.grants() {
        true => is_all_there_is(rule, part) && rule.matches_words(&part.words),
        false => rule.matches_words(&part.words),
    })
}

/// Whether a rule that grants the words of a part would grant all that the part does.
fn is_all_there_is(rule: &Rule, part: &Part) -> bool {
    part.besides.is_none()
        && match name(part) {
            Some(name) if RUNNERS.contains(&base(name)) => rule.words.names(name),
            _ => true,
        }
}

/// The first rule that forbids what a part may run by way of its arguments.
fn hidden<'r>(rules: &[&'r Rule], part: &Part) -> Option<&'r Rule> {
    if !name(part).is_some_and(|name| RUNNERS.contains(&base(name))) {
        return None;
    }
    let mut words = Vec::new();
    for word in &part.words[1..] {
        match word {
            Word::Known(text) => words.extend(loose_words(text)),
            Word::Unknown => words.push(Word::Unknown),
        }
    }
    let by_name = words.iter().map(|word| match word {
        Word::Known(text) => Word::Known(base(text).to_owned()),
        Word::Unknown => Word::Unknown,
    });
    let by_name: Vec<Word> = by_name.collect();
    rules.iter().copied().find(|rule| {
        !rule.decision.grants()
            // One about all commands has been asked about this one already.
            && !rule.matches_all()
            && (rule.words.could_match_within(&words) || rule.words.could_match_within(&by_name))
    })
}

/// `PATH=/elsewhere; make` and its likes: the words of a later part say nothing then.
fn changes_meaning(parts: &[Part]) -> Option<&'static str> {
    let evaluates = |part: &Part| {
        part.words.iter().skip(1).any(|word| match word {
            // `test -v 'a[$(command)]'` runs the command, in whatever quotes.
            Word::Known(text) => text.contains('['),
            Word::Unknown => false,
        })
    };
    let changes = |part: &Part| match name(part) {
        Some("printf") => part.words.iter().any(|word| is_option(word, "-v")),
        Some("test") => false,
        Some(name) => CHANGERS.contains(&name),
        None => true,
    };
    if parts.len() > 1 && parts.iter().any(changes) {
        return Some("a part changes what later ones mean");
    }
    let evaluator = |part: &Part| {
        name(part).is_some_and(|name| name == "[" || CHANGERS.contains(&name)) && evaluates(part)
    };
    parts.iter().any(evaluator).then_some("an argument is evaluated by the shell")
}

fn is_option(word: &Word, option: &str) -> bool {
    match word {
        Word::Known(text) => text.starts_with(option),
        Word::Unknown => true,
    }
}

fn name(part: &Part) -> Option<&str> {
    match part.words.first() {
        Some(Word::Known(name)) => Some(name),
        Some(Word::Unknown) | None => None,
    }
}

fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// The rule by which these parts would be trusted; there is none for what a rule does not see.
fn trusting(parts: &[&Part]) -> Option<String> {
    let pattern = |part: &&Part| -> Option<String> {
        let is_seen = part.besides.is_none() && !part.words.is_empty();
        let words: Vec<String> = part.words.iter().map(quoted).collect();
        is_seen.then(|| words.join(" ")).filter(|pattern| pattern.len() <= LONGEST_PATTERN)
    };
    let mut patterns = parts.iter().map(pattern).collect::<Option<Vec<String>>>()?;
    patterns.dedup();
    (!patterns.is_empty()).then(|| render_rules("bash", &patterns, Decision::Trust))
}
