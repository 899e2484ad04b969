//! How a file looks: a fingerprint that tells cheaply whether it is still the same, a hash that tells whether
//! its content is.

use std::fmt;
use std::io::{self, Write};

use rustix::fs::Stat;

use crate::file_use::Content;

/// Which file it is and when it was last written: equal ones are the same file, unchanged. Others keep it as
/// text and need not know what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint(String);

impl Fingerprint {
    pub(crate) fn of(stat: &Stat) -> Fingerprint {
        let Stat { st_dev, st_ino, st_size, st_mtime, st_mtime_nsec, .. } = stat;
        Fingerprint(format!("{st_dev}.{st_ino}.{st_size}.{st_mtime}.{st_mtime_nsec}"))
    }
}

/// What [`Display`](fmt::Display) wrote.
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

/// Tells contents apart, wherever and whenever they are: FNV-1a of 128 bits, and the length. It is no seal:
/// who makes another content of the same hash on purpose only has his own file overwritten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentHash(String);

impl ContentHash {
    /// The hash of a content that was kept.
    pub fn of_content(content: &Content) -> ContentHash {
        ContentHash::of(&content.bytes)
    }

    pub(crate) fn of(bytes: &[u8]) -> ContentHash {
        let mut hasher = Hasher::new();
        hasher.push(bytes);
        hasher.finish()
    }
}

/// What [`Display`](fmt::Display) wrote.
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

/// Makes the hash of what comes piece by piece.
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

/// Passes on what is written, and knows its hash.
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
