//! Spellings of a command that rules must recognize, and ordinary commands that they must leave
//! alone.

use ikigai_tools::Verdict;

use crate::gate::judge_command;

/// Ways to run `git push`. Which are denied and which only need approval does not matter here.
const SPELLINGS: &[&str] = &[
    // Programs that run the rest of their words.
    "timeout 5 git push",
    "timeout -s KILL --kill-after=2 5 git push",
    "nice git push",
    "nice -n 5 git push",
    "setsid -w git push",
    "ionice -c3 git push",
    "stdbuf -oL git push",
    "flock f git push",
    "flock f -c 'git push'",
    "flock f -c'git pu\\sh'",
    "watch git push",
    "time -p git push",
    "/usr/bin/time -f %e git push",
    "script -c 'git push'",
    "script -qc'git push' /dev/null",
    "su -c'git push'",
    "/lib64/ld-linux-x86-64.so.2 /usr/bin/git push",
    "busybox sh -c 'git push'",
    "busybox sh -c 'git pu\\sh'",
    "coproc git push",
    "find . -exec git push \\;",
    "find . -execdir git {} +",
    "find . -exec {} push \\;",
    "find . -not -name -exec -exec git $X \\;",
    "find . -exec env -u + git {} \\;",
    "find . -exec true \\; -exec git push \\;",
    "exec -a ls git push",
    "env -u X -C d git $Y",
    "env -u X $Y push",
    "env -a ls git $Y",
    "env -uSHELL git $Y",
    "xvfb-run -a git push",
    // env splits a string itself.
    "env -S 'git push'",
    "env -S'git push'",
    "env -S git push",
    "env -Sgit push",
    "env -iS 'git push'",
    "env -iS'git push'",
    "env -vS 'git\\_push'",
    "env --split-string='git push'",
    "env --split-string 'git push'",
    "env --s='g\"it\" push'",
    "env -S \"g'it' push\"",
    "env -S 'env -S\"git push\"'",
    // Words that are only known at run time.
    "echo push | xargs git",
    "echo push | xargs -n 1 git",
    "xargs git push",
    "xargs -0 -a list git push",
    "xargs -I{} git {} < list",
    "xargs -I R git R origin < list",
    "xargs --replace=% git %",
    "xargs --rep=% git % x",
    "xargs -0I% git % x",
    "parallel -I% git %",
    "parallel --tmpdir d git",
    "parallel git {1} ::: push",
    "xargs -I{} {} push",
    "xargs -I{} sh -c '{}'",
    "echo x | xargs nice",
    "echo push | parallel git",
    "echo x | parallel -j 2 git {}",
    "parallel < list",
    "parallel ::: 'git pu\\sh'",
    "parallel 'git pu\\sh' ::: x",
    // A shell whose input is not written out.
    "printf 'git pu\\x73h' | bash",
    "echo hsup tig | rev | sh",
    "sed s/x/y/ f | bash",
    "base64 -d <<<Z2l0 | sh",
    "cat f | sudo bash",
    "cat f | sudo -s",
    "cat f | su",
    "cat f | sudo fish",
    "cat f | script -q /dev/null",
    "cat f | env bash -x",
    "cat f | bash -o pipefail",
    "cat f | bash -s x",
    "cat f | bash -norc -s x",
    "su <<'E'\ngit pu\\sh\nE",
    "cat f | fish",
    "cat f | bash /dev/stdin",
    "cat f | bash -",
    "cat f | bash -c bash",
    "cat f | bash -c '. /dev/stdin'",
    "cat f | { cd x; bash; }",
    "cat f | while true; do sh; done",
    "cat f |& rbash",
    "cat f |\nsh",
    "cat f | busybox sh",
    "(echo -n 'git pu'; echo sh) | sh",
    "{ echo -n 'git pu'; echo sh; } | sh",
    "echo() { printf '\\x67'; }; echo make | sh",
    "bash < f",
    "bash < <(cat f)",
    "bash <<< \"$x\"",
    "bash <<< make < f",
    "bash < f 3<<< make",
    "bash <<E\n$x\nE",
    "bash <<E\ngit pu\\\\sh\nE",
    "bash <<'E'\nx=git; $x push\nE",
    "bash <<'E'\ngit pu\\sh\nE",
    "cat <<'E' | bash\ngit pu\\sh\nE",
    "cat <<'E' | bash -x\nbash <<< 'git pu\\sh'\nE",
    "echo 'git pu\"sh\"' | bash",
    "exec < f; bash",
    "echo make | { bash; } < f",
    "echo make | (bash) < f",
    "case make in\necho|make) bash;; esac < f",
    "cat f | bash ../../dev/stdin",
    "cat <<E\n$(git pu\\sh)",
    "bash <<'E'\ngit pu\\sh",
    "echo -e 'git pu\"sh\"' | bash",
    ". <(cat f)",
    "source /dev/stdin < f",
    ". /proc/self/fd/0 < f",
    "bash <(cat f)",
    "bash --rcfile <(cat f) -i",
    "bash --rcfile f -i < g",
    "bash --rcfile <(cat f) -ic true",
    "cat f | bash --rcfile /dev/stdin -ic true",
    "bash -o $X",
    // Text that bash evaluates later.
    "bash -c 'git pu\\sh'",
    "bash -euo pipefail -c 'git pu\\sh'",
    "eval 'git pu\\sh'",
    "eval -- 'git pu\\sh'",
    "bash -rcfile f -c 'git pu\\sh'",
    "bash +o posix -c -- 'git pu\\sh'",
    "builtin eval 'git pu\\sh'",
    "trap 'git push' EXIT",
    "trap 'git pu\\sh' EXIT",
    "compgen -C 'git push'",
    "compgen -C 'git pu\\sh'",
    "mapfile -C 'git push' -c 1 x",
    "PS4='$(git push)' bash -x f.sh",
    "PS4='$(git pu\\sh)'; set -x; ls",
    "export PS4='$(git pu\\sh)'; bash -x f.sh",
    "env PS4='$(git pu\\sh)' bash -x f.sh",
    "PROMPT_COMMAND='git pu\\sh' bash -i",
    "BASH_ENV=f bash g.sh",
    "read PS4 <<< '$(git pu\\sh)'; set -x; ls",
    "PS4[0]='$(git pu\\sh)'; set -x; ls",
    "env 'BASH_FUNC_ls%%=() { git pu\\sh; }' bash -c ls",
    "env -- X=1 git $Y",
    "rbash -c 'git push'",
    "rbash -c 'git pu\\sh'",
    // Aliases.
    "hash -p /usr/bin/git x; x push",
    "BASH_CMDS[x]=/usr/bin/git; x push",
    "shopt -s expand_aliases; alias x=git\nx push",
];

/// Commands unrelated to `git push`.
const EVERYDAY: &[&str] = &[
    "echo a | xargs ls",
    "ls | xargs -0 -n 1 rm -f",
    "ls | xargs -I{} cp {} \"$dir\"",
    "git diff --name-only | xargs git add",
    "find . -name x -exec rm {} +",
    "find . -name '*.rs' -exec grep -n 'a\\.b$' {} \\;",
    "find . -exec git add {} +",
    "find . -name '*.c' -exec sh -c 'gcc -c \"$1\"' _ {} \\;",
    "cat x | python3",
    "python3 - <<'E'\nprint('$')\nE",
    "curl -s x | jq '.a[]' | sort",
    "timeout 60 cargo test \"$name\"",
    "timeout -k 5 60 grep 'a$' f",
    "nice -n 5 make -j \"$(nproc)\"",
    "env RUST_LOG=debug cargo test $X",
    "nohup ./server \"$PORT\" > log 2>&1 &",
    "time make $X",
    "command -v git",
    "command ls $X",
    "bash x.sh",
    "bash --version",
    "bash --norc --noprofile x.sh",
    "bash -x ./x.sh \"$1\"",
    "bash -euo pipefail x.sh < f",
    "cat f | bash x.sh",
    "bash -c 'make && ls $X'",
    "bash <<'E'\nfor f in *; do echo \"$f\"; done\nE",
    "cat <<'E' | sh\nmake\nE",
    "ls | parallel -j 4 gzip",
    "echo make | bash 2>&1",
    "printf 'make\\n' | sh",
    "eval 'make $X'",
    "trap 'rm -f \"$tmp\"' EXIT",
    "source ./env.sh",
    ". .venv/bin/activate && pytest",
    "sudo make install",
    "hash -r",
    "make; make install",
    "while read -r x; do echo \"$x\"; done < f",
];

#[test]
fn a_rule_sees_through_every_spelling() {
    for decision in ["deny", "ask"] {
        let rule = format!("{decision} bash git push*");
        let passes =
            |command: &&&str| matches!(judge_command(&[&rule], command), Verdict::Allow(_));
        let passed: Vec<&&str> = SPELLINGS.iter().filter(passes).collect();
        assert!(passed.is_empty(), "{decision}: {} {passed:#?}", passed.len());
    }
}

/// If questions are asked too often, users stop reading them.
#[test]
fn a_rule_leaves_alone_what_it_is_not_about() {
    let asked: Vec<(&str, Verdict)> = EVERYDAY
        .iter()
        .map(|command| (*command, judge_command(&["deny bash git push*"], command)))
        .filter(|(_, verdict)| !matches!(verdict, Verdict::Allow(_)))
        .collect();
    assert!(asked.is_empty(), "{} {asked:#?}", asked.len());
}

/// None of this matters if no rule forbids anything.
#[test]
fn without_a_rule_that_forbids_nothing_is_asked() {
    for command in SPELLINGS.iter().chain(EVERYDAY) {
        let verdict = judge_command(&["trust bash cargo *"], command);
        assert!(matches!(verdict, Verdict::Allow(_)), "{command}: {verdict:?}");
    }
}
