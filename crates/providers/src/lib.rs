//! Model servers: what is said to them, what they say back, and what to do when they do not.
//!
//! A provider is a **translator**: [`Provider::encode`] makes a request of what a model may see of a log,
//! [`Provider::decode`] makes a [`Response`] of the server's stream. Both are pure, and know nothing of
//! the network; a new wire format is one file.
//!
//! In reading order:
//!
//! | type | is | lives in |
//! | --- | --- | --- |
//! | [`Request`], [`Response`] | one call of a model, and what came back | `request.rs`, `response.rs` |
//! | [`Provider`], [`Decode`] | the two directions of a wire format | `provider.rs` |
//! | [`Anthropic`], [`ChatCompletions`], [`Google`], [`Responses`] | the wire formats | `anthropic.rs`, `chat.rs`, `google.rs`, `responses.rs` |
//! | [`SseDecoder`] | makes events of a stream's bytes | `sse.rs` |
//! | [`Client`] | the way to a server and back, with its retries | `client.rs`, `retry.rs` |
//! | [`Fault`], [`Category`] | what went wrong, whether trying again helps, what a person can do | `fault.rs` |
//!
//! # Invariants
//!
//! - No provider's format leaves this crate, except as [`Extras`](ikigai_conversation::Extras) that only
//!   the provider they came from gets back.
//! - A key is sent in a header to its provider and is in no error, no `Debug` and no address.
//! - Up to the end of its last message, a request is a prefix of the next one: what may change from one
//!   request to the next is written behind the messages.

#![forbid(unsafe_code)]

mod provider;
mod request;
mod response;

mod anthropic;
mod chat;
mod google;
mod responses;

mod bounds;
mod call_ids;
mod entries;
mod given_ids;
mod json;
mod kept;
mod origin;
mod sse;
mod stream;
mod surrogates;
mod wire_call;

mod client;
mod retry;
mod secret;

#[cfg(test)]
mod testing;

mod fault;

pub use anthropic::Anthropic;
pub use chat::ChatCompletions;
pub use client::{Client, Endpoint, Limits, OnProgress, Progress};
pub use fault::{Category, Fault};
pub use google::Google;
pub use provider::{Decode, Provider};
pub use request::{Request, Tool, ToolUse};
pub use response::{Call, Response, Stop, Tokens};
pub use responses::Responses;
pub use secret::Secret;
pub use sse::{OnEvent, SseDecoder, SseEvent};
