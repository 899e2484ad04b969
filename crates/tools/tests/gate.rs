//! The verdicts of the gate on calls, in each mode and under rules.

use ikigai_tools::{
    Confinement, Decision, Dispatcher, Fact, Gate, Mode, Question, Reach, Rule, Sandbox, Tree,
    Verdict, built_in,
};
use serde_json::{Value, json};

use crate::support::World;

/// A rule about a tool of this crate, or about one of which nothing is known.
pub(crate) fn new_rule(tool: &str, pattern: &str, decision: Decision) -> Result<Rule, String> {
    Rule::new(tool, Dispatcher::<()>::new(built_in()).effects_of(tool), pattern, decision)
}

/// Rules as `DECISION TOOL PATTERN`.
pub(crate) fn rules(lines: &[&str]) -> Vec<Rule> {
    let rule = |line: &&str| {
        let mut fields = line.splitn(3, ' ');
        let mut field = || fields.next().unwrap();
        let decision = Decision::parse(field()).unwrap();
        new_rule(field(), field(), decision).unwrap()
    };
    lines.iter().map(rule).collect()
}

pub(crate) fn judge_command(lines: &[&str], command: &str) -> Verdict {
    let facts =
        Fact::Command { command: command.to_owned(), leaves_sandbox: false, wants_network: false };
    Gate::new(Mode::Work, Confinement::InForce, rules(lines)).judge("bash", &[facts])
}

/// A verdict in a few letters.
fn show(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Allow(Reach::Tree) => "tree",
        Verdict::Allow(Reach::TreeAndGuarded) => "guarded",
        Verdict::Allow(Reach::Network) => "network",
        Verdict::Allow(Reach::Anywhere) => "anywhere",
        Verdict::Allow(Reach::Full) => "full",
        Verdict::Ask(_) => "ask",
        Verdict::Deny(_) => "deny",
    }
}

#[track_caller]
fn check(lines: &[&str], cases: &[(&str, &str)]) {
    for (command, expected) in cases {
        let verdict = judge_command(lines, command);
        assert_eq!(show(&verdict), *expected, "{command}: {verdict:?}");
    }
}

#[test]
fn without_rules_a_command_stays_in_the_sandbox() {
    check(&[], &[("rm -rf x", "tree"), ("a; $(b) `c`", "tree"), ("", "tree"), ("'", "tree")]);
}

#[test]
fn the_first_rule_that_matches_counts() {
    check(
        &["allow bash cargo test *", "deny bash cargo *", "trust bash *", "deny bash *"],
        &[
            ("cargo test --all", "tree"),
            ("cargo publish", "deny"),
            ("make", "anywhere"),
            ("make; cargo publish", "deny"),
            ("make; cargo test", "tree"),
        ],
    );
}

#[test]
fn a_compound_command_is_trusted_only_if_every_part_is() {
    check(
        &["trust bash cargo *", "trust bash git status"],
        &[
            ("cargo build", "anywhere"),
            ("cargo build && git status", "anywhere"),
            ("cargo build | cargo x || git status; cargo 'a;b' \"it's\" ;", "anywhere"),
            ("c'arg'o build", "anywhere"),
            ("cargo build 2>&1", "tree"),
            ("cargo build # done", "tree"),
            ("cargo test $X", "tree"),
            ("cargo test *.rs", "tree"),
            ("cargo test a\\ b", "tree"),
            ("cargo test é", "tree"),
            ("cargo \"$\\\n(rm x)\"", "tree"),
            ("cargo \"a\\\nb\"", "tree"),
            ("cargo $\\\n(rm x)", "tree"),
            ("cargo build; rm x", "tree"),
            ("cargo build & rm x", "tree"),
            ("cargo build\nrm x", "tree"),
            ("cargo build | rm x", "tree"),
            ("cargo build || rm x", "tree"),
            ("cargo $(rm x)", "tree"),
            ("cargo \"$(rm x)\"", "tree"),
            ("cargo `rm x`", "tree"),
            ("cargo <(rm x)", "tree"),
            ("cargo > >(rm x)", "tree"),
            ("(cargo build)", "tree"),
            ("{ cargo build; }", "tree"),
            ("cargo <<X\n$(rm x)\nX", "tree"),
            ("PATH=. cargo build", "tree"),
            ("PATH=.; cargo build", "tree"),
            ("export PATH=.; cargo build", "tree"),
            ("alias cargo=rm\ncargo build", "tree"),
            ("cargo() { rm x; }; cargo build", "tree"),
            ("hash -p ./rm cargo; cargo build", "tree"),
            ("$X build", "tree"),
            ("eval cargo build", "tree"),
            ("env cargo build", "tree"),
            ("cargo build > ../file", "tree"),
            ("cargo build < ../file", "tree"),
            ("./cargo build", "tree"),
            ("git status x", "tree"),
            ("for x in a; do cargo build; done", "tree"),
            ("case a in a) cargo build;; esac", "tree"),
            ("if cargo build; then rm x; fi", "tree"),
            ("cargo ${X@P}", "tree"),
            ("cargo $((a[$(rm x)]))", "tree"),
            ("cargo $'a'", "tree"),
            ("cargo 'build", "tree"),
        ],
    );
}

/// A backslash and a line break disappear before bash reads `$(`; the gate once saw no `$(` there.
#[test]
fn a_continued_line_hides_no_command() {
    let command = "git status \"$\\\n(touch /tmp/p)\"";
    assert_eq!(show(&judge_leaving(&["trust bash git status *"], command)), "ask");
    check(
        &["deny bash rm *", "deny bash git push *"],
        &[
            ("echo $\\\n(rm x)", "deny"),
            ("echo \"$\\\n(rm x)\"", "deny"),
            ("r\\\nm x", "deny"),
            ("cat <\\\n(rm x)", "deny"),
            ("ls # a\\\nrm x", "deny"),
            ("echo $'a' # a\\\nrm x", "deny"),
            ("cat <<E\nE\\\n\ngit $X", "deny"),
            ("echo '\\\n' \\\\\nrm x", "deny"),
            ("echo a \\\n b", "tree"),
        ],
    );
}

/// Builtins can change the meaning of the words after them, and evaluate their arguments.
#[test]
fn a_rule_for_all_commands_does_not_cover_what_the_shell_evaluates_itself() {
    check(
        &["trust bash *"],
        &[
            ("make x", "anywhere"),
            ("env make", "anywhere"),
            ("cd x && make", "anywhere"),
            ("echo a | make", "anywhere"),
            ("test -f x && make", "anywhere"),
            ("eval make", "tree"),
            ("exec make", "tree"),
            ("command make", "tree"),
            ("export PATH=x; make", "tree"),
            ("read PATH; make", "tree"),
            ("printf -v PATH x; make", "tree"),
            ("printf '%n' PATH; make", "tree"),
            ("test -v 'a[$(make)]'", "tree"),
            ("if make", "tree"),
            ("time make", "tree"),
        ],
    );
    check(&["trust bash env *", "deny bash rm *"], &[("env rm x", "deny"), ("env ls", "anywhere")]);
}

/// Granting rules do not exist for them, so the next rule counts.
#[test]
fn what_is_not_read_strictly_is_judged_by_the_rules_that_forbid() {
    check(
        &["allow bash cargo test *", "ask bash cargo *", "deny bash *"],
        &[
            ("cargo test x", "tree"),
            ("cargo test x 2>&1", "ask"),
            ("cargo test $X", "ask"),
            ("> file", "deny"),
            ("X=1", "deny"),
            ("cargo x; > file", "deny"),
        ],
    );
}

#[test]
fn what_is_forbidden_is_found_wherever_it_may_be() {
    for (decision, expected) in [("deny", "deny"), ("ask", "ask")] {
        let line = format!("{decision} bash rm *");
        let commands = [
            "rm x",
            "rm",
            "/bin/rm x",
            "r''m x",
            "\\rm x",
            "X=1 rm x",
            "ls; rm x",
            "ls | rm x > y",
            "env -i rm x",
            "sudo -u me /bin/rm x",
            "bash -c 'cd y && rm x'",
            "find . -exec rm {} \\;",
            "echo $(rm x)",
            "(rm x)",
            "if true; then rm x; fi",
            "bash <<E\nrm x\nE",
            "f() { rm x; }",
            "echo 'rm x' | sh",
            "echo 'rm x' | /bin/bash -s y",
            "sh <<< 'rm x'",
            "env sh <<< 'rm x'",
            "echo rm x | xargs nice",
        ];
        for command in commands {
            let verdict = judge_command(&["trust bash ls *", &line], command);
            assert_eq!(show(&verdict), expected, "{command}: {verdict:?}");
        }
    }
    // A word that is mentioned is not the command.
    check(&["deny bash rm *"], &[("git rm x", "tree"), ("echo 'rm x'", "tree")]);
    // An unknown word may be the one.
    check(&["deny bash git push *"], &[("git $X", "deny"), ("git log $X", "tree")]);
}

#[test]
fn what_could_be_anything_is_asked_for_when_something_is_forbidden() {
    check(
        &["deny bash rm *"],
        &[
            ("$X y", "ask"),
            ("$(cat y) x", "ask"),
            ("eval \"$X\"", "ask"),
            ("ls $X", "tree"),
            ("bash -c 'r${X}m y'", "ask"),
            ("find . -exec {} +", "ask"),
            ("find . -exec ls {} +", "tree"),
            ("find . -name '*.rs'", "tree"),
            ("if true; then $X y; fi", "ask"),
            ("echo \"$($X y)\"", "ask"),
            ("echo `$X`", "ask"),
            ("for x in r; do ${x}m y; done", "ask"),
            ("case $X in a) $Y;; esac", "ask"),
            ("ls ${X@P}", "ask"),
            ("ls $'\\x72'", "ask"),
            ("diff <($X)", "ask"),
            ("X=m; r$X y", "ask"),
            ("X=cker; do$X ps", "ask"),
            ("fi$X . -exec ls $Y", "ask"),
            ("time -p $X y", "ask"),
            ("{ A=1 $X; }", "ask"),
            ("function f { $X y; }; f", "ask"),
            ("coproc N { $X y; }", "ask"),
            ("for x do ls; done", "ask"),
            ("echo $(case $X in a) $Y;; esac)", "ask"),
            ("(case a in a) :;; esac; ls $Y)", "ask"),
            ("cat <<E\n$(ls)\nE", "ask"),
            ("test -v 'a[$(ls $X)]'", "ask"),
            ("[[ -v 'a[$(ls $X)]' ]]", "ask"),
            ("$X>/dev/null", "ask"),
            ("ls; $_>/dev/null", "ask"),
        ],
    );
}

/// `$_` is the last argument of the previous command; it was once taken for a file descriptor.
#[test]
fn a_variable_before_a_redirection_is_a_command() {
    check(
        &["trust bash cargo *"],
        &[
            ("cargo x ./evil; $_>/dev/null", "tree"),
            ("cargo x ./evil; ${X}>/dev/null", "tree"),
            ("cargo x 2>/dev/null", "tree"),
        ],
    );
}

#[test]
fn a_question_about_one_part_does_not_hide_that_another_is_denied() {
    check(
        &["ask bash curl *", "deny bash git push*"],
        &[
            ("(curl x; git push)", "deny"),
            ("echo $(curl x; git push)", "deny"),
            ("curl x; git push", "deny"),
            ("(curl x)", "ask"),
        ],
    );
}

/// All words were once scanned again for every part, which took minutes.
#[test]
fn a_long_command_of_nothing_but_doubts_is_judged_in_time() {
    let rules = ["deny bash rm *", "ask bash curl *", "trust bash x *"];
    let readers = ["! $X;", "${", "$(", "\"$(", "`", "<(", "case x in ", "<<E\n", "if ", "(("];
    let runners = [
        "nice ",
        "xargs -I{} ",
        "env -S ",
        "find . -exec ",
        "bash -c '",
        "bash <<E\n",
        "cat <<E | ",
        "cat<<<x|",
        "echo x|",
        "su -c",
        "eval ",
        "parallel ",
    ];
    for piece in readers.into_iter().chain(runners) {
        let command = piece.repeat(120_000 / piece.len());
        assert_ne!(show(&judge_command(&rules, &command)), "anywhere", "{piece}");
    }
}

/// A single forbidding rule once turned every loop into a question.
#[test]
fn what_is_written_out_is_not_asked_for_because_something_else_is_forbidden() {
    check(
        &["deny bash git push*", "ask bash curl *"],
        &[
            ("for f in *; do echo $f; done", "tree"),
            ("echo $(date +%Y)", "tree"),
            ("echo \"today $(date +'%Y') and `ls`\"", "tree"),
            ("echo $((1+2))", "tree"),
            ("[[ -d sub ]] && echo y", "tree"),
            ("if test -f a; then make; else echo no; fi", "tree"),
            ("while read -r line; do echo \"$line\"; done < file", "tree"),
            ("case \"$1\" in a) make;; *) echo b;; esac", "tree"),
            ("(cd sub && ls)", "tree"),
            ("cat <<E\ntext\nE", "tree"),
            ("cat > f <<'E'\nit's $(a) \"text\nE\nmake", "tree"),
            ("cat <<-E\n\tit's $X\n\tE\nmake", "tree"),
            ("time -p ls", "tree"),
            ("for ((i = 0; i < 3; i++)); do make; done", "tree"),
            ("export A=1; make", "tree"),
            ("set -e; ls", "tree"),
            ("time ls", "tree"),
            ("! ls", "tree"),
            ("f() { ls; }; f", "tree"),
            ("diff <(sort a) <(sort b)", "tree"),
            ("echo ${X:-none} ${Y%.c}", "tree"),
            ("for f in *; do git add $f; done", "tree"),
            ("for f in *; do git $f; done", "deny"),
            ("git $(echo push)", "deny"),
            ("git \"`echo push`\"", "deny"),
            ("if true; then git push; fi", "deny"),
            ("time -p git $X", "deny"),
            ("if A=1 git $X; then :; fi", "deny"),
            ("cat <<E\nit's\nE\ngit $X\n# '", "deny"),
            ("git $X>/dev/null", "deny"),
            ("(cd x; curl y)", "ask"),
            ("echo $(curl y)", "ask"),
        ],
    );
}

fn asked(verdict: Verdict) -> Question {
    match verdict {
        Verdict::Ask(question) => question,
        other => panic!("{other:?}"),
    }
}

fn judge_leaving(lines: &[&str], command: &str) -> Verdict {
    let world = World::new();
    let facts = world.facts("bash", &json!({"command": command, "sandbox": false}));
    Gate::new(Mode::Work, Confinement::InForce, rules(lines)).judge("bash", &facts)
}

/// A rule as suggested in a question, with the pattern in TOML syntax.
fn rule(tool: &str, pattern: &str, decision: &str) -> String {
    format!("[[rules]]\ntool = \"{tool}\"\nmatch = \"{pattern}\"\ndecision = \"{decision}\"")
}

fn trusting(pattern: &str) -> String {
    rule("bash", pattern, "trust")
}

#[test]
fn leaving_the_sandbox_needs_trust_or_a_yes() {
    assert_eq!(judge_leaving(&["trust bash make *"], "make x"), Verdict::Allow(Reach::Anywhere));
    assert_eq!(show(&judge_leaving(&["allow bash make *"], "make x")), "ask");
    assert_eq!(show(&judge_leaving(&["deny bash make *"], "make x")), "deny");
    let question = asked(judge_leaving(&["trust bash ls *"], "ls; git push 'a b'; make x"));
    assert_eq!(
        question,
        Question {
            why: "the command asks to leave the sandbox".to_owned(),
            reach: Reach::Anywhere,
            rule: Some([trusting("git push 'a b'"), trusting("make x")].join("\n")),
        }
    );
    assert_eq!(asked(judge_leaving(&[], "make $(x)")).rule, None);
    assert_eq!(asked(judge_leaving(&[], "make > x")).rule, None);
    // A rule with a star would allow more than this command.
    for command in ["make $X", "rm ~/old", "rm *.o", "rm \u{e9}", "echo '\n'"] {
        assert_eq!(asked(judge_leaving(&[], command)).rule, None, "{command}");
    }
}

fn judge_networking(lines: &[&str], command: &str) -> Verdict {
    let world = World::new();
    let facts = world.facts("bash", &json!({"command": command, "network": true}));
    Gate::new(Mode::Work, Confinement::InForce, rules(lines)).judge("bash", &facts)
}

#[test]
fn the_network_needs_a_rule_for_every_part_or_approval() {
    let question = asked(judge_networking(&["network bash ls *"], "ls; git fetch 'a b'"));
    assert_eq!(
        question,
        Question {
            why: "the command wants to use the network, inside the sandbox".to_owned(),
            reach: Reach::Network,
            rule: Some(rule("bash", "git fetch 'a b'", "network")),
        }
    );
    let cases = [
        ("network bash git fetch", "git fetch", "network"),
        ("network bash *", "git fetch && ls", "network"),
        ("trust bash git fetch", "git fetch", "anywhere"),
        ("allow bash git fetch", "git fetch", "ask"),
        ("deny bash git fetch", "git fetch", "deny"),
        ("network bash git fetch", "git fetch; ls", "ask"),
        ("network bash git *", "git fetch 2>&1", "ask"),
    ];
    for (line, command, expected) in cases {
        assert_eq!(show(&judge_networking(&[line], command)), expected, "{line}: {command}");
    }
}

#[test]
fn a_rule_for_the_network_gives_it_to_a_command_that_did_not_ask() {
    check(
        &["network bash git fetch *", "trust bash make *", "allow bash ls *"],
        &[
            ("git fetch", "network"),
            ("git fetch; make", "network"),
            ("git fetch; ls", "tree"),
            ("git fetch; cat x", "tree"),
            ("git fetch > x", "tree"),
        ],
    );
    // It does not permit leaving the sandbox.
    assert_eq!(show(&judge_leaving(&["network bash git *"], "git fetch")), "ask");
}

#[test]
fn leaving_the_sandbox_counts_more_than_the_network_in_it() {
    let world = World::new();
    let both = world.facts("bash", &json!({"command": "ls", "sandbox": false, "network": true}));
    assert_eq!(both, world.facts("bash", &json!({"command": "ls", "sandbox": false})));
    let network = world.facts("bash", &json!({"command": "ls", "network": true}));
    assert_ne!(network, world.facts("bash", &json!({"command": "ls"})));
    assert_ne!(network, both);
}

#[test]
fn where_commands_have_the_network_it_needs_nothing() {
    let sandbox = Sandbox { network: true, ..Sandbox::default() };
    let world = World::new().with_sandbox(sandbox);
    let facts = world.facts("bash", &json!({"command": "ls", "network": true}));
    assert_eq!(facts, world.facts("bash", &json!({"command": "ls"})));
}

#[test]
fn only_commands_can_be_granted_the_network() {
    let rule = |tool: &str| new_rule(tool, "*", Decision::Network).map(drop);
    assert_eq!(rule("bash"), Ok(()));
    let why = "only commands can be granted the network; use allow or trust".to_owned();
    assert_eq!(rule("file_read"), Err(why));
}

#[test]
fn the_rule_that_is_named_does_allow_it() {
    for command in
        ["git push 'a b'", r#"echo "it's" '*' '[a]' '"\' "#, "a; b 'c'; 'd' ''", "ls '*'"]
    {
        let rule = asked(judge_leaving(&[], command)).rule.unwrap();
        // Every pattern, in TOML syntax.
        let lines: Vec<String> = rule
            .split("match = ")
            .skip(1)
            .map(|rest| rest.lines().next().unwrap())
            .map(|quoted| serde_json::from_str::<String>(quoted).unwrap())
            .map(|pattern| format!("trust bash {pattern}"))
            .collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let verdict = judge_leaving(&lines, command);
        assert_eq!(verdict, Verdict::Allow(Reach::Anywhere), "{command}: {rule}");
    }
}

#[test]
fn no_rules_are_named_for_a_command_of_many_parts() {
    let parts = |count: usize| (0..count).map(|n| format!("make {n}; ")).collect::<String>();
    assert!(asked(judge_leaving(&[], &parts(8))).rule.is_some());
    assert_eq!(asked(judge_leaving(&[], &parts(9))).rule, None);
}

#[test]
fn a_rule_that_asks_is_answered_by_one_before_it() {
    let question = asked(judge_command(&["ask bash git *"], "ls; git push 'a b'"));
    assert_eq!(question.rule, Some(rule("bash", "git push 'a b'", "allow")));
    let lines = ["allow bash git push 'a b'", "ask bash git *"];
    check(&lines, &[("ls; git push 'a b'", "tree"), ("git push", "ask")]);
    // No rule is suggested for a command inside another one.
    assert_eq!(asked(judge_command(&["ask bash git *"], "env git push")).rule, None);
}

#[test]
fn where_nobody_can_be_asked_the_refusal_names_the_rule() {
    assert_eq!(
        asked(judge_leaving(&[], "make \"x\"")).refusal().to_string(),
        json!({
            "success": false,
            "error": "Not permitted: the command asks to leave the sandbox. This rule would allow it, in your own configuration before other rules ('ikigai config' names the file):\n\
                      [[rules]]\ntool = \"bash\"\nmatch = \"make x\"\ndecision = \"trust\"",
        })
        .to_string()
    );
    let refusal = asked(judge_leaving(&[], "make $(x)")).refusal().to_string();
    assert!(refusal.contains("No rule can allow only this"), "{refusal}");
}

#[test]
fn without_a_sandbox_every_command_is_asked_for() {
    let gate = |lines: &[&str]| Gate::new(Mode::Work, Confinement::Missing, rules(lines));
    let facts =
        Fact::Command { command: "make".to_owned(), leaves_sandbox: false, wants_network: false };
    let facts = [facts];
    let question = asked(gate(&["allow bash make"]).judge("bash", &facts));
    assert_eq!(question.reach, Reach::Anywhere);
    assert_eq!(show(&gate(&["trust bash make"]).judge("bash", &facts)), "anywhere");
}

#[track_caller]
fn check_file(world: &World, mode: Mode, lines: &[&str], cases: &[(&str, &str, &str)]) {
    let gate = Gate::new(mode, Confinement::InForce, rules(lines));
    for (tool, path, expected) in cases {
        let arguments: Value = match *tool {
            "glob" => json!({"pattern": path}),
            "grep" => json!({"pattern": "x", "path": path}),
            _ => json!({"path": path, "content": "", "old_string": "a", "new_string": "b"}),
        };
        let verdict = gate.judge(tool, &world.facts(tool, &arguments));
        assert_eq!(show(&verdict), *expected, "{tool} {path}: {verdict:?}");
    }
}

#[test]
fn a_mode_says_what_is_free() {
    let world = World::new();
    world.write("work/file", "").write("work/sub/file", "");
    world.link("work/out", world.path("outside/secret"));
    world.link("work/innocent", ".git/config").write("work/.git/config", "");
    let outside = world.text("outside/secret");
    let reading = [
        ("file_read", "file", "tree"),
        ("file_read", "nothing/at/all", "tree"),
        ("file_read", "../more/x", "tree"),
        ("file_read", "AGENTS.md", "tree"),
        ("file_read", &outside, "ask"),
        ("file_read", "out", "ask"),
        ("grep", ".", "tree"),
        ("grep", "../outside", "ask"),
        ("glob", "**", "tree"),
        ("glob", "../outside/*", "ask"),
        ("glob", "sub/../../outside/x*", "ask"),
        ("glob", "/etc/*", "ask"),
    ];
    check_file(&world, Mode::Read, &[], &reading);
    check_file(&world, Mode::Work, &[], &reading);
    let writing = [
        ("file_write", "file", "tree"),
        ("file_write", "new/file", "tree"),
        ("file_edit", "file", "tree"),
        ("file_write", "AGENTS.md", "ask"),
        ("file_edit", "innocent", "ask"),
        ("file_write", ".git/hooks/pre-commit", "ask"),
        ("file_write", &outside, "ask"),
        ("file_write", "out", "ask"),
    ];
    check_file(&world, Mode::Work, &[], &writing);
    for (tool, path, _) in writing {
        check_file(&world, Mode::Read, &["trust file_write **"], &[(tool, path, "deny")]);
        check_file(&world, Mode::Full, &[], &[(tool, path, "full")]);
    }
    let bash =
        Fact::Command { command: "ls".to_owned(), leaves_sandbox: false, wants_network: false };
    let read = Gate::new(Mode::Read, Confinement::InForce, rules(&["trust bash *"]));
    let why = "bash is not offered in mode read".to_owned();
    assert_eq!(read.judge("bash", &[bash]), Verdict::Deny(why));
}

#[test]
fn full_asks_nothing_and_still_denies() {
    let gate =
        Gate::new(Mode::Full, Confinement::Missing, rules(&["deny bash rm *", "ask bash *"]));
    let judge = |command: &str| {
        let command = command.to_owned();
        gate.judge("bash", &[Fact::Command { command, leaves_sandbox: true, wants_network: false }])
    };
    assert_eq!(judge("ls; $X"), Verdict::Allow(Reach::Full));
    assert_eq!(show(&judge("ls; rm x")), "deny");
}

#[test]
fn rules_for_files_are_about_where_the_path_really_leads() {
    let world = World::new();
    world
        .write("work/src/file", "")
        .write("work/secrets/key.pem", "")
        .link("work/src/innocent", "../secrets/key.pem")
        .link("work/src/out", world.path("outside/secret"));
    let outside = format!("trust file_read {}/*", world.text("outside"));
    check_file(
        &world,
        Mode::Work,
        &["deny file_read secrets", "deny file_read *.pem", "trust file_read src/*", &outside],
        &[
            ("file_read", "src/file", "tree"),
            ("file_read", "secrets/key.pem", "deny"),
            ("file_read", "src/../secrets/key.pem", "deny"),
            ("file_read", "src/innocent", "deny"),
            ("file_read", "deep/down/x.pem", "deny"),
            ("file_read", "../outside/secret", "anywhere"),
            ("file_read", "../outside/folder/secret", "ask"),
            // Its target was not resolved, so no rule applies to it.
            ("file_read", "src/out", "ask"),
            ("grep", "secrets", "tree"),
        ],
    );
    check_file(
        &world,
        Mode::Work,
        &["allow file_write AGENTS.md", "ask file_write src/**"],
        &[
            ("file_write", "AGENTS.md", "guarded"),
            ("file_write", "sub/AGENTS.md", "ask"),
            ("file_write", "src/file", "ask"),
            ("file_write", "other", "tree"),
        ],
    );
}

/// A name that a rule trusts could be a link made by a command that may write there.
#[test]
fn a_rule_about_a_place_outside_trusts_no_link_that_leads_out_of_it() {
    let world = World::new();
    world
        .write("elsewhere/file", "")
        .link("outside/way", world.path("elsewhere"))
        .link("outside/to-nothing", world.path("elsewhere/new"))
        .link("outside/within", "folder");
    let outside = format!("trust file_write {}/**", world.text("outside"));
    check_file(
        &world,
        Mode::Work,
        &[&outside],
        &[
            ("file_write", "../outside/new/file", "anywhere"),
            ("file_write", "../outside/within/new", "anywhere"),
            ("file_write", "../outside/way/file", "ask"),
            ("file_write", "../outside/way/new/file", "ask"),
            ("file_write", "../outside/way/../file", "ask"),
            ("file_write", "../outside/none/../file", "ask"),
            ("file_write", "../outside/to-nothing", "ask"),
        ],
    );
}

/// With the home directory as the tree, an agent could have written the rules itself.
#[test]
fn hidden_places_in_the_tree_are_asked_for() {
    let world = World::new();
    world.write("work/.ssh/id", "").write("work/data/base", "").write("work/.ssh/own/file", "");
    world.link("work/innocent", ".ssh").link("work/base", "data/base");
    let hidden = ["work/.ssh", "work/settings/own", "work/data/base", "outside", "work"];
    let hidden = hidden.map(|name| world.path(name));
    let roots = ["work", "work/.ssh/own"].map(|name| world.path(name));
    let tree = Tree::open(roots).unwrap().hiding(hidden);
    let world = world.confined_to(tree.into());
    let cases = [
        ("file_read", ".ssh/id", "ask"),
        ("file_read", "innocent/id", "ask"),
        ("file_read", "base", "ask"),
        ("file_write", "settings/own/rules", "ask"),
        ("grep", ".ssh", "ask"),
        ("glob", ".ssh/*", "ask"),
        ("file_write", "settings/other", "tree"),
        ("file_write", "data/base2", "tree"),
        ("file_read", ".ssh/own/file", "tree"),
        ("grep", ".", "tree"),
    ];
    check_file(&world, Mode::Work, &[], &cases);
    check_file(&world, Mode::Work, &["allow file_read **"], &cases);
    let id = ("file_read", ".ssh/id", "anywhere");
    check_file(&world, Mode::Work, &["trust file_read .ssh/id"], &[id]);
    let facts = world.facts("file_read", &json!({"path": ".ssh/id"}));
    let question =
        asked(Gate::new(Mode::Work, Confinement::InForce, Vec::new()).judge("file_read", &facts));
    assert_eq!(question.why, ".ssh/id contains secrets or ikigai's own files");
}

#[test]
fn the_question_about_a_file_names_the_rule() {
    let world = World::new();
    world.write("work/sub/file", "");
    let gate = Gate::new(Mode::Work, Confinement::InForce, Vec::new());
    let write = |path: &str| {
        let facts = world.facts("file_write", &json!({"path": path, "content": ""}));
        asked(gate.judge("file_write", &facts))
    };
    let question = write("sub/../AGENTS.md");
    assert_eq!(question.rule, Some(rule("file_write", "AGENTS.md", "allow")));
    assert_eq!(question.reach, Reach::TreeAndGuarded);
    let outside = world.text("outside/a*b");
    let question = write("../outside/a*b");
    assert_eq!(question.why, "../outside/a*b is outside the working tree");
    let pattern = outside.replace('*', "\\\\*");
    assert_eq!(question.rule, Some(rule("file_write", &pattern, "trust")));
}

#[test]
fn a_rule_about_all_steps_of_a_tool_counts() {
    let judge = |lines: &[&str]| {
        let gate = Gate::new(Mode::Work, Confinement::InForce, rules(lines));
        show(&gate.judge("mail", &[Fact::Database]))
    };
    assert_eq!(judge(&[]), "tree");
    assert_eq!(judge(&["deny mail *"]), "deny");
    assert_eq!(judge(&["ask mail *"]), "ask");
    assert_eq!(judge(&["deny mail 1/*", "deny bash *"]), "tree");
}

/// The targets of the user's links are run or trusted as much as the links.
#[test]
fn a_protected_name_that_is_a_link_needs_approval_wherever_it_leads() {
    let world = World::new();
    world.write("work/scripts/check.sh", "").write("work/docs/rules.md", "");
    world.write("work/.git/hooks/other", "");
    world.link("work/.git/hooks/pre-commit", "../../scripts/check.sh");
    world.link("work/AGENTS.md", "docs/rules.md").link("work/again", ".git/hooks/pre-commit");
    world.link("work/folder", ".git/hooks");
    let cases = ["AGENTS.md", ".git/hooks/pre-commit", "again", "folder/pre-commit"]
        .map(|path| ("file_write", path, "ask"));
    check_file(&world, Mode::Work, &[], &cases);
    check_file(&world, Mode::Work, &[], &[("file_write", "scripts/check.sh", "tree")]);
}
