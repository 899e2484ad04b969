//! Copies a session with its agents, logs and mail to another database.
//!
//! The rows go through a small channel, so that a session of any size needs little
//! memory, and are written in one transaction: all or nothing. Ids stay the same
//! if the other database has never used them. Otherwise all ids of a kind are
//! shifted by the same number, in the logs too, so that their order stays the
//! same. Rows that only matter while processes run (leases, waits) are not copied.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use ikigai_conversation::SessionId;

use crate::error::StoreError;
use crate::leases;
use crate::process::Process;
use crate::sessions;
use crate::sql::{Param, Row, params};
use crate::store::Store;
use crate::tables::{Cell, ColumnType, TABLES, Table};
use crate::unit::Unit;
use crate::writer::Scope;

/// How many rows may be in the channel. A row can contain a file of 10 MB twice.
const CHANNEL_SIZE: usize = 4;
/// How many rows are read at once.
const PAGE: usize = 8;
/// A server ends a transaction that is idle for too long. This often it gets a statement.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

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
        let (rows, arriving) = sync_channel(CHANNEL_SIZE);
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
        // The error of the writing side says more than the closed channel.
        match (read, written) {
            (Ok(()), written) => written,
            (Err(StoreError::Closed), Err(error)) => Err(error),
            (Err(error), _) => Err(error),
        }
    }
}

/// An item in the channel.
enum Item {
    /// The smallest number of each table's rows.
    First(Vec<Option<i64>>),
    Row(&'static Table, Vec<Cell>),
    /// Everything was read. Without this item nothing is kept.
    End,
}

impl Table {
    fn names(&self) -> String {
        let names: Vec<&str> = self.columns().map(|(name, _)| name).collect();
        names.join(", ")
    }

    /// The smallest number of a row of a session.
    fn first(&self, unit: &Unit<'_>, session: i64) -> Result<Option<i64>, StoreError> {
        let Some(key) = self.key else { return Ok(None) };
        let sql = format!("SELECT min({key}) FROM {} WHERE {}", self.name, self.owner.condition());
        Ok(unit.row(&sql, params![session], |row| row.get(0))?.flatten())
    }

    /// Sends all rows of a session.
    fn read(
        &'static self,
        unit: &Unit<'_>,
        session: i64,
        rows: &SyncSender<Item>,
    ) -> Result<(), StoreError> {
        let owners = format!("{} ORDER BY key", self.owner.keys());
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
        let (name, column) = (self.name, self.owner.column());
        let select = format!("SELECT {} FROM {name} WHERE {column} = ?1", self.names());
        let Some(key) = self.key else {
            let found = unit.rows(&select, params![owner], |row| self.read_row(row))?;
            return found.into_iter().try_for_each(|row| send(rows, Item::Row(self, row)));
        };
        let part = format!("AND {key} > ?2 ORDER BY {key} LIMIT {PAGE}");
        // Only for one owner and one class the index has the rows in the order of their keys, so
        // that each page is found without scanning the others.
        let Some((class, class_type)) = self.class else {
            return self.read_parts(unit, &format!("{select} {part}"), &[&owner], rows);
        };
        let sql = format!("SELECT DISTINCT {class} FROM {name} WHERE {column} = ?1");
        let classes = unit.rows(&sql, params![owner], |row| class_type.read(row, 0))?;
        let sql = format!("{select} AND {class} = ?3 {part}");
        classes.iter().try_for_each(|class| self.read_parts(unit, &sql, &[&owner, class], rows))
    }

    /// Sends the rows that `sql` finds after the key `?2`, page by page.
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
        let columns = self.columns().enumerate();
        columns.map(|(column, (_, column_type))| column_type.read(row, column)).collect()
    }

    fn insert(&self) -> String {
        let params: Vec<String> =
            (1..=self.columns().count()).map(|number| format!("?{number}")).collect();
        format!("INSERT INTO {} ({}) VALUES ({})", self.name, self.names(), params.join(", "))
    }
}

fn send(rows: &SyncSender<Item>, item: Item) -> Result<(), StoreError> {
    rows.send(item).map_err(|_| StoreError::Closed)
}

/// How far the numbers of each table are shifted.
type Shifts = BTreeMap<&'static str, i64>;

/// Writes all rows. If the end does not arrive, nothing is kept.
fn write(unit: &Unit<'_>, session: SessionId, rows: &Receiver<Item>) -> Result<(), StoreError> {
    if sessions::key_of(unit, &session).is_ok() {
        return Err(StoreError::SessionExists(session));
    }
    unit.lock_numbering()?;
    let mut shifts = Shifts::new();
    let mut last_statement = Instant::now();
    loop {
        let item = match rows.recv_timeout(KEEP_ALIVE) {
            Ok(item) => Some(item),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Err(StoreError::Closed),
        };
        if last_statement.elapsed() >= KEEP_ALIVE {
            unit.row("SELECT 1", &[], |_| Ok(()))?;
            last_statement = Instant::now();
        }
        let Some(item) = item else { continue };
        match item {
            Item::First(first) => shifts = choose_shifts(unit, &first)?,
            Item::Row(table, mut row) => {
                for (cell, (_, column_type)) in row.iter_mut().zip(table.columns()) {
                    move_cell(cell, column_type, &shifts)?;
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

/// Numbers that the database has never used stay the same. Otherwise they are shifted beyond the
/// used ones.
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

fn move_cell(cell: &mut Cell, column_type: ColumnType, shifts: &Shifts) -> Result<(), StoreError> {
    match (cell, column_type) {
        (Cell::Number(Some(number)), ColumnType::Reference(table)) => {
            *number += shifts.get(table).copied().unwrap_or(0);
        }
        (Cell::Text(Some(data)), ColumnType::Data) => move_data(data, shifts)?,
        _ => {}
    }
    Ok(())
}

/// Shifts the messages and the mail that a log message names: `to`, `up_to` and `kept` are
/// messages, `mail` is mail.
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
    for (field, shift) in [("kept", messages), ("mail", mail)] {
        let list = value.get_mut(field).and_then(|list| list.as_array_mut());
        for number in list.into_iter().flatten() {
            if let Some(old) = number.as_i64() {
                *number = (old + shift).into();
            }
        }
    }
    *data = value.to_string();
    Ok(())
}
