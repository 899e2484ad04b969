//! Waiting in a turn: when it ends, what it tells, and what is refused.

use ikigai_testkit::{AgentScripts, Gate, Reply};
use rustix::process::{Signal, kill_process};
use serde_json::json;

use crate::support::model::Format;
use crate::support::scene::{Scene, fork, forks, result_of, send, stop, wait};
use crate::support::story::contents;
use crate::support::{Workspace, pid};

#[test]
fn a_circle_of_waits_is_refused_and_named() {
    let parent_waits = Gate::new();
    let server = AgentScripts::new()
        .role("0/", [fork("f", "wait for me"), wait("w", json!({})), Reply::text("over")])
        .role(
            "0/0/",
            [
                wait("w1", json!({"agents": ["parent"]})).after(&parent_waits),
                wait("w2", json!({"agents": ["0/0/"]})),
                Reply::text("so I do not"),
            ],
        )
        .start();
    let scene = Scene::play_with(
        Workspace::new(),
        server,
        Format::Chat,
        |_| {},
        |workspace, _, running| {
            running.until("tool_call");
            workspace.wait_for_waits(1);
            parent_waits.open();
        },
    );
    scene.check();
    let refused = r#"{"success":false,"error":"Waiting cycle: 0/0/ waits for 0/ waits for 0/0/"}"#;
    assert_eq!(scene.result_of("0/0/", "w1"), refused);
    let itself = r#"{"success":false,"error":"Agent 0/0/ cannot wait for itself"}"#;
    assert_eq!(scene.result_of("0/0/", "w2"), itself);
    assert_eq!(scene.endings("0/"), [stop("over")]);
}

#[test]
fn a_wait_ends_at_once_with_mail_and_counts_it_as_told() {
    let told = Gate::new();
    let server = AgentScripts::new()
        .role(
            "0/",
            [
                fork("f", "write, then think"),
                wait("w1", json!({"timeout": 3600})),
                wait("w2", json!({"timeout": 3600})).opening(&told),
                Reply::text("over"),
            ],
        )
        .role("0/0/", [send("s", "parent", "a question"), Reply::text("thought").after(&told)])
        .start();
    let scene = Scene::play(Workspace::new(), server, Format::Chat);
    scene.check();
    let first = concat!(
        r#"{"success":true,"data":{"results":[{"agent":"0/0/","status":"running"}],"#,
        r#""unread":1}}"#
    );
    assert_eq!(scene.result_of("0/", "w1"), first);
    let second = concat!(
        r#"{"success":true,"data":{"results":[{"agent":"0/0/","status":"idle","answer":"thought"}],"#,
        r#""unread":1}}"#
    );
    assert_eq!(scene.result_of("0/", "w2"), second);
    // What a wait counted is not announced.
    assert_eq!(scene.notifications("0/"), Vec::<String>::new());
    assert_eq!(scene.endings("0/"), [stop("over")]);
    assert_eq!(scene.mail().len(), 1);
}

#[test]
fn a_wait_ends_at_its_limit_and_tells_of_errors_and_of_the_dead() {
    let looked = Gate::new();
    let server = AgentScripts::new()
        .role(
            "0/",
            [
                forks(3),
                wait("w1", json!({"agents": ["0/0", "0/1/"]})),
                Reply::call("k", "kill", json!({"agent": "0/1/"})),
                wait("w2", json!({"agents": ["0/2/", "0/1/", "0/2"], "timeout": 1})),
                Reply::text("over").opening(&looked),
                Reply::text("told"),
            ],
        )
        .role("0/0/", [Reply::error(400, "no luck")])
        .role("0/1/", [Reply::text("fine")])
        .role("0/2/", [Reply::text("late").after(&looked)])
        .start();
    let scene = Scene::play(Workspace::new(), server, Format::Chat);
    scene.check();
    let requests = scene.server.requests_of("0/");
    let first: serde_json::Value = serde_json::from_str(&result_of(&requests[2], "w1")).unwrap();
    let results = &first["data"]["results"];
    // Either may have ended, and mailed, before the wait began; then the wait was over at once.
    assert_eq!(results[0]["agent"], "0/0/");
    let second = concat!(
        r#"{"success":true,"data":{"results":[{"agent":"0/2/","status":"running"},"#,
        r#"{"agent":"0/1/","status":"dead"}],"unread":"#
    );
    let told = scene.result_of("0/", "w2");
    assert!(told.starts_with(second), "{told}");
    assert_eq!(scene.endings("0/"), [stop("over"), stop("told")]);
}

#[test]
fn an_interrupt_ends_a_wait_and_leaves_no_edge() {
    let server = AgentScripts::new()
        .role("0/", [fork("f", "hang"), wait("w", json!({}))])
        .role("0/0/", [Reply::silence()])
        .start();
    let scene = Scene::play_with(
        Workspace::new(),
        server,
        Format::Chat,
        |_| {},
        |workspace, server, running| {
            server.wait_for_stalls(1);
            workspace.wait_for_waits(1);
            kill_process(pid(&running.child), Signal::INT).unwrap();
        },
    );
    assert_eq!((scene.code, &*scene.stderr), (130, ""));
    assert_eq!(scene.endings("0/")[0].0, "interrupted");
    let log = scene.log("0/");
    let results = contents(&log, "tool_result");
    assert!(results[1].starts_with("error: Interrupted"), "{results:?}");
    let edges = scene.workspace.number("SELECT count(*) FROM waits");
    assert_eq!((edges, scene.mail()), (0, vec![]));
}

#[test]
fn answers_of_a_wait_are_bounded_together() {
    let waited = Gate::new();
    let (long, short) = ("x".repeat(3_000), "short");
    let server = AgentScripts::new()
        .role("0/", [forks(2), wait("w", json!({})), Reply::text("over")])
        .role("0/0/", [Reply::text(&long).after(&waited)])
        .role("0/1/", [Reply::text(short).after(&waited)])
        .start();
    let workspace = Workspace::new();
    workspace.write_config("max_output_size = 1024\n");
    let scene = Scene::play_with(
        workspace,
        server,
        Format::Chat,
        |_| {},
        |workspace, _, running| {
            running.until("tool_call");
            workspace.wait_for_waits(2);
            waited.open();
        },
    );
    scene.check();
    let told: serde_json::Value = serde_json::from_str(&scene.result_of("0/", "w")).unwrap();
    let answer = |at: usize| told["data"]["results"][at]["answer"].as_str().unwrap().to_owned();
    let marker = "\n[Output truncated: showing first 1019 of 3000 bytes]";
    assert_eq!(answer(0), format!("{}{marker}", "x".repeat(1_019)));
    assert_eq!((answer(1), &told["data"]["truncated"]), (short.to_owned(), &json!(true)));
}
