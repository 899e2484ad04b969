//! A key that can be sent, and never shown.

use std::fmt;

/// A key of a provider. `Debug` hides it, and there is no `Display`.
#[derive(Clone)]
pub struct Secret(String);

/// Replaces the key in texts.
const MASK: &str = "[key]";

/// A shorter key is a placeholder such as `none`, for a server that accepts any key. It is not
/// secret, and removing it from texts would garble them.
const SHORTEST: usize = 6;

impl Secret {
    /// Takes a key, without surrounding white space from a file or the clipboard.
    pub fn new(key: impl AsRef<str>) -> Secret {
        Secret(key.as_ref().trim().to_owned())
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// Removes the key from a text: servers repeat what they were sent.
    pub(crate) fn cut_out_of(&self, text: &str) -> String {
        let key = &self.0;
        if key.len() < SHORTEST {
            return text.to_owned();
        }
        let mut text = text.replace(key.as_str(), MASK);
        // A text may have been cut in the middle of the key.
        if let Some(cut) = text.rfind('…') {
            let beginnings = (SHORTEST..key.len()).rev().filter_map(|length| key.get(..length));
            let left = { beginnings }.find(|beginning| text[..cut].ends_with(beginning));
            if let Some(left) = left {
                text.replace_range(cut - left.len()..cut, MASK);
            }
        }
        text
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(Secret::new(" sk-12345678\n").cut_out_of(text), expected);
    }

    #[test]
    fn a_key_is_removed_whole_or_in_part() {
        check("bad key sk-12345678 (sk-12345678)", "bad key [key] ([key])");
        check("bad key sk-1234…", "bad key [key]…");
        check("bad key sk-1234567… (hint)", "bad key [key]… (hint)");
        check("bad key sk-…", "bad key sk-…");
        check("nothing…", "nothing…");
    }

    #[test]
    fn a_placeholder_is_not_removed() {
        assert_eq!(Secret::new("none").cut_out_of("none of it"), "none of it");
        assert_eq!(Secret::new("").cut_out_of("x"), "x");
    }

    #[test]
    fn debug_does_not_show_the_key() {
        assert_eq!(format!("{:?}", Secret::new("sk-12345678")), "Secret");
    }
}
