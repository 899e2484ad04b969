//! What a child knows and who it is, and how many there may be.

use ikigai_testkit::{AgentScripts, CapturedRequest, Gate, ModelServer, Reply, assert_prefix};
use serde_json::{Value, json};

use crate::support::Workspace;
use crate::support::model::{Format, assert_strict};
use crate::support::scene::{Scene, fork, forks, of_agent, send, stop};
use crate::support::story::{kinds, of_type};

/// The texts of the user's messages.
fn user_texts(request: &CapturedRequest) -> Vec<String> {
    let text = |content: &Value| match content {
        Value::String(text) => vec![text.clone()],
        blocks => {
            let texts = blocks.as_array().into_iter().flatten();
            texts.filter_map(|block| block["text"].as_str().map(str::to_owned)).collect()
        }
    };
    let messages = request.messages();
    let of_user = messages.iter().filter(|message| message["role"] == "user");
    of_user.flat_map(|message| text(&message["content"])).collect()
}

const FULL: &str =
    "[You are agent 0/0/, forked by 0/. What stands above is its conversation, not your task.]";

#[test]
fn a_full_fork_begins_with_the_bytes_of_its_parent_up_to_the_response_that_forked() {
    for format in Format::BOTH {
        let server = AgentScripts::new()
            .role(
                "0/",
                [
                    Reply::call("b0", "bash", json!({"command": "true"})),
                    Reply::text_and_calls(
                        "I fork in the middle",
                        [
                            ("b1", "bash", json!({"command": "true"})),
                            ("f1", "fork", json!({"prompt": "go full", "context": "full"})),
                            ("f2", "fork", json!({"prompt": "go fresh"})),
                            ("b2", "bash", json!({"command": "true"})),
                        ],
                    ),
                    Reply::text("over"),
                    Reply::text("told"),
                    Reply::text("told again"),
                ],
            )
            .role("0/0/", [send("s", "parent", "x"), Reply::text("full")])
            .role("0/1/", [send("s", "parent", "y"), Reply::text("fresh")])
            .start();
        let scene = Scene::play(Workspace::new(), server, format);
        scene.check();
        let asked = scene.server.requests_of("0/");
        let full = scene.server.requests_of("0/0/");
        // What the parent had asked when its model answered with the fork.
        assert_prefix(&asked[1], &full[0]);
        assert!(!full[0].text().contains("I fork in the middle"), "{}", full[0].text());
        let expected = ["[You are agent 0/]\n\ngo", &format!("{FULL}\n\ngo full")];
        assert_eq!(user_texts(&full[0]), expected);
        assert_eq!(
            full[0].messages().len(),
            asked[1].messages().len() + usize::from(format == Format::Chat)
        );
        let fresh = scene.server.requests_of("0/1/");
        let expected = ["[You are agent 0/1/, forked by 0/.]\n\ngo fresh"];
        assert_eq!(user_texts(&fresh[0]), expected);
        assert_eq!(fresh[0].system(), asked[0].system());
        assert_strict(&[&full[..], &fresh[..]].concat());
        // The log and the events have no identities, and of a fork only what is its own.
        assert_eq!(kinds(&scene.log("0/0/"))[..2], ["fork", "user"]);
        for agent in ["0/", "0/0/", "0/1/"] {
            let log = json!(scene.log(agent)).to_string();
            assert!(!log.contains("You are agent"), "{log}");
        }
        assert!(!json!(scene.events).to_string().contains("You are agent"));
    }
}

#[test]
fn a_full_fork_of_a_full_fork_has_both_conversations_above_it() {
    for format in Format::BOTH {
        let full =
            |prompt: &str| Reply::call("f", "fork", json!({"prompt": prompt, "context": "full"}));
        let server = AgentScripts::new()
            .role("0/", [full("one"), Reply::text("a"), Reply::text("b")])
            .role("0/0/", [full("two"), Reply::text("c"), Reply::text("d")])
            .role("0/0/0/", [Reply::text("e")])
            .start();
        let scene = Scene::play(Workspace::new(), server, format);
        scene.check();
        let first = |agent| scene.server.requests_of(agent).swap_remove(0);
        assert_prefix(&first("0/"), &first("0/0/"));
        assert_prefix(&first("0/0/"), &first("0/0/0/"));
        let identity = "[You are agent 0/0/0/, forked by 0/0/. What stands above is its conversation, not your task.]\n\ntwo";
        assert_eq!(user_texts(&first("0/0/0/")).last().map(String::as_str), Some(identity));
    }
}

#[test]
fn there_are_so_many_agents_and_so_many_below_each_other() {
    // A child that is idle makes room.
    let forked = Gate::new();
    let first = Reply::text("a").opening(&forked);
    let server = AgentScripts::new()
        .role("0/", [forks(4), first, Reply::text("b"), Reply::text("c")])
        .role("0/0/", [fork("f", "deeper"), Reply::text("d").after(&forked)])
        .role("0/1/", [Reply::text("e").after(&forked)])
        .start();
    let workspace = Workspace::new();
    workspace.write_config("max_agents = 3\nmax_depth = 2\n");
    let scene = Scene::play(workspace, server, Format::Chat);
    scene.check();
    for call in ["f2", "f3"] {
        let refused = r#"{"success":false,"error":"Maximum agents (3) reached"}"#;
        assert_eq!(scene.result_of("0/", call), refused);
    }
    let refused = r#"{"success":false,"error":"Maximum agent depth (2) exceeded"}"#;
    assert_eq!(scene.result_of("0/0/", "f"), refused);
    assert_eq!(scene.registry().len(), 3);
}

#[test]
fn a_thousand_forks_get_the_limits_error_and_nothing_else_happens() {
    // A child that is idle makes room.
    let forked = Gate::new();
    let server = ModelServer::choosing(move |request| match request.agent().as_deref() {
        Some("0/") if request.messages().len() == 2 => forks(1_000),
        Some("0/") => Reply::text("ok").opening(&forked),
        _ => Reply::text("ok").after(&forked),
    });
    let scene = Scene::play(Workspace::new(), server, Format::Chat);
    scene.check();
    let events = of_agent(&scene.events, "0/");
    let results = of_type(&events, "tool_result");
    let refused: Vec<_> = results.iter().map(|event| &event["result"]).skip(19).collect();
    let expected = json!({"success": false, "error": "Maximum agents (20) reached"});
    assert_eq!((refused.len(), refused.iter().all(|result| **result == expected)), (981, true));
    assert_eq!(scene.registry().len(), 20);
    assert_eq!(scene.endings("0/")[0], stop("ok"));
    for agent in scene.registry().iter().skip(1) {
        assert_eq!(scene.endings(agent["id"].as_str().unwrap()), [stop("ok")]);
    }
    // Each child has asked once, and was heard once.
    assert_eq!(scene.mail().len(), 19);
    scene.check_announced_once();
}
