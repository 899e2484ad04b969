//! Anthropic's Messages format.

mod decode;
mod effort;
mod encode;
mod thinking;

use crate::provider::{Decode, Provider};
use crate::request::Request;

/// The format of Anthropic's Messages API, and of servers that speak it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Anthropic;

impl Provider for Anthropic {
    fn encode(&self, request: &Request<'_>) -> Vec<u8> {
        encode::encode(request)
    }

    fn decode(&self) -> Box<dyn Decode> {
        Box::new(decode::Decoder::default())
    }

    fn path(&self, _: &str) -> String {
        "/v1/messages".to_owned()
    }

    fn models_path(&self) -> &'static str {
        "/v1/models?limit=1000"
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let version = ("anthropic-version", "2023-06-01".to_owned());
        key.map(|key| ("x-api-key", key.to_owned())).into_iter().chain([version]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_sent_only_if_there_is_one() {
        let version = ("anthropic-version", "2023-06-01".to_owned());
        assert_eq!(Anthropic.headers(None), vec![version.clone()]);
        let key = ("x-api-key", "secret".to_owned());
        assert_eq!(Anthropic.headers(Some("secret")), [key, version]);
        assert_eq!(Anthropic.path("any"), "/v1/messages");
    }
}
