//! The body of a message.

use ikigai_store::BODY_LIMIT;

use crate::error::MailError;

/// The body as it is stored: trimmed. NUL becomes U+FFFD, because not every database can store it.
pub(crate) fn checked(body: &str) -> Result<String, MailError> {
    let body = body.trim().replace('\0', "\u{FFFD}");
    match body.len() {
        0 => Err(MailError::EmptyBody),
        length if length > BODY_LIMIT => Err(MailError::BodyTooLarge(length)),
        _ => Ok(body),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_stored_trimmed() {
        assert_eq!(checked(" \n\t\u{2003}a  b\r\n\u{85}"), Ok("a  b".to_owned()));
        for blank in ["", " ", "\n\r\n\t", "\u{a0}\u{2028}"] {
            assert_eq!(checked(blank), Err(MailError::EmptyBody));
        }
    }

    #[test]
    fn the_limit_is_in_bytes_after_trimming() {
        let largest = "x".repeat(BODY_LIMIT);
        assert_eq!(checked(&format!("  {largest}\n")), Ok(largest));
        assert_eq!(checked(&"x".repeat(16_385)), Err(MailError::BodyTooLarge(16_385)));
        assert_eq!(checked(&"ü".repeat(8_193)), Err(MailError::BodyTooLarge(16_386)));
        let text = MailError::BodyTooLarge(16_385).to_string();
        let expected = "Message body too large (16385 bytes, at most 16384): put it in a file and send its path";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_nul_is_replaced() {
        assert_eq!(checked("a\0b"), Ok("a\u{fffd}b".to_owned()));
    }
}
