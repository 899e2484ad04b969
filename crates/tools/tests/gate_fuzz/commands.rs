//! Random commands: those that the gate reads strictly, variations that must be noticed, random
//! pieces, and indirect ways to run a program.
//!
//! Redirections use relative names: letters after `>/dev/null` would create a file in `/dev`.

use proptest::prelude::{BoxedStrategy, Just, Strategy, any, prop, prop_oneof};
use proptest::sample::{Index, select};

/// Pieces of shell.
const PIECES: [&str; 87] = [
    "good", "good", "good", "good a", "bad", "bad b", "b", "ad", "a", "x", " ", " ", " ", "\t",
    ";", ";", "&", "&&", "|", "||", "|&", ";;", "\n", "\\\n", "\\\n", "\\", "\\\\", "'", "'", "\"",
    "\"", "$'", "$\"", "$", "$", "(", ")", "((", "))", "`", "{", "}", "{a,b}", "<", ">", "<<",
    "<<E", "<<'E'", "\nE\n", "<<<", "&1", "2>&1", ">null", "#", " #", "!", "=", "+=", "X=1",
    "X=bad", "$X", "${X}", "$_", "$@", "./bad", "*", "?", "[", "]", "[[", "~", "^", ",", "-v",
    "%1", "\r", "\u{b}", "\u{1}", "\u{7f}", "é", "\u{a0}", "\u{2028}", "if", "then", "time",
    "coproc", "eval",
];

/// Text that runs `bad` or creates a file wherever bash reads it as a command.
const CONSTRUCTS: [&str; 46] = [
    "$(bad)",
    "`bad`",
    "<(bad)",
    ">(bad)",
    "> >(bad)",
    "${X:-$(bad)}",
    "${X:=`bad`}",
    "$((X[$(bad)]))",
    "$[X[$(bad)]]",
    "$((1))",
    ";bad",
    "& bad",
    "&bad&",
    "&& bad",
    "|| bad",
    "| bad",
    "|& bad",
    "\nbad\n",
    "\rbad",
    "\u{b}bad",
    "\u{a0}bad",
    "; if bad; then good; fi;",
    "; (bad)",
    "; { bad; };",
    "; ! bad",
    "; time bad",
    "; coproc bad",
    "; f() { bad; }; f",
    "; X=1 bad",
    "; X=bad; $X",
    "; eval bad;",
    "; . bad",
    "; exec bad",
    ">made",
    ">>made",
    "&>made",
    ">|made",
    "2>made",
    "<>made",
    "<<E\n$(bad)\nE\n",
    "#\nbad\n",
    "$'\\x27;bad;'",
    "{good,bad}",
    "*",
    "~",
    "; [[ -v X[$(bad)] ]]",
];

/// Ways to run one command, `BAD`. Programs have full paths, since `PATH` contains no others.
pub(super) const DISGUISES: [&str; 60] = [
    "BAD",
    " \t BAD ",
    "X=1 Y+=2 BAD",
    "> made BAD",
    "/usr/bin/env BAD",
    "/usr/bin/env -i X=1 PATH=\"$PATH\" RECORD=\"$RECORD\" EXIT_CODE=0 BAD",
    "/usr/bin/nohup BAD",
    "/usr/bin/nice BAD",
    "/usr/bin/timeout 9 BAD",
    "/usr/bin/setsid -w BAD",
    "/usr/bin/stdbuf -oL BAD",
    "/usr/bin/env -u X -- Y=1 BAD",
    "echo x | /usr/bin/xargs BAD",
    "echo x | /usr/bin/xargs -I{} BAD {}",
    "echo 'BAD' | /usr/bin/xargs -d '\\n' -I{} /bin/sh -c {}",
    "/usr/bin/find . -exec BAD \\;",
    "/bin/sh -c 'BAD'",
    "/bin/bash -c \"BAD\"",
    "/bin/bash -norc -c 'BAD'",
    "echo 'BAD' | /bin/sh",
    "echo 'BAD' | /bin/bash -o posix -s x",
    "echo 'BAD' | /bin/bash /dev/stdin",
    "echo 'BAD' | { good; /bin/sh; }",
    "echo 'BAD' > made; /bin/sh < made",
    "/bin/sh <<E\nBAD\nE",
    "/bin/sh <<'E'\nBAD\nE",
    "/bin/sh <<-E\n\tBAD\n\tE",
    "/bin/sh <<< 'BAD'",
    "command BAD",
    "builtin command BAD",
    "exec BAD",
    "eval BAD",
    "eval 'good; BAD'",
    "trap 'BAD' EXIT",
    "compgen -C 'BAD' x",
    "mapfile -c 1 -C 'BAD' a <<< x",
    "(BAD)",
    "{ BAD; }",
    "! BAD",
    "time -p BAD",
    "coproc BAD; wait",
    "BAD &\nwait",
    "good $(BAD)",
    "good \"$(BAD)\"",
    "good `BAD`",
    "good \"`BAD`\"",
    "good <(BAD); wait",
    "good ${X:-$(BAD)}",
    "good $((X[$(BAD)]))",
    "good <<E\n$(BAD)\nE",
    "if BAD; then good; fi",
    "if false; then good; else BAD; fi",
    "for x in 1; do BAD; done",
    "for x in $(BAD); do good; done",
    "while BAD; do break; done",
    "case x in x) BAD;; esac",
    "f() { BAD; }; f",
    "function f { BAD; }; f",
    "test -v 'X[$(BAD)]'",
    "[[ -v X[$(BAD)] ]]",
];

/// Ways to run two commands.
pub(super) const JOINED: [&str; 14] = [
    "GOOD; BAD",
    "GOOD & BAD",
    "GOOD && BAD",
    "false || BAD",
    "GOOD | BAD",
    "GOOD |& BAD",
    "GOOD\nBAD",
    "BAD; GOOD",
    "GOOD # x\nBAD",
    "GOOD # x \\\nBAD",
    "GOOD \\\n; BAD",
    "GOOD 'x\\\n'; BAD",
    "GOOD \\\\\nBAD",
    "GOOD <<E\nE\\\n\nBAD",
];

/// Ways to write `bad x`.
pub(super) const NAMES: [&str; 9] = [
    "bad x",
    "b''ad x",
    "\"bad\" x",
    "\\bad x",
    "b\\ad x",
    "b\\\nad x",
    "\\\nbad x",
    "../../bin/bad x",
    "bad 2>&1 x >null",
];

/// A command in the language in which rules can grant something.
pub(super) fn strict() -> BoxedStrategy<String> {
    let joiner = select(vec![";", "&&", "||", "|", " ; ", " && ", "\t|| ", " | "]);
    let part = || {
        (select(vec!["good", "g'oo'd", "\"good\"", " good"]), prop::collection::vec(word(), 0..4))
    };
    let part = move || {
        part().prop_map(|(name, words)| [&[name.to_owned()], &words[..]].concat().join(" "))
    };
    let rest = prop::collection::vec((joiner, part()), 0..3);
    (part(), rest, select(vec!["", "", ";", " ; "]))
        .prop_map(|(first, rest, end)| {
            let rest = rest.into_iter().map(|(joiner, part)| format!("{joiner}{part}"));
            format!("{first}{}{end}", rest.collect::<String>())
        })
        .boxed()
}

fn word() -> BoxedStrategy<String> {
    let plain = "[A-Za-z0-9_./,:=@%+-]{1,4}";
    let single = "'[ -&(-~]{0,5}'";
    let double = "\"[ !#%-\\[\\]-_a-~]{0,5}\"";
    let piece = prop_oneof![plain, plain, single, double];
    prop::collection::vec(piece, 1..3).prop_map(|pieces| pieces.concat()).boxed()
}

/// A text that runs `bad` with something inside that bash removes before it continues, where
/// parsers of bash go wrong.
fn broken() -> BoxedStrategy<String> {
    let removed = select(vec!["\\\n", "\\\n", "''", "\"\"", "\\"]);
    (select(CONSTRUCTS.to_vec()), any::<Index>(), removed)
        .prop_map(|(construct, at, removed)| apply(construct, at, Some(removed.to_owned())))
        .boxed()
}

/// Such a text as part of a word, quoted or not.
pub(super) fn within_word() -> BoxedStrategy<String> {
    (select(vec!["", "'", "\"", "\""]), "[a%]{0,2}", broken(), "[a%]{0,2}")
        .prop_map(|(quote, before, broken, after)| {
            format!("good x{quote}{before}{broken}{after}{quote}")
        })
        .boxed()
}

/// A strict command with up to three changes.
pub(super) fn changed() -> BoxedStrategy<String> {
    let inserted = prop_oneof![
        1 => select(CONSTRUCTS.to_vec()).prop_map(str::to_owned),
        4 => broken(),
        1 => select(PIECES.to_vec()).prop_map(str::to_owned),
        1 => Just("\\\n".to_owned()),
        1 => any::<char>().prop_map(String::from),
    ];
    let change = (any::<Index>(), prop::option::weighted(0.9, inserted));
    (strict(), prop::collection::vec(change, 1..4))
        .prop_map(|(command, changes)| {
            changes
                .into_iter()
                .fold(command, |command, (at, inserted)| apply(&command, at, inserted))
        })
        .boxed()
}

/// Inserts a text between two characters, or removes one.
fn apply(command: &str, at: Index, inserted: Option<String>) -> String {
    let characters: Vec<char> = command.chars().collect();
    let (before, after) = characters.split_at(at.index(characters.len() + 1));
    let after = &after[usize::from(inserted.is_none() && !after.is_empty())..];
    before
        .iter()
        .copied()
        .chain(inserted.unwrap_or_default().chars())
        .chain(after.iter().copied())
        .collect()
}

/// A builtin with everything that it might evaluate or set, before a program. Never `kill`, which
/// might end anything.
pub(super) fn before_others(mut names: Vec<String>) -> BoxedStrategy<String> {
    const ARGUMENTS: [&str; 20] = [
        "PATH",
        "PATH=x",
        "-v",
        "-n",
        "-p",
        "-e",
        "-f",
        "-a",
        "-eq",
        "x",
        "1",
        "/",
        "good",
        "bad",
        "'a[$(bad)]'",
        "'$(bad)'",
        "'%n'",
        "'x%n'",
        "'PATH[0]'",
        "'good() { bad; }'",
    ];
    names.retain(|name| name != "kill");
    let arguments = prop::collection::vec(select(ARGUMENTS.to_vec()), 0..4);
    let joiner = select(vec![";", "|"]);
    (select(names), arguments, joiner)
        .prop_map(|(name, arguments, joiner)| {
            format!("'{name}' {} {joiner} good x", arguments.join(" "))
        })
        .boxed()
}

/// A number of pieces.
pub(super) fn heap() -> BoxedStrategy<String> {
    prop::collection::vec(select(PIECES.to_vec()), 1..12).prop_map(|pieces| pieces.concat()).boxed()
}

/// A command that runs `bad` in disguise, with a continued line anywhere.
pub(super) fn disguised() -> BoxedStrategy<String> {
    let inner = (select(DISGUISES.to_vec()), select(NAMES.to_vec()));
    let inner = inner.prop_map(|(way, name)| way.replace("BAD", name));
    let outer = prop_oneof![Just("BAD"), select(JOINED.to_vec()), select(DISGUISES.to_vec()),];
    let noise =
        prop::option::of((any::<Index>(), select(vec!["\\\n", "\\\n", "'", "\"", "#", "\n", " "])));
    (inner, outer, noise)
        .prop_map(|(inner, outer, noise)| {
            let command = outer.replace("GOOD", "good a").replace("BAD", &inner);
            match noise {
                Some((at, inserted)) => apply(&command, at, Some(inserted.to_owned())),
                None => command,
            }
        })
        .boxed()
}
