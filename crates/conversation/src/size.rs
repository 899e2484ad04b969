//! How much of a model's context the items of a view take, as far as that can be estimated.

use crate::view::Seen;

/// The usual number of bytes in a token.
const BYTES_PER_TOKEN: u64 = 4;

/// What the markup around an item takes in every wire format: its role and its separators.
const MARKUP_BYTES: usize = 32;

/// The estimated number of tokens in this many bytes.
pub fn tokens_in(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(BYTES_PER_TOKEN)
}

/// How many bytes have this estimated number of tokens.
pub fn bytes_of(tokens: u64) -> usize {
    usize::try_from(tokens.saturating_mul(BYTES_PER_TOKEN)).unwrap_or(usize::MAX)
}

/// The bytes of a text with its markup.
pub(crate) fn bytes_with_markup(text: &str) -> usize {
    text.len() + MARKUP_BYTES
}

impl Seen<'_> {
    /// About how many bytes of a request it takes.
    pub fn bytes(&self) -> usize {
        match self {
            Seen::System(text) | Seen::User(text) | Seen::Notification(text) => {
                bytes_with_markup(text)
            }
            Seen::Summary(text) | Seen::Obligations(text) => bytes_with_markup(text),
            Seen::Identity(identity) => bytes_with_markup(&identity.to_string()),
            Seen::Assistant { text, extras, .. } => {
                let extras = extras.map_or(0, |extras| extras.as_json().len());
                bytes_with_markup(text) + extras
            }
            Seen::ToolCall(call) => {
                let extras = call.extras.as_ref().map_or(0, |extras| extras.as_json().len());
                // Its ID is sent twice: with the call, and with the result.
                let ids = 2 * call.tool_call_id.as_str().len();
                bytes_with_markup(&call.name) + call.arguments.len() + ids + extras
            }
            Seen::ToolResult { output, .. } => bytes_with_markup(output),
        }
    }
}

/// The estimated number of tokens of a view.
pub fn tokens_of(view: &[Seen<'_>]) -> u64 {
    tokens_in(view.iter().map(Seen::bytes).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_bytes_are_a_token_and_every_item_has_markup() {
        assert_eq!((tokens_in(0), tokens_in(1), tokens_in(4), tokens_in(5)), (0, 1, 1, 2));
        assert_eq!(bytes_of(3), 12);
        assert_eq!(bytes_of(u64::MAX), usize::MAX);
        assert_eq!(tokens_of(&[Seen::User("12345678"), Seen::System("")]), (40 + 32) / 4);
    }
}
