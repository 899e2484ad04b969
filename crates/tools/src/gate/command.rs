//! Judging a command: part by part, and with care for what is not certain.

use super::rule::{Decision, Rule, render_rules};
use super::script::{Part, Script};
use super::shell::{loose_words, split};
use super::words::{Word, quoted};

/// What the rules say of a command.
#[derive(Debug, PartialEq)]
pub(super) enum Said {
    Deny(String),
    /// With the rule that would make it needless.
    Ask {
        why: String,
        rule: Option<String>,
    },
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

/// Nor are more rules than this.
const MOST_RULES: usize = 8;

/// Programs and builtins that run what their arguments say. A rule grants something only if it names them; what
/// may be in the arguments is looked at by those that forbid.
const RUNNERS: [&str; 46] = [
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

/// What the rules say of `command`. `wanted` is what a further rule would have to say.
pub(super) fn judge(rules: &[&Rule], command: &str, wanted: Decision) -> Said {
    if command.len() > LONGEST {
        return Said::ask("the command is too long".to_owned());
    }
    let mut script = split(command);
    if script.parts.iter().any(evaluates_argument) {
        script.doubt.get_or_insert("an argument is evaluated by the shell");
        script.is_hidden = true;
    }
    if let Some(doubt) = script.doubt.or_else(|| changes_meaning(&script.parts)) {
        return judge_doubtful(rules, script, &loose_words(command), doubt);
    }
    let mut asked = None;
    let (mut lacking, mut all_trusted) = (Vec::new(), !script.parts.is_empty());
    for part in &script.parts {
        match judge_part(rules, part).worse(judge_hidden(rules, part)) {
            denied @ Said::Deny(_) => return denied,
            Said::Ask { why, .. } => {
                asked = asked.or(Some(why));
                lacking.push(part);
            }
            Said::Trust => {}
            Said::Nothing { .. } if wanted == Decision::Trust => {
                all_trusted = false;
                lacking.push(part);
            }
            Said::Nothing { .. } => all_trusted = false,
        }
    }
    match asked {
        Some(why) => Said::Ask { why, rule: granting(rules, &lacking, wanted) },
        None if all_trusted => Said::Trust,
        None => Said::Nothing { rule: granting(rules, &lacking, wanted) },
    }
}

impl Said {
    /// For what no rule can grant.
    fn ask(why: String) -> Said {
        Said::Ask { why, rule: None }
    }

    fn by(rule: &Rule) -> Said {
        match rule.decision {
            Decision::Deny => Said::Deny(rule.sentence()),
            Decision::Ask => Said::ask(rule.sentence()),
            Decision::Allow => Said::Nothing { rule: None },
            Decision::Trust => Said::Trust,
        }
    }

    /// The one of two that permits less; what says nothing does not change the other.
    fn worse(self, other: Option<Said>) -> Said {
        match (self, other) {
            (Said::Deny(why), _) | (_, Some(Said::Deny(why))) => Said::Deny(why),
            (ask @ Said::Ask { .. }, _) | (_, Some(ask @ Said::Ask { .. })) => ask,
            (said, _) => said,
        }
    }
}

/// What the first rule says that is about a part.
fn judge_part(rules: &[&Rule], part: &Part) -> Said {
    let rule = rules.iter().find(|rule| {
        (!rule.decision.grants() || is_all_there_is(rule, part)) && rule.matches_words(&part.words)
    });
    rule.map_or(Said::Nothing { rule: None }, |rule| Said::by(rule))
}

/// Whether a rule that grants the words of a part would grant all that the part does.
fn is_all_there_is(rule: &Rule, part: &Part) -> bool {
    part.besides.is_none()
        && match name(part) {
            Some(name) if runs_arguments(part) => rule.words.names(name),
            _ => true,
        }
}

/// What is said of that which a part may run by way of its arguments. Rules about all commands have been asked
/// about the part itself.
fn judge_hidden(rules: &[&Rule], part: &Part) -> Option<Said> {
    if !runs_arguments(part) {
        return None;
    }
    let mut words = Vec::new();
    let mut is_certain = true;
    for word in &part.words[1..] {
        match word {
            Word::Known(text) => {
                is_certain &= !text.contains(['$', '`', '\\']);
                words.extend(loose_words(text));
            }
            Word::Unknown => is_certain = false,
        }
    }
    let rules: Vec<&Rule> = rules.iter().copied().filter(|rule| !rule.matches_all()).collect();
    match is_certain {
        true => named_by(&rules, &words).map(Said::by),
        false => Some(judge_loosely(&rules, &words, "it runs what is not written out")),
    }
}

/// No rule grants what is not taken apart for certain. It is forbidden by any of its words in a row and by what its
/// parts seem to be; a person is asked only where something is run that is not written there.
fn judge_doubtful(rules: &[&Rule], script: Script, words: &[Word], doubt: &str) -> Said {
    if script.is_hidden {
        return judge_loosely(rules, words, doubt);
    }
    if let Some(rule) = named_by(rules, words) {
        return Said::by(rule);
    }
    let forbidding: Vec<&Rule> =
        rules.iter().copied().filter(|rule| !rule.decision.grants()).collect();
    let parts: Vec<Part> = script.parts.into_iter().filter_map(Part::without_keywords).collect();
    if parts.iter().any(|part| name(part).is_none()) {
        // Of its words it is known that no rule names them.
        return judge_loosely(&forbidding, &[], "the name of a command is not written out");
    }
    let said = parts
        .iter()
        .map(|part| judge_part(&forbidding, part).worse(judge_hidden(&forbidding, part)));
    said.fold(Said::Nothing { rule: None }, |worst, said| worst.worse(Some(said)))
}

/// What could be anything might be what a rule forbids, and is nothing that one grants.
fn judge_loosely(rules: &[&Rule], words: &[Word], doubt: &str) -> Said {
    let forbids_something = rules.iter().any(|rule| !rule.decision.grants());
    match named_by(rules, words) {
        Some(rule) => Said::by(rule),
        None if forbids_something => {
            Said::ask(format!("it cannot be told whether a rule forbids the command: {doubt}"))
        }
        None => Said::Nothing { rule: None },
    }
}

/// A rule that forbids what some of these words in a row may be, also by the program's whole path.
fn named_by<'r>(rules: &[&'r Rule], words: &[Word]) -> Option<&'r Rule> {
    let by_name = words.iter().map(|word| match word {
        Word::Known(text) => Word::Known(base(text).to_owned()),
        Word::Unknown => Word::Unknown,
    });
    let by_name: Vec<Word> = by_name.collect();
    let matches = |rule: &&Rule| {
        rule.words.could_match_within(words) || rule.words.could_match_within(&by_name)
    };
    // In another order a question about one word would hide that another one is denied.
    [Decision::Deny, Decision::Ask].into_iter().find_map(|decision| {
        rules.iter().copied().filter(|rule| rule.decision == decision).find(matches)
    })
}

/// `PATH=/elsewhere; make` and its likes: the words of a later part say nothing then.
fn changes_meaning(parts: &[Part]) -> Option<&'static str> {
    let changes = |part: &Part| match name(part) {
        Some("printf") => part.words.iter().any(|word| is_option(word, "-v")),
        Some("test") => false,
        Some(name) => CHANGERS.contains(&name),
        None => true,
    };
    let has_changes = parts.len() > 1 && parts.iter().any(changes);
    has_changes.then_some("a part changes what later ones mean")
}

/// `test -v 'a[$(command)]'` runs the command, in whatever quotes.
fn evaluates_argument(part: &Part) -> bool {
    let evaluates = |name: &str| ["[", "[["].contains(&name) || CHANGERS.contains(&name);
    name(part).is_some_and(evaluates)
        && part.words.iter().skip(1).any(|word| match word {
            Word::Known(text) => text.contains('['),
            Word::Unknown => false,
        })
}

/// Whether a part runs what its arguments say.
fn runs_arguments(part: &Part) -> bool {
    match name(part).map(base) {
        Some("find") => {
            ["-exec", "-ok"].iter().any(|option| part.words.iter().any(|w| is_option(w, option)))
        }
        Some(name) => RUNNERS.contains(&name),
        None => false,
    }
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

/// The rules that would grant these parts and nothing else. There are none for what a rule does not see, nor for
/// what others forbid in the arguments.
fn granting(rules: &[&Rule], parts: &[&Part], wanted: Decision) -> Option<String> {
    let pattern = |part: &&Part| -> Option<String> {
        let is_seen = part.besides.is_none() && !part.words.is_empty();
        let is_free = !matches!(judge_hidden(rules, part), Some(Said::Deny(_) | Said::Ask { .. }));
        let words = part.words.iter().map(quoted).collect::<Option<Vec<String>>>()?;
        let pattern = (is_seen && is_free).then(|| words.join(" "));
        pattern.filter(|pattern| pattern.len() <= LONGEST_PATTERN)
    };
    let mut patterns = parts.iter().map(pattern).collect::<Option<Vec<String>>>()?;
    patterns.dedup();
    let is_readable = (1..=MOST_RULES).contains(&patterns.len());
    is_readable.then(|| render_rules("bash", &patterns, wanted))
}
