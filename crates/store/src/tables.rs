//! The tables that hold a session: one list for copying it, for deleting it, and for checking that no column is
//! forgotten.

use ikigai_postgres::Value;

use crate::error::StoreError;
use crate::sql::{Param, Row};

/// A table whose rows belong to one session.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// The number of its rows; `None` if rows have no number.
    pub(crate) key: Option<&'static str>,
    pub(crate) owner: Owner,
    /// A column between the owner and the key in the index by which the rows of an owner are read in pages.
    pub(crate) class: Option<(&'static str, ColumnType)>,
    /// Columns that refer to a row, separated by spaces: `COLUMN:TABLE`.
    references: &'static str,
    /// Columns of other types, separated by spaces.
    numbers: &'static str,
    text: &'static str,
    bytes: &'static str,
    /// The column with the data of a log message.
    data: &'static str,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnType {
    Number,
    Text,
    Bytes,
    /// The number of a row of that table.
    Reference(&'static str),
    /// The data of a log message, which may name messages and mail.
    Data,
}

/// The column that says to whom a row belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    Session(&'static str),
    Agent(&'static str),
    Cause(&'static str),
}

impl Owner {
    pub(crate) fn column(self) -> &'static str {
        match self {
            Owner::Session(column) | Owner::Agent(column) | Owner::Cause(column) => column,
        }
    }

    /// The query for the owners in the session with the key `?1`.
    pub(crate) fn keys(self) -> &'static str {
        match self {
            Owner::Session(_) => "SELECT key FROM sessions WHERE key = ?1",
            Owner::Agent(_) => "SELECT key FROM agents WHERE session = ?1",
            Owner::Cause(_) => "SELECT key FROM causes WHERE session = ?1",
        }
    }

    /// Selects the rows of the session with the key `?1`.
    pub(crate) fn condition(self) -> String {
        format!("{} IN ({})", self.column(), self.keys())
    }
}

/// Tables whose rows only matter while processes run: deleted with a session, and not copied.
pub(crate) const TRANSIENT: &[(&str, Owner)] = &[
    ("waits", Owner::Agent("waiter")),
    ("leases", Owner::Agent("agent")),
    ("questions", Owner::Agent("agent")),
];

/// In an order in which each row comes after the rows that it refers to.
pub(crate) const TABLES: &[Table] = &[
    Table {
        key: Some("key"),
        text: "id machine directory title",
        numbers: "created_at updated_at next_agent wakes_left requests_left held_told",
        ..Table::new("sessions", Owner::Session("key"))
    },
    Table {
        key: Some("key"),
        references: "session:sessions",
        text: "title",
        numbers: "created_at",
        ..Table::new("causes", Owner::Session("session"))
    },
    // The counts of unread mail are left out: triggers keep them as the mail arrives.
    Table {
        key: Some("key"),
        references: "session:sessions inherits:agents inherits_up_to:messages cause:causes turn_start:messages",
        text: "id name state model machine directory task last_error",
        numbers: "next_child notification_pending mail_held owes_report created_at in_turn asked
            opened",
        ..Table::new("agents", Owner::Session("session"))
    },
    Table {
        key: Some("id"),
        references: "agent:agents",
        text: "kind content",
        data: "data",
        numbers: "created_at",
        ..Table::new("messages", Owner::Agent("agent"))
    },
    Table {
        key: Some("id"),
        class: Some(("unread", ColumnType::Number)),
        references: "recipient:agents sender:agents sent_by:messages told_by:messages read_by:messages cause:causes",
        text: "body",
        numbers: "sent_at unread read_by_person",
        ..Table::new("mail", Owner::Agent("recipient"))
    },
    Table {
        key: Some("id"),
        references: "agent:agents",
        text: "content",
        numbers: "created_at",
        ..Table::new("queued_inputs", Owner::Agent("agent"))
    },
    Table {
        key: Some("key"),
        references: "cause:causes",
        numbers: "redone created_at",
        ..Table::new("undos", Owner::Cause("cause"))
    },
    Table {
        key: Some("key"),
        class: Some(("state", ColumnType::Text)),
        references: "cause:causes agent:agents message:messages undo:undos",
        text: "looks hash state before_is after_is",
        numbers: "new_folders created_at before_mode after_mode",
        bytes: "path before after",
        ..Table::new("changes", Owner::Cause("cause"))
    },
    Table {
        key: Some("key"),
        references: "agent:agents cause:causes",
        text: "model",
        numbers: "requests unreported input_tokens cached_tokens output_tokens cost created_at",
        ..Table::new("spending", Owner::Agent("agent"))
    },
    Table {
        key: Some("key"),
        references: "agent:agents started_by:messages told_by:messages matched_told_by:messages",
        text: "line state tail matched",
        numbers: "number exit_code started_at ended_at",
        ..Table::new("commands", Owner::Agent("agent"))
    },
    Table {
        references: "agent:agents message:messages",
        text: "looks",
        bytes: "path",
        ..Table::new("sights", Owner::Agent("agent"))
    },
    Table {
        references: "session:sessions",
        text: "machine host boot",
        numbers: "device inode",
        bytes: "path",
        ..Table::new("roots", Owner::Session("session"))
    },
];

impl Table {
    const fn new(name: &'static str, owner: Owner) -> Table {
        Table {
            name,
            key: None,
            owner,
            class: None,
            references: "",
            numbers: "",
            text: "",
            bytes: "",
            data: "",
        }
    }

    /// All columns that are copied, the key first.
    pub(crate) fn columns(&self) -> impl Iterator<Item = (&'static str, ColumnType)> {
        let key = self.key.map(|key| (key, ColumnType::Reference(self.name)));
        let references = self.references.split_whitespace().filter_map(|reference| {
            let (name, table) = reference.split_once(':')?;
            Some((name, ColumnType::Reference(table)))
        });
        let others = [
            (self.numbers, ColumnType::Number),
            (self.text, ColumnType::Text),
            (self.data, ColumnType::Data),
            (self.bytes, ColumnType::Bytes),
        ];
        let others = others.into_iter().flat_map(|(names, column_type)| {
            names.split_whitespace().map(move |name| (name, column_type))
        });
        key.into_iter().chain(references).chain(others)
    }
}

impl ColumnType {
    pub(crate) fn read(self, row: &Row<'_>, column: usize) -> Result<Cell, StoreError> {
        Ok(match self {
            ColumnType::Number | ColumnType::Reference(_) => Cell::Number(row.get(column)?),
            ColumnType::Text | ColumnType::Data => Cell::Text(row.get(column)?),
            ColumnType::Bytes => Cell::Bytes(row.get(column)?),
        })
    }
}

/// The value of a column.
pub(crate) enum Cell {
    Number(Option<i64>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
}

impl Param for Cell {
    fn value(&self) -> Value<'_> {
        match self {
            Cell::Number(number) => Value::Integer(*number),
            Cell::Text(text) => Value::Text(text.as_deref()),
            Cell::Bytes(bytes) => Value::Bytes(bytes.as_deref()),
        }
    }

    fn null() -> Value<'static> {
        Value::Text(None)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ikigai_testkit::{Kind, TestStore};

    use super::*;

    /// Tables that belong to no session, and columns that triggers keep.
    const LEFT_OUT: &[&str] = &["units.", "ikigai.", "sqlite_", "agents.unread", "agents.untold"];

    /// A column that is missing from the list would be lost by every copy.
    #[test]
    fn every_column_of_both_databases_is_copied_or_left_out_on_purpose() {
        let sqlite =
            "SELECT t.name || '.' || c.name FROM sqlite_schema t, pragma_table_info(t.name) c
            WHERE t.type = 'table'";
        let postgres = "SELECT table_name || '.' || column_name FROM information_schema.columns
            WHERE table_schema = 'public'";
        let copied = TABLES.iter().flat_map(|table| {
            table.columns().map(|(column, _)| format!("{}.{column}", table.name))
        });
        let copied: BTreeSet<String> = copied.collect();
        let is_copied = |column: &String| {
            !LEFT_OUT.iter().any(|prefix| column.starts_with(prefix))
                && !TRANSIENT.iter().any(|(table, _)| column.starts_with(&format!("{table}.")))
        };
        for (kind, sql) in [(Kind::Sqlite, sqlite), (Kind::Postgres, postgres)] {
            let found = TestStore::of(kind).raw().rows(sql, |row| row.text(0).unwrap());
            let found: BTreeSet<String> = found.into_iter().filter(is_copied).collect();
            assert_eq!(found, copied, "{kind:?}");
        }
    }
}
