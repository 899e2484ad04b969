//! Agents that work together in one process: what children do comes to their parent, once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ikigai_testkit::{AgentScripts, CapturedRequest, Gate, Reply};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::support::model::Format;
use crate::support::scene::{Scene, fork, forks, result_of, send, stop, types_of, wait};
use crate::support::story::{bash, of_type};
use crate::support::{Workspace, ended, pid, wait_for};

#[test]
fn a_parent_waits_for_three_children_and_gets_their_answers() {
    for format in Format::BOTH {
        let waited = Gate::new();
        let server = AgentScripts::new()
            .role("0/", [forks(3), wait("w", json!({})), Reply::text("one two three")])
            .role("0/0/", [Reply::text("one").after(&waited)])
            .role("0/1/", [Reply::text("two").after(&waited)])
            .role("0/2/", [Reply::text("three").after(&waited)])
            .start();
        let scene = Scene::play_with(
            Workspace::new(),
            server,
            format,
            |_| {},
            |workspace, _, running| {
                running.until("tool_call");
                workspace.wait_for_waits(3);
                waited.open();
            },
        );
        scene.check();
        assert_eq!(scene.result_of("0/", "f1"), r#"{"success":true,"data":{"agent":"0/1/"}}"#);
        let expected = concat!(
            r#"{"success":true,"data":{"results":[{"agent":"0/0/","status":"idle","answer":"one"},"#,
            r#"{"agent":"0/1/","status":"idle","answer":"two"},"#,
            r#"{"agent":"0/2/","status":"idle","answer":"three"}],"unread":0}}"#
        );
        assert_eq!(scene.result_of("0/", "w"), expected);
        assert_eq!(scene.endings("0/"), [stop("one two three")]);
        // To wait costs no request, and what a wait told nobody mails.
        assert_eq!(scene.server.requests_of("0/").len(), 3);
        assert_eq!(scene.server.requests().len(), 6);
        assert_eq!(scene.mail(), []);
    }
}

#[test]
fn a_parent_that_does_not_wait_is_told_of_every_end_once() {
    let all_ended = Gate::new();
    let server = AgentScripts::new()
        .role(
            "0/",
            [
                forks(3),
                Reply::text("started").after(&all_ended),
                Reply::calls((1..=3).map(|id| {
                    let name = ["r1", "r2", "r3"][id - 1];
                    (name, "mail", json!({"action": "read", "id": id}))
                })),
                Reply::text("read"),
            ],
        )
        .role("0/0/", [Reply::text("  the last\nwords ")])
        .role("0/1/", [send("s", "parent", "my own words"), Reply::text("not mailed")])
        .role("0/2/", [Reply::error(400, "no luck")])
        .start();
    let scene = Scene::play_with(
        Workspace::new(),
        server,
        Format::Chat,
        |_| {},
        |_, _, running| {
            let mut ended = 0;
            while ended < 3 {
                let event = running.next().unwrap();
                ended += usize::from(event["type"] == "done");
            }
            all_ended.open();
        },
    );
    scene.check();
    assert_eq!(scene.endings("0/"), [stop("started"), stop("read")]);
    let mut mail = scene.mail();
    mail.sort();
    let (to, error) = ("0/".to_owned(), mail[2].2.clone());
    assert!(error.starts_with("Error: ") && error.contains("no luck"), "{error}");
    let from = |sender: &str, body: &str| (to.clone(), sender.to_owned(), body.to_owned());
    let expected =
        [from("0/0/", "the last\nwords"), from("0/1/", "my own words"), from("0/2/", &error)];
    assert_eq!(mail, expected);
    let told = scene.notifications("0/");
    assert_eq!(told.len(), 1);
    assert!(
        told[0].starts_with("[Notification: You have 3 unread messages in your inbox]\n#3 from")
    );
    assert!(told[0].contains(r#" from 0/0/: "the last\nwords""#), "{}", told[0]);
    scene.check_announced_once();
    let agent = scene.agent("0/");
    assert_eq!((&agent["unread"], &agent["notification_pending"]), (&json!(0), &json!(false)));
}

#[test]
fn a_child_that_is_interrupted_mails_nothing() {
    let server = AgentScripts::new()
        .role("0/", [fork("f", "hang"), Reply::text("started")])
        .role("0/0/", [Reply::silence()])
        .start();
    let scene = Scene::play_with(
        Workspace::new(),
        server,
        Format::Chat,
        |_| {},
        |workspace, server, running| {
            server.wait_for_stalls(1);
            wait_for("the parent's end", || {
                let agents = workspace.json(["agents", "--json"]);
                (agents[0]["state"] == "idle").then_some(())
            });
            kill_process(pid(&running.child), Signal::INT).unwrap();
        },
    );
    // The exit code is that of the prompt's turn, which had its answer.
    assert_eq!((scene.code, &*scene.stderr), (0, ""));
    assert_eq!(scene.mail(), []);
    assert_eq!(scene.endings("0/"), [stop("started")]);
    assert_eq!(scene.endings("0/0/")[0].0, "interrupted");
    assert_eq!(scene.agent("0/0/")["state"], "idle");
    assert_eq!(scene.events.last().unwrap()["agent"], "0/");
}

/// A parent in a loop of calls, and a child that writes to it after the first of them.
fn loop_with_mail(config: &str, parent_ends: [Reply; 2]) -> Scene {
    let (forked, mailed) = (Gate::new(), Gate::new());
    let [first, second] = parent_ends;
    let server = AgentScripts::new()
        .role(
            "0/",
            [
                fork("f", "write"),
                bash("b1", "true").opening(&forked).after(&mailed),
                bash("b2", "true"),
                first,
                second,
            ],
        )
        .role("0/0/", [send("s", "0", "look").after(&forked), Reply::text("done").opening(&mailed)])
        .start();
    let workspace = Workspace::new();
    workspace.write_config(config);
    let scene = Scene::play(workspace, server, Format::Chat);
    scene.check();
    let text = "[Notification: You have 1 unread message in your inbox]\n#1 from 0/0/: \"look\"";
    assert_eq!(scene.notifications("0/"), [text]);
    scene
}

const CALL: [&str; 2] = ["tool_call", "tool_result"];

#[test]
fn mail_that_comes_in_a_tool_loop_is_told_after_it() {
    let scene = loop_with_mail("", [Reply::text("over"), Reply::text("told")]);
    assert_eq!(scene.endings("0/"), [stop("over"), stop("told")]);
    let woken = ["text", "done", "notification", "text", "done"];
    let expected = [&["session"][..], &CALL, &CALL, &CALL, &woken].concat();
    assert_eq!(types_of(&scene.events, "0/"), expected);
}

#[test]
fn with_boundary_it_is_told_before_the_next_request() {
    let config = "[mail]\nnotify = \"boundary\"\n";
    let scene = loop_with_mail(config, [Reply::text("told"), Reply::status(400)]);
    assert_eq!(scene.endings("0/"), [stop("told")]);
    let expected =
        [&["session"][..], &CALL, &CALL, &["notification"], &CALL, &["text", "done"]].concat();
    assert_eq!(types_of(&scene.events, "0/"), expected);
}

/// So many letters each way; more by the variable.
fn rounds() -> usize {
    std::env::var("IKIGAI_TEST_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(100)
}

/// Two agents that write to each other while the other one is about to go idle: each answers a letter with one,
/// and ends its turn a little sooner or later every time.
#[test]
fn m5_mail_in_the_moment_of_going_idle_is_never_missed() {
    let rounds = rounds();
    let sent = Arc::new(AtomicUsize::new(0));
    let play = |to: &'static str, first: Option<Reply>| {
        let (sent, first) = (Arc::clone(&sent), Mutex::new(first));
        move |request: &CapturedRequest| {
            if let Some(first) = first.lock().unwrap().take() {
                return first;
            }
            let number = sent.load(Ordering::Relaxed);
            let is_asked = request.messages().last().unwrap()["role"] == "user";
            if !is_asked || number >= 2 * rounds {
                // The other one begins to write at the same time.
                let micros = (number as u64 * 7_919) % 9_000;
                return Reply::pieces(["ok"]).drip(Duration::from_micros(micros));
            }
            sent.fetch_add(1, Ordering::Relaxed);
            send(&format!("s{number}"), to, &format!("letter {number}"))
        }
    };
    let server = AgentScripts::new()
        .choosing("0/", play("0/0/", Some(fork("f", "write"))))
        .choosing("0/0/", play("0/", None))
        .start();
    let workspace = Workspace::new();
    workspace.write_config("max_requests = 100000\n[mail]\nmax_wakes = 100000\n");
    let scene = Scene::play(workspace, server, Format::Chat);
    scene.check();
    scene.check_announced_once();
    assert_eq!(scene.mail().len(), 2 * rounds);
    for agent in ["0/", "0/0/"] {
        assert_eq!(scene.endings(agent).len(), scene.notifications(agent).len() + 1);
    }
}

#[test]
fn agents_that_thank_each_other_stop_by_the_budget_and_the_person_frees_what_is_held() {
    let thank = |to: &'static str, first: Option<Reply>| {
        let first = Mutex::new(first);
        move |request: &CapturedRequest| {
            if let Some(first) = first.lock().unwrap().take() {
                return first;
            }
            let last = request.messages().pop().unwrap();
            let text = last["content"].as_str().unwrap_or_default();
            let is_letter = text.starts_with("[Notification") || text.ends_with("be polite");
            match last["role"] == "user" && is_letter {
                true => send(&format!("s{}", request.messages().len()), to, "thank you"),
                false => Reply::text("ok"),
            }
        }
    };
    let forks = Reply::calls([
        ("f0", "fork", json!({"prompt": "be polite"})),
        ("f1", "fork", json!({"prompt": "be slow"})),
    ]);
    let is_held = Gate::new();
    let server = AgentScripts::new()
        .choosing("0/", thank("0/0/", Some(forks)))
        .choosing("0/0/", thank("parent", None))
        .role("0/1/", [Reply::text("late").after(&is_held)])
        .start();
    let scene = Scene::play_with(
        Workspace::new(),
        server,
        Format::Chat,
        |command| {
            command.env("IKIGAI_MAIL__MAX_WAKES", "4");
        },
        |workspace, _, running| {
            running.until("tool_call");
            workspace.wait_for_held_mail();
            // One turn more ends, and finds the same.
            is_held.open();
        },
    );
    let held = "⚠ Mail is held: agents were woken mail.max_wakes times. Your next message \
        releases it\n";
    assert_eq!((scene.code, &*scene.stderr), (0, held));
    let told = |scene: &Scene| [scene.notifications("0/"), scene.notifications("0/0/")].concat();
    assert_eq!((told(&scene).len(), scene.mail().len()), (4, 6));
    let unread = |agent: &Value| agent["unread"].as_i64().unwrap();
    assert_eq!(scene.registry().iter().map(unread).sum::<i64>(), 2);
    // What was held is told now; then two more letters are written, and the second is held again.
    let mut command =
        scene.workspace.run_command(&scene.server, Format::Chat, ["-c", "go on", "--json"]);
    let (code, _, stderr) = ended(command.env("IKIGAI_MAIL__MAX_WAKES", "2"));
    assert_eq!((code, &*stderr), (0, held));
    assert_eq!((told(&scene).len(), scene.mail().len()), (6, 8));
}

#[test]
fn a_command_of_a_child_knows_whose_it_is() {
    let server = AgentScripts::new()
        .role("0/", [fork("f", "who?"), Reply::text("a"), Reply::text("b")])
        .role("0/0/", [bash("b", "echo \"$IKIGAI_AGENT\""), Reply::text("c")])
        .start();
    let scene = Scene::play(Workspace::new(), server, Format::Chat);
    scene.check();
    let result: Value = serde_json::from_str(&scene.result_of("0/0/", "b")).unwrap();
    assert_eq!(result["data"]["output"], "0/0/\n");
}

#[test]
fn as_text_only_the_answers_of_the_prompts_agent_are_on_standard_output() {
    let read = Gate::new();
    let server = AgentScripts::new()
        .role(
            "0/",
            [
                fork("f", "say"),
                wait("w", json!({})).opening(&read),
                Reply::text("the child is done"),
            ],
        )
        .role(
            "0/0/",
            [
                Reply::text_and_calls("I look", [("b", "bash", json!({"command": "true"}))])
                    .after(&read),
                Reply::text("two\nlines \u{1b}[2J"),
            ],
        )
        .start();
    let workspace = Workspace::new();
    let (code, stdout, stderr) = workspace.run_model(&server, Format::Chat, ["go"]);
    assert_eq!((code, &*stdout), (0, "the child is done\n"));
    let (of_child, own): (Vec<&str>, Vec<&str>) =
        stderr.lines().partition(|line| line.starts_with("[0/0/] "));
    let expected = [
        "[0/0/] I look",
        "[0/0/] ● Bash  true",
        "[0/0/]   exit 0",
        "[0/0/] two",
        "[0/0/] lines \u{fffd}[2J",
    ];
    assert_eq!(of_child, expected);
    assert_eq!(own.len(), 4, "{own:?}");
    assert!(own.iter().all(|line| line.starts_with(['●', ' '])), "{own:?}");
}

/// `run` goes on until its children have nothing to do any more, and then says how the prompt's turn ended.
#[test]
fn a_run_ends_when_nobody_is_busy_and_its_own_end_is_the_last_line() {
    let first_done = Gate::new();
    let server = AgentScripts::new()
        .role("0/", [fork("f", "take your time"), Reply::text("early"), Reply::text("late")])
        .role("0/0/", [bash("b", "true").after(&first_done), Reply::text("slow")])
        .start();
    let scene = Scene::play_with(
        Workspace::new(),
        server,
        Format::Chat,
        |_| {},
        |workspace, _, _| {
            // At first there may be no session.
            wait_for("the parent's end", || {
                let (_, agents, _) = workspace.run(["agents", "--json"]);
                let agents: Value = serde_json::from_str(&agents).ok()?;
                (agents[0]["state"] == "idle").then_some(())
            });
            first_done.open();
        },
    );
    scene.check();
    let done = of_type(&scene.events, "done");
    assert_eq!(done.len(), 3);
    assert_eq!(scene.endings("0/"), [stop("early"), stop("late")]);
    assert_eq!(scene.endings("0/0/"), [stop("slow")]);
    assert_eq!(
        result_of(&scene.server.requests_of("0/")[1], "f"),
        r#"{"success":true,"data":{"agent":"0/0/"}}"#
    );
}
