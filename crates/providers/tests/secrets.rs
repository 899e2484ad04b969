//! A key and a password are sent to the server, and appear nowhere else.

use std::sync::Arc;

use ikigai_providers::{Anthropic, Category, Client, Endpoint, Limits, Secret};
use ikigai_testkit::{ModelServer, Point, Reply};
use serde_json::json;

use crate::asking::{EAGER, KEY, ONCE, ask, client_at, client_of, formats};

const PASSWORD: &str = "marker-password";

#[track_caller]
fn assert_clean(what: &str) {
    for secret in [KEY, PASSWORD, "marker"] {
        assert!(!what.contains(secret), "{what}");
    }
}

/// A server that repeats everything it was sent, in every possible way.
fn echoes() -> Vec<Reply> {
    let echo = format!("Wrong key {KEY} for {PASSWORD}!");
    let long = format!("{}{KEY}", "x".repeat(390));
    let error = json!({"error": {"type": echo, "code": echo}});
    let page = format!("<html><title>{echo}</title>");
    let elsewhere = format!("https://me:{PASSWORD}@example.org/{KEY}?key={KEY}");
    let html = [("Content-Type", "text/html")];
    vec![
        Reply::error(401, &echo),
        Reply::error(500, &echo),
        Reply::error(429, &echo).retry_after(1000),
        Reply::error(400, &long),
        Reply::error(404, &long),
        Reply::json(400, &error),
        Reply::raw(400, &[], echo.clone()),
        Reply::raw(502, &html, page.clone()),
        Reply::page(&page),
        Reply::raw(307, &[("Location", &elsewhere)], ""),
        Reply::raw(308, &[("Location", &echo)], ""),
        Reply::text("x").then_error(&echo),
        Reply::text("x").then_error(&long),
        Reply::sse(format!("data: {echo}\n\n")),
        Reply::sse(format!("data: {{\"type\":\"{KEY}\",\"error\":\"{echo}\"}}\n\n")),
        Reply::raw(200, &[("Content-Type", "application/json")], echo.clone()),
        Reply::json(200, &error),
        Reply::hang_up(),
        Reply::text("x").close_at(Point::Byte(0)),
        Reply::text("x").reset_at(Point::Text),
    ]
}

#[tokio::test]
async fn no_fault_shows_a_key_or_a_password() {
    for reply in echoes() {
        let server = ModelServer::choosing(move |_| reply.clone());
        for (provider, base_url) in formats(&server) {
            let base_url = base_url.replace("//", &format!("//me:{PASSWORD}@"));
            let client = client_of(provider, base_url, Limits { retries: 1, ..EAGER });
            let (response, said) = ask(&client).await;
            let fault = response.unwrap_err();
            assert_clean(&format!("{fault} {fault:?} {said:?} {client:?}"));
            let fault = client.models().await.unwrap_err();
            assert_clean(&format!("{fault} {fault:?}"));
        }
    }
}

#[tokio::test]
async fn no_transport_fault_shows_a_password() {
    let bases = [
        format!("http://me:{PASSWORD}@127.0.0.1:1/v1"),
        format!("http://me:{PASSWORD}@{}.invalid/v1", "x".repeat(64)),
        format!("ftp://me:{PASSWORD}@127.0.0.1/v1"),
        format!("me:{PASSWORD}@127.0.0.1"),
        format!("https://me:{PASSWORD}@127.0.0.1:1/v1"),
    ];
    for base_url in bases {
        let client = client_at(&base_url, ONCE);
        let fault = ask(&client).await.0.unwrap_err();
        assert_clean(&format!("{fault} {fault:?} {client:?}"));
    }
}

#[tokio::test]
async fn a_name_and_password_in_the_address_log_in() {
    let server = ModelServer::start([Reply::text("Hello")]);
    let base_url = server.url().replace("//", "//me:pass@");
    assert_eq!(ask(&client_at(&base_url, ONCE)).await.0.unwrap().text, "Hello");
    let requests = server.requests();
    assert_eq!(requests[0].header("authorization"), Some("Basic bWU6cGFzcw=="));
    assert_eq!(requests[0].header("x-api-key"), Some(KEY));
    assert_eq!(requests[0].path, "/v1/messages");
}

#[tokio::test]
async fn a_key_that_cannot_be_sent_is_refused_without_showing_it() {
    let key = Some(Secret::new("sk-marker\nsecond line"));
    let (provider, base_url) = (Arc::new(Anthropic), "http://127.0.0.1:1".to_owned());
    let client = Client::new(Endpoint { provider, base_url, key, certificates: None }, ONCE);
    let fault = ask(&client).await.0.unwrap_err();
    assert_eq!(fault.category, Category::KeyRefused);
    assert_clean(&format!("{fault} {fault:?}"));
}
