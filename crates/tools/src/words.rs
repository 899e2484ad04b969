//! The encoding of word lists between ikigai's processes: each word is prefixed with its length.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Environment variables: names with their values.
pub(crate) type Variables = Vec<(OsString, OsString)>;

/// Whether a variable controls the dynamic loader.
pub(crate) fn is_loaders(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b"LD_")
}

pub(crate) fn push_list<'a>(bytes: &mut Vec<u8>, words: impl ExactSizeIterator<Item = &'a OsStr>) {
    bytes.extend_from_slice(&(words.len() as u64).to_le_bytes());
    for word in words {
        bytes.extend_from_slice(&(word.len() as u64).to_le_bytes());
        bytes.extend_from_slice(word.as_bytes());
    }
}

/// Splits a list off the front; `None` if there is none.
pub(crate) fn take_list(bytes: &mut &[u8]) -> Option<Vec<OsString>> {
    let count = take_number(bytes)?;
    // Not preallocated: the count may be anything, while each word needs bytes that exist.
    let mut words = Vec::new();
    for _ in 0..count {
        let length = usize::try_from(take_number(bytes)?).ok()?;
        let (word, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        words.push(OsString::from_vec(word.to_vec()));
    }
    Some(words)
}

pub(crate) fn push_variables(bytes: &mut Vec<u8>, variables: &[(OsString, OsString)]) {
    push_list(bytes, variables.iter().map(|(name, _)| name.as_os_str()));
    push_list(bytes, variables.iter().map(|(_, value)| value.as_os_str()));
}

pub(crate) fn take_variables(bytes: &mut &[u8]) -> Option<Variables> {
    let (names, values) = (take_list(bytes)?, take_list(bytes)?);
    (names.len() == values.len()).then(|| names.into_iter().zip(values).collect())
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*number))
}
