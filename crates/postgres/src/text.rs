//! Escapes NUL characters: a log may contain them, but PostgreSQL's `text` cannot.
//!
//! An escape sequence that starts with a character from the last private-use plane stands for NUL. That character is
//! escaped itself, so every text comes back byte for byte.

use std::borrow::Cow;

const ESCAPE: char = '\u{10FFFD}';
const NUL: &str = "\u{10FFFD}0";
const ESCAPED: &str = "\u{10FFFD}1";

/// The text as the server can store it.
pub(crate) fn encode(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace(ESCAPE, ESCAPED).replace('\0', NUL))
}

/// The original text.
pub(crate) fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains(ESCAPE) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace(NUL, "\0").replace(ESCAPED, "\u{10FFFD}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str) {
        let encoded = encode(text);
        assert!(!encoded.contains('\0'));
        assert_eq!(decode(&encoded), text);
    }

    #[test]
    fn every_text_comes_back_as_it_was() {
        check("plain");
        check("a\0b");
        check("\0\0");
        check("\u{10FFFD}");
        check("\u{10FFFD}0");
        check("\u{10FFFD}1\0\u{10FFFD}0");
        assert!(matches!(encode("plain"), Cow::Borrowed(_)));
    }
}
