//! Servers that fail: what passes is tried again and the person sees it, what does not pass ends the turn with
//! the provider's own words, and the conversation goes on after all of it.

use std::net::TcpListener;

use ikigai_testkit::{ModelServer, Point, Reply};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::support::model::{Format, Running};
use crate::support::story::{
    WELL_AGAIN, answered, assert_whole, at_once, bash, check_goes_on, contents, failed,
    interrupted, kinds, of_type,
};
use crate::support::{Workspace, pid};

/// A refusal after which the next attempt follows at once.
fn quickly(refusal: Reply) -> Reply {
    refusal.header("retry-after-ms", "1")
}

/// A turn that has used a tool meets `fault` and ends with `error`; nothing is tried again.
#[track_caller]
fn check_ends(fault: Reply, error: &str) {
    at_once(Format::BOTH, |format| {
        let script = [bash("c1", "echo one"), fault.clone(), Reply::text(WELL_AGAIN)];
        let server = ModelServer::start(script);
        let workspace = Workspace::new();
        let (code, events) = workspace.run_json(&server, format, ["go"]);
        assert_eq!((code, events.last()), (1, Some(&failed(error))), "{format:?}");
        assert_eq!(of_type(&events, "retry"), Vec::<&Value>::new());
        assert_eq!(server.requests().len(), 2);
        let log = check_goes_on(&workspace, &server, format);
        let expected = ["user", "tool_call", "tool_result", "user", "assistant"];
        assert_eq!(kinds(&log), expected);
    });
}

/// A turn that has used a tool meets `fault`, is told `reason`, and goes on as if nothing had happened.
#[track_caller]
fn check_passes(fault: Reply, reason: &str) {
    at_once(Format::BOTH, |format| {
        let script = [
            bash("c1", "echo one"),
            fault.clone(),
            Reply::text("It is one."),
            Reply::text(WELL_AGAIN),
        ];
        let server = ModelServer::start(script);
        let workspace = Workspace::new();
        let (code, events) = workspace.run_json(&server, format, ["go"]);
        assert_eq!((code, events.last()), (0, Some(&answered("It is one."))), "{format:?}");
        let retries = of_type(&events, "retry");
        assert_eq!(retries.len(), 1, "{retries:?}");
        assert_eq!(retries[0]["attempt"], 1);
        let told = retries[0]["reason"].as_str().unwrap();
        let told = told.replace(&server.url(), "SERVER").replace("SERVER/v1", "SERVER");
        assert!(told.starts_with(reason), "{format:?}: {told}");
        let requests = server.requests();
        assert_eq!(requests[1].body, requests[2].body, "the same is asked again");
        let log = check_goes_on(&workspace, &server, format);
        assert_eq!(contents(&log, "assistant"), ["It is one.", WELL_AGAIN]);
        assert_eq!(contents(&log, "tool_call").len(), 1);
    });
}

#[test]
fn a_server_is_left_alone_for_as_long_as_it_wants() {
    at_once(Format::BOTH, |format| {
        let wish = Reply::error(429, "slow down").header("retry-after-ms", "200");
        let server = ModelServer::start([wish, Reply::text("now"), Reply::text(WELL_AGAIN)]);
        let workspace = Workspace::new();
        let (code, events) = workspace.run_json(&server, format, ["go"]);
        assert_eq!((code, events.last()), (0, Some(&answered("now"))));
        let mut retry = of_type(&events, "retry")[0].clone();
        let delay = retry["delay_ms"].take().as_u64().unwrap();
        assert!((200..=220).contains(&delay), "{delay}");
        let reason = "too many requests: HTTP 429: slow down";
        let expected = json!({"type": "retry", "agent": "0/", "attempt": 1, "reason": reason, "delay_ms": null});
        assert_eq!(retry, expected);
        check_goes_on(&workspace, &server, format);
    });
}

#[test]
fn a_retry_is_told_on_standard_error() {
    at_once(Format::BOTH, |format| {
        let wish = Reply::error(429, "slow down").retry_after(1);
        let server = ModelServer::start([wish, Reply::text("now")]);
        let (code, stdout, stderr) = Workspace::new().run_model(&server, format, ["go"]);
        assert_eq!((code, &*stdout), (0, "now\n"));
        let rest = "s (1 of 5): too many requests: HTTP 429: slow down\n";
        let lines = ["1.0", "1.1"].map(|seconds| format!("⚠ Retrying in {seconds}{rest}"));
        assert!(lines.contains(&stderr), "{stderr}");
    });
}

/// Whoever is told to come back tomorrow does not sit there and wait.
#[test]
fn a_wish_that_is_too_long_ends_the_turn_and_is_told() {
    let fault = Reply::error(429, "come back tomorrow").retry_after(86_400);
    let error = "too many requests: HTTP 429: come back tomorrow \
                 (the server asks to wait 86400 s: wait, or use another model)";
    check_ends(fault, error);
}

#[test]
fn a_server_that_does_not_recover_is_given_up_after_five_retries() {
    for format in Format::BOTH {
        let faults = vec![quickly(Reply::error(500, "out of order")); 6];
        let server = ModelServer::start(faults.into_iter().chain([Reply::text(WELL_AGAIN)]));
        let workspace = Workspace::new();
        let (code, events) = workspace.run_json(&server, format, ["go"]);
        let error =
            "the server failed: HTTP 500: out of order (try again later, or use another model)";
        assert_eq!((code, events.last()), (1, Some(&failed(error))));
        let attempts: Vec<&Value> =
            of_type(&events, "retry").into_iter().map(|retry| &retry["attempt"]).collect();
        assert_eq!(attempts, [1, 2, 3, 4, 5]);
        let requests = server.requests();
        assert_eq!(requests.len(), 6);
        assert!(requests.iter().all(|request| request.body == requests[0].body));
        let log = check_goes_on(&workspace, &server, format);
        assert_eq!(kinds(&log), ["user", "user", "assistant"]);
    }
}

#[test]
fn an_error_on_standard_error_says_what_to_do() {
    let server = ModelServer::start([Reply::error(401, "no such key: ask your administrator")]);
    let ended = Workspace::new().run_model(&server, Format::Chat, ["go"]);
    let told = "ikigai: the key was refused: HTTP 401: no such key: ask your administrator \
                (check the key, and that its variable is the one the provider uses)\n";
    assert_eq!(ended, (1, String::new(), told.to_owned()));
}

#[test]
fn refusals_end_the_turn_with_the_servers_own_words() {
    let openai = |status, code: &str, message: &str| {
        Reply::json(status, &json!({"error": {"type": "x", "code": code, "message": message}}))
    };
    at_once(
        [
            (
                Reply::error(401, "your key is wrong"),
                "the key was refused: HTTP 401: your key is wrong \
             (check the key, and that its variable is the one the provider uses)",
            ),
            (
                openai(404, "model_not_found", "no model scripted"),
                "the model is not known: HTTP 404: no model scripted \
             (check the model's name, given by --model or `model`)",
            ),
            (
                openai(400, "context_length_exceeded", "8193 is more than 8192"),
                "the conversation is too long for the model: HTTP 400: 8193 is more than 8192 \
             (make room with /compact or /clear, or use a model with a larger context)",
            ),
            (
                openai(429, "insufficient_quota", "you are out of money"),
                "the quota is used up: HTTP 429: you are out of money \
             (add credit at the provider, or use another model)",
            ),
            (
                Reply::error(422, "I want a pony"),
                "the server refused the request: HTTP 422: I want a pony (check the model and its provider's settings)",
            ),
        ],
        |(fault, error)| {
            check_ends(fault, error);
        },
    );
}

#[test]
fn what_is_no_models_answer_ends_the_turn() {
    at_once(Format::BOTH, |format| {
        for (fault, told) in [
            (Reply::long_line(20 << 20), "a line of the stream is longer than 8 MiB"),
            (Reply::sse("data: {\"choices\": [}\n\n"), "the server did not send JSON"),
            (
                Reply::page("<title>Welcome</title>"),
                "the server answered with a web page, not with a model's stream: http://127.0.0.1:",
            ),
        ] {
            let server = ModelServer::start([fault, Reply::text(WELL_AGAIN)]);
            let workspace = Workspace::new();
            let (code, stdout, stderr) = workspace.run_model(&server, format, ["go"]);
            assert_eq!((code, &*stdout), (1, ""));
            let told = format!("ikigai: the answer cannot be read: {told}");
            assert!(stderr.starts_with(&told), "{stderr}");
            assert!(stderr.ends_with(" (check the provider's base_url and kind)\n"), "{stderr}");
            assert_eq!(server.requests().len(), 1);
            check_goes_on(&workspace, &server, format);
        }
    });
}

/// The key would go to somebody it was not meant for.
#[test]
fn a_redirect_is_told_and_not_followed() {
    at_once(Format::BOTH, |format| {
        for status in [301, 302, 303, 307, 308] {
            let stranger = ModelServer::start([Reply::text("give me your key")]);
            let to = format!("{}/elsewhere?token=1", stranger.url());
            let redirect = Reply::raw(status, &[("Location", &to)], "");
            let server = ModelServer::start([redirect, Reply::text(WELL_AGAIN)]);
            let workspace = Workspace::new();
            let (code, events) = workspace.run_json(&server, format, ["go"]);
            let error = format!(
                "the server refused the request: HTTP {status}: redirects to {}/elsewhere, which is \
                 not followed (check the model and its provider's settings)",
                stranger.url()
            );
            assert_eq!((code, events.last()), (1, Some(&failed(&error))));
            assert_eq!(stranger.connections(), 0);
            check_goes_on(&workspace, &server, format);
        }
    });
}

#[test]
fn an_overload_in_the_middle_of_an_answer_is_tried_again() {
    let fault = Reply::text("It is, I would").then_error("Overloaded");
    check_passes(fault, "the server failed: Overloaded");
}

#[test]
fn a_stream_without_anything_in_it_is_tried_again() {
    check_passes(
        Reply::sse(""),
        "the server failed: the server ended its stream without an answer",
    );
}

#[test]
fn an_answer_that_breaks_off_is_tried_again_and_its_text_is_void() {
    at_once(Format::BOTH, |format| {
        for half in [
            Reply::text("half an answer").close_at(Point::Text),
            Reply::text("half an answer").reset_at(Point::Text),
        ] {
            let script = [half, Reply::text("a whole one"), Reply::text(WELL_AGAIN)];
            let server = ModelServer::start(script);
            let workspace = Workspace::new();
            let (code, events) = workspace.run_json(&server, format, ["go"]);
            assert_eq!((code, events.last()), (0, Some(&answered("a whole one"))));
            let types: Vec<&str> =
                events.iter().map(|event| event["type"].as_str().unwrap()).collect();
            let retry = types.iter().position(|kind| *kind == "retry").unwrap();
            assert!(types[1..retry].iter().all(|kind| *kind == "text"), "{types:?}");
            let text = |events: &[Value]| -> String {
                let texts = of_type(events, "text").into_iter();
                texts.map(|text| text["delta"].as_str().unwrap()).collect()
            };
            assert!("half an answer".starts_with(&text(&events[..retry])));
            assert_eq!(text(&events[retry..]), "a whole one");
            let log = check_goes_on(&workspace, &server, format);
            assert_eq!(contents(&log, "assistant"), ["a whole one", WELL_AGAIN]);
        }
    });
}

#[test]
fn a_connection_that_closes_before_an_answer_is_tried_again() {
    let broken = "the connection failed: the connection to SERVER was lost";
    check_passes(Reply::text("x").close_at(Point::Head), &format!("{broken} (connection closed"));
    check_passes(Reply::text("x").reset_at(Point::Head), &format!("{broken} (connection reset)"));
}

/// Nothing listens there. Another address, and the conversation goes on.
#[test]
fn a_refused_connection_is_tried_again_until_the_person_has_enough() {
    for format in Format::BOTH {
        let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let server = ModelServer::start([Reply::text(WELL_AGAIN)]);
        let workspace = Workspace::new();
        let mut command = workspace.run_command(&server, format, ["--json", "go"]);
        command.env("OPENAI_BASE_URL", format!("http://{nobody}/v1"));
        command.env("ANTHROPIC_BASE_URL", format!("http://{nobody}"));
        let run = Running::start(&mut command);
        let reason = run.until("retry").last().unwrap()["reason"].clone();
        let path = if format == Format::Chat { "/v1" } else { "" };
        let expected = format!(
            "the connection failed: cannot reach http://{nobody}{path} (connection refused)"
        );
        assert_eq!(reason, expected);
        kill_process(pid(&run.child), Signal::INT).unwrap();
        let (code, rest, stderr) = run.finish();
        assert_eq!((code, rest.last(), &*stderr), (130, Some(&interrupted("")), ""));
        let log = check_goes_on(&workspace, &server, format);
        assert_eq!(kinds(&log), ["user", "interrupted", "user", "assistant"]);
    }
}

/// The command is whole in one of the cases; the response is not.
#[test]
fn half_a_response_runs_no_call() {
    at_once(Format::BOTH, |format| {
        let whole =
            format.call_event(0, [r#""c1""#, r#""bash""#, r#""{\"command\":\"touch trace\"}""#]);
        let end = whole.len() + 1000;
        for half in [
            bash("c1", "touch trace").close_at(Point::Arguments),
            bash("c1", "touch trace").reset_at(Point::Arguments),
            format.cut_stream(&whole).close_at(Point::Byte(end)),
            format.cut_stream(&whole).reset_at(Point::Byte(end)),
            format.cut_stream(&whole),
        ] {
            let script = [half, Reply::text("I did nothing"), Reply::text(WELL_AGAIN)];
            let server = ModelServer::start(script);
            let workspace = Workspace::new();
            let (code, events) = workspace.run_json(&server, format, ["go"]);
            assert_eq!((code, events.last()), (0, Some(&answered("I did nothing"))));
            assert_eq!(of_type(&events, "retry").len(), 1);
            assert_eq!(of_type(&events, "tool_call"), Vec::<&Value>::new());
            assert_eq!(workspace.names(), Vec::<String>::new());
            let log = check_goes_on(&workspace, &server, format);
            assert_eq!(kinds(&log), ["user", "assistant", "user", "assistant"]);
            assert_whole(&log);
        }
    });
}

/// Some servers have an empty reason in every chunk and end without any. It was taken for an end although the
/// connection broke.
#[test]
fn an_empty_reason_is_no_end_where_the_connection_breaks() {
    let piece = |delta: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": ""});
        format!("data: {}\n\n", json!({ "choices": [choice] }))
    };
    let function = json!({"name": "bash", "arguments": r#"{"command":"touch trace"}"#});
    let call = json!({"tool_calls": [{"index": 0, "id": "c1", "function": function}]});
    at_once([piece(json!({"content": "half an"})), piece(call)], |half| {
        for broken in [
            Reply::sse(half.clone()).close_at(Point::Byte(half.len())),
            Reply::sse(half.clone()).reset_at(Point::Byte(half.len())),
        ] {
            let script = [broken, Reply::text("a whole answer"), Reply::text(WELL_AGAIN)];
            let server = ModelServer::start(script);
            let workspace = Workspace::new();
            let (code, events) = workspace.run_json(&server, Format::Chat, ["go"]);
            assert_eq!((code, events.last()), (0, Some(&answered("a whole answer"))));
            assert_eq!(workspace.names(), Vec::<String>::new());
            let log = check_goes_on(&workspace, &server, Format::Chat);
            assert_eq!(contents(&log, "assistant"), ["a whole answer", WELL_AGAIN]);
        }
    });
}
