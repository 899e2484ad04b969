//! Successful responses, in all the forms in which they may arrive.

use std::sync::Arc;
use std::time::Duration;

use ikigai_conversation::Seen;
use ikigai_providers::{Limits, Request, Stop, Tokens};
use ikigai_testkit::{ModelServer, Point, Reply};
use serde_json::{Value, json};

use crate::asking::{EAGER, KEY, ONCE, Said, ask, client, client_of, formats, valid_text};

#[tokio::test]
async fn a_response_is_passed_on_in_pieces_and_returned_whole() {
    let answer = Reply::text("Hello to you").usage(7, 3);
    let server = ModelServer::choosing(move |_| answer.clone());
    for (provider, base_url) in formats(&server) {
        let client = client_of(provider, base_url, EAGER);
        let (response, said) = ask(&client).await;
        let response = response.unwrap();
        assert_eq!(response.text, "Hello to you");
        assert_eq!(response.stop, Stop::Complete);
        let tokens = response.tokens.unwrap();
        assert_eq!(tokens, Tokens { input: 7, output: 3, ..tokens });
        assert_eq!(said, ["Hello ", "to ", "you"].map(|text| Said::Text(text.to_owned())));
    }
}

#[tokio::test]
async fn calls_are_complete_however_the_bytes_are_split() {
    let arguments = json!({"command": "echo 'Grüße, 世界'"});
    let calls = [("c1", "bash", arguments.clone()), ("c2", "glob", json!({"pattern": "*.c"}))];
    for bytes in [1, 2, 3, 7, 1000] {
        let answer = Reply::text_and_calls("Ich grüße.", calls.clone()).in_chunks(bytes);
        let server = ModelServer::choosing(move |_| answer.clone());
        for (provider, base_url) in formats(&server) {
            let (response, said) = ask(&client_of(provider, base_url, EAGER)).await;
            let response = response.unwrap();
            assert_eq!((response.text.as_str(), response.calls.len()), ("Ich grüße.", 2));
            assert_eq!(valid_text(&said), "Ich grüße.");
            let first: Value = serde_json::from_str(&response.calls[0].arguments).unwrap();
            assert_eq!((response.calls[0].name.as_str(), first), ("bash", arguments.clone()));
            assert_eq!(response.calls[1].id.as_str(), "c2");
        }
    }
}

#[tokio::test]
async fn a_document_is_read_although_a_stream_was_asked_for() {
    let server = ModelServer::choosing(|_| Reply::text("All at once").whole());
    for (provider, base_url) in formats(&server) {
        let (response, said) = ask(&client_of(provider, base_url, EAGER)).await;
        assert_eq!(response.unwrap().text, "All at once");
        assert_eq!(valid_text(&said), "All at once");
    }
}

#[tokio::test]
async fn a_stream_without_its_media_type_is_read() {
    let body = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\n\
                data: {\"type\":\"content_block_start\",\"index\":0,\
                \"content_block\":{\"type\":\"text\",\"text\":\"plain\"}}\n\n\
                data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n\
                data: {\"type\":\"message_stop\"}\n\n";
    let plain = [("Content-Type", "text/plain")];
    let server = ModelServer::start([Reply::raw(200, &[], body), Reply::raw(200, &plain, body)]);
    let client = client(&server, ONCE);
    for _ in 0..2 {
        assert_eq!(ask(&client).await.0.unwrap().text, "plain");
    }
}

#[tokio::test]
async fn a_request_carries_the_key_and_reuses_the_connection() {
    let server = ModelServer::start([Reply::text("one"), Reply::text("two")]);
    let client = client(&server, ONCE);
    for answer in ["one", "two"] {
        assert_eq!(ask(&client).await.0.unwrap().text, answer);
    }
    assert_eq!(server.connections(), 1);
    let requests = server.requests();
    let request = &requests[0];
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/messages"));
    assert_eq!(request.header("x-api-key"), Some(KEY));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert!(request.header("user-agent").unwrap().starts_with("ikigai/"));
    assert!(request.last_user_text().unwrap().ends_with("Hello?"));
    assert_eq!(requests[0].body, requests[1].body);
}

#[tokio::test]
async fn a_slow_answer_is_waited_for_as_long_as_it_comes() {
    // The whole response takes longer than one pause may.
    let drip = Reply::pieces((0..24).map(|_| "x")).drip(Duration::from_millis(50));
    let server = ModelServer::start([drip]);
    let idle = Duration::from_secs(1);
    let (response, _) = ask(&client(&server, Limits { idle, ..ONCE })).await;
    assert_eq!(response.unwrap().text, "x".repeat(24));
}

#[tokio::test]
async fn a_complete_response_counts_even_if_the_connection_then_breaks() {
    let everything = Point::Byte(usize::MAX);
    for reply in
        [Reply::text("All said").close_at(everything), Reply::text("All said").reset_at(everything)]
    {
        let server = ModelServer::choosing(move |_| reply.clone());
        for (provider, base_url) in formats(&server) {
            let (response, _) = ask(&client_of(provider, base_url, ONCE)).await;
            assert_eq!(response.unwrap().text, "All said");
        }
    }
}

#[tokio::test]
async fn a_request_can_be_sent_from_any_thread() {
    let server = ModelServer::start([Reply::text("one")]);
    let client = Arc::new(client(&server, ONCE));
    let task = tokio::spawn(async move { ask(&client).await.0 });
    assert_eq!(task.await.unwrap().unwrap().text, "one");
}

#[tokio::test]
async fn a_request_beside_a_turn_needs_neither_a_log_nor_tools() {
    let server = ModelServer::choosing(|_| Reply::text("Parser fixes"));
    for (provider, base_url) in formats(&server) {
        let client = client_of(provider, base_url, EAGER);
        let view = [Seen::System("Write a title."), Seen::User("Fix the parser")];
        let request = Request::without_tools("m", "", &view);
        let response = client.ask(&request, &mut |_| {}).await.unwrap();
        assert_eq!((response.text.as_str(), response.calls.len()), ("Parser fixes", 0));
    }
    for request in server.requests() {
        assert_eq!(request.system().as_deref(), Some("Write a title."));
        assert_eq!(request.last_user_text().as_deref(), Some("Fix the parser"));
        assert!(request.tool_names().is_empty() && request.tool_choice().is_null());
    }
}
