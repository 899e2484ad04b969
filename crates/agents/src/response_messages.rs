//! A response as log messages.

use ikigai_conversation::{NewMessage, ResponseId, Usage};
use ikigai_providers::{Prices, Response, Tokens};
use uuid::Uuid;

use crate::agent::Model;
use crate::thought::Thought;

/// The log messages of a response.
pub(crate) struct ResponseMessages {
    /// Its usage and its text.
    pub(crate) messages: Vec<NewMessage>,
    /// Its calls.
    pub(crate) calls: Vec<NewMessage>,
}

impl ResponseMessages {
    /// `lost` attempts of the request came to nothing, and may have been billed.
    ///
    /// If there are calls, text of only white space is dropped: it has no meaning, and no provider
    /// accepts it. The provider's extras and the thinking go with the first message. Extras may refer
    /// to positions in the text, so with extras the text has to stay.
    pub(crate) fn of(
        response: Response,
        thought: Option<Thought>,
        model: &Model,
        lost: u32,
    ) -> ResponseMessages {
        let id = new_response();
        let response = response.of_origin(model.origin());
        let calls = response
            .calls
            .into_iter()
            .map(|call| NewMessage::tool_call(call.id, call.name, call.arguments, id.clone()));
        let mut calls: Vec<NewMessage> = calls.collect();
        let is_needed = !response.text.is_empty() && response.extras.is_some();
        let is_silent = response.text.trim().is_empty() && !calls.is_empty() && !is_needed;
        let mut text = (!is_silent).then(|| NewMessage::assistant(response.text, id.clone()));
        if let Some(first) = text.as_mut().or(calls.first_mut()) {
            if let Some(extras) = response.extras {
                *first = first.clone().with_extras(extras);
            }
            if let Some(thought) = thought {
                *first = thought.add_to(first.clone());
            }
        }
        let usage = response.tokens.map(|tokens| usage_message(tokens, model, lost, id));
        ResponseMessages { messages: usage.into_iter().chain(text).collect(), calls }
    }
}

/// A unique ID, so that adjacent responses are not taken for one.
pub(crate) fn new_response() -> ResponseId {
    ResponseId::new(Uuid::now_v7().simple().to_string())
}

/// The usage of a response. `lost` attempts of its request may have been billed as well.
pub(crate) fn usage_message(
    tokens: Tokens,
    model: &Model,
    lost: u32,
    response: ResponseId,
) -> NewMessage {
    let tokens = bounded(tokens);
    let prices = model.facts.now().prices;
    let cost = prices.map(|prices: Prices| prices.cost(&tokens).min(MAX));
    let unreported = Some(lost).filter(|lost| *lost > 0);
    NewMessage::usage(Usage { cost, unreported, ..usage(tokens, &model.label, response) })
}

/// A server may report anything, but sums over a session must not overflow.
const MAX: u64 = 1_000_000_000_000;

fn bounded(tokens: Tokens) -> Tokens {
    let bound = |count: Option<u64>| count.map(|count| count.min(MAX));
    Tokens {
        input: tokens.input.min(MAX),
        output: tokens.output.min(MAX),
        cache_read: bound(tokens.cache_read),
        cache_write: bound(tokens.cache_write),
        reasoning: bound(tokens.reasoning),
    }
}

fn usage(tokens: Tokens, model: &str, response: ResponseId) -> Usage {
    Usage {
        input_tokens: tokens.input,
        output_tokens: tokens.output,
        cache_read_tokens: tokens.cache_read,
        cache_write_tokens: tokens.cache_write,
        reasoning_tokens: tokens.reasoning,
        cost: None,
        unreported: None,
        model: model.to_owned(),
        response,
    }
}
