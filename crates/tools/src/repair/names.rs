//! Names of tools that differ in what models confuse.

/// Whether a tool can be meant by another name: in another case, or with `-` for `_`.
pub(crate) fn means(called: &str, tool: &str) -> bool {
    called.len() == tool.len()
        && called.bytes().zip(tool.bytes()).all(|(a, b)| plain(a) == plain(b))
}

fn plain(byte: u8) -> u8 {
    if byte == b'-' { b'_' } else { byte.to_ascii_lowercase() }
}
