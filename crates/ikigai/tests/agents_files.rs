//! Agents that work on the same files: no edit is lost, and nobody overwrites what it has not seen.

use ikigai_testkit::{AgentScripts, Gate, Reply};
use serde_json::{Value, json};

use crate::support::Workspace;
use crate::support::model::Format;
use crate::support::scene::{Scene, fork, forks, of_agent};
use crate::support::story::of_type;

const EDITS: usize = 20;

/// Edits that turn `a0`, `a1` … into `A0`, `A1` …
fn edits(letter: &str) -> Reply {
    let ids: Vec<String> = (0..EDITS).map(|number| format!("{letter}{number}")).collect();
    Reply::calls(ids.iter().map(|id| {
        let new = id.to_uppercase();
        let arguments = json!({"path": "f.txt", "old_string": format!("{id}\n"),
            "new_string": format!("{new}\n")});
        (id.as_str(), "file_edit", arguments)
    }))
}

#[test]
fn edits_of_one_file_at_once_are_all_kept() {
    let (first, second) = (Gate::new(), Gate::new());
    let server = AgentScripts::new()
        .role("0/", [forks(2), Reply::text("x"), Reply::text("y"), Reply::text("z")])
        .role("0/0/", [edits("a").opening(&first).after(&second), Reply::text("done")])
        .role("0/1/", [edits("b").opening(&second).after(&first), Reply::text("done")])
        .start();
    let workspace = Workspace::new();
    let lines = |a: &str, b: &str| -> String {
        (0..EDITS).map(|number| format!("{a}{number}\n{b}{number}\n")).collect()
    };
    workspace.write("f.txt", lines("a", "b"));
    let scene = Scene::play(workspace, server, Format::Chat);
    scene.check();
    for agent in ["0/0/", "0/1/"] {
        let events = of_agent(&scene.events, agent);
        for event in of_type(&events, "tool_result") {
            assert_eq!(event["result"]["success"], true, "{event}");
        }
    }
    assert_eq!(scene.workspace.read_text("f.txt"), lines("A", "B"));
}

#[test]
fn a_stale_write_is_refused_with_who_and_when() {
    let (seen, written) = (Gate::new(), Gate::new());
    let file = |id: &str, tool: &str, content: &str| {
        Reply::call(id, tool, json!({"path": "f.txt", "content": content}))
    };
    let server = AgentScripts::new()
        .role(
            "0/",
            [
                file("r", "file_read", ""),
                fork("f", "write"),
                file("w1", "file_write", "mine\n").opening(&seen).after(&written),
                file("r2", "file_read", ""),
                file("w2", "file_write", "mine\n"),
                Reply::text("over"),
                Reply::text("told"),
            ],
        )
        .role(
            "0/0/",
            [
                // A child has seen nothing, whatever its parent has.
                file("w1", "file_write", "blind\n").after(&seen),
                file("r", "file_read", ""),
                file("w2", "file_write", "the child's\n"),
                Reply::text("written").opening(&written),
            ],
        )
        .start();
    let workspace = Workspace::new();
    workspace.write("f.txt", "before\n");
    let scene = Scene::play(workspace, server, Format::Chat);
    scene.check();
    let blind = json!({"success": false, "error": "Read f.txt before overwriting it"});
    assert_eq!(scene.result_of("0/0/", "w1"), blind.to_string());
    let refused: Value = serde_json::from_str(&scene.result_of("0/", "w1")).unwrap();
    let error = refused["error"].as_str().unwrap();
    let (head, tail) = ("File changed since you read it (by agent 0/0/, ", "): f.txt");
    let when = error.strip_prefix(head).and_then(|rest| rest.strip_suffix(tail));
    let when = when.unwrap_or_else(|| panic!("{error}"));
    let seconds = |when: &str| {
        let number = when.strip_suffix(" seconds ago").or(when.strip_suffix(" second ago"));
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    assert!(when == "just now" || seconds(when), "{when}");
    assert!(scene.result_of("0/", "w2").starts_with(r#"{"success":true"#));
    assert_eq!(scene.workspace.read_text("f.txt"), "mine\n");
}
