//! Lists of a server's models.

use ikigai_providers::{Category, Fault};
use ikigai_testkit::{ModelServer, Reply};
use serde_json::json;

use crate::asking::{EAGER, KEY, client, client_of, formats};

#[tokio::test]
async fn a_server_lists_its_models() {
    let list = json!({"object": "list", "data": [
        {"id": "small", "context_length": 1}, {"id": "large", "context_length": 2},
    ]});
    let server = ModelServer::choosing(move |_| Reply::json(200, &list)).with_lists();
    for (provider, base_url) in formats(&server) {
        let models = client_of(provider, base_url, EAGER).models().await;
        let names: Vec<String> = models.unwrap().into_iter().map(|model| model.name).collect();
        assert_eq!(names, ["small", "large"]);
    }
    let requests = server.requests();
    let paths: Vec<&str> = requests.iter().map(|request| request.path.as_str()).collect();
    assert_eq!(paths, ["/v1/models", "/v1/models?limit=1000"]);
    for request in requests {
        assert_eq!(request.method, "GET");
        let has_key = |(_, value): &(String, String)| value.ends_with(KEY);
        assert!(request.headers.iter().any(has_key));
    }
}

#[tokio::test]
async fn a_server_without_a_list_is_an_error() {
    let server = ModelServer::start([
        Reply::status(401),
        Reply::status(500),
        Reply::page("<html>"),
        Reply::json(200, &json!({"data": "x".repeat(9 << 20)})),
    ])
    .with_lists();
    let client = client(&server, EAGER);
    let none = format!("{} did not answer with a list of models", server.url());
    for expected in [
        Fault::new(Category::KeyRefused, "HTTP 401: scripted"),
        // There is no retry, because the user is waiting.
        Fault::new(Category::Server, "HTTP 500: scripted"),
        Fault::new(Category::Unreadable, none),
        Fault::new(Category::Unreadable, "the response is too long"),
    ] {
        assert_eq!(client.models().await.unwrap_err(), expected);
    }
}
