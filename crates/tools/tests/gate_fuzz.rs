//! Commands at random: what is forbidden or merely not trusted never passes on the word of what is.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use ikigai_tools::{Reach, Verdict};
use proptest::prelude::{
    BoxedStrategy, ProptestConfig, Strategy, any, prop, prop_assert, prop_assume, proptest,
};
use proptest::sample::select;

use crate::gate::judge_command;

/// Ways to run two commands, `A` and `B`.
const JOINED: [&str; 30] = [
    "A; B",
    "A & B",
    "A && B",
    "A || B",
    "A | B",
    "A |& B",
    "A\nB",
    "B; A",
    "B && A",
    "A $(B)",
    "A \"$(B)\"",
    "A `B`",
    "A \"`B`\"",
    "A <(B)",
    "A > >(B)",
    "A; (B)",
    "A; { B; }",
    "A <<X\n$(B)\nX",
    "if A; then B; fi",
    "for x in 1; do A; B; done",
    "while A; do B; done",
    "case x in x) A; B;; esac",
    "f() { B; }; A; f",
    "A; ! B",
    "A # x\nB",
    "A \\\n; B",
    "A 'x'; B",
    "A ${x:-$(B)}",
    "A $((x[$(B)]))",
    "A 2>&1 | B",
];

/// Ways to run one command, `B`.
const DISGUISED: [&str; 16] = [
    "B",
    " \t B ",
    "X=1 B",
    "env B",
    "env -i X=1 B",
    "command B",
    "eval 'B'",
    "eval B",
    "bash -c 'B'",
    "exec B",
    "nohup B",
    "timeout 1 B",
    "(B)",
    "{ B; }",
    "! B",
    "time B",
];

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn disguised() -> BoxedStrategy<String> {
    let names = select(vec!["bad x", "b''ad x", "\"bad\" x", "\\bad x", "/bin/bad x", "b\\\nad x"]);
    let inner = (select(DISGUISED.to_vec()), names).prop_map(|(way, name)| way.replace('B', name));
    inner.boxed()
}

fn compound() -> BoxedStrategy<String> {
    let joined = |inner: BoxedStrategy<String>| {
        (select(JOINED.to_vec()), inner, any::<bool>()).prop_map(|(way, bad, twice)| {
            let good = if twice { "good a; good b" } else { "good" };
            way.replace('A', good).replace('B', &bad)
        })
    };
    let once = joined(disguised());
    let twice = joined(once.clone().boxed());
    proptest::strategy::Union::new([once.boxed(), twice.boxed()]).boxed()
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn a_compound_command_never_passes_on_the_word_of_its_good_part(command in compound()) {
        let verdict = judge_command(&["trust bash good *"], &command);
        prop_assert!(verdict != Verdict::Allow(Reach::Anywhere), "{command}: {verdict:?}");
        for forbidding in ["deny bash bad *", "ask bash bad *"] {
            let verdict = judge_command(&["trust bash good *", forbidding], &command);
            prop_assert!(!matches!(verdict, Verdict::Allow(_)), "{command}: {verdict:?}");
        }
    }

    #[test]
    fn no_text_makes_the_gate_panic(command in "\\PC{0,40}", pattern in "\\PC{0,12}") {
        prop_assume!(ikigai_tools::Rule::new("bash", &pattern, ikigai_tools::Decision::Ask).is_ok());
        for decision in ["deny", "trust"] {
            judge_command(&[&format!("{decision} bash {pattern}")], &command);
        }
    }
}

/// Pieces of shell, of which any heap is put before the gate, and what it trusts before a real bash.
const PIECES: [&str; 47] = [
    "good",
    "good",
    "good",
    "good a",
    "bad",
    "bad b",
    " ",
    " ",
    " ",
    ";",
    "&",
    "|",
    "\n",
    "'",
    "\"",
    "\\",
    "$",
    "(",
    ")",
    "`",
    "{",
    "}",
    "<",
    ">",
    "&1",
    "2>&1",
    "#",
    "!",
    "=",
    "X=1",
    "X=bad",
    "$X",
    "${X}",
    "$_",
    ">/dev/null",
    "./bad",
    "*",
    "[",
    "]",
    "~",
    ",",
    "-v",
    "x",
    "<<<",
    "then",
    "if",
    "$'",
];

/// Where `good` and `bad` are all the programs there are.
fn programs(folder: &Path) {
    for (name, script) in [("good", "#!/bin/sh\n"), ("bad", "#!/bin/sh\n: > \"$MARK\"\n")] {
        let path = folder.join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

proptest! {
    #![proptest_config(cases(6_000))]

    #[test]
    fn bash_runs_nothing_else_than_what_the_gate_trusts(
        pieces in prop::collection::vec(select(PIECES.to_vec()), 1..9),
    ) {
        let command = pieces.concat();
        if judge_command(&["trust bash good *"], &command) == Verdict::Allow(Reach::Anywhere) {
            let folder = tempfile::tempdir().unwrap();
            programs(folder.path());
            let work = folder.path().join("work");
            fs::create_dir(&work).unwrap();
            let mark = folder.path().join("mark");
            let mut bash = Command::new("/bin/bash");
            bash.args(["-c", &command]).current_dir(&work).env_clear();
            bash.env("PATH", folder.path()).env("MARK", &mark);
            bash.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            bash.status().unwrap();
            prop_assert!(!mark.exists(), "{command}");
            prop_assert!(fs::read_dir(&work).unwrap().next().is_none(), "{command}");
        }
    }
}
