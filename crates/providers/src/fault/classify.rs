//! Classifies the errors of servers. Servers agree on neither the structure nor the status, so
//! error codes are checked first, then the message, then the status.

use std::time::Duration;

use serde_json::Value;

use super::sanitize::{page_text, page_title, scrub};
use super::server_error::ServerError;
use super::{Category, Fault};

/// The limit for a server's message in characters. With the status and a hint around it, our
/// message stays below 500.
const MESSAGE_LIMIT: usize = 400;

const WRONG_PATH: &str = " (is the provider's base_url right?)";

impl Fault {
    /// The fault for an error that the server sent as JSON: the body of a response with this
    /// status, or an event in a stream, which has no status.
    pub fn from_error(status: Option<u16>, body: &Value) -> Fault {
        let server_error = ServerError::read(body);
        let known_status = status.or(server_error.status);
        let category = category_of(known_status, &server_error);
        let is_wrong_path = known_status == Some(404) && category == Category::Refused;
        let hint = if is_wrong_path { WRONG_PATH } else { "" };
        let message = message(status, &server_error.message, hint);
        Fault { category, message, retry_after: server_error.retry_after }
    }

    /// The fault for an error status, whatever the body is.
    pub fn from_status(status: u16, body: &[u8], retry_after: Option<Duration>) -> Fault {
        let mut fault = match serde_json::from_slice(body) {
            Ok(json) => Fault::from_error(Some(status), &json),
            Err(_) => from_text(status, &String::from_utf8_lossy(body)),
        };
        fault.retry_after = retry_after.or(fault.retry_after);
        fault
    }

    /// A redirect. It is not followed, because the key would go to another server.
    pub fn from_redirect(status: u16, location: Option<&str>) -> Fault {
        let to = location.map_or_else(String::new, |location| format!(" to {location}"));
        let words = format!("redirects{to}, which is not followed");
        Fault::new(Category::Refused, message(Some(status), &words, ""))
    }
}

/// A web page is written by some proxy in front of the server, so only the status counts.
fn from_text(status: u16, text: &str) -> Fault {
    let text = text.trim_start();
    if !text.starts_with('<') {
        return Fault::from_error(Some(status), &Value::from(text));
    }
    let category = category_of_status(status);
    let words = match page_title(text) {
        Some(title) => format!("a web page, titled {title}"),
        None => format!("a web page: {}", page_text(text)),
    };
    let hint = if status == 404 { WRONG_PATH } else { "" };
    Fault::new(category, message(Some(status), &words, hint))
}

fn message(status: Option<u16>, words: &str, hint: &str) -> String {
    let words = scrub(words, MESSAGE_LIMIT);
    match status {
        Some(status) if words.is_empty() => format!("HTTP {status}{hint}"),
        Some(status) => format!("HTTP {status}: {words}{hint}"),
        None if words.is_empty() => "the server did not say why".to_owned(),
        None => format!("{words}{hint}"),
    }
}

fn category_of(status: Option<u16>, server_error: &ServerError) -> Category {
    let by_name = server_error.names.iter().find_map(|name| category_of_name(name));
    by_name
        .or_else(|| category_of_words(status, &server_error.message.to_lowercase()))
        .or_else(|| status.map(category_of_status))
        .or_else(|| server_error.names.iter().find_map(|name| category_of_vague_name(name)))
        // In a stream: the request had been accepted, so the server failed.
        .unwrap_or(Category::Server)
}

/// Codes that mean the same everywhere, whatever the status is.
fn category_of_name(name: &str) -> Option<Category> {
    Some(match name {
        "insufficient_quota"
        | "billing_error"
        | "billing_hard_limit_reached"
        | "billing_not_active"
        | "insufficient_balance"
        | "insufficient_credits" => Category::Quota,
        "context_length_exceeded"
        | "exceed_context_size_error"
        | "string_above_max_length"
        | "request_too_large" => Category::ContextTooLong,
        "model_not_found" | "model_not_available" => Category::ModelUnknown,
        "content_filter" | "content_policy_violation" | "responsibleaipolicyviolation" => {
            Category::Blocked
        }
        "overloaded_error" => Category::Server,
        _ => return None,
    })
}

/// Codes that say no more than a status. They count if there is none.
fn category_of_vague_name(name: &str) -> Option<Category> {
    Some(match name {
        "authentication_error"
        | "permission_error"
        | "invalid_api_key"
        | "unauthenticated"
        | "permission_denied" => Category::KeyRefused,
        "rate_limit_error" | "rate_limit_exceeded" | "resource_exhausted" => Category::RateLimit,
        "invalid_request_error"
        | "invalid_argument"
        | "failed_precondition"
        | "not_found_error"
        | "not_found" => Category::Refused,
        _ => return None,
    })
}

/// Faults that only the message reveals. `words` is in lower case.
fn category_of_words(status: Option<u16>, words: &str) -> Option<Category> {
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| words.contains(phrase));
    // A limit per minute is also called a quota, but it passes. Only missing credit does not.
    if says(&[
        "insufficient_quota",
        "credit balance",
        "insufficient credit",
        "insufficient balance",
    ]) {
        return Some(Category::Quota);
    }
    if matches!(status, Some(401 | 402 | 429)) {
        return None;
    }
    if says(&TOO_LONG) {
        return Some(Category::ContextTooLong);
    }
    if says(&["content policy", "content management policy", "safety system", "flagged"]) {
        return Some(Category::Blocked);
    }
    if says(&["api key not valid", "invalid api key", "incorrect api key"]) {
        return Some(Category::KeyRefused);
    }
    let is_about_model = says(&["model"]) && says(&UNKNOWN);
    let is_nameless = status == Some(404) && words.starts_with("model:");
    let may_be_model = matches!(status, Some(400 | 404 | 422) | None);
    (may_be_model && (is_about_model || is_nameless)).then_some(Category::ModelUnknown)
}

const TOO_LONG: [&str; 19] = [
    "prompt is too long",
    "input is too long",
    "maximum context length",
    "maximum prompt length",
    "context length exceeded",
    "exceeds the available context size",
    "exceeds the context length",
    "exceed context window",
    "exceed context limit",
    "input token count",
    "prompt token count",
    "context window exceeded",
    "context window exceeds",
    "context length of only",
    "greater than the context length",
    "exceeded model token limit",
    "exceeds max length",
    "too large for model with",
    "reduce the length of the messages",
];

const UNKNOWN: [&str; 7] = [
    "not found",
    "does not exist",
    "doesn't exist",
    "not exist",
    "not a valid model",
    "unknown model",
    "invalid model",
];

fn category_of_status(status: u16) -> Category {
    match status {
        401 | 403 => Category::KeyRefused,
        402 => Category::Quota,
        413 => Category::ContextTooLong,
        429 => Category::RateLimit,
        // The server timed out or waited for a lock: providers document both as temporary.
        500.. => Category::Server,
        _ => Category::Refused,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(
        status: impl Into<Option<u16>>,
        body: impl Into<Value>,
        category: Category,
        message: &str,
    ) {
        let (status, body) = (status.into(), body.into());
        let expected = Fault::new(category, message);
        assert_eq!(Fault::from_error(status, &body), expected);
        if let Some(status) = status {
            let written = body.to_string();
            assert_eq!(Fault::from_status(status, written.as_bytes(), None), expected);
        }
    }

    #[track_caller]
    fn check_text(status: u16, body: &str, category: Category, message: &str) {
        let fault = Fault::from_status(status, body.as_bytes(), None);
        assert_eq!(fault, Fault::new(category, message));
    }

    fn openai(kind: &str, code: impl Into<Value>, message: &str) -> Value {
        json!({"error": {"message": message, "type": kind, "param": null, "code": code.into()}})
    }

    fn anthropic(kind: &str, message: &str) -> Value {
        json!({"type": "error", "error": {"type": kind, "message": message}})
    }

    fn google(code: u16, status: &str, message: &str) -> Value {
        json!({"error": {"code": code, "message": message, "status": status}})
    }

    #[test]
    fn openai_errors_are_classified() {
        let error = openai("invalid_request_error", "invalid_api_key", "Incorrect API key");
        check(401, error, Category::KeyRefused, "HTTP 401: Incorrect API key");
        let error = openai("insufficient_quota", "insufficient_quota", "You exceeded your quota");
        check(429, error, Category::Quota, "HTTP 429: You exceeded your quota");
        let error = openai("tokens", "rate_limit_exceeded", "Rate limit reached");
        check(429, error, Category::RateLimit, "HTTP 429: Rate limit reached");
        let error = openai("invalid_request_error", "model_not_found", "No such model");
        check(404, error, Category::ModelUnknown, "HTTP 404: No such model");
        let error = openai("invalid_request_error", "context_length_exceeded", "Too much");
        check(400, error, Category::ContextTooLong, "HTTP 400: Too much");
        let error = openai("invalid_request_error", "content_policy_violation", "No");
        check(400, error, Category::Blocked, "HTTP 400: No");
        let error = openai("invalid_request_error", Value::Null, "Bad field");
        check(400, error, Category::Refused, "HTTP 400: Bad field");
        let error = openai("server_error", Value::Null, "Sorry");
        check(500, error.clone(), Category::Server, "HTTP 500: Sorry");
        check(None, error, Category::Server, "Sorry");
    }

    #[test]
    fn anthropic_errors_are_classified() {
        let error = anthropic("overloaded_error", "Overloaded");
        check(529, error.clone(), Category::Server, "HTTP 529: Overloaded");
        check(None, error, Category::Server, "Overloaded");
        let error = anthropic("api_error", "Internal server error");
        check(None, error, Category::Server, "Internal server error");
        let error = anthropic("authentication_error", "invalid x-api-key");
        check(401, error.clone(), Category::KeyRefused, "HTTP 401: invalid x-api-key");
        check(None, error, Category::KeyRefused, "invalid x-api-key");
        let error = anthropic("rate_limit_error", "Slow down");
        check(429, error.clone(), Category::RateLimit, "HTTP 429: Slow down");
        check(None, error, Category::RateLimit, "Slow down");
        let error = anthropic("not_found_error", "model: claude-0");
        check(404, error, Category::ModelUnknown, "HTTP 404: model: claude-0");
        let error = anthropic("invalid_request_error", "Your credit balance is too low");
        check(400, error, Category::Quota, "HTTP 400: Your credit balance is too low");
        let words = "prompt is too long: 210000 tokens > 200000 maximum";
        let error = anthropic("invalid_request_error", words);
        check(400, error.clone(), Category::ContextTooLong, &format!("HTTP 400: {words}"));
        check(None, error, Category::ContextTooLong, words);
        let error = anthropic("invalid_request_error", "max_tokens: must be above 0");
        check(None, error, Category::Refused, "max_tokens: must be above 0");
    }

    #[test]
    fn google_errors_are_classified_alone_and_in_a_list() {
        let error = google(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota");
        let message = "HTTP 429: You exceeded your current quota";
        check(429, error.clone(), Category::RateLimit, message);
        check(429, json!([error.clone()]), Category::RateLimit, message);
        check(None, error, Category::RateLimit, "You exceeded your current quota");
        let error = google(503, "UNAVAILABLE", "The model is overloaded");
        check(None, error, Category::Server, "The model is overloaded");
        let error = google(400, "INVALID_ARGUMENT", "API key not valid");
        check(400, error, Category::KeyRefused, "HTTP 400: API key not valid");
        let words = "The input token count (2) exceeds the maximum number of tokens allowed (1).";
        let error = google(400, "INVALID_ARGUMENT", words);
        check(400, error, Category::ContextTooLong, &format!("HTTP 400: {words}"));
        let error = google(404, "NOT_FOUND", "models/x is not found for API version v1beta");
        let message = "HTTP 404: models/x is not found for API version v1beta";
        check(404, error, Category::ModelUnknown, message);
    }

    #[test]
    fn the_delay_in_a_google_error_is_respected() {
        let mut error = google(429, "RESOURCE_EXHAUSTED", "Slow down");
        error["error"]["details"] = json!([
            {"@type": "type.googleapis.com/google.rpc.Help"},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1.5s"},
        ]);
        let fault = Fault::from_error(Some(429), &error);
        assert_eq!(fault.retry_after, Some(Duration::from_millis(1500)));
        let header = Duration::from_secs(9);
        let fault = Fault::from_status(429, error.to_string().as_bytes(), Some(header));
        assert_eq!(fault.retry_after, Some(header));
        error["error"]["details"][1]["retryDelay"] = json!("-1s");
        assert_eq!(Fault::from_error(Some(429), &error).retry_after, None);
    }

    #[test]
    fn errors_of_llama_cpp_are_classified() {
        let words = "request (20031 tokens) exceeds the available context size (8192 tokens), try \
                     increasing it";
        let error = json!({"error": {"code": 400, "message": words,
            "type": "exceed_context_size_error", "n_prompt_tokens": 20031, "n_ctx": 8192}});
        check(400, error.clone(), Category::ContextTooLong, &format!("HTTP 400: {words}"));
        check(None, error, Category::ContextTooLong, words);
        let error = openai("invalid_request_error", 400, "'messages' is required");
        check(400, error, Category::Refused, "HTTP 400: 'messages' is required");
        let error = openai("authentication_error", 401, "Invalid API Key");
        check(401, error, Category::KeyRefused, "HTTP 401: Invalid API Key");
        let error = openai("not_found_error", 404, "File Not Found");
        let message = "HTTP 404: File Not Found (is the provider's base_url right?)";
        check(404, error, Category::Refused, message);
        let words = "Requested tokens (20031) exceed context window of 8192";
        let error = openai("internal_server_error", Value::Null, words);
        check(500, error, Category::ContextTooLong, &format!("HTTP 500: {words}"));
    }

    #[test]
    fn messages_are_found_in_other_structures() {
        check(400, json!({"error": "no"}), Category::Refused, "HTTP 400: no");
        check(None, json!({"error": "no"}), Category::Server, "no");
        check(422, json!({"detail": "no"}), Category::Refused, "HTTP 422: no");
        let detail = json!({"detail": [{"loc": ["body"], "msg": "missing"}]});
        let message = r#"HTTP 422: [{"loc":["body"],"msg":"missing"}]"#;
        check(422, detail, Category::Refused, message);
        let flat = json!({"object": "error", "message": "The model `x` does not exist.",
            "type": "NotFoundError", "code": 404});
        check(404, flat, Category::ModelUnknown, "HTTP 404: The model `x` does not exist.");
        let ollama = json!({"error": "model \"x\" not found, try pulling it first"});
        let message = "HTTP 404: model \"x\" not found, try pulling it first";
        check(404, ollama, Category::ModelUnknown, message);
        let routed = json!({"error": {"message": "Provider returned error", "code": 502,
            "metadata": {"raw": "upstream is gone"}}});
        let message = "HTTP 502: Provider returned error: upstream is gone";
        check(502, routed, Category::Server, message);
        check(400, json!({"x": 1}), Category::Refused, r#"HTTP 400: {"x":1}"#);
        check(None, json!({"error": {"type": "odd"}}), Category::Server, "odd");
        check(None, json!({"error": {"message": ""}}), Category::Server, r#"{"message":""}"#);
        check(500, Value::Null, Category::Server, "HTTP 500");
        check(None, json!([]), Category::Server, "the server did not say why");
    }

    #[test]
    fn bodies_that_are_not_json_are_classified_by_status() {
        check_text(500, "", Category::Server, "HTTP 500");
        check_text(402, "", Category::Quota, "HTTP 402");
        check_text(403, "", Category::KeyRefused, "HTTP 403");
        check_text(408, "", Category::Refused, "HTTP 408");
        check_text(409, "", Category::Refused, "HTTP 409");
        check_text(413, "", Category::ContextTooLong, "HTTP 413");
        check_text(418, "short\nand stout", Category::Refused, "HTTP 418: short and stout");
        check_text(404, "", Category::Refused, "HTTP 404 (is the provider's base_url right?)");
        check_text(
            404,
            "<!DOCTYPE html><TITLE>\nNo model\n found</TITLE>",
            Category::Refused,
            "HTTP 404: a web page, titled No model found (is the provider's base_url right?)",
        );
        let page = "\n<html><title>502 Bad Gateway</title><body>";
        check_text(502, page, Category::Server, "HTTP 502: a web page, titled 502 Bad Gateway");
        check_text(502, "<html><title>502", Category::Server, "HTTP 502: a web page: 502");
        let page = "<html><body>Blocked by <b>the</b> gateway</body>";
        check_text(400, page, Category::Refused, "HTTP 400: a web page: Blocked by the gateway");
    }

    #[test]
    fn a_redirect_names_its_target() {
        let fault = Fault::from_redirect(307, Some("https://b/"));
        let message = "HTTP 307: redirects to https://b/, which is not followed";
        assert_eq!(fault, Fault::new(Category::Refused, message));
        check_text(301, "", Category::Refused, "HTTP 301");
    }

    #[test]
    fn a_message_is_one_bounded_line_whatever_the_server_says() {
        let long = format!("a\r\n\u{1b}[2J\u{202e}b{}", "é".repeat(100_000));
        for body in [
            openai("x", "y", &long),
            json!({"error": long}),
            json!({"detail": {"x": long}}),
            json!({"error": {"type": long}}),
            json!([[[[long]]]]),
        ] {
            for status in [None, Some(404), Some(500)] {
                let message = Fault::from_error(status, &body).message;
                assert!(message.chars().count() <= 500, "{message}");
                assert!(
                    !message.contains(|c: char| c.is_control() || c == '\u{202e}'),
                    "{message}"
                );
            }
        }
        let page = format!("<title>{long}</title>");
        assert!(Fault::from_status(500, page.as_bytes(), None).message.chars().count() <= 500);
    }
}
