//! Bringing a session with its agents, logs and mail from one database to another.
//!
//! The rows go through a channel of few, so that a session of any size needs little memory, and arrive in one
//! transaction: all of it is there or nothing. Ids stay as they are where the other database has never used them;
//! else all ids of a kind are moved by the same number, in the logs too, so that their order stays. What only means
//! something while processes run (leases, waits) stays behind.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use ikigai_conversation::SessionId;
use ikigai_postgres::Value;

use crate::error::StoreError;
use crate::leases;
use crate::process::Process;
use crate::sessions;
use crate::sql::{Param, Row, params};
use crate::store::Store;
use crate::unit::Unit;
use crate::writer::Scope;

/// How many rows may be on their way. One can hold a file of 10 MB, twice.
const ON_THEIR_WAY: usize = 4;
/// How many rows are read at once.
const PAGE: usize = 8;
/// A server ends a transaction in which nothing happens for some time; so often it is given something to do.
const BREATH: Duration = Duration::from_secs(5);

impl Store {
    /// Copies a session into another database. Refused while a live process runs one of its agents.
    ///
    /// # Errors
    /// [`StoreError::SessionExists`] when the other database has it already.
    pub async fn copy_session(
        &self,
        session: SessionId,
        to: &Store,
        by: Process,
    ) -> Result<(), StoreError> {
        let (rows, arriving) = sync_channel(ON_THEIR_WAY);
        let reading = self.read(move |unit| {
            let key = sessions::key_of(unit, &session)?;
            leases::require_none_alive(unit, key, &by)?;
            let first = |table: &Table| table.first(unit, key);
            send(&rows, Item::First(TABLES.iter().map(first).collect::<Result<_, _>>()?))?;
            let sent = TABLES.iter().try_for_each(|table| table.read(unit, key, &rows));
            sent.and_then(|()| send(&rows, Item::End))
        });
        let writing = to.commit(Scope::Own, move |unit| write(unit, session, &arriving));
        let (read, written) = tokio::join!(reading, writing);
        // What could not be written says more than that nobody took it.
        match (read, written) {
            (Ok(()), written) => written,
            (Err(StoreError::Closed), Err(error)) => Err(error),
            (Err(error), _) => Err(error),
        }
    }
}

/// A table, and what its columns hold.
struct Table {
    name: &'static str,
    /// The column that its rows are counted by; none where they have no number.
    key: Option<&'static str>,
    /// Which of its columns says to whom a row belongs.
    owner: &'static str,
    /// Who that is.
    of: Of,
    /// The column between the owner and the key in the index by which the rows of an owner are read in parts.
    class: Option<(&'static str, Holds)>,
    columns: &'static [(&'static str, Holds)],
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Number,
    Text,
    Bytes,
    /// The number of a row of that table.
    Row(&'static str),
    /// The data of a log message, which may name messages and mail.
    Data,
}

use Holds::{Bytes, Data, Number, Text};

impl Holds {
    fn read(self, row: &Row<'_>, column: usize) -> Result<Cell, StoreError> {
        Ok(match self {
            Holds::Number | Holds::Row(_) => Cell::Number(row.get(column)?),
            Holds::Text | Holds::Data => Cell::Text(row.get(column)?),
            Holds::Bytes => Cell::Bytes(row.get(column)?),
        })
    }
}

/// To whom rows belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Session,
    Agent,
    Cause,
}

impl Of {
    /// The owners in the session with the key `?1`.
    fn owners(self) -> &'static str {
        match self {
            Of::Session => "SELECT key FROM sessions WHERE key = ?1",
            Of::Agent => "SELECT key FROM agents WHERE session = ?1",
            Of::Cause => "SELECT key FROM causes WHERE session = ?1",
        }
    }
}

/// In an order in which each row finds what it refers to.
const TABLES: &[Table] = &[
    Table {
        name: "sessions",
        key: Some("key"),
        owner: "key",
        of: Of::Session,
        class: None,
        columns: &[
            ("key", Holds::Row("sessions")),
            ("id", Text),
            ("machine", Text),
            ("directory", Text),
            ("title", Text),
            ("created_at", Number),
            ("updated_at", Number),
            ("next_agent", Number),
            ("wakes_left", Number),
            ("requests_left", Number),
            ("held_told", Number),
        ],
    },
    Table {
        name: "causes",
        key: Some("key"),
        owner: "session",
        of: Of::Session,
        class: None,
        columns: &[
            ("key", Holds::Row("causes")),
            ("session", Holds::Row("sessions")),
            ("title", Text),
            ("created_at", Number),
        ],
    },
    // Its unread mail is counted when that arrives.
    Table {
        name: "agents",
        key: Some("key"),
        owner: "session",
        of: Of::Session,
        class: None,
        columns: &[
            ("key", Holds::Row("agents")),
            ("session", Holds::Row("sessions")),
            ("id", Text),
            ("name", Text),
            ("state", Text),
            ("model", Text),
            ("machine", Text),
            ("directory", Text),
            ("task", Text),
            ("next_child", Number),
            ("notification_pending", Number),
            ("mail_held", Number),
            ("owes_report", Number),
            ("inherits", Holds::Row("agents")),
            ("inherits_up_to", Holds::Row("messages")),
            ("created_at", Number),
            ("cause", Holds::Row("causes")),
            ("turn_start", Holds::Row("messages")),
            ("in_turn", Number),
            ("last_error", Text),
        ],
    },
    Table {
        name: "messages",
        key: Some("id"),
        owner: "agent",
        of: Of::Agent,
        class: None,
        columns: &[
            ("id", Holds::Row("messages")),
            ("agent", Holds::Row("agents")),
            ("kind", Text),
            ("content", Text),
            ("data", Data),
            ("created_at", Number),
        ],
    },
    Table {
        name: "mail",
        key: Some("id"),
        owner: "recipient",
        of: Of::Agent,
        class: Some(("unread", Number)),
        columns: &[
            ("id", Holds::Row("mail")),
            ("recipient", Holds::Row("agents")),
            ("sender", Holds::Row("agents")),
            ("body", Text),
            ("sent_at", Number),
            ("unread", Number),
            ("sent_by", Holds::Row("messages")),
            ("told_by", Holds::Row("messages")),
            ("read_by", Holds::Row("messages")),
            ("read_by_person", Number),
            ("cause", Holds::Row("causes")),
        ],
    },
    Table {
        name: "queued_inputs",
        key: Some("id"),
        owner: "agent",
        of: Of::Agent,
        class: None,
        columns: &[
            ("id", Holds::Row("queued_inputs")),
            ("agent", Holds::Row("agents")),
            ("content", Text),
            ("created_at", Number),
        ],
    },
    Table {
        name: "undos",
        key: Some("key"),
        owner: "cause",
        of: Of::Cause,
        class: None,
        columns: &[
            ("key", Holds::Row("undos")),
            ("cause", Holds::Row("causes")),
            ("redone", Number),
            ("created_at", Number),
        ],
    },
    Table {
        name: "changes",
        key: Some("key"),
        owner: "cause",
        of: Of::Cause,
        class: Some(("state", Text)),
        columns: &[
            ("key", Holds::Row("changes")),
            ("cause", Holds::Row("causes")),
            ("agent", Holds::Row("agents")),
            ("message", Holds::Row("messages")),
            ("path", Bytes),
            ("looks", Text),
            ("hash", Text),
            ("new_folders", Number),
            ("state", Text),
            ("undo", Holds::Row("undos")),
            ("created_at", Number),
            ("before_is", Text),
            ("before_mode", Number),
            ("after_is", Text),
            ("after_mode", Number),
            ("before", Bytes),
            ("after", Bytes),
        ],
    },
    Table {
        name: "sights",
        key: None,
        owner: "agent",
        of: Of::Agent,
        class: None,
        columns: &[
            ("agent", Holds::Row("agents")),
            ("path", Bytes),
            ("looks", Text),
            ("message", Holds::Row("messages")),
        ],
    },
    Table {
        name: "roots",
        key: None,
        owner: "session",
        of: Of::Session,
        class: None,
        columns: &[
            ("session", Holds::Row("sessions")),
            ("machine", Text),
            ("host", Text),
            ("path", Bytes),
            ("boot", Text),
            ("device", Number),
            ("inode", Number),
        ],
    },
];

/// What comes through the channel.
enum Item {
    /// The smallest number that each table's rows have.
    First(Vec<Option<i64>>),
    Row(&'static Table, Vec<Cell>),
    /// Everything was read. Without it nothing is kept.
    End,
}

/// The value of a column.
enum Cell {
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

impl Table {
    fn names(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }

    /// The smallest number of a row that belongs to a session.
    fn first(&self, unit: &Unit<'_>, session: i64) -> Result<Option<i64>, StoreError> {
        let Table { name, owner, of, .. } = self;
        let Some(key) = self.key else { return Ok(None) };
        let sql = format!("SELECT min({key}) FROM {name} WHERE {owner} IN ({})", of.owners());
        Ok(unit.row(&sql, params![session], |row| row.get(0))?.flatten())
    }

    /// Sends all rows of a session.
    fn read(
        &'static self,
        unit: &Unit<'_>,
        session: i64,
        rows: &SyncSender<Item>,
    ) -> Result<(), StoreError> {
        let owners = format!("{} ORDER BY key", self.of.owners());
        let owners: Vec<i64> = unit.rows(&owners, params![session], |row| row.get(0))?;
        owners.into_iter().try_for_each(|owner| self.read_of(unit, owner, rows))
    }

    /// Sends all rows of one owner.
    fn read_of(
        &'static self,
        unit: &Unit<'_>,
        owner: i64,
        rows: &SyncSender<Item>,
    ) -> Result<(), StoreError> {
        let Table { name, owner: column, .. } = self;
        let select = format!("SELECT {} FROM {name} WHERE {column} = ?1", self.names());
        let Some(key) = self.key else {
            let found = unit.rows(&select, params![owner], |row| self.read_row(row))?;
            return found.into_iter().try_for_each(|row| send(rows, Item::Row(self, row)));
        };
        let part = format!("AND {key} > ?2 ORDER BY {key} LIMIT {PAGE}");
        // Of one owner and one class at a time: only so an index has them in the order of their keys, and no part
        // is looked for among all others.
        let Some((class, holds)) = self.class else {
            return self.read_parts(unit, &format!("{select} {part}"), &[&owner], rows);
        };
        let sql = format!("SELECT DISTINCT {class} FROM {name} WHERE {column} = ?1");
        let classes = unit.rows(&sql, params![owner], |row| holds.read(row, 0))?;
        let sql = format!("{select} AND {class} = ?3 {part}");
        classes.iter().try_for_each(|class| self.read_parts(unit, &sql, &[&owner, class], rows))
    }

    /// Sends the rows that `sql` finds behind the key `?2`, and so on from the last of them.
    fn read_parts(
        &'static self,
        unit: &Unit<'_>,
        sql: &str,
        of: &[&dyn Param],
        rows: &SyncSender<Item>,
    ) -> Result<(), StoreError> {
        let mut last = i64::MIN;
        loop {
            let mut params = of.to_vec();
            params.insert(1, &last);
            let found = unit.rows(sql, &params, |row| self.read_row(row))?;
            let is_end = found.len() < PAGE;
            for row in found {
                if let Some(Cell::Number(Some(key))) = row.first() {
                    last = *key;
                }
                send(rows, Item::Row(self, row))?;
            }
            if is_end {
                return Ok(());
            }
        }
    }

    fn read_row(&self, row: &Row<'_>) -> Result<Vec<Cell>, StoreError> {
        let columns = self.columns.iter().enumerate();
        columns.map(|(column, (_, holds))| holds.read(row, column)).collect()
    }

    fn insert(&self) -> String {
        let places: Vec<String> =
            (1..=self.columns.len()).map(|place| format!("?{place}")).collect();
        format!("INSERT INTO {} ({}) VALUES ({})", self.name, self.names(), places.join(", "))
    }
}

fn send(rows: &SyncSender<Item>, item: Item) -> Result<(), StoreError> {
    rows.send(item).map_err(|_| StoreError::Closed)
}

/// By how much the numbers of each table are moved.
type Shifts = BTreeMap<&'static str, i64>;

/// Takes everything up to the end; without an end nothing is kept.
fn write(unit: &Unit<'_>, session: SessionId, rows: &Receiver<Item>) -> Result<(), StoreError> {
    if sessions::key_of(unit, &session).is_ok() {
        return Err(StoreError::SessionExists(session));
    }
    unit.keep_numbers()?;
    let mut shifts = Shifts::new();
    let mut last_word = Instant::now();
    loop {
        let item = match rows.recv_timeout(BREATH) {
            Ok(item) => Some(item),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Err(StoreError::Closed),
        };
        if last_word.elapsed() >= BREATH {
            unit.row("SELECT 1", &[], |_| Ok(()))?;
            last_word = Instant::now();
        }
        let Some(item) = item else { continue };
        match item {
            Item::First(first) => shifts = choose_shifts(unit, &first)?,
            Item::Row(table, mut row) => {
                for (cell, (_, holds)) in row.iter_mut().zip(table.columns) {
                    move_cell(cell, *holds, &shifts)?;
                }
                let params: Vec<&dyn Param> = row.iter().map(|cell| cell as &dyn Param).collect();
                unit.run(&table.insert(), &params)?;
            }
            Item::End => break,
        }
    }
    let numbered = TABLES.iter().filter_map(|table| Some((table.name, table.key?)));
    let noted = numbered.filter_map(|(table, key)| unit.dialect().note_numbers(table, key));
    noted.into_iter().try_for_each(|sql| unit.run(&sql, &[]))
}

/// Leaves numbers as they are where they were never used; else they are moved behind those that were.
fn choose_shifts(unit: &Unit<'_>, first: &[Option<i64>]) -> Result<Shifts, StoreError> {
    let mut shifts = Shifts::new();
    for (table, first) in TABLES.iter().zip(first) {
        let (Some(key), Some(first)) = (table.key, *first) else { continue };
        let sql = unit.dialect().last_number(table.name, key);
        let last: i64 = unit.row(&sql, &[], |row| row.get(0))?.unwrap_or(0);
        shifts.insert(table.name, if first > last { 0 } else { last - first + 1 });
    }
    Ok(shifts)
}

fn move_cell(cell: &mut Cell, holds: Holds, shifts: &Shifts) -> Result<(), StoreError> {
    match (cell, holds) {
        (Cell::Number(Some(number)), Holds::Row(table)) => {
            *number += shifts.get(table).copied().unwrap_or(0);
        }
        (Cell::Text(Some(data)), Holds::Data) => move_data(data, shifts)?,
        _ => {}
    }
    Ok(())
}

/// Moves the messages and the mail that a log message names: `to` and `up_to` are messages, `mail` is mail.
fn move_data(data: &mut String, shifts: &Shifts) -> Result<(), StoreError> {
    let shift_of = |table| shifts.get(table).copied().unwrap_or(0);
    let (messages, mail) = (shift_of("messages"), shift_of("mail"));
    if messages == 0 && mail == 0 {
        return Ok(());
    }
    let mut value: serde_json::Value = serde_json::from_str(data).map_err(StoreError::internal)?;
    for (field, shift) in [("to", messages), ("up_to", messages)] {
        if let Some(number) = value.get_mut(field)
            && let Some(old) = number.as_i64()
        {
            *number = (old + shift).into();
        }
    }
    for number in value.get_mut("mail").and_then(|mail| mail.as_array_mut()).into_iter().flatten() {
        if let Some(old) = number.as_i64() {
            *number = (old + mail).into();
        }
    }
    *data = value.to_string();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ikigai_testkit::{Kind, TestStore};

    use super::*;

    /// What stays behind on purpose: what means something only while processes run, and what is counted anew.
    const LEFT: &[&str] =
        &["leases.", "waits.", "units.", "ikigai.", "sqlite_", "agents.unread", "agents.untold"];

    /// A column that nobody lists would be lost by every copy.
    #[test]
    fn every_column_of_both_databases_is_copied_or_stays_behind_on_purpose() {
        let file =
            "SELECT t.name || '.' || c.name FROM sqlite_schema t, pragma_table_info(t.name) c
            WHERE t.type = 'table'";
        let server = "SELECT table_name || '.' || column_name FROM information_schema.columns
            WHERE table_schema = 'public'";
        let copied = TABLES.iter().flat_map(|table| {
            table.columns.iter().map(|(column, _)| format!("{}.{column}", table.name))
        });
        let copied: BTreeSet<String> = copied.collect();
        for (kind, sql) in [(Kind::Sqlite, file), (Kind::Postgres, server)] {
            let found = TestStore::of(kind).raw().rows(sql, |row| row.text(0).unwrap());
            let is_left = |column: &String| LEFT.iter().any(|left| column.starts_with(left));
            let found: BTreeSet<String> =
                found.into_iter().filter(|column| !is_left(column)).collect();
            assert_eq!(found, copied, "{kind:?}");
        }
    }

    /// The rows are paged by it, and what comes first in a row is taken for it.
    #[test]
    fn the_key_of_a_table_is_its_first_column() {
        for table in TABLES {
            let first = table.columns.first().map(|(name, _)| *name);
            assert!(table.key.is_none() || table.key == first, "{}", table.name);
        }
    }
}
