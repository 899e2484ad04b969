//! A password that never appears in output.

use std::fmt;

/// Shorter passwords are not masked: they occur in ordinary words.
const SHORTEST_HIDDEN: usize = 4;
/// What replaces the password in a text.
const MASK: &str = "***";

/// The password of an address. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Password(String);

impl Password {
    /// `None` for an empty password, which PostgreSQL never accepts.
    pub(crate) fn new(password: String) -> Option<Password> {
        (!password.is_empty()).then_some(Password(password))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Masks every occurrence of the password in a text. Each of its bytes may be percent-encoded, as in an address.
    pub(crate) fn hide(&self, text: &str) -> String {
        if self.0.len() < SHORTEST_HIDDEN {
            return text.to_owned();
        }
        let mut shown = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            match self.end_in(rest) {
                Some(end) => {
                    shown.push_str(MASK);
                    rest = &rest[end..];
                }
                None => {
                    shown.push(next);
                    rest = &rest[next.len_utf8()..];
                }
            }
        }
        shown
    }

    /// Where the password ends in a text that starts with it. A percent sign in the password may appear encoded or not,
    /// so every reading of the text is followed.
    fn end_in(&self, text: &str) -> Option<usize> {
        let mut ends = vec![0];
        for byte in self.0.bytes() {
            let after = |end: usize| {
                let plain = (text.as_bytes().get(end) == Some(&byte)).then_some(end + 1);
                let encoded = (encoded_at(text, end) == Some(byte)).then_some(end + 3);
                plain.into_iter().chain(encoded)
            };
            ends = ends.into_iter().flat_map(after).collect();
            ends.dedup();
            if ends.is_empty() {
                return None;
            }
        }
        ends.into_iter().filter(|end| text.is_char_boundary(*end)).max()
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// The byte that is percent-encoded at this position.
fn encoded_at(text: &str, at: usize) -> Option<u8> {
    let digits = text.get(at..at + 3)?.strip_prefix('%')?;
    // `from_str_radix` would also accept a sign.
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(())?;
    u8::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(password: &str, text: &str, shown: &str) {
        let password = Password::new(password.to_owned()).unwrap();
        assert_eq!(password.hide(text), shown);
        assert_eq!(format!("{password:?}"), "***");
    }

    #[test]
    fn a_password_is_masked_however_an_address_encodes_it() {
        check("geheim", "no geheim for geheimgeheim", "no *** for ******");
        check("a@b/é", "a@b/é a%40b%2F%C3%A9 a%40b%2f%c3%a9 %61@b/%c3%A9", "*** *** *** ***");
        check("50%off", "50%off 50%25off", "*** ***");
        check("%25x", "%25x %2525x", "*** ***");
        check("geheim", "geheimer Rat, Geheim, gehei", "***er Rat, Geheim, gehei");
        check("geheim", "postgres://me:geheim@h/w", "postgres://me:***@h/w");
        check("é€é€", "é€é€é€", "***é€");
        check("%%%%%%%%", "%%%%%%%%%%%%", "***%%%%");
    }

    #[test]
    fn a_short_password_is_not_masked() {
        check("abc", "abc", "abc");
        assert_eq!(Password::new(String::new()), None);
    }

    #[test]
    fn masking_a_text_of_percent_signs_is_fast() {
        let password = "%25".repeat(40);
        check(&password, &"%25".repeat(20), &"%25".repeat(20));
        let many = "%".repeat(200);
        check(&many, &"%25".repeat(199), &"%25".repeat(199));
    }
}
