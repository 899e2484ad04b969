//! The values of parameters.

/// The value of a parameter. Its type is sent too, so the server never guesses. `None` is NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// `bigint`.
    Integer(Option<i64>),
    /// `text`.
    Text(Option<&'a str>),
    /// `bytea`.
    Bytes(Option<&'a [u8]>),
}

impl Value<'_> {
    /// The size in bytes.
    pub(crate) fn size(self) -> usize {
        match self {
            Value::Integer(_) => 8,
            Value::Text(text) => text.map_or(0, str::len),
            Value::Bytes(bytes) => bytes.map_or(0, <[u8]>::len),
        }
    }

    /// The object id of the type.
    pub(crate) fn type_id(self) -> u32 {
        match self {
            Value::Integer(_) => 20,
            Value::Text(_) => 25,
            Value::Bytes(_) => 17,
        }
    }
}
