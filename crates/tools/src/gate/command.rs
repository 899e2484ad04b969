//! Judging a command by the rules: strictly where they grant something, generously where they forbid it.
//!
//! A command in the small language of `strict.rs` is judged part by part, each by the first rule that is about it.
//! For any other command no rule that grants exists, and those that forbid are taken as widely as they may be meant.

use super::rule::{Decision, Rule, render_rules};
use super::script::{Doubt, Part, Script, without_keywords};
use super::shell::{loose_words, split};
use super::strict::{self, BUILTINS, is_listed};
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
    /// Nothing is forbidden, and every part is granted this much: `Allow` where no rule grants more. With the rule
    /// that would grant what is wanted.
    Granted {
        level: Decision,
        rule: Option<String>,
    },
}

/// No command without a rule about it is granted more than to run in the sandbox.
const NO_RULE: Said = Said::Granted { level: Decision::Allow, rule: None };

/// Longer commands need no reading: bash does not take them.
const LONGEST: usize = 128 * 1024;
/// A rule with a longer pattern is nothing that a user would read.
const LONGEST_PATTERN: usize = 1_000;
/// Nor are more rules than this.
const MOST_RULES: usize = 8;

/// Programs and builtins that run what their arguments say, in which a rule that forbids looks for its own.
const RUNNERS: &str = ". alias ash bash bind builtin busybox bwrap chroot chrt command complete csh dash doas \
    entr env eval exec fish flock hash ionice ksh ltrace mapfile nice nohup nsenter parallel \
    pkexec readarray runuser rush script setarch setpriv setsid sh source ssh stdbuf strace su \
    sudo systemd-run taskset tcsh time timeout toybox trap unshare watch xargs zsh";

/// Those of them that run what they read: their commands may stand in another part.
const READERS: &str = ". ash bash busybox csh dash doas fish ksh parallel runuser rush script sh source su sudo \
    tcsh toybox xargs zsh";

/// What the rules say of `command`. `wanted` is what a further rule would have to say.
pub(super) fn judge(rules: &[&Rule], command: &str, wanted: Decision) -> Said {
    if command.len() > LONGEST {
        return Said::ask("the command is too long".to_owned());
    }
    let forbidding: Vec<&Rule> =
        rules.iter().copied().filter(|rule| !rule.decision.grants()).collect();
    match strict::parts(command) {
        Some(parts) => {
            let known = |words: Vec<String>| words.into_iter().map(Word::Known).collect();
            let parts: Vec<Part> = parts.into_iter().map(known).collect();
            let said = judge_strictly(rules, &parts, wanted);
            said.worse(judge_input(&forbidding, &parts, command))
        }
        None if forbidding.is_empty() => NO_RULE,
        None => judge_generously(&forbidding, split(command), command),
    }
}

fn judge_strictly(rules: &[&Rule], parts: &[Part], wanted: Decision) -> Said {
    let (mut asked, mut lacking, mut least) = (None, Vec::new(), Decision::Trust);
    for part in parts {
        match judge_part(rules, part) {
            denied @ Said::Deny(_) => return denied,
            Said::Ask { why, .. } => {
                asked = asked.or(Some(why));
                lacking.push(part);
            }
            Said::Granted { level, .. } => {
                least = least.min(level);
                if level < wanted {
                    lacking.push(part);
                }
            }
        }
    }
    let rule = granting(rules, &lacking, wanted);
    match asked {
        Some(why) => Said::Ask { why, rule },
        None => Said::Granted { level: least, rule },
    }
}

/// A command is forbidden by what its parts seem to be and, where there may be others, by any of its words in a row.
/// It is asked for where something is run that is not written there.
fn judge_generously(rules: &[&Rule], script: Script, command: &str) -> Said {
    let words = &loose_words(command);
    let doubt = match script.parts.iter().any(evaluates_argument) {
        true => Doubt::Words("an argument is evaluated by the shell"),
        false => script.doubt,
    };
    match doubt {
        Doubt::Words(why) => return judge_words(rules, words, why),
        Doubt::Parts => {
            if let Some(rule) = named_by(rules, words) {
                return Said::by(rule);
            }
        }
        Doubt::Nothing => {}
    }
    let parts: Vec<Part> = script.parts.into_iter().filter_map(without_keywords).collect();
    if parts.iter().any(|part| part.first() == Some(&Word::Unknown)) {
        return judge_words(rules, words, "the name of a command is not written out");
    }
    let said = parts.iter().map(|part| judge_part(rules, part));
    let said = said.fold(NO_RULE, |worst, said| worst.worse(Some(said)));
    said.worse(judge_input(rules, &parts, command))
}

/// What is said of a command in which a part may read what it runs from another one.
fn judge_input(forbidding: &[&Rule], parts: &[Part], command: &str) -> Option<Said> {
    if !parts.iter().any(may_read_commands) {
        return None;
    }
    let rules: Vec<&Rule> = forbidding.iter().copied().filter(|rule| !rule.matches_all()).collect();
    named_by(&rules, &loose_words(command)).map(Said::by)
}

/// `sh`, `env bash -x`, `xargs`
fn may_read_commands(part: &Part) -> bool {
    let is_reader = |word: &Word| match word {
        Word::Known(text) => is_listed(READERS, base(text)),
        Word::Unknown => false,
    };
    runs_arguments(part) && part.iter().any(is_reader)
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
            level @ (Decision::Allow | Decision::Network | Decision::Trust) => {
                Said::Granted { level, rule: None }
            }
        }
    }

    /// This, unless the other one forbids as much. Of two questions the other one counts: it may have no rule.
    fn worse(self, other: Option<Said>) -> Said {
        match (self, other) {
            (Said::Deny(why), _) | (_, Some(Said::Deny(why))) => Said::Deny(why),
            (_, Some(ask @ Said::Ask { .. })) | (ask @ Said::Ask { .. }, _) => ask,
            (said, _) => said,
        }
    }
}

/// What the first rule says that is about a part, or another one about what the part may run.
fn judge_part(rules: &[&Rule], part: &Part) -> Said {
    let rule = rules.iter().find(|rule| rule.matches_words(part));
    rule.map_or(NO_RULE, |rule| Said::by(rule)).worse(judge_arguments(rules, part))
}

/// What is said of that which a part may run by way of its arguments. Rules about all commands have been asked
/// about the part itself.
fn judge_arguments(rules: &[&Rule], part: &Part) -> Option<Said> {
    if !runs_arguments(part) {
        return None;
    }
    let mut words = Vec::new();
    let mut is_certain = true;
    for word in &part[1..] {
        match word {
            Word::Known(text) => {
                is_certain &= !text.contains(['$', '`', '\\']);
                words.extend(loose_words(text));
            }
            Word::Unknown => is_certain = false,
        }
    }
    let is_about_some = |rule: &&Rule| !rule.decision.grants() && !rule.matches_all();
    let rules: Vec<&Rule> = rules.iter().copied().filter(is_about_some).collect();
    match is_certain {
        true => named_by(&rules, &words).map(Said::by),
        false => Some(judge_words(&rules, &words, "it runs what is not written out")),
    }
}

/// What could be anything might be what a rule forbids.
fn judge_words(forbidding: &[&Rule], words: &[Word], doubt: &str) -> Said {
    match named_by(forbidding, words) {
        Some(rule) => Said::by(rule),
        None if forbidding.is_empty() => NO_RULE,
        None => Said::ask(format!("it cannot be told whether a rule forbids the command: {doubt}")),
    }
}

/// A rule that forbids what some of these words in a row may be, also by the program's whole path.
fn named_by<'r>(forbidding: &[&'r Rule], words: &[Word]) -> Option<&'r Rule> {
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
        forbidding.iter().copied().filter(|rule| rule.decision == decision).find(matches)
    })
}

/// `test -v 'a[$(command)]'` runs the command, in whatever quotes.
fn evaluates_argument(part: &Part) -> bool {
    let is_text =
        |word: Option<&Word>| matches!(word, Some(Word::Known(text)) if !text.starts_with('-'));
    let evaluates = match name(part) {
        Some("printf") => !is_text(part.get(1)),
        Some(name) => ["[[", "test"].contains(&name) || is_listed(BUILTINS, name),
        None => false,
    };
    evaluates
        && part.iter().skip(1).any(|word| match word {
            Word::Known(text) => text.contains('['),
            Word::Unknown => false,
        })
}

/// Whether a part runs what its arguments say.
fn runs_arguments(part: &Part) -> bool {
    let is_exec = |word: &Word| match word {
        Word::Known(text) => text.starts_with("-exec") || text.starts_with("-ok"),
        Word::Unknown => true,
    };
    match name(part).map(base) {
        Some("find") => part.iter().any(is_exec),
        Some(name) => is_listed(RUNNERS, name),
        None => false,
    }
}

fn name(part: &Part) -> Option<&str> {
    match part.first() {
        Some(Word::Known(name)) => Some(name),
        Some(Word::Unknown) | None => None,
    }
}

fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// The rules that would grant these parts and nothing else. There are none where others forbid what a part runs.
fn granting(rules: &[&Rule], parts: &[&Part], wanted: Decision) -> Option<String> {
    let pattern = |part: &&Part| -> Option<String> {
        let is_free =
            !matches!(judge_arguments(rules, part), Some(Said::Deny(_) | Said::Ask { .. }));
        let words = part.iter().map(quoted).collect::<Option<Vec<String>>>()?;
        let pattern = is_free.then(|| words.join(" "));
        pattern.filter(|pattern| pattern.len() <= LONGEST_PATTERN)
    };
    let mut patterns = parts.iter().map(pattern).collect::<Option<Vec<String>>>()?;
    patterns.dedup();
    let is_readable = (1..=MOST_RULES).contains(&patterns.len());
    is_readable.then(|| render_rules("bash", &patterns, wanted))
}
