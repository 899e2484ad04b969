//! When a request is dropped, its connection is closed at once, at any point.

use std::sync::Arc;
use std::time::Duration;

use ikigai_conversation::Log;
use ikigai_providers::{Client, Limits, Progress, Request, ToolUse};
use ikigai_testkit::{ModelServer, Point, Reply};
use tokio::sync::Notify;

use crate::asking::{EAGER, ONCE, ask, client, question, until};

/// Drops the request when the reply stalls, and waits until the server notices.
async fn check_leaving(reply: Reply) {
    let server = Arc::new(ModelServer::start([reply]));
    let client = client(&server, ONCE);
    tokio::select! {
        (response, _) = ask(&client) => panic!("{response:?}"),
        () = until(&server, |server| server.wait_for_stalls(1)) => {}
    }
    until(&server, |server| server.wait_for_departures(1)).await;
    // The client still exists: only the request ended.
    drop(client);
}

#[tokio::test]
async fn dropping_a_request_before_the_answer_closes_the_connection() {
    check_leaving(Reply::silence()).await;
}

#[tokio::test]
async fn dropping_a_request_during_an_answer_closes_the_connection() {
    check_leaving(Reply::text("one two").stall_at(Point::Byte(0))).await;
    check_leaving(Reply::text("one two").stall_at(Point::Text)).await;
}

#[tokio::test]
async fn dropping_a_request_during_a_refusal_closes_the_connection() {
    check_leaving(Reply::error(400, "No, because").stall_at(Point::Byte(5))).await;
}

#[tokio::test]
async fn dropping_a_request_between_attempts_ends_the_retries() {
    let server = Arc::new(ModelServer::choosing(|_| Reply::status(500)));
    let client = client(&server, Limits { first_delay: Duration::from_secs(600), ..EAGER });
    let retrying = Arc::new(Notify::new());
    tokio::select! {
        () = ask_and_notify(&client, &retrying) => panic!("it was answered"),
        () = retrying.notified() => {}
    }
    assert_eq!(server.requests().len(), 1);
}

async fn ask_and_notify(client: &Client, retrying: &Notify) {
    let log = question();
    let view = Log::new(&log).view();
    let request = Request {
        model: "m",
        origin: "",
        view: &view,
        tools: &[],
        tool_use: ToolUse::Auto,
        effort: None,
        max_output_tokens: None,
    };
    let mut on = |progress: Progress<'_>| {
        if let Progress::Retry { .. } = progress {
            retrying.notify_one();
        }
    };
    let _ = client.ask(&request, &mut on).await;
}
