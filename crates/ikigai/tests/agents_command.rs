//! `ikigai agents`: the registry of a session.

use serde_json::{Value, json};

use crate::support::{Workspace, ended, finish, line_of, run};

fn agent(id: &str, parent: Value, name: Value, state: &str, unread: u32) -> Value {
    json!({
        "id": id, "parent": parent, "name": name, "state": state, "unread": unread,
        "notification_pending": false, "model": null
    })
}

#[test]
fn a_new_session_has_agent_0() {
    let workspace = Workspace::with_agents(1);
    let expected = json!([agent("0/", json!(null), json!(null), "idle", 0)]);
    assert_eq!(workspace.print(["agents", "--json"]), format!("{expected}\n"));
    assert_eq!(workspace.print(["agents"]), "0/           idle    \n");
}

#[test]
fn agents_are_added_at_the_top_level_and_their_ids_printed() {
    let workspace = Workspace::new();
    assert_eq!(workspace.print(["agents", "add"]), "1/\n");
    assert_eq!(workspace.print(["agents", "add", "reviewer"]), "2/\n");
    let expected = json!([
        agent("0/", json!(null), json!(null), "idle", 0),
        agent("1/", json!(null), json!(null), "idle", 0),
        agent("2/", json!(null), json!("reviewer"), "idle", 0),
    ]);
    assert_eq!(workspace.json(["agents", "--json"]), expected);
}

#[test]
fn numbers_are_never_used_again_and_the_dead_are_only_in_json() {
    let workspace = Workspace::with_agents(2);
    let database = workspace.open();
    database.kill("1/");
    assert_eq!(workspace.print(["agents", "add"]), "2/\n");
    let expected = json!([
        agent("0/", json!(null), json!(null), "idle", 0),
        agent("1/", json!(null), json!(null), "dead", 0),
        agent("2/", json!(null), json!(null), "idle", 0),
    ]);
    assert_eq!(workspace.json(["agents", "--json"]), expected);
    assert_eq!(workspace.print(["agents"]), "0/           idle    \n2/           idle    \n");
}

#[test]
fn the_tree_shows_names_mail_and_children_below_their_parents() {
    let workspace = Workspace::with_agents(2);
    let database = workspace.open();
    assert_eq!(database.fork("0/", Some("builder")), "0/0/");
    assert_eq!(database.fork("0/0/", None), "0/0/0/");
    workspace.print(["mail", "send", "0/0/", "one"]);
    workspace.print(["mail", "send", "builder", "two"]);
    let tree = "\
0/           idle    
  0/0/       idle     builder [mail:2]
    0/0/0/   idle    
1/           idle    
";
    assert_eq!(workspace.print(["agents"]), tree);
    let expected = json!([
        agent("0/", json!(null), json!(null), "idle", 0),
        agent("0/0/", json!("0/"), json!("builder"), "idle", 2),
        agent("0/0/0/", json!("0/0/"), json!(null), "idle", 0),
        agent("1/", json!(null), json!(null), "idle", 0),
    ]);
    assert_eq!(workspace.json(["agents", "--json"]), expected);
}

#[test]
fn ten_comes_after_nine() {
    let workspace = Workspace::with_agents(11);
    let agents = workspace.json(["agents", "--json"]);
    let ids: Vec<&str> =
        agents.as_array().unwrap().iter().map(|agent| agent["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["0/", "1/", "2/", "3/", "4/", "5/", "6/", "7/", "8/", "9/", "10/"]);
}

#[test]
fn a_session_has_no_more_agents_than_it_may() {
    let workspace = Workspace::with_agents(2);
    let add = || {
        let mut command = workspace.ikigai();
        command.args(["agents", "add"]).env("IKIGAI_MAX_AGENTS", "2");
        crate::support::ended(&mut command)
    };
    let refused = (1, String::new(), "ikigai: Maximum agents (2) reached\n".to_owned());
    assert_eq!(add(), refused);
    // The dead do not count.
    workspace.open().kill("1/");
    assert_eq!(add(), (0, "2/\n".to_owned(), String::new()));
}

/// Nothing is there yet, neither the folder nor the database nor the session: all of them make it.
#[test]
fn many_first_commands_at_once_make_one_session() {
    let workspace = Workspace::new();
    let children: Vec<_> =
        (0..12).map(|_| workspace.ikigai().args(["agents", "add"]).spawn().unwrap()).collect();
    let mut added: Vec<String> = children.into_iter().map(|child| line_of(finish(child))).collect();
    added.sort_by_key(|id| id.trim_end_matches('/').parse::<u32>().unwrap());
    assert_eq!(added, (1..=12).map(|number| format!("{number}/")).collect::<Vec<_>>());
    assert_eq!(workspace.json(["sessions", "--json"])[0]["agents"], json!(13));
    assert_eq!(workspace.json(["sessions", "--json"]).as_array().unwrap().len(), 1);
}

#[test]
fn a_name_that_mail_could_not_reach_is_refused() {
    let workspace = Workspace::new();
    for name in ["1", "parent", "a/b", "", "two words", "bell\u{7}", &"x".repeat(33)] {
        let output = run(workspace.ikigai().args(["agents", "add", name]));
        assert_eq!(output.status.code(), Some(1), "{name}: {output:?}");
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains("is not a valid agent name: use up to 32 letters"), "{told}");
    }
    let output = run(workspace.ikigai().args(["agents", "add", "reviewer-2.b_é"]));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn new_starts_a_session_and_leaves_the_others_alone() {
    let workspace = Workspace::with_agents(2);
    let count = || workspace.json(["sessions", "--json"]).as_array().unwrap().len();
    workspace.print(["mail", "send", "1/", "to the first session"]);
    assert_eq!(workspace.print(["agents", "add", "--new"]), "1/\n");
    assert_eq!(count(), 2);
    assert_eq!(workspace.print(["--new", "mail", "send", "0/", "x"]), "Mail sent to agent 0/\n");
    let send = r#"{"action":"send","to":"0/","body":"x"}"#;
    let result = workspace.json(["tool", "mail", send, "--new"]);
    assert_eq!((&result["to"], count()), (&json!("0/"), 4));
    assert_eq!(workspace.json(["mail", "inbox", "--json"])["unread_count"], 1);
    let refused = "ikigai: a new session has only agent 0/, not 1/\n".to_owned();
    let arguments = ["mail", "send", "0/", "x", "--new", "--agent", "1/"];
    assert_eq!(workspace.run(arguments), (1, String::new(), refused));
    assert_eq!(count(), 4);
}

#[test]
fn new_is_refused_where_nothing_can_be_in_a_new_session() {
    let workspace = Workspace::new();
    for command in [
        &["agents"][..],
        &["mail", "inbox"],
        &["mail", "read", "1"],
        &["mail", "unread", "1"],
        &["log"],
        &["undo"],
        &["sessions"],
    ] {
        let (code, stdout, stderr) = ended(workspace.ikigai().args(command).arg("--new"));
        assert_eq!((code, &*stdout), (2, ""), "{command:?}");
        assert!(stderr.contains("--new cannot be used with this command"), "{stderr}");
    }
    let refused = "ikigai: --new cannot be used with glob, which needs no session\n";
    let glob = ["tool", "glob", r#"{"pattern":"*"}"#, "--new"];
    assert_eq!(workspace.run(glob), (2, String::new(), refused.to_owned()));
    assert_eq!(workspace.json(["sessions", "--json"]), json!([]));
}
