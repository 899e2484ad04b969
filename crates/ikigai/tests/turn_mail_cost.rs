//! Mail that costs few requests: sending ends the turn, and a notification shows short mail whole.

use ikigai_testkit::{AgentScripts, ModelServer, Reply};
use serde_json::{Value, json};

use crate::support::Workspace;
use crate::support::model::{Format, assert_stable};
use crate::support::processes::{kill, start_run};
use crate::support::scene::{Scene, endings, send, stop, types_of};
use crate::support::story::of_type;

fn send_and_end(id: &str, to: &str, body: &str) -> Reply {
    Reply::call(id, "mail", last_words(to, body))
}

/// The arguments of a `send` that ends the turn.
fn last_words(to: &str, body: &str) -> Value {
    json!({"action": "send", "to": to, "body": body, "end_turn": true})
}

#[test]
fn a_question_by_mail_and_its_answer_cost_three_requests() {
    for format in Format::BOTH {
        let workspace = Workspace::new();
        workspace.print(["agents", "add"]);
        workspace.print(["agents", "add"]);
        let server = AgentScripts::new()
            .role("0/", [send_and_end("q", "1/", "Which port?\nI need it."), Reply::text("80!")])
            .role("1/", [send_and_end("a", "0/", "80")])
            .start();
        let (code, events) = workspace.run_json(&server, format, ["-c", "ask 1/"]);
        assert_eq!((code, server.requests().len()), (0, 3));
        assert_stable(&server.requests_of("0/"));
        let expected =
            ["session", "tool_call", "tool_result", "done", "notification", "text", "done"];
        assert_eq!(types_of(&events, "0/"), expected);
        assert_eq!(endings(&events, "0/"), [stop(""), stop("80!")]);
        assert_eq!(endings(&events, "1/"), [stop("")]);
        let told = of_type(&events, "notification");
        let first = "[Notification: You have 1 unread message in your inbox]";
        assert_eq!(told[0]["text"], format!("{first}\n#1 from 0/: \"Which port?\\nI need it.\""));
        assert_eq!(told[1]["text"], format!("{first}\n#2 from 1/: \"80\""));
        for agent in workspace.json(["agents", "--json"]).as_array().unwrap() {
            let state = (&agent["state"], &agent["unread"], &agent["notification_pending"]);
            assert_eq!(state, (&json!("idle"), &json!(0), &json!(false)));
        }
    }
}

#[test]
fn the_text_that_came_with_the_call_is_the_answer() {
    let server = ModelServer::start([
        Reply::call("c1", "glob", json!({"pattern": "*"})),
        Reply::text_and_calls("I asked 0/.", [("c2", "mail", last_words("0/", "hello"))]),
        Reply::text("I asked myself."),
    ]);
    let scene = Scene::play(Workspace::new(), server, Format::Chat);
    assert_eq!(scene.check().endings("0/"), [stop("I asked 0/."), stop("I asked myself.")]);
    let workspace = Workspace::new();
    let reply = Reply::text_and_calls("Over to you.", [("c1", "mail", last_words("1/", "x"))]);
    workspace.print(["agents", "add"]);
    workspace.print(["agents", "add"]);
    let server = AgentScripts::new().role("0/", [reply]).role("1/", [Reply::text("ok")]).start();
    let (code, stdout, _) = workspace.run_model(&server, Format::Chat, ["-c", "go"]);
    assert_eq!((code, &*stdout), (0, "Over to you.\n"));
}

#[test]
fn mail_that_was_not_sent_does_not_end_the_turn() {
    let server = ModelServer::start([
        send_and_end("c1", "9/", "hello"),
        Reply::call("c2", "mail", json!({"action": "inbox", "end_turn": true})),
        Reply::text("There is no 9/."),
    ]);
    let scene = Scene::play(Workspace::new(), server, Format::Chat);
    assert_eq!(scene.check().endings("0/"), [stop("There is no 9/.")]);
    assert_eq!(scene.result_of("0/", "c1"), r#"{"error":"Agent 9/ not found"}"#);
}

/// The model asked for all of them at once, so the calls after it run too, and it is told of them
/// when mail wakes it.
#[test]
fn the_turn_ends_after_all_calls_of_the_response() {
    let other = json!({"action": "send", "to": "9/", "body": "x"});
    let server = ModelServer::start([
        Reply::calls([
            ("c1", "mail", last_words("0/", "hello")),
            ("c2", "bash", json!({"command": "echo done > file"})),
            ("c3", "mail", other),
        ]),
        Reply::text("woken"),
    ]);
    let scene = Scene::play(Workspace::new(), server, Format::Chat);
    assert_eq!(scene.check().endings("0/"), [stop(""), stop("woken")]);
    assert!(scene.workspace.path("file").exists());
    assert_eq!(scene.result_of("0/", "c3"), r#"{"error":"Agent 9/ not found"}"#);
}

/// The registry says so as soon as the result is in the log, and so does the log.
#[test]
fn m8_a_turn_that_ended_with_its_mail_is_over_after_a_kill() {
    let workspace = Workspace::new();
    workspace.print(["agents", "add"]);
    workspace.print(["agents", "add"]);
    let server = AgentScripts::new()
        .role("0/", [send_and_end("c1", "1/", "hello"), Reply::text("Here I am.")])
        .role("1/", [Reply::silence(), Reply::text("hello yourself")])
        .start();
    let run = start_run(&workspace, &server, ["-c", "go"]);
    run.until("tool_result");
    assert_eq!(workspace.states()[0].1, "idle");
    server.wait_for_stalls(1);
    kill(run);
    let (code, events) = workspace.run_json(&server, Format::Chat, ["-c", "and now?"]);
    assert_eq!(code, 0);
    assert_eq!(types_of(&events, "0/"), ["session", "text", "done"]);
    assert_eq!(types_of(&events, "1/"), ["text", "done"]);
    let requests = server.requests_of("0/");
    assert_eq!(requests.len(), 2);
    assert_stable(&requests);
}

#[test]
fn a_child_that_writes_to_its_parent_and_ends_its_turn_reports_once() {
    let fork = Reply::call("f", "fork", json!({"prompt": "work"}));
    let server = AgentScripts::new()
        .role("0/", [fork, Reply::text("started"), Reply::text("thanks")])
        .role("0/0/", [send_and_end("s", "parent", "42")])
        .start();
    let scene = Scene::play(Workspace::new(), server, Format::Chat);
    scene.check().check_announced_once();
    let mail = [("0/".to_owned(), "0/0/".to_owned(), "42".to_owned())];
    assert_eq!(scene.mail(), mail);
    // Its first line of work ends with other mail: then its last text is the report.
    let fork = Reply::call("f", "fork", json!({"prompt": "work"}));
    let words = [("s", "mail", last_words("0/0/", "a note"))];
    let server = AgentScripts::new()
        .role("0/", [fork, send("s", "0/0/", "x"), Reply::text("started"), Reply::text("thanks")])
        .role("0/0/", [Reply::text_and_calls("noted", words), Reply::text("read")])
        .start();
    let scene = Scene::play(Workspace::new(), server, Format::Chat);
    scene.check();
    assert_eq!(scene.mail().iter().filter(|mail| mail.0 == "0/").count(), 1);
}

#[test]
fn long_mail_is_announced_by_its_preview_and_stays_unread() {
    let long = "x".repeat(1_001);
    let server = ModelServer::start([send("s", "0/", &long), Reply::text("a"), Reply::text("b")]);
    let scene = Scene::play(Workspace::new(), server, Format::Chat);
    let preview = format!("#1 from 0/: \"{}...\"", "x".repeat(50));
    assert!(scene.check().notifications("0/")[0].ends_with(&preview));
    let agent = scene.agent("0/");
    assert_eq!((&agent["unread"], &agent["notification_pending"]), (&json!(1), &json!(true)));
}
