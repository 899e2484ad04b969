//! The gate compared with a real bash, on random commands.
//!
//! *Grants.* Under `trust good *`, a command may only be granted if bash runs nothing but `good`
//! with exactly the words that the gate has read, and creates no file. A second shell parser,
//! tree-sitter's, must see nothing in it but words, strings and separators; it is a second opinion,
//! bash decides.
//!
//! *Denials.* Under `deny bad *`, no command may run without a question if bash runs `bad` and the
//! command spells out `bad`: quoted, with backslashes or by its path, after assignments and
//! redirections, after programs that run their arguments, and in any list, group, function, loop,
//! substitution or here-document. Names assembled at run time from other texts are not covered, nor
//! is what a program reads from a file.
//!
//! *Builtins.* Under `trust *`, those that are granted do not affect later commands.
//!
//! Commands can only write to a separate folder (`real_bash.rs`), so the tests can run as root.
//!
//! A run takes a few seconds, always with the same commands. `IKIGAI_FUZZ_SECONDS` makes it longer,
//! with different ones each time. A failure prints its seed, and `IKIGAI_FUZZ_SEED` repeats it.

mod commands;
mod real_bash;

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ikigai_tools::{Confinement, Decision, Fact, Gate, Mode, Reach, Verdict};
use proptest::prelude::{
    BoxedStrategy, ProptestConfig, Strategy, TestCaseError, prop_assert, prop_assume, prop_oneof,
    proptest,
};
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use tree_sitter::{Node, Parser};

use crate::gate::{judge_command, new_rule};
use commands::{
    DISGUISES, JOINED, NAMES, before_others, changed, disguised, heap, strict, within_word,
};
use real_bash::RealBash;

/// How long a test runs by default.
const SECONDS: u64 = 3;

/// How many commands share a seed, and must be repeated to reproduce a failure.
const COMMANDS_OF_A_SEED: u32 = 200;

/// What tree-sitter may see in a granted command.
const KINDS: [&str; 18] = [
    "program",
    "list",
    "pipeline",
    "command",
    "command_name",
    "word",
    "raw_string",
    "string",
    "string_content",
    "concatenation",
    "number",
    "&&",
    "||",
    ";",
    "|",
    "\"",
    "'",
    "",
];

/// Tries commands until the time is up, and returns how many there were.
fn fuzz(
    commands: &BoxedStrategy<String>,
    check: impl Fn(&str) -> Result<(), TestCaseError>,
) -> u32 {
    let limit = number("IKIGAI_FUZZ_SECONDS");
    let start = match limit {
        Some(_) => SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() << 32,
        None => 0,
    };
    let start = number("IKIGAI_FUZZ_SEED").unwrap_or(start);
    let end = Instant::now() + Duration::from_secs(limit.unwrap_or(SECONDS));
    let mut tried = 0;
    for seed in start.. {
        let bytes = [seed; 4].map(u64::to_le_bytes).concat();
        let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let mut runner = TestRunner::new_with_rng(config(), random);
        let outcome = runner.run(commands, |command| check(&command));
        outcome.unwrap_or_else(|found| panic!("IKIGAI_FUZZ_SEED={seed}: {found}"));
        tried += COMMANDS_OF_A_SEED;
        if Instant::now() > end {
            break;
        }
    }
    tried
}

fn config() -> ProptestConfig {
    let cases = COMMANDS_OF_A_SEED;
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}

fn is_trusted(pattern: &str, command: &str) -> bool {
    let rule = format!("trust bash {pattern}");
    judge_command(&[&rule], command) == Verdict::Allow(Reach::Anywhere)
}

#[test]
fn bash_runs_exactly_what_the_gate_grants() {
    let bash = RealBash::new();
    let commands =
        prop_oneof![4 => within_word(), 5 => changed(), 2 => heap(), 1 => strict()].boxed();
    let tried = fuzz(&commands, |command| match is_trusted("good *", command) {
        true => check_granted(&bash, command),
        false => Ok(()),
    });
    println!("{tried} commands judged, {} runs of those that were granted", bash.runs());
    assert!(bash.runs() > 0);
}

#[test]
fn no_command_of_bash_itself_that_is_granted_changes_what_others_run() {
    let bash = RealBash::new();
    fuzz(&before_others(own_commands()), |command| match is_trusted("*", command) {
        true => check_granted(&bash, command),
        false => Ok(()),
    });
    assert!(bash.runs() > 0);
}

fn check_granted(bash: &RealBash, command: &str) -> Result<(), TestCaseError> {
    let mut ran = BTreeSet::new();
    // What follows `
    //
    // ` only runs after a failure.
    let exit_codes = if command.contains("||") { 0..2 } else { 0..1 };
    for exit_code in exit_codes {
        let trace = bash.run(command, exit_code);
        prop_assert!(!trace.ran("bad") && trace.files.is_empty(), "{command:?}: {trace:?}");
        ran.extend(trace.programs.iter().map(|words| pattern(words)));
    }
    if let Some(mut read) = patterns(command) {
        read.retain(|pattern| pattern.starts_with("good"));
        prop_assert!(ran == read, "{command:?}: bash ran {ran:?}, the gate read {read:?}");
    }
    let odd = odd_kinds(command);
    prop_assert!(odd.is_empty(), "{command:?}: tree-sitter sees {odd:?}");
    Ok(())
}

/// How the gate reads the parts of a command: the patterns of the rules that would grant them.
/// There are none for a command with many parts.
fn patterns(command: &str) -> Option<BTreeSet<String>> {
    let (command, leaves_sandbox) = (command.to_owned(), true);
    let facts = Fact::Command { command, leaves_sandbox, wants_network: false };
    let gate = Gate::new(Mode::Work, Confinement::InForce, Vec::new());
    let Verdict::Ask(question) = gate.judge("bash", &[facts]) else {
        panic!("it leaves the sandbox");
    };
    let rules = question.rule?;
    let patterns = rules.split("match = ").skip(1).map(|rest| rest.lines().next().unwrap());
    Some(patterns.map(|quoted| serde_json::from_str(quoted).unwrap()).collect())
}

/// Words as a pattern that only matches them.
fn pattern(words: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    let quoted = |word: &String| match !word.is_empty() && word.chars().all(is_plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// The kinds of nodes that tree-sitter sees and that are not in the language of grants.
fn odd_kinds(command: &str) -> Vec<String> {
    fn collect(node: Node<'_>, kinds: &mut Vec<String>) {
        kinds.push(node.kind().to_owned());
        for child in node.children(&mut node.walk()) {
            collect(child, kinds);
        }
    }
    // It takes a word that starts like this for a comparison, which it only is in [[ ]].
    if command.contains("==") {
        return Vec::new();
    }
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).unwrap();
    let mut kinds = Vec::new();
    collect(parser.parse(command, None).unwrap().root_node(), &mut kinds);
    kinds.retain(|kind| !KINDS.contains(&kind.as_str()));
    kinds
}

/// Run as root as well, they once left files in `/dev`.
#[test]
fn a_command_cannot_write_outside_its_folder() {
    let (bash, outside) = (RealBash::new(), tempfile::tempdir().unwrap());
    let made = outside.path().join("made");
    let trace = bash.run(&format!("good > made; good > {0}; > {0}", made.display()), 0);
    assert_eq!((trace.files, trace.programs.len()), (vec!["made".to_owned()], 1));
    assert!(!made.exists());
}

/// Otherwise they would prove nothing.
#[test]
fn every_disguise_really_runs_the_program_and_is_forbidden() {
    let bash = RealBash::new();
    for way in DISGUISES.iter().chain(&JOINED) {
        for name in NAMES {
            let command = way.replace("GOOD", "good").replace("BAD", name);
            let is_quoted_twice = name.contains(['"', '\'', '\n']) && way.contains(['"', '\'']);
            if !is_quoted_twice {
                assert!(bash.run(&command, 0).ran("bad"), "{command:?}");
            }
            for rule in ["deny bash bad *", "ask bash bad *"] {
                let verdict = judge_command(&["trust bash good *", rule], &command);
                assert!(!matches!(verdict, Verdict::Allow(_)), "{command:?}: {verdict:?}");
            }
        }
    }
}

/// The names that bash knows without any program.
fn own_commands() -> Vec<String> {
    let list = Command::new("/bin/bash").args(["-c", "compgen -b; compgen -k"]).output().unwrap();
    String::from_utf8(list.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Those that are granted neither evaluate their arguments nor change the meaning of later words.
#[test]
fn of_the_commands_of_bash_itself_these_are_granted() {
    let mut granted = own_commands();
    granted.retain(|name| is_trusted("*", &format!("'{name}' x")));
    assert_eq!(granted.join(", "), ":, cd, echo, false, help, kill, pwd, test, true, type");
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_is_read_strictly_is_granted(command in strict()) {
        prop_assert!(is_trusted("good *", &command), "{command:?}");
    }

    #[test]
    fn no_text_makes_the_gate_panic(command in "\\PC{0,40}", pattern in "\\PC{0,12}") {
        prop_assume!(new_rule("bash", &pattern, Decision::Ask).is_ok());
        for decision in ["deny", "trust"] {
            judge_command(&[&format!("{decision} bash {pattern}")], &command);
        }
    }
}

#[test]
fn bash_runs_nothing_that_is_denied() {
    let bash = RealBash::new();
    let tried = fuzz(&prop_oneof![2 => disguised(), 1 => heap()].boxed(), |command| {
        let verdict = judge_command(&["deny bash bad *"], command);
        if matches!(verdict, Verdict::Allow(_)) && command.contains('b') {
            prop_assert!(!bash.run(command, 0).ran("bad"), "{command:?}");
        }
        Ok(())
    });
    println!("{tried} commands judged, {} that were let through run", bash.runs());
}
