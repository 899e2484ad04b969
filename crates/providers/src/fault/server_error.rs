//! The contents of a server's error, whatever its structure.

use std::time::Duration;

use serde_json::Value;

/// A server's error.
#[derive(Debug, Default)]
pub(super) struct ServerError {
    /// Its message; neither bounded nor sanitized.
    pub(super) message: String,
    /// Its types and codes in lower case, such as `invalid_request_error`.
    pub(super) names: Vec<String>,
    /// The status in it, if it has one.
    pub(super) status: Option<u16>,
    /// The delay in it, if it has one.
    pub(super) retry_after: Option<Duration>,
}

impl ServerError {
    /// Parses any JSON. An unknown structure is its own message.
    pub(super) fn read(body: &Value) -> ServerError {
        match body {
            Value::Null => ServerError::default(),
            Value::String(message) => {
                ServerError { message: message.clone(), ..Default::default() }
            }
            // Google answers a streaming request with a list of one error.
            Value::Array(list) => list.first().map(ServerError::read).unwrap_or_default(),
            Value::Object(fields) => match fields.get("error").or_else(|| fields.get("detail")) {
                Some(error @ Value::Object(_)) => read_object(error),
                Some(error @ Value::Array(_)) => ServerError::of_message(error.to_string()),
                Some(error) => ServerError::read(error),
                None => read_object(body),
            },
            Value::Bool(_) | Value::Number(_) => ServerError::of_message(body.to_string()),
        }
    }

    fn of_message(message: String) -> ServerError {
        ServerError { message, ..Default::default() }
    }
}

fn read_object(error: &Value) -> ServerError {
    let names: Vec<String> = ["code", "type", "status"]
        .iter()
        .filter_map(|field| error[field].as_str())
        .map(str::to_lowercase)
        .collect();
    let message = match error["message"].as_str() {
        Some(message) if !message.is_empty() => with_cause(message, error),
        _ => names.first().cloned().unwrap_or_else(|| error.to_string()),
    };
    let status = error["code"]
        .as_u64()
        .and_then(|code| u16::try_from(code).ok())
        .filter(|code| (400..600).contains(code));
    ServerError { message, names, status, retry_after: retry_delay(error) }
}

/// A router's own message only says that another server failed. That
/// server's message is the useful part.
fn with_cause(message: &str, error: &Value) -> String {
    match error["metadata"]["raw"].as_str() {
        Some(cause) => format!("{message}: {cause}"),
        None => message.to_owned(),
    }
}

/// Google's `RetryInfo`, in the body instead of a header: `"retryDelay": "1.5s"`.
fn retry_delay(error: &Value) -> Option<Duration> {
    let details = error["details"].as_array()?;
    let delay = details.iter().find_map(|detail| detail["retryDelay"].as_str())?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}
