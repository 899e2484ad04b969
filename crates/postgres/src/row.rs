//! What comes back: rows of numbers, texts and bytes, in the server's binary form.

use std::borrow::Cow;

use bytes::Bytes;

use crate::error::Error;
use crate::text;

/// What a statement gave.
#[derive(Debug, Default)]
pub struct Reply {
    /// Its rows, if it was a question or has a RETURNING.
    pub rows: Vec<Row>,
    /// How many rows it changed or found.
    pub count: usize,
}

/// One row.
#[derive(Debug)]
pub struct Row {
    bytes: Bytes,
    /// Where the columns are; `None` is NULL.
    columns: Vec<Option<(usize, usize)>>,
}

/// A server has no more in a row.
const MOST_COLUMNS: usize = 1_664;

impl Row {
    /// Takes apart what the server sent: the length of each column, and its bytes.
    pub(crate) fn parse(bytes: Bytes) -> Result<Row, Error> {
        let cut = || Error::protocol("a row is cut off");
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

    /// How much memory it takes beside its bytes.
    pub(crate) fn size_around(&self) -> usize {
        size_of::<Row>() + self.columns.capacity() * size_of::<Option<(usize, usize)>>()
    }

    /// A number: a `bigint`, `integer`, `smallint` or `boolean`.
    ///
    /// # Errors
    /// When the column is something else.
    pub fn integer(&self, column: usize) -> Result<Option<i64>, Error> {
        let Some(bytes) = self.bytes(column)? else { return Ok(None) };
        let number = match *bytes {
            [byte] => i64::from(byte),
            [a, b] => i64::from(i16::from_be_bytes([a, b])),
            [a, b, c, d] => i64::from(i32::from_be_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => i64::from_be_bytes([a, b, c, d, e, f, g, h]),
            _ => return Err(Error::protocol(format!("column {column} is no number"))),
        };
        Ok(Some(number))
    }

    /// A text.
    ///
    /// # Errors
    /// When the column is something else.
    pub fn text(&self, column: usize) -> Result<Option<Cow<'_, str>>, Error> {
        let Some(bytes) = self.bytes(column)? else { return Ok(None) };
        let text = std::str::from_utf8(bytes).map_err(Error::protocol)?;
        Ok(Some(text::decode(text)))
    }

    /// Bytes.
    ///
    /// # Errors
    /// When there is no such column.
    pub fn bytes(&self, column: usize) -> Result<Option<&[u8]>, Error> {
        let place = self.columns.get(column);
        let place = place.ok_or_else(|| Error::protocol(format!("there is no column {column}")))?;
        Ok(place.and_then(|(start, end)| self.bytes.get(start..end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_is_cut_off_is_an_error() {
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
