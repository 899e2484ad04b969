//! Repairs halves of surrogate pairs in JSON. Servers that count in UTF-16 split pairs, and a
//! parser refuses the halves. Without this the rest of the response would be lost for half a
//! character.

/// The JSON with the replacement character for every half pair.
pub(crate) fn mend(json: &[u8]) -> Vec<u8> {
    let mut mended = Vec::with_capacity(json.len());
    let mut rest = json;
    while let Some(start) = memchr::memchr(b'\\', rest) {
        mended.extend_from_slice(&rest[..start]);
        rest = &rest[start..];
        let (kept, length): (&[u8], usize) =
            match (unit(rest), unit(rest.get(6..).unwrap_or_default())) {
                (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (&rest[..12], 12),
                (Some(0xd800..=0xdfff), _) => (br"\ufffd", 6),
                // Skip the backslash and the character after it: an escaped backslash does not
                // escape the next character.
                _ => (&rest[..rest.len().min(2)], rest.len().min(2)),
            };
        mended.extend_from_slice(kept);
        rest = &rest[length..];
    }
    mended.extend_from_slice(rest);
    mended
}

/// The number of the escape at the start of a text.
fn unit(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(br"\u")?.get(..4)?;
    let digits = std::str::from_utf8(digits).ok()?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: &str) {
        assert_eq!(String::from_utf8(mend(json.as_bytes())).unwrap(), expected);
    }

    #[test]
    fn half_pairs_are_replaced_and_nothing_else() {
        check(r#"{"a":"\ud83d\ude00 \n\u00e9"}"#, r#"{"a":"\ud83d\ude00 \n\u00e9"}"#);
        check(r#""\ud83d""#, r#""\ufffd""#);
        check(r#""\ude00 \uD83D\uD83D\uDE00""#, r#""\ufffd \ufffd\uD83D\uDE00""#);
        check(r#""\ud83d\n""#, r#""\ufffd\n""#);
        check(r#""\\ud83d \\\ud83d""#, r#""\\ud83d \\\ufffd""#);
        for cut in ["", "\\", r"\u", r"\ud8", r"\u+123", r"x\u00é9"] {
            check(cut, cut);
        }
    }
}
