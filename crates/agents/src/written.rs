//! A response as messages of the log.

use ikigai_conversation::{NewMessage, ResponseId, Usage};
use ikigai_providers::{Response, Tokens};
use uuid::Uuid;

use crate::agent::Model;

/// The messages that a response becomes.
pub(crate) struct Written {
    /// What it cost and what it says.
    pub(crate) words: Vec<NewMessage>,
    /// What it asks for.
    pub(crate) calls: Vec<NewMessage>,
}

impl Written {
    /// Text of nothing but white space is not written where there are calls: it says nothing, and no
    /// provider takes it back. What the provider wants back goes with the first message; its places are
    /// counted in the text, which then has to stay.
    pub(crate) fn of(response: Response, model: &Model) -> Written {
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
        if let Some(extras) = response.extras {
            match (&mut text, calls.first_mut()) {
                (Some(first), _) | (None, Some(first)) => {
                    *first = first.clone().with_extras(extras);
                }
                (None, None) => {}
            }
        }
        let usage =
            response.tokens.map(|tokens| NewMessage::usage(usage(tokens, &model.label, id)));
        Written { words: usage.into_iter().chain(text).collect(), calls }
    }
}

/// An id like no other: neighbouring responses must not be taken for one.
pub(crate) fn new_response() -> ResponseId {
    ResponseId::new(Uuid::now_v7().simple().to_string())
}

fn usage(tokens: Tokens, model: &str, response: ResponseId) -> Usage {
    /// A server may say anything; sums over a whole session have to stay numbers.
    const MOST: u64 = 1_000_000_000_000;
    Usage {
        input_tokens: tokens.input.min(MOST),
        output_tokens: tokens.output.min(MOST),
        cache_read_tokens: tokens.cache_read.map(|count| count.min(MOST)),
        cache_write_tokens: tokens.cache_write.map(|count| count.min(MOST)),
        model: model.to_owned(),
        response,
    }
}
