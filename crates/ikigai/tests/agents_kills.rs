//! Killing in a turn: whom it takes, what ends with it, and what is refused.

use ikigai_testkit::{AgentScripts, Gate, Reply};
use serde_json::json;

use crate::support::model::Format;
use crate::support::scene::{Scene, fork, kill, killed, read, send, stop, wait};
use crate::support::story::{bash, contents, kinds};
use crate::support::{Workspace, wait_for_pid, wait_until_gone};

/// A command that never ends by itself, and says which process it is.
fn hang(id: &str, name: &str) -> Reply {
    bash(id, &format!("echo $$ > {name}; while true; do sleep 1000; done"))
}

#[test]
fn a_kill_takes_the_subtree_with_its_commands() {
    let running = Gate::new();
    let server = AgentScripts::new()
        .role(
            "0/",
            [
                fork("f", "fork, write, hang"),
                kill("k1", "0/0").after(&running),
                send("s", "0/0/", "are you there?"),
                read("r", 1),
                kill("k2", "0/0/"),
                wait("w", json!({"agents": ["0/0/0/"]})),
                Reply::text("they are gone"),
            ],
        )
        .role("0/0/", [fork("f", "hang"), send("s", "parent", "I begin"), hang("b", "parent.pid")])
        .role("0/0/0/", [hang("b", "child.pid")])
        .start();
    let workspace = Workspace::unconfined();
    let scene = Scene::play_with(
        workspace,
        server,
        Format::Chat,
        |_| {},
        |workspace, _, _| {
            let pids = ["parent.pid", "child.pid"].map(|name| wait_for_pid(&workspace.path(name)));
            running.open();
            pids.into_iter().for_each(wait_until_gone);
        },
    );
    scene.check();
    let killed_ids = r#"{"success":true,"data":{"killed":["0/0/0/","0/0/"]}}"#;
    assert_eq!(scene.result_of("0/", "k1"), killed_ids);
    assert_eq!(scene.result_of("0/", "s"), r#"{"error":"Agent 0/0/ is dead"}"#);
    let letter = scene.result_of("0/", "r");
    assert!(letter.starts_with(r#"{"id":1,"from":"0/0/","timestamp":""#), "{letter}");
    assert!(letter.ends_with(r#"","body":"I begin"}"#), "{letter}");
    assert_eq!(scene.result_of("0/", "k2"), r#"{"success":false,"error":"Agent 0/0/ is dead"}"#);
    let dead =
        r#"{"success":true,"data":{"results":[{"agent":"0/0/0/","status":"dead"}],"unread":0}}"#;
    assert_eq!(scene.result_of("0/", "w"), dead);
    // Every turn has its end, also theirs; and they leave no last words.
    assert_eq!(scene.endings("0/0/"), [killed()]);
    assert_eq!(scene.endings("0/0/0/"), [killed()]);
    assert_eq!(scene.endings("0/"), [stop("they are gone")]);
    assert_eq!(scene.mail().len(), 1);
    let log = scene.log("0/");
    assert_eq!(contents(&log, "kill").len(), 1, "{:?}", kinds(&log));
    assert_eq!(kinds(&scene.log("0/0/0/")), ["fork", "user", "tool_call"]);
}

#[test]
fn a_model_kills_no_top_level_agent_no_ancestor_and_not_itself() {
    let server = AgentScripts::new()
        .role("0/", [fork("f", "kill"), Reply::text("a"), Reply::text("b")])
        .role(
            "0/0/",
            [
                kill("k1", "0/0/"),
                kill("k2", "parent"),
                kill("k3", "1/"),
                kill("k4", "7/"),
                kill("k5", "nobody"),
                Reply::text("none"),
            ],
        )
        .start();
    let workspace = Workspace::with_agents(2);
    let scene = Scene::play_with(
        workspace,
        server,
        Format::Chat,
        |command| {
            command.arg("-c");
        },
        |_, _, _| {},
    );
    scene.check();
    for (call, error) in [
        ("k1", "Agent 0/0/ cannot kill itself"),
        ("k2", "Agent 0/ cannot be killed by its descendant"),
        ("k3", "Agent 1/ is a top-level agent: only the user can kill it"),
        ("k4", "Agent 7/ not found"),
        ("k5", "Agent nobody not found"),
    ] {
        let expected = json!({"success": false, "error": error}).to_string();
        assert_eq!(scene.result_of("0/0/", call), expected);
    }
    let states: Vec<_> = scene.registry().iter().map(|agent| agent["state"].clone()).collect();
    assert_eq!(states, ["idle", "idle", "idle"]);
}

/// A sibling may kill; who is killed in the middle of a request has its end all the same, and whoever waits for it
/// hears that it is dead.
#[test]
fn a_killed_agent_ends_the_wait_for_it() {
    let waited = Gate::new();
    let server = AgentScripts::new()
        .role(
            "0/",
            [
                Reply::calls([
                    ("f0", "fork", json!({"prompt": "hang"})),
                    ("f1", "fork", json!({"prompt": "kill it"})),
                ]),
                wait("w", json!({"agents": ["0/0/"]})),
                Reply::text("over"),
                Reply::text("told"),
            ],
        )
        .role("0/0/", [Reply::silence()])
        .role("0/1/", [kill("k", "0/0/").after(&waited), Reply::text("killed")])
        .start();
    let scene = Scene::play_with(
        Workspace::new(),
        server,
        Format::Chat,
        |_| {},
        |workspace, server, running| {
            running.until("tool_call");
            server.wait_for_stalls(1);
            workspace.wait_for_waits(1);
            waited.open();
            server.wait_for_departures(1);
        },
    );
    scene.check();
    let told = scene.result_of("0/", "w");
    let dead = r#"{"success":true,"data":{"results":[{"agent":"0/0/","status":"dead"}],"unread":"#;
    assert!(told.starts_with(dead), "{told}");
    assert_eq!(scene.endings("0/0/"), [killed()]);
    assert_eq!(scene.endings("0/1/"), [stop("killed")]);
}
