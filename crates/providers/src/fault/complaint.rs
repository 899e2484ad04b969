//! What a server's error says, taken out of the form it came in.

use std::time::Duration;

use serde_json::Value;

/// An error in no server's form.
#[derive(Debug, Default)]
pub(super) struct Complaint {
    /// What it says to a person; neither bounded nor clean.
    pub(super) message: String,
    /// Its types and codes in lower case, `invalid_request_error` for example.
    pub(super) names: Vec<String>,
    /// The status that stands in it as a number.
    pub(super) status: Option<u16>,
    /// How long to wait, where that stands in it.
    pub(super) retry_after: Option<Duration>,
}

impl Complaint {
    /// Reads any JSON: what is in no known form is its own message.
    pub(super) fn read(body: &Value) -> Complaint {
        match body {
            Value::Null => Complaint::default(),
            Value::String(message) => Complaint { message: message.clone(), ..Default::default() },
            // Google answers a request for a stream with a list of one error.
            Value::Array(list) => list.first().map(Complaint::read).unwrap_or_default(),
            Value::Object(fields) => match fields.get("error").or_else(|| fields.get("detail")) {
                Some(error @ Value::Object(_)) => read_object(error),
                Some(error @ Value::Array(_)) => Complaint::of_message(error.to_string()),
                Some(error) => Complaint::read(error),
                None => read_object(body),
            },
            Value::Bool(_) | Value::Number(_) => Complaint::of_message(body.to_string()),
        }
    }

    fn of_message(message: String) -> Complaint {
        Complaint { message, ..Default::default() }
    }
}

fn read_object(error: &Value) -> Complaint {
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
    Complaint { message, names, status, retry_after: retry_delay(error) }
}

/// A router's own message says only that somebody else failed; what that one said is the useful part.
fn with_cause(message: &str, error: &Value) -> String {
    match error["metadata"]["raw"].as_str() {
        Some(cause) => format!("{message}: {cause}"),
        None => message.to_owned(),
    }
}

/// Google's `RetryInfo`, which stands in the body where others have a header: `"retryDelay": "1.5s"`.
fn retry_delay(error: &Value) -> Option<Duration> {
    let details = error["details"].as_array()?;
    let delay = details.iter().find_map(|detail| detail["retryDelay"].as_str())?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}
