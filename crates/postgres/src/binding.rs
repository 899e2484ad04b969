//! Channel binding: ties a login to the certificate of its TLS connection (RFC 5929, `tls-server-end-point`).

use rustls::crypto::hash::Hash;
use rustls::crypto::ring::cipher_suite;

/// The hash of a certificate, by the hash algorithm of its signature. `None` if that algorithm is not supported: then
/// the login is not bound. The certificate is verified either way.
pub(crate) fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let hash = hash_of(signature_algorithm(certificate)?)?;
    Some(hash.hash(certificate).as_ref().to_vec())
}

/// The hash for a signature algorithm (its encoded object identifier). RFC 5929 replaces MD5 and SHA-1 by SHA-256.
fn hash_of(algorithm: &[u8]) -> Option<&'static dyn Hash> {
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1];
    const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4];
    let suite = match (algorithm.strip_prefix(RSA), algorithm.strip_prefix(ECDSA)) {
        // MD5, SHA-1, SHA-256.
        (Some([4 | 5 | 11]), _) | (_, Some([1] | [3, 2])) => cipher_suite::TLS13_AES_128_GCM_SHA256,
        (Some([12]), _) | (_, Some([3, 3])) => cipher_suite::TLS13_AES_256_GCM_SHA384,
        _ => return None,
    };
    suite.tls13().map(|suite| suite.common.hash_provider)
}

/// The object identifier after the signed part:
/// `SEQUENCE { signed SEQUENCE, algorithm SEQUENCE { OBJECT IDENTIFIER … } … }`.
fn signature_algorithm(certificate: &[u8]) -> Option<&[u8]> {
    const SEQUENCE: u8 = 0x30;
    const OBJECT_IDENTIFIER: u8 = 0x06;
    let (certificate, _) = element(certificate, SEQUENCE)?;
    let (_, rest) = element(certificate, SEQUENCE)?;
    let (algorithm, _) = element(rest, SEQUENCE)?;
    element(algorithm, OBJECT_IDENTIFIER).map(|(identifier, _)| identifier)
}

/// The content of the DER element at the start of `bytes`, if it has this tag, and the bytes after it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&short, rest) = bytes.strip_prefix(&[tag])?.split_first()?;
    let (length, rest) = match short {
        0..=0x7f => (usize::from(short), rest),
        // How many bytes the length has: no certificate needs more than three.
        0x81..=0x83 => {
            let (digits, rest) = rest.split_at_checked(usize::from(short & 0x7f))?;
            let length =
                digits.iter().fold(0_usize, |length, digit| length << 8 | usize::from(*digit));
            (length, rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}
