//! OpenAI's Responses format.

mod content;
mod decode;
mod encode;
mod items;

use crate::provider::{Decode, Provider};
use crate::request::Request;

/// The format of OpenAI's Responses API, and of servers that speak it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Responses;

impl Provider for Responses {
    fn encode(&self, request: &Request<'_>) -> Vec<u8> {
        encode::encode(request)
    }

    fn decode(&self) -> Box<dyn Decode> {
        Box::new(decode::Decoder::default())
    }

    fn path(&self, _: &str) -> String {
        "/responses".to_owned()
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        key.map(|key| ("authorization", format!("Bearer {key}"))).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_key_that_is_there_is_sent() {
        assert_eq!(Responses.headers(None), vec![]);
        let key = ("authorization", "Bearer secret".to_owned());
        assert_eq!(Responses.headers(Some("secret")), vec![key]);
        assert_eq!(Responses.path("any"), "/responses");
    }
}
