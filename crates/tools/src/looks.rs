//! Fingerprints tell cheaply whether a file is unchanged; hashes tell whether its content is.

use std::fmt;
use std::io::{self, Write};

use rustix::fs::Stat;

use crate::file_use::Content;

/// A file's identity and the time of its last write: equal fingerprints mean the same unchanged
/// file. To others this is opaque text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint(String);

impl Fingerprint {
    pub(crate) fn of(stat: &Stat) -> Fingerprint {
        let Stat { st_dev, st_ino, st_size, st_mtime, st_mtime_nsec, .. } = stat;
        Fingerprint(format!("{st_dev}.{st_ino}.{st_size}.{st_mtime}.{st_mtime_nsec}"))
    }
}

/// Restores what [`Display`](fmt::Display) wrote.
impl From<String> for Fingerprint {
    fn from(text: String) -> Fingerprint {
        Fingerprint(text)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A hash of a file's content: 128-bit FNV-1a, and the length. It is not cryptographic: anyone who
/// forges a content with the same hash only gets their own file overwritten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentHash(String);

impl ContentHash {
    /// The hash of a recorded content.
    pub fn of_content(content: &Content) -> ContentHash {
        ContentHash::of(&content.bytes)
    }

    pub(crate) fn of(bytes: &[u8]) -> ContentHash {
        let mut hasher = Hasher::new();
        hasher.push(bytes);
        hasher.finish()
    }
}

/// Restores what [`Display`](fmt::Display) wrote.
impl From<String> for ContentHash {
    fn from(text: String) -> ContentHash {
        ContentHash(text)
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Computes the hash of content that arrives in pieces.
pub(crate) struct Hasher {
    state: u128,
    length: u64,
}

impl Hasher {
    pub(crate) fn new() -> Hasher {
        Hasher { state: 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, length: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        for byte in bytes {
            self.state = (self.state ^ u128::from(*byte)).wrapping_mul(PRIME);
        }
        self.length += bytes.len() as u64;
    }

    pub(crate) fn finish(&self) -> ContentHash {
        ContentHash(format!("{:032x}.{}", self.state, self.length))
    }
}

/// A writer that hashes what passes through.
pub(crate) struct Hashing<W> {
    output: W,
    pub(crate) hasher: Hasher,
}

impl<W: Write> Hashing<W> {
    pub(crate) fn new(output: W) -> Hashing<W> {
        Hashing { output, hasher: Hasher::new() }
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.output.write(bytes)?;
        self.hasher.push(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_that_of_the_whole_however_it_was_written() {
        let mut hashing = Hashing::new(Vec::new());
        for piece in ["foo", "", "bar"] {
            hashing.write_all(piece.as_bytes()).unwrap();
        }
        let hash = hashing.hasher.finish();
        assert_eq!(hash, ContentHash::of(b"foobar"));
        // The published test vector of FNV-1a.
        assert_eq!(hash.to_string(), "343e1662793c64bf6f0d3597ba446f18.6");
        assert_ne!(hash, ContentHash::of(b"foobaz"));
        assert_ne!(ContentHash::of(b""), ContentHash::of(b"\0"));
    }
}
