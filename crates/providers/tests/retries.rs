//! Faults, and which of them are retried.

use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ikigai_providers::{Category, Fault, Limits};
use ikigai_testkit::{ModelServer, Point, Reply};
use serde_json::json;

use crate::asking::{
    EAGER, ONCE, Said, ask, client, client_at, client_of, formats, lost_attempts, retries,
    valid_text,
};

/// A limit that the test reaches on purpose.
const SHORT: Duration = Duration::from_millis(100);

/// A request that fails once with `reply` is retried, and succeeds.
async fn check_retried(reply: Reply, category: Category) {
    let formats_there_are = formats(&ModelServer::start([])).len();
    for place in 0..formats_there_are {
        let server = ModelServer::start([reply.clone(), Reply::text("Well again")]);
        let (provider, base_url) = formats(&server).remove(place);
        let (response, said) = ask(&client_of(provider, base_url, EAGER)).await;
        assert_eq!(response.unwrap().text, "Well again", "{reply:?}");
        assert_eq!(valid_text(&said), "Well again", "{reply:?}");
        let categories: Vec<Category> = retries(&said).iter().map(|fault| fault.category).collect();
        assert_eq!(categories, [category], "{reply:?} {said:?}");
    }
}

#[tokio::test]
async fn a_failing_or_busy_server_gets_a_retry() {
    check_retried(Reply::status(429), Category::RateLimit).await;
    for status in [500, 502, 503, 504, 529] {
        check_retried(Reply::status(status), Category::Server).await;
    }
    check_retried(Reply::raw(502, &[], "<html>Bad Gateway"), Category::Server).await;
}

/// Only what the server had accepted may be billed.
#[tokio::test]
async fn attempts_that_may_be_billed_are_told_from_those_that_are_not() {
    let half = || Reply::text("Half a text").close_at(Point::Text);
    for (script, lost) in [
        (vec![Reply::text("well")], 0),
        (vec![Reply::status(429), Reply::status(500), Reply::text("well")], 0),
        (vec![half(), Reply::status(503), half(), Reply::text("well")], 2),
        (vec![Reply::text("").then_error("Overloaded"), Reply::text("well")], 1),
        (vec![Reply::text("x").close_at(Point::Head), Reply::text("well")], 1),
        (vec![Reply::status(400)], 0),
        (vec![half(), Reply::status(400)], 1),
        (vec![Reply::page("<html>")], 1),
    ] {
        let server = ModelServer::start(script.clone());
        assert_eq!(lost_attempts(&client(&server, EAGER)).await, lost, "{script:?}");
    }
    let nowhere = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nowhere = format!("http://{nowhere}");
    assert_eq!(lost_attempts(&client_at(&nowhere, ONCE)).await, 0);
}

#[tokio::test]
async fn an_error_inside_a_stream_is_retried_too() {
    check_retried(Reply::text("").then_error("Overloaded"), Category::Server).await;
    check_retried(Reply::text("Half a").then_error("Overloaded"), Category::Server).await;
}

#[tokio::test]
async fn a_stream_without_an_answer_is_a_failure_of_the_server() {
    check_retried(Reply::sse(""), Category::Server).await;
    check_retried(Reply::sse(": nothing\n\n"), Category::Server).await;
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_requested_again() {
    let call = Reply::call("c1", "bash", json!({"command": "rm -rf important"}));
    check_retried(Reply::hang_up(), Category::Network).await;
    check_retried(Reply::text("x").close_at(Point::Byte(0)), Category::Network).await;
    check_retried(Reply::text("x").reset_at(Point::Byte(0)), Category::Network).await;
    check_retried(Reply::text("Half a text").close_at(Point::Text), Category::Network).await;
    check_retried(Reply::text("Half a text").reset_at(Point::Text), Category::Network).await;
    check_retried(call.clone().close_at(Point::Arguments), Category::Network).await;
    check_retried(call.reset_at(Point::Arguments), Category::Network).await;
    let json = [("Content-Type", "application/json")];
    let half = Reply::raw(200, &json, "{\"choices\":[]}").close_at(Point::Byte(5));
    check_retried(half, Category::Network).await;
}

#[tokio::test]
async fn a_retry_discards_the_text_so_far() {
    let server = ModelServer::start([
        Reply::text("wrong and half").close_at(Point::Text),
        Reply::text("right"),
    ]);
    let (_, said) = ask(&client(&server, EAGER)).await;
    let [Said::Text(_), Said::Text(_), Said::Retry { attempt: 1, .. }, right @ ..] = &said[..]
    else {
        panic!("{said:?}");
    };
    assert_eq!(valid_text(right), "right");
}

/// Only `limits` makes the stall a fault. Later requests are answered,
/// however often a slow machine retries.
async fn check_stall(stall: Reply, limits: Limits) {
    let asked = AtomicUsize::new(0);
    let server = ModelServer::choosing(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        0 => stall.clone(),
        _ => Reply::text("Awake"),
    });
    let (response, said) = ask(&client(&server, limits)).await;
    assert_eq!(response.unwrap().text, "Awake");
    let message = format!("no data from {} for 0.1 s", server.url());
    assert_eq!(retries(&said)[0], &Fault::new(Category::Network, message));
}

#[tokio::test]
async fn a_server_that_stalls_gets_a_retry() {
    let first = Limits { first_byte: SHORT, ..EAGER };
    check_stall(Reply::silence(), first).await;
    check_stall(Reply::text("x").stall_at(Point::Byte(0)), first).await;
    let idle = Limits { idle: SHORT, ..EAGER };
    check_stall(Reply::text("one two").stall_at(Point::Text), idle).await;
    let call = Reply::call("c1", "bash", json!({"command": "ls"}));
    check_stall(call.stall_at(Point::Arguments), idle).await;
}

#[tokio::test]
async fn five_retries_are_made_and_counted() {
    let server = ModelServer::choosing(|_| Reply::error(500, "Out of order"));
    let (response, said) = ask(&client(&server, EAGER)).await;
    let fault = Fault::new(Category::Server, "HTTP 500: Out of order");
    assert_eq!(response.unwrap_err(), fault);
    let attempts: Vec<u32> = said
        .iter()
        .map(|said| match said {
            Said::Retry { attempt, fault: shown, .. } if *shown == fault => *attempt,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(attempts, [1, 2, 3, 4, 5]);
    assert_eq!(server.requests().len(), 6);
}

async fn check_refused(reply: Reply, category: Category) -> Fault {
    let server = ModelServer::start([reply]);
    let (response, said) = ask(&client(&server, EAGER)).await;
    let fault = response.unwrap_err();
    assert_eq!((fault.category, said.len()), (category, 0), "{fault}");
    assert_eq!(server.requests().len(), 1);
    fault
}

#[tokio::test]
async fn a_refused_request_is_not_retried() {
    for (status, category) in [
        (400, Category::Refused),
        (401, Category::KeyRefused),
        (402, Category::Quota),
        (403, Category::KeyRefused),
        (404, Category::Refused),
        (413, Category::ContextTooLong),
        (418, Category::Refused),
        (422, Category::Refused),
    ] {
        check_refused(Reply::status(status), category).await;
    }
    let fault = check_refused(Reply::error(400, "I\nsay no"), Category::Refused).await;
    assert_eq!(fault.message, "HTTP 400: I say no");
    let too_long = Reply::error(400, "prompt is too long: 2 tokens > 1 maximum");
    check_refused(too_long, Category::ContextTooLong).await;
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = ModelServer::start([Reply::text("Give me the key")]);
    for status in [301, 302, 303, 307, 308] {
        let to = format!("{}/v1/messages?from=here", elsewhere.url());
        let redirect = Reply::raw(status, &[("Location", &to)], "");
        let fault = check_refused(redirect, Category::Refused).await;
        let shown = format!("{}/v1/messages", elsewhere.url());
        let message = format!("HTTP {status}: redirects to {shown}, which is not followed");
        assert_eq!(fault.message, message);
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn a_web_page_is_a_fault() {
    let server = ModelServer::start([Reply::page("<html>Welcome!</html>")]);
    let fault = ask(&client(&server, EAGER)).await.0.unwrap_err();
    let message = "the server answered with a web page, not with a model's stream";
    assert_eq!(fault, Fault::new(Category::Unreadable, format!("{message}: {}", server.url())));
}

#[tokio::test]
async fn an_endless_answer_is_a_fault() {
    check_refused(Reply::long_line(20 << 20), Category::Unreadable).await;
    let comments = [&[b':'; 1023][..], b"\n"].concat().repeat(65 << 10);
    check_refused(Reply::sse(comments).in_chunks(1 << 16), Category::Unreadable).await;
    let json = [("Content-Type", "application/json")];
    check_refused(Reply::raw(200, &json, vec![b' '; 33 << 20]), Category::Unreadable).await;
    let endless = Reply::raw(400, &[], "no ".repeat(1 << 20));
    let fault = check_refused(endless, Category::Refused).await;
    assert!(fault.message.chars().count() <= 500);
}

#[tokio::test]
async fn the_servers_delay_is_respected() {
    let busy = Reply::status(429).header("Retry-After-Ms", "40").retry_after(200);
    let server = ModelServer::start([busy, Reply::text("Now")]);
    let (response, said) = ask(&client(&server, EAGER)).await;
    assert_eq!(response.unwrap().text, "Now");
    let Said::Retry { fault, delay, .. } = &said[0] else { panic!("{said:?}") };
    assert_eq!(fault.retry_after, Some(Duration::from_millis(40)));
    assert!(*delay >= Duration::from_millis(40));
}

#[tokio::test]
async fn a_delay_that_is_too_long_is_a_fault() {
    let fault = check_refused(Reply::status(429).retry_after(301), Category::RateLimit).await;
    assert_eq!(fault.retry_after, Some(Duration::from_secs(301)));
    let far = Reply::status(503).header("Retry-After", "Tue, 31 Dec 2999 23:59:59 GMT");
    check_refused(far, Category::Server).await;
}

#[tokio::test]
async fn the_fault_names_an_unreachable_server() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let (response, said) = ask(&client_at(&base_url, Limits { retries: 1, ..EAGER })).await;
    let message = format!("cannot reach {base_url} (connection refused)");
    assert_eq!(response.unwrap_err(), Fault::new(Category::Network, message));
    assert_eq!(retries(&said).len(), 1);
}

#[tokio::test]
async fn an_impossible_host_is_unknown() {
    // No host name may be this long, so no name server is asked.
    let base_url = format!("http://{}.invalid/v1", "x".repeat(64));
    let fault = ask(&client_at(&base_url, ONCE)).await.0.unwrap_err();
    let message = format!("cannot reach {base_url} (unknown host)");
    assert_eq!(fault, Fault::new(Category::Network, message));
}

#[tokio::test]
async fn an_invalid_address_is_reported_at_once() {
    for base_url in ["", "nonsense", "ftp://127.0.0.1/v1"] {
        let (response, said) = ask(&client_at(base_url, EAGER)).await;
        let message = "the provider's base_url is not an HTTP address";
        assert_eq!(response.unwrap_err(), Fault::new(Category::Network, message));
        assert_eq!(said, []);
    }
}
