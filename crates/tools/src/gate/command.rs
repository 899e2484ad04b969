//! Judges a command by the rules: strictly for rules that grant, leniently for rules that forbid.
//!
//! A command in the small language of `strict.rs` is judged part by part, each by the first rule
//! that matches. For any other command, granting rules are ignored, and forbidding rules match
//! whatever the command might mean.

use super::rule::{Decision, Rule, render_rules};
use super::runners::{Run, base, may_read_commands, name, runs, runs_arguments};
use super::script::{Doubt, Input, Part, Script, without_keywords};
use super::shell::split;
use super::strict::{self, BUILTINS, is_listed};
use super::words::{Word, loose_words, quoted};

/// The result of the rules for a command.
#[derive(Debug, PartialEq)]
pub(super) enum Judgement {
    Deny(String),
    /// With the rule that would make the question unnecessary.
    Ask {
        why: String,
        rule: Option<String>,
    },
    /// Nothing is forbidden, and every part is granted this much: `Allow` if no rule grants more.
    /// With the rule that would grant what is wanted.
    Granted {
        level: Decision,
        rule: Option<String>,
    },
}

/// Without a matching rule, a command may only run in the sandbox.
const NO_RULE: Judgement = Judgement::Granted { level: Decision::Allow, rule: None };

/// Bash does not accept longer commands.
const LONGEST: usize = 128 * 1024;
/// A rule with a longer pattern would be unreadable.
const LONGEST_PATTERN: usize = 1_000;
/// More rules than this would be unreadable as well.
const MOST_RULES: usize = 8;

/// How deep commands run by other commands are examined. Anything deeper needs approval.
const DEEPEST: usize = 8;

/// What the rules say about `command`. `wanted` is the decision that a suggested rule, about `tool`, would contain.
pub(super) fn judge(rules: &[&Rule], tool: &str, command: &str, wanted: Decision) -> Judgement {
    if command.len() > LONGEST {
        return Judgement::ask("the command is too long".to_owned());
    }
    let forbidding: Vec<&Rule> =
        rules.iter().copied().filter(|rule| !rule.decision.grants()).collect();
    match strict::parts(command) {
        Some(parts) => {
            let inputs = split(command).parts.into_iter().map(|part| part.input);
            let parts = parts.into_iter().zip(inputs.chain(std::iter::repeat(Input::Unwritten)));
            let part = |(words, input): (Vec<String>, Input)| Part {
                words: words.into_iter().map(Word::Known).collect(),
                input,
            };
            let parts: Vec<Part> = parts.map(part).collect();
            let said = judge_strictly(rules, tool, &parts, wanted);
            said.worse(judge_input(&forbidding, &parts, command))
        }
        None if forbidding.is_empty() => NO_RULE,
        None => judge_generously(&forbidding, split(command), command, 0),
    }
}

fn judge_strictly(rules: &[&Rule], tool: &str, parts: &[Part], wanted: Decision) -> Judgement {
    let (mut asked, mut lacking, mut least) = (None, Vec::new(), Decision::Trust);
    for part in parts {
        match judge_part(rules, part, 0) {
            denied @ Judgement::Deny(_) => return denied,
            Judgement::Ask { why, .. } => {
                asked = asked.or(Some(why));
                lacking.push(part);
            }
            Judgement::Granted { level, .. } => {
                least = least.min(level);
                if level < wanted {
                    lacking.push(part);
                }
            }
        }
    }
    let rule = granting(rules, tool, &lacking, wanted);
    match asked {
        Some(why) => Judgement::Ask { why, rule },
        None => Judgement::Granted { level: least, rule },
    }
}

/// A command is forbidden if one of its parts may match, or, where there may be other parts, any
/// sequence of its words. It needs approval if it runs something that is not written out.
fn judge_generously(rules: &[&Rule], script: Script, command: &str, depth: usize) -> Judgement {
    let words = &loose_words(command);
    let doubt = match script.parts.iter().any(evaluates_argument) {
        true => Doubt::Words("an argument is evaluated by the shell"),
        false => script.doubt,
    };
    match doubt {
        Doubt::Words(why) => return judge_words(rules, words, why),
        Doubt::Parts => {
            if let Some(rule) = named_by(rules, words) {
                return Judgement::by(rule);
            }
        }
        Doubt::Nothing => {}
    }
    let parts: Vec<Part> = script.parts.into_iter().filter_map(without_keywords).collect();
    if parts.iter().any(|part| part.words.first() == Some(&Word::Unknown)) {
        return judge_words(rules, words, "the name of a command is not spelled out");
    }
    let said = parts.iter().map(|part| judge_part(rules, part, depth));
    let said = said.fold(NO_RULE, |worst, said| worst.worse(Some(said)));
    said.worse(judge_input(rules, &parts, command))
}

/// The result for a command in which one part may read what it runs from another.
fn judge_input(forbidding: &[&Rule], parts: &[Part], command: &str) -> Option<Judgement> {
    if !parts.iter().any(may_read_commands) {
        return None;
    }
    let rules: Vec<&Rule> = forbidding.iter().copied().filter(|rule| !rule.matches_all()).collect();
    named_by(&rules, &loose_words(command)).map(Judgement::by)
}

impl Judgement {
    /// For what no rule can grant.
    fn ask(why: String) -> Judgement {
        Judgement::Ask { why, rule: None }
    }

    fn by(rule: &Rule) -> Judgement {
        match rule.decision {
            Decision::Deny => Judgement::Deny(rule.sentence()),
            Decision::Ask => Judgement::ask(rule.sentence()),
            level @ (Decision::Allow | Decision::Network | Decision::Trust) => {
                Judgement::Granted { level, rule: None }
            }
        }
    }

    /// The stricter of the two. Of two questions the other one wins, since it may have no rule.
    fn worse(self, other: Option<Judgement>) -> Judgement {
        match (self, other) {
            (Judgement::Deny(why), _) | (_, Some(Judgement::Deny(why))) => Judgement::Deny(why),
            (_, Some(ask @ Judgement::Ask { .. })) | (ask @ Judgement::Ask { .. }, _) => ask,
            (said, _) => said,
        }
    }
}

/// The result of the first rule that matches a part, or of another one for what the part may run.
fn judge_part(rules: &[&Rule], part: &Part, depth: usize) -> Judgement {
    let rule = rules.iter().find(|rule| rule.matches_words(&part.words));
    rule.map_or(NO_RULE, |rule| Judgement::by(rule)).worse(judge_within(rules, part, depth))
}

/// The result for what a part may run besides itself, judging by its words anywhere and by what is
/// known about its program. Rules for all commands were already applied to the part itself.
fn judge_within(rules: &[&Rule], part: &Part, depth: usize) -> Option<Judgement> {
    let is_about_some = |rule: &&Rule| !rule.decision.grants() && !rule.matches_all();
    let rules: Vec<&Rule> = rules.iter().copied().filter(is_about_some).collect();
    if rules.is_empty() || !runs_arguments(part) {
        return None;
    }
    let texts = part.words[1..].iter().filter_map(Word::known);
    let words: Vec<Word> = texts.flat_map(behind_options).flat_map(loose_words).collect();
    let named = named_by(&rules, &words).map_or(NO_RULE, Judgement::by);
    let runs = runs(part).into_iter().map(|run| judge_run(&rules, run, depth + 1));
    Some(runs.fold(named, |worst, said| worst.worse(Some(said))))
}

/// A word, and the texts that may be attached to an option in it: `-c'git push'`, `-qc'git push'`.
fn behind_options(word: &str) -> impl Iterator<Item = &str> {
    /// More combined options are not usual.
    const MOST: usize = 3;
    let options = word.strip_prefix('-').unwrap_or_default();
    let joined = options.char_indices().skip(1).take(MOST).map(|(at, _)| &options[at..]);
    std::iter::once(word).chain(joined)
}

fn judge_run(rules: &[&Rule], run: Run, depth: usize) -> Judgement {
    match run {
        _ if depth > DEEPEST => uncertain("its commands are nested too deeply"),
        Run::Unknown(why) => uncertain(why),
        Run::Part(part) if part.words.first() == Some(&Word::Unknown) => {
            uncertain("the name of a command is not spelled out")
        }
        Run::Part(part) => judge_part(rules, &part, depth),
        Run::Text(text) => judge_generously(rules, split(&text), &text, depth),
    }
}

/// Something unknown might be what a rule forbids.
fn judge_words(forbidding: &[&Rule], words: &[Word], doubt: &str) -> Judgement {
    match named_by(forbidding, words) {
        Some(rule) => Judgement::by(rule),
        None if forbidding.is_empty() => NO_RULE,
        None => uncertain(doubt),
    }
}

fn uncertain(doubt: &str) -> Judgement {
    Judgement::ask(format!("a rule might forbid the command: {doubt}"))
}

/// A forbidding rule that may match some sequence of these words, also with the program given by
/// its full path.
fn named_by<'r>(forbidding: &[&'r Rule], words: &[Word]) -> Option<&'r Rule> {
    let by_name = words.iter().map(|word| match word {
        Word::Known(text) => Word::Known(base(text).to_owned()),
        Word::Unknown => Word::Unknown,
    });
    let by_name: Vec<Word> = by_name.collect();
    let matches = |rule: &&Rule| {
        rule.words.could_match_within(words) || rule.words.could_match_within(&by_name)
    };
    // Deny comes first: otherwise a question about one word would hide that another is denied.
    [Decision::Deny, Decision::Ask].into_iter().find_map(|decision| {
        forbidding.iter().copied().filter(|rule| rule.decision == decision).find(matches)
    })
}

/// `test -v 'a[$(command)]'` runs the command, however it is quoted.
fn evaluates_argument(part: &Part) -> bool {
    let is_text =
        |word: Option<&Word>| matches!(word, Some(Word::Known(text)) if !text.starts_with('-'));
    let evaluates = match name(part) {
        Some("printf") => !is_text(part.words.get(1)),
        Some(name) => ["[[", "test"].contains(&name) || is_listed(BUILTINS, name),
        None => false,
    };
    evaluates
        && part.words.iter().skip(1).any(|word| match word {
            Word::Known(text) => text.contains('['),
            Word::Unknown => false,
        })
}

/// The rules that would grant exactly these parts. There are none if other rules forbid what a part runs.
fn granting(rules: &[&Rule], tool: &str, parts: &[&Part], wanted: Decision) -> Option<String> {
    let pattern = |part: &&Part| -> Option<String> {
        let is_free = !matches!(
            judge_within(rules, part, 0),
            Some(Judgement::Deny(_) | Judgement::Ask { .. })
        );
        let words = part.words.iter().map(quoted).collect::<Option<Vec<String>>>()?;
        let pattern = is_free.then(|| words.join(" "));
        pattern.filter(|pattern| pattern.len() <= LONGEST_PATTERN)
    };
    let mut patterns = parts.iter().map(pattern).collect::<Option<Vec<String>>>()?;
    patterns.dedup();
    let is_readable = (1..=MOST_RULES).contains(&patterns.len());
    is_readable.then(|| render_rules(tool, &patterns, wanted))
}
