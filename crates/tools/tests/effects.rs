//! What calls say before they run: their effects, how they are shown, and all that they would do. And what a gate
//! makes of effects, whatever the tool.

use std::sync::Arc;

use ikigai_conversation::{EffectKind, Preview};
use ikigai_tools::{
    BuiltIn, Call, Confinement, Decision, Declaration, Dispatcher, Effect, Fact, Gate, Mode, Reach,
    Rule, Tool, ToolResult, Verdict, built_in,
};
use serde_json::{Value, json};

use crate::support::{World, prepare};

#[track_caller]
fn check_call(tool: &str, arguments: &Value, effects: &[Effect], shown: &str) {
    let call = prepare(tool, arguments);
    assert_eq!(call.effects(), effects);
    assert_eq!(call.summary().to_string(), shown);
}

#[test]
fn every_tool_says_what_a_call_would_do_and_how_it_is_shown() {
    let read = |path: &str| [Effect::Read(path.to_owned())];
    let write = |path: &str| [Effect::Write(path.to_owned())];
    check_call("glob", &json!({"pattern": "src/*.rs"}), &read("./src"), "Find  src/*.rs");
    let arguments = json!({"pattern": "*.rs", "path": "a"});
    check_call("glob", &arguments, &read("a/"), "Find  *.rs in a");
    check_call("grep", &json!({"pattern": "a b"}), &read("."), r#"Search  "a b""#);
    let arguments = json!({"pattern": "x", "path": "src", "glob": "*.rs"});
    check_call("grep", &arguments, &read("src"), r#"Search  "x" in src in *.rs"#);
    check_call("file_read", &json!({"path": "a"}), &read("a"), "Read  a");
    let arguments = json!({"path": "a", "offset": 7, "limit": 1});
    check_call("file_read", &arguments, &read("a"), "Read  a from line 7, 1 line");
    check_call("file_write", &json!({"path": "a", "content": "x"}), &write("a"), "Write  a");
    let arguments = json!({"path": "a", "old_string": "x", "new_string": "y"});
    check_call("file_edit", &arguments, &write("a"), "Edit  a");
    let command = |leaves_sandbox, wants_network| {
        [Effect::Command { command: "a\nb".to_owned(), leaves_sandbox, wants_network }]
    };
    check_call("bash", &json!({"command": "a\nb"}), &command(false, false), "Bash  a\nb");
    let arguments = json!({"command": "a\nb", "sandbox": false, "network": true});
    check_call("bash", &arguments, &command(true, true), "Bash  a\nb");
}

/// A tool made at run time whose calls have these effects.
fn tool(declared: &'static [EffectKind], effects: fn() -> Vec<Effect>) -> Call<()> {
    #[derive(Debug)]
    struct Made(Declaration, &'static [EffectKind], fn() -> Vec<Effect>);
    impl Tool<()> for Made {
        fn declaration(&self) -> &Declaration {
            &self.0
        }
        fn effects(&self) -> &[EffectKind] {
            self.1
        }
        fn prepare(&self, _: &ikigai_tools::Arguments) -> Result<Call<()>, ToolResult> {
            let call = Call::blocking(|_| ToolResult::output(String::new()));
            Ok(call.with_effects((self.2)()))
        }
    }
    let made = Made(Declaration::new("made", "Made up", &[]), declared, effects);
    Dispatcher::new(vec![Arc::new(made)]).dispatch("made", b"{}").unwrap()
}

#[test]
fn what_a_tool_does_not_declare_is_unknown() {
    use EffectKind::{Read, Unknown};
    let read = || vec![Effect::Read("a".to_owned())];
    assert_eq!(tool(&[Read], read).effect_kinds(), [Read]);
    assert_eq!(tool(&[Read], Vec::new).effect_kinds(), [Unknown], "a call that says nothing");
    let write = || vec![Effect::Read("a".to_owned()), Effect::Write("a".to_owned())];
    assert_eq!(tool(&[Read], write).effect_kinds(), [Read, EffectKind::Write, Unknown]);
}

fn judge(mode: Mode, rules: &[(&str, Decision)], facts: &[Fact]) -> Verdict {
    let effects = &[EffectKind::Unknown];
    let rule = |(pattern, decision): &(&str, Decision)| {
        Rule::new("made", effects, pattern, *decision).unwrap()
    };
    let rules: Vec<Rule> = rules.iter().map(rule).collect();
    Gate::new(mode, Confinement::InForce, rules).judge("made", facts)
}

#[track_caller]
fn check_asked(verdict: Verdict, why: &str, pattern: &str) {
    let Verdict::Ask(question) = verdict else { panic!("{verdict:?}") };
    assert_eq!(question.why, why);
    let rule = format!("[[rules]]\ntool = \"made\"\nmatch = \"{pattern}\"\ndecision = \"allow\"");
    assert_eq!(question.rule, Some(rule));
}

/// An unknown tool was let through.
#[test]
fn what_is_unknown_needs_approval_or_a_rule_about_the_whole_tool_and_is_refused_in_mode_read() {
    let allowed = Verdict::Allow(Reach::Tree);
    let refused = Verdict::Deny("made is not offered in mode read".to_owned());
    for facts in [&[Fact::Unknown][..], &[], &[Fact::Database, Fact::Unknown]] {
        let why = "the effects of made are unknown";
        check_asked(judge(Mode::Work, &[], facts), why, "*");
        check_asked(judge(Mode::Work, &[("a", Decision::Trust)], facts), why, "*");
        assert_eq!(judge(Mode::Work, &[("*", Decision::Allow)], facts), allowed);
        assert_eq!(judge(Mode::Read, &[("*", Decision::Trust)], facts), refused);
        assert_eq!(judge(Mode::Full, &[], facts), Verdict::Allow(Reach::Full));
        let denied = judge(Mode::Full, &[("*", Decision::Deny)], facts);
        assert!(matches!(denied, Verdict::Deny(_)), "{denied:?}");
    }
}

#[test]
fn a_host_needs_approval_or_a_rule_that_names_it() {
    let judge = |mode, rules: &[(&str, Decision)], host: &str| {
        judge(mode, rules, &[Fact::Host(host.to_owned())])
    };
    let allowed = Verdict::Allow(Reach::Tree);
    let refused = Verdict::Deny("made is not offered in mode read".to_owned());
    check_asked(judge(Mode::Work, &[], "docs.rs"), "made wants to connect to docs.rs", "docs.rs");
    assert_eq!(judge(Mode::Read, &[], "docs.rs"), refused);
    for (pattern, host) in [
        ("docs.rs", "docs.rs"),
        ("Docs.RS", "docs.rs"),
        ("*.python.org", "docs.python.org"),
        ("*.python.org", "a.b.python.org"),
        ("*", "docs.rs"),
    ] {
        assert_eq!(judge(Mode::Work, &[(pattern, Decision::Allow)], host), allowed, "{pattern}");
        assert_eq!(judge(Mode::Read, &[(pattern, Decision::Allow)], host), allowed, "{pattern}");
    }
    for (pattern, host) in [
        ("docs.rs", "evildocs.rs"),
        ("docs.rs", "docs.rs.evil.org"),
        ("*.python.org", "python.org"),
        ("*.python.org", "evilpython.org"),
        ("*.python.org", ".python.org"),
        ("d*", "docs.rs"),
    ] {
        let verdict = judge(Mode::Work, &[(pattern, Decision::Allow)], host);
        assert!(matches!(verdict, Verdict::Ask(_)), "{pattern} {host}: {verdict:?}");
    }
}

#[test]
fn a_call_is_as_good_as_its_worst_effect() {
    let world = World::new();
    let read = world.facts("file_read", &json!({"path": "a"})).remove(0);
    let outside = world.facts("file_read", &json!({"path": world.text("outside")})).remove(0);
    let guarded = world.facts("file_write", &json!({"path": "AGENTS.md", "content": ""})).remove(0);
    assert_eq!(
        judge(Mode::Work, &[], &[read.clone(), Fact::Database]),
        Verdict::Allow(Reach::Tree)
    );
    let Verdict::Ask(both) = judge(Mode::Work, &[], &[guarded.clone(), outside.clone()]) else {
        panic!("both are asked for");
    };
    assert_eq!(both.reach, Reach::Anywhere);
    assert_eq!(both.rule.unwrap().matches("[[rules]]").count(), 2);
    let refused = judge(Mode::Read, &[], &[read, guarded]);
    assert!(matches!(refused, Verdict::Deny(_)), "{refused:?}");
}

#[test]
fn a_mode_offers_tools_by_what_their_calls_may_do() {
    let names = |mode| {
        let offered = Dispatcher::<()>::new(built_in()).offered_in(mode);
        offered.declarations().map(|tool| tool.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(Mode::Read), ["glob", "file_read", "grep", "command"]);
    assert_eq!(names(Mode::Work).len(), 7);
    let nothing = ikigai_tools::offers(Mode::Read, &[]);
    assert!(!nothing, "a tool that declares nothing may do anything");
    let prepare = |_: &ikigai_tools::Arguments| Ok(Call::step(()));
    let tool = BuiltIn::new(Declaration::new("made", "", &[]), &[EffectKind::Database], prepare);
    assert!(ikigai_tools::offers(Mode::Read, tool.effects()) && tool.is_on_by_default());
    assert!(!tool.off_by_default().is_on_by_default());
}

#[track_caller]
fn check_change(preview: Preview, remark: Option<&str>, diff: &[&str]) {
    let Preview::Change { remark: found, diff: lines } = preview else { panic!("{preview:?}") };
    assert_eq!(found.as_deref(), remark);
    assert_eq!(lines.unified().collect::<Vec<_>>(), diff);
}

#[test]
fn a_write_is_previewed_as_what_it_changes() {
    let world = World::new();
    world.write("work/there", "one\ntwo\nthree\n");
    let preview = |path: &str, content: &str| {
        world.preview(Reach::Tree, "file_write", &json!({"path": path, "content": content}))
    };
    let changed = ["@@ -1,3 +1,3 @@", " one", "-two", "+2", " three"];
    check_change(preview("there", "one\n2\nthree\n"), None, &changed);
    check_change(preview("new/file", "a\n"), None, &["@@ -0,0 +1 @@", "+a"]);
}

/// It was shown as a new file, as if nothing were lost.
#[test]
fn what_is_replaced_and_cannot_be_shown_is_told() {
    let world = World::new();
    std::fs::write(world.path("work/bytes"), b"\xff".repeat(5)).unwrap();
    std::fs::write(world.path("work/huge"), b"x\n".repeat(1_000_000)).unwrap();
    let write = |path: &str| json!({"path": path, "content": "a\n"});
    for (name, bytes) in [("bytes", 5), ("huge", 2_000_000)] {
        let remark = format!("{name}: all {bytes} bytes of the file are replaced by");
        let preview = world.preview(Reach::Tree, "file_write", &write(name));
        check_change(preview, Some(&remark), &["@@ -0,0 +1 @@", "+a"]);
    }
    // Whatever is out of the call's own reach is not read for its preview either.
    let outside = world.text("outside/secret");
    let remark = format!("{outside}: its content is replaced by");
    let preview = world.preview(Reach::Tree, "file_write", &write(&outside));
    check_change(preview, Some(&remark), &["@@ -0,0 +1 @@", "+a"]);
    let preview = world.preview(Reach::Anywhere, "file_write", &write(&outside));
    check_change(preview, None, &["@@ -1 +1 @@", "-the secret outside", "+a"]);
}

#[test]
fn an_edit_is_previewed_where_it_stands_and_says_whether_it_is_of_every_occurrence() {
    let world = World::new();
    world.write("work/f", "1\n2\n3\nold\n5\n6\nold\n");
    let preview = |old: &str, everywhere: bool| {
        let arguments =
            json!({"path": "f", "old_string": old, "new_string": "new", "replace_all": everywhere});
        world.preview(Reach::Tree, "file_edit", &arguments)
    };
    let once = ["@@ -2,5 +2,5 @@", " 2", " 3", "-old", "+new", " 5", " 6"];
    let mut twice = once.to_vec();
    twice[0] = "@@ -2,6 +2,6 @@";
    twice.extend(["-old", "+new"]);
    check_change(preview("old", true), Some("wherever it stands in f"), &twice);
    check_change(
        preview("old\n5", false),
        None,
        &["@@ -2,6 +2,5 @@", " 2", " 3", "-old", "-5", "+new", " 6", " old"][..],
    );
    // As the file is now it would fail: what it replaces by what is shown.
    check_change(preview("old", false), None, &["@@ -1 +1 @@", "-old", "+new"]);
    check_change(
        preview("no", true),
        Some("wherever it stands in f"),
        &["@@ -1 +1 @@", "-no", "+new"],
    );
}

#[test]
fn commands_and_arguments_are_previewed_whole() {
    let world = World::new();
    let command = "x ".repeat(50_000);
    let preview = world.preview(Reach::Tree, "bash", &json!({"command": command, "timeout": 5}));
    assert_eq!(preview, Preview::Command { command });
    let arguments = json!({"path": "/etc/hosts", "limit": 3});
    let expected = Preview::Arguments { arguments: arguments.to_string() };
    assert_eq!(world.preview(Reach::Tree, "file_read", &arguments), expected);
}
