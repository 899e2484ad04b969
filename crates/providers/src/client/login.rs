//! A name and password in an address: all forms in which a server may repeat them.

use reqwest::Url;

use crate::secret::Secret;

/// The secrets of an address: its password as written and decoded, and both parts as they are sent.
/// Without a password the name is a token.
pub(super) fn secrets(url: &Url) -> Vec<Secret> {
    let (name, password) = (url.username(), url.password());
    let secret = password.unwrap_or(name);
    if secret.is_empty() {
        return Vec::new();
    }
    let sent = [decode(name), vec![b':'], decode(password.unwrap_or_default())].concat();
    let meant = String::from_utf8_lossy(&decode(secret)).into_owned();
    [secret.to_owned(), meant, base64(&sent)].map(Secret::new).to_vec()
}

/// Decodes `%40` and the like.
fn decode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let digits = behind.get(..2).filter(|_| *first == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    bytes
}

/// Base64 with padding, as in the HTTP header.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let byte = |place| u32::from(group.get(place).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let letter = ALPHABET[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= group.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expected: &[&str]) {
        let secrets = secrets(&Url::parse(url).unwrap());
        assert_eq!(secrets.iter().map(Secret::expose).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_password_has_three_forms() {
        check("http://me:secret@h", &["secret", "secret", "bWU6c2VjcmV0"]);
        check("http://me:a%40b%2f@h", &["a%40b%2f", "a@b/", "bWU6YUBiLw=="]);
        check("http://token@h", &["token", "token", "dG9rZW46"]);
        check("http://:secret@h", &["secret", "secret", "OnNlY3JldA=="]);
        check("http://h", &[]);
    }
}
