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
}
