//! Model servers: requests, responses, and what to do about errors.
//!
//! A provider is a **translator**: [`Provider::encode`] turns what a model may see of a log into a
//! request, and [`Provider::decode`] turns the server's stream into a [`Response`]. Both are pure
//! and know nothing of the network. A new wire format is one file.
//!
//! A request does not need a turn of an agent: see the example of [`Request`].
//!
//! In reading order:
//!
//! | type | is | lives in |
//! | --- | --- | --- |
//! | [`Request`], [`Response`] | a request to a model, and its response | `request.rs`, `response.rs` |
//! | [`ModelFacts`], [`Prices`] | what is known about a model, and what a request cost | `model_facts.rs`, `known_facts.rs`, `prices.rs`, `price_table.rs` |
//! | [`ListedModel`] | a model in a server's list | `model_list.rs`, `client/models.rs`, `client/local_server.rs` |
//! | [`Provider`], [`Decode`] | the two directions of a wire format | `provider.rs` |
//! | [`Anthropic`], [`ChatCompletions`], [`Google`], [`Responses`] | the wire formats | `anthropic.rs`, `chat.rs`, `google.rs`, `responses.rs` |
//! | [`SseDecoder`] | makes events of a stream's bytes | `sse.rs` |
//! | [`Client`] | the HTTP client with its retries | `client.rs`, `retry.rs` |
//! | [`Fault`], [`Category`] | what went wrong, whether a retry helps, and what the user can do | `fault.rs` |
//!
//! # Invariants
//!
//! - No provider's format leaves this crate, except as [`Extras`](ikigai_conversation::Extras) that
//!   are only sent back to the provider they came from.
//! - A key is sent in a header to its provider, and never appears in an error, in `Debug` output or
//!   in an address.
//! - Up to the end of its last message, a request is a prefix of the next one. Whatever can change
//!   between two requests is written after the messages.

#![forbid(unsafe_code)]

mod known_facts;
mod model_facts;
mod model_list;
mod price_table;
mod prices;
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
mod json;
mod origin;
mod sse;
mod stored_blocks;
mod stream;
mod surrogates;
mod unique_ids;
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
pub use known_facts::{KnownFacts, Lookup};
pub use model_facts::ModelFacts;
pub use model_list::ListedModel;
pub use price_table::Service;
pub use prices::{Prices, Rates};
pub use provider::{Decode, Delta, Provider};
pub use request::{Request, Tool, ToolUse};
pub use response::{Call, Response, Stop, Tokens};
pub use responses::Responses;
pub use secret::Secret;
pub use sse::{OnEvent, SseDecoder, SseEvent};
