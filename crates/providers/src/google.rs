//! Google's format for Gemini.

mod decode;
mod encode;
mod signatures;

use crate::provider::{Decode, Provider};
use crate::request::Request;

/// The format of Google's `generateContent`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Google;

impl Provider for Google {
    fn encode(&self, request: &Request<'_>) -> Vec<u8> {
        encode::encode(request)
    }

    fn decode(&self) -> Box<dyn Decode> {
        Box::new(decode::Decoder::default())
    }

    fn path(&self, model: &str) -> String {
        // The API lists its models with this prefix.
        let model = model.strip_prefix("models/").unwrap_or(model);
        format!("/v1beta/models/{}:streamGenerateContent?alt=sse", percent_encoded(model))
    }

    fn models_path(&self) -> &'static str {
        "/v1beta/models?pageSize=1000"
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        key.map(|key| ("x-goog-api-key", key.to_owned())).into_iter().collect()
    }
}

/// Encodes a text as one segment of a path: a model's name comes from a setting, and must not
/// change the path.
fn percent_encoded(segment: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    // A segment of only dots would be resolved as a path.
    let is_points = segment.bytes().all(|byte| byte == b'.');
    let encode = |byte: u8| match byte {
        _ if is_plain(byte) && !is_points => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    segment.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_sent_only_if_there_is_one() {
        assert_eq!(Google.headers(None), vec![]);
        let key = ("x-goog-api-key", "secret".to_owned());
        assert_eq!(Google.headers(Some("secret")), vec![key]);
    }

    #[test]
    fn a_model_is_one_segment_of_the_path() {
        for (model, segment) in [
            ("gemini-3.8-flash", "gemini-3.8-flash"),
            ("models/gemini-3.8-flash", "gemini-3.8-flash"),
            ("../x?key=1#é", "..%2Fx%3Fkey%3D1%23%C3%A9"),
            ("..", "%2E%2E"),
        ] {
            let path = format!("/v1beta/models/{segment}:streamGenerateContent?alt=sse");
            assert_eq!(Google.path(model), path);
        }
    }
}
