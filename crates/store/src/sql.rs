//! Values and rows in units of work, independent of the database.

use std::borrow::Cow;

use ikigai_conversation::{AgentId, CommandId, Correspondent, MailId, SessionId, Time};
use ikigai_postgres::Value;

use crate::agents::State;
use crate::error::StoreError;
use crate::mailbox::mail_id;

/// The parameters of a statement: `params![agent.key, text]`.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        &[$(&$value as &dyn $crate::sql::Param),*] as &[&dyn $crate::sql::Param]
    };
}
pub(crate) use params;

/// A parameter of a statement.
pub(crate) trait Param {
    fn value(&self) -> Value<'_>;
    /// NULL of the same type, since PostgreSQL needs the type.
    fn null() -> Value<'static>
    where
        Self: Sized;
}

macro_rules! integer {
    ($($type:ty),*) => {$(
        impl Param for $type {
            fn value(&self) -> Value<'_> {
                Value::Integer(Some(i64::from(*self)))
            }
            fn null() -> Value<'static> {
                Value::Integer(None)
            }
        }
    )*};
}
integer!(i64, u32, bool);

macro_rules! text {
    ($($type:ty),*) => {$(
        impl Param for $type {
            fn value(&self) -> Value<'_> {
                Value::Text(Some(self))
            }
            fn null() -> Value<'static> {
                Value::Text(None)
            }
        }
    )*};
}
text!(String, &str, &String);

macro_rules! bytes {
    ($($type:ty),*) => {$(
        impl Param for $type {
            fn value(&self) -> Value<'_> {
                Value::Bytes(Some(self))
            }
            fn null() -> Value<'static> {
                Value::Bytes(None)
            }
        }
    )*};
}
bytes!(Vec<u8>, &[u8]);

impl<T: Param> Param for Option<T> {
    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(T::null(), T::value)
    }
    fn null() -> Value<'static> {
        T::null()
    }
}

/// A row of either database.
pub(crate) enum Row<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    Postgres(&'a ikigai_postgres::Row),
}

impl Row<'_> {
    /// The value of a column.
    pub(crate) fn get<T: Column>(&self, column: usize) -> Result<T, StoreError> {
        T::read(self, column)
    }

    /// The text of a column, without copying if possible.
    pub(crate) fn text(&self, column: usize) -> Result<Cow<'_, str>, StoreError> {
        self.optional_text(column)?.ok_or_else(|| null(column))
    }

    fn optional_text(&self, column: usize) -> Result<Option<Cow<'_, str>>, StoreError> {
        match self {
            Row::Sqlite(row) => {
                let value = row.get_ref(column).map_err(StoreError::internal)?;
                let text = value.as_str_or_null().map_err(StoreError::internal)?;
                Ok(text.map(Cow::Borrowed))
            }
            Row::Postgres(row) => row.text(column).map_err(StoreError::internal),
        }
    }

    fn optional_integer(&self, column: usize) -> Result<Option<i64>, StoreError> {
        match self {
            Row::Sqlite(row) => row.get(column).map_err(StoreError::internal),
            Row::Postgres(row) => row.integer(column).map_err(StoreError::internal),
        }
    }

    fn optional_bytes(&self, column: usize) -> Result<Option<Vec<u8>>, StoreError> {
        match self {
            Row::Sqlite(row) => row.get(column).map_err(StoreError::internal),
            Row::Postgres(row) => {
                Ok(row.bytes(column).map_err(StoreError::internal)?.map(<[u8]>::to_vec))
            }
        }
    }
}

/// A type that a column can be read as.
pub(crate) trait Column: Sized {
    fn read_optional(row: &Row<'_>, column: usize) -> Result<Option<Self>, StoreError>;

    fn read(row: &Row<'_>, column: usize) -> Result<Self, StoreError> {
        Self::read_optional(row, column)?.ok_or_else(|| null(column))
    }
}

impl Column for i64 {
    fn read_optional(row: &Row<'_>, column: usize) -> Result<Option<i64>, StoreError> {
        row.optional_integer(column)
    }
}

impl Column for u32 {
    fn read_optional(row: &Row<'_>, column: usize) -> Result<Option<u32>, StoreError> {
        let number = row.optional_integer(column)?;
        number.map(u32::try_from).transpose().map_err(StoreError::internal)
    }
}

impl Column for bool {
    fn read_optional(row: &Row<'_>, column: usize) -> Result<Option<bool>, StoreError> {
        Ok(row.optional_integer(column)?.map(|number| number != 0))
    }
}

impl Column for String {
    fn read_optional(row: &Row<'_>, column: usize) -> Result<Option<String>, StoreError> {
        Ok(row.optional_text(column)?.map(Cow::into_owned))
    }
}

impl Column for Vec<u8> {
    fn read_optional(row: &Row<'_>, column: usize) -> Result<Option<Vec<u8>>, StoreError> {
        row.optional_bytes(column)
    }
}

macro_rules! parsed_text {
    ($($type:ty: $parse:path),*) => {$(
        impl Column for $type {
            fn read_optional(row: &Row<'_>, column: usize) -> Result<Option<$type>, StoreError> {
                let text = row.optional_text(column)?;
                text.map(|text| $parse(&text)).transpose().map_err(StoreError::internal)
            }
        }
    )*};
}
parsed_text!(
    AgentId: AgentId::parse,
    Correspondent: Correspondent::parse,
    SessionId: SessionId::parse
);

impl Column for State {
    fn read_optional(row: &Row<'_>, column: usize) -> Result<Option<State>, StoreError> {
        row.optional_text(column)?.map(|name| State::parse(&name)).transpose()
    }
}

impl Column for Time {
    fn read_optional(row: &Row<'_>, column: usize) -> Result<Option<Time>, StoreError> {
        Ok(row.optional_integer(column)?.map(Time::from_millis))
    }
}

impl Column for MailId {
    fn read_optional(row: &Row<'_>, column: usize) -> Result<Option<MailId>, StoreError> {
        row.optional_integer(column)?.map(mail_id).transpose()
    }
}

impl Column for CommandId {
    fn read_optional(row: &Row<'_>, column: usize) -> Result<Option<CommandId>, StoreError> {
        let id = row.optional_integer(column)?;
        id.map(|id| CommandId::try_from(id).map_err(StoreError::internal)).transpose()
    }
}

impl<T: Column> Column for Option<T> {
    fn read_optional(row: &Row<'_>, column: usize) -> Result<Option<Option<T>>, StoreError> {
        T::read_optional(row, column).map(Some)
    }
}

fn null(column: usize) -> StoreError {
    StoreError::internal(format!("column {column} is empty"))
}
