//! Replies: rows of integers, text and bytes in PostgreSQL's binary format.

use std::borrow::Cow;

use bytes::Bytes;

use crate::error::Error;
use crate::text;

/// The result of a statement.
#[derive(Debug, Default)]
pub struct Reply {
    /// Its rows, if it is a query or has a RETURNING clause.
    pub rows: Vec<Row>,
    /// How many rows it changed or returned.
    pub count: usize,
}

/// One row.
#[derive(Debug)]
pub struct Row {
    bytes: Bytes,
    /// The start and end of each column; `None` is NULL.
    columns: Vec<Option<(usize, usize)>>,
}

/// PostgreSQL's own limit.
const MOST_COLUMNS: usize = 1_664;

impl Row {
    /// Parses the body of a row: each column is its length and its bytes.
    pub(crate) fn parse(bytes: Bytes) -> Result<Row, Error> {
        let cut = || Error::protocol("a row is truncated");
        let (mut columns, mut at) = (Vec::new(), 0);
        while at < bytes.len() {
            let length = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
            let length = i32::from_be_bytes(length.ok_or_else(cut)?);
            at += 4;
            if columns.len() == MOST_COLUMNS {
                return Err(Error::protocol("a row has too many columns"));
            }
            let Ok(length) = usize::try_from(length) else {
                columns.push(None);
                continue;
            };
            let end = at.checked_add(length).filter(|end| *end <= bytes.len()).ok_or_else(cut)?;
            columns.push(Some((at, end)));
            at = end;
        }
        Ok(Row { bytes, columns })
    }

    /// How much memory it takes besides its bytes.
    pub(crate) fn overhead(&self) -> usize {
        size_of::<Row>() + self.columns.capacity() * size_of::<Option<(usize, usize)>>()
    }

    /// The value of a `bigint`, `integer`, `smallint` or `boolean`.
    ///
    /// # Errors
    /// If the column has another type.
    pub fn integer(&self, column: usize) -> Result<Option<i64>, Error> {
        let Some(bytes) = self.bytes(column)? else { return Ok(None) };
        let number = match *bytes {
            [byte] => i64::from(byte),
            [a, b] => i64::from(i16::from_be_bytes([a, b])),
            [a, b, c, d] => i64::from(i32::from_be_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => i64::from_be_bytes([a, b, c, d, e, f, g, h]),
            _ => return Err(Error::protocol(format!("column {column} is not a number"))),
        };
        Ok(Some(number))
    }

    /// The value of a `text`.
    ///
    /// # Errors
    /// If the column has another type.
    pub fn text(&self, column: usize) -> Result<Option<Cow<'_, str>>, Error> {
        let Some(bytes) = self.bytes(column)? else { return Ok(None) };
        let text = std::str::from_utf8(bytes).map_err(Error::protocol)?;
        Ok(Some(text::decode(text)))
    }

    /// The value of a `bytea`, or the raw bytes of any other type.
    ///
    /// # Errors
    /// If there is no such column.
    pub fn bytes(&self, column: usize) -> Result<Option<&[u8]>, Error> {
        let range = self.columns.get(column);
        let range = range.ok_or_else(|| Error::protocol(format!("there is no column {column}")))?;
        Ok(range.and_then(|(start, end)| self.bytes.get(start..end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_truncated_row_is_an_error() {
        let whole = [0, 0, 0, 2, 0, 7, 255, 255, 255, 255, 0, 0, 0, 1, b'x'];
        let row = Row::parse(Bytes::copy_from_slice(&whole)).unwrap();
        assert_eq!(row.integer(0).unwrap(), Some(7));
        assert_eq!(row.text(1).unwrap(), None);
        assert_eq!(row.text(2).unwrap().unwrap(), "x");
        assert!(row.text(3).is_err() && row.integer(2).is_ok());
        for length in [1, 3, 5, 11, 14] {
            assert!(Row::parse(Bytes::copy_from_slice(&whole[..length])).is_err(), "{length}");
        }
        let nulls = [255; 4 * (MOST_COLUMNS + 1)];
        assert!(Row::parse(Bytes::copy_from_slice(&nulls[4..])).is_ok());
        assert!(Row::parse(Bytes::copy_from_slice(&nulls)).is_err());
        let endless = [127, 255, 255, 255, 0];
        assert!(Row::parse(Bytes::copy_from_slice(&endless)).is_err());
    }
}
