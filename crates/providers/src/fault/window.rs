//! The context window that a server names when it refuses a request that is too long.

use super::{Category, Fault};

/// What comes right before the number, in lower case.
const BEFORE: [&str; 13] = [
    "maximum context length is ",
    "maximum context length of ",
    "maximum prompt length is ",
    "available context size (",
    "context window of ",
    "context length of only ",
    "context length of ",
    "maximum number of tokens allowed (",
    "exceeded model token limit: ",
    "exceeds the limit of ",
    "too large for model with ",
    "tokens must be <= ",
    " > ",
];

impl Fault {
    /// The number of tokens that fit, if this refuses a request as too long and says it.
    pub fn named_window(&self) -> Option<u64> {
        if self.category != Category::ContextTooLong {
            return None;
        }
        let message = self.message.to_lowercase();
        let after = |before: &str| message.split_once(before).map(|(_, rest)| rest.to_owned());
        BEFORE.iter().filter_map(|before| after(before)).find_map(|rest| tokens_at_start(&rest))
    }
}

/// A number that can be a context window: `8192 tokens`, `8,192`.
fn tokens_at_start(text: &str) -> Option<u64> {
    /// No model has less, and none will have more soon. Other numbers are something else.
    const PLAUSIBLE: std::ops::RangeInclusive<u64> = 256..=100_000_000;
    let is_part = |c: &char| c.is_ascii_digit() || *c == ',';
    let digits: String = text.chars().take_while(is_part).filter(char::is_ascii_digit).collect();
    digits.parse().ok().filter(|tokens| PLAUSIBLE.contains(tokens))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_window_is_read_from_refusals_of_real_servers() {
        for (words, window) in [
            (
                "This model's maximum context length is 8192 tokens. However, your messages \
                 resulted in 9001 tokens. Please reduce the length of the messages.",
                Some(8_192),
            ),
            ("prompt is too long: 210000 tokens > 200000 maximum", Some(200_000)),
            (
                "input length and `max_tokens` exceed context limit: 198000 + 8000 > 200000, \
                 decrease input length",
                Some(200_000),
            ),
            (
                "The input token count (1200000) exceeds the maximum number of tokens allowed \
                 (1048575).",
                Some(1_048_575),
            ),
            (
                "request (20031 tokens) exceeds the available context size (8192 tokens)",
                Some(8_192),
            ),
            ("Requested tokens (20031) exceed context window of 8192", Some(8_192)),
            (
                "Trying to keep the first 6000 tokens when the context overflows. However, the \
                 model is loaded with context length of only 4096 tokens",
                Some(4_096),
            ),
            (
                "Prompt contains 40000 tokens, too large for model with 32,768 maximum context \
                 length",
                Some(32_768),
            ),
            (
                "This model's maximum prompt length is 131072 but the request contains 537812 \
                 tokens.",
                Some(131_072),
            ),
            ("prompt token count of 70000 exceeds the limit of 64000", Some(64_000)),
            ("Your request exceeded model token limit: 8192", Some(8_192)),
            ("the input length exceeds the context length", None),
            ("Input is too long for requested model.", None),
            ("Prompt exceeds max length", None),
            ("maximum context length is 0", None),
        ] {
            let fault = Fault::from_error(Some(400), &json!({"error": {"message": words}}));
            assert_eq!(fault.category, Category::ContextTooLong, "{words}");
            assert_eq!(fault.named_window(), window, "{words}");
        }
        assert_eq!(Fault::new(Category::Refused, "5 > 4000").named_window(), None);
    }
}
