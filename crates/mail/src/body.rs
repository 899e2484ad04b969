//! What may be sent.

use crate::error::MailError;

/// Bytes of a body, after trimming. More belongs into a file: a mailbox is read by a model.
pub const BODY_LIMIT: usize = 16_384;

/// The body as it is stored: trimmed. A NUL, which not every database can store, becomes U+FFFD.
pub(crate) fn checked(body: &str) -> Result<String, MailError> {
    let body = body.trim().replace('\0', "\u{FFFD}");
    match body.len() {
        0 => Err(MailError::EmptyBody),
        length if length > BODY_LIMIT => Err(MailError::BodyTooLarge(length)),
        _ => Ok(body),
    }
}
