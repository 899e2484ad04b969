//! JSON functions for all formats.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::fault::{Category, Fault};
use crate::surrogates::mend;

/// Parses JSON from a server.
pub(crate) fn parse(json: &[u8]) -> Result<Value, Fault> {
    let parsed = serde_json::from_slice(json);
    parsed
        .or_else(|error| serde_json::from_slice(&mend(json)).map_err(|_| error))
        .map_err(|error| not_json(&error))
}

/// The fault for a response that is not JSON.
pub(crate) fn not_json(error: &serde_json::Error) -> Fault {
    Fault::new(Category::Unreadable, format!("the server did not send JSON: {error}"))
}

/// Encodes the body of a request.
pub(crate) fn body(request: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(request).expect("texts, numbers and lists always become JSON")
}

/// JSON to put into a request byte by byte. It was validated when it was received. If it is
/// invalid, `{}` takes its place.
pub(crate) fn raw(json: String) -> Box<RawValue> {
    RawValue::from_string(json).unwrap_or_else(|_| empty_object())
}

fn empty_object() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).expect("this is JSON")
}
