//! A connection beside the store's own, for inspecting and changing either kind of database.

use std::cell::RefCell;
use std::time::Duration;

use ikigai_postgres::{Address, Client};
use rusqlite::Connection;

/// A separate connection.
pub enum Raw {
    /// To a file.
    Sqlite(Connection),
    /// To a server.
    Postgres(RefCell<Client>),
}

/// A row of a query.
pub enum RawRow<'a> {
    /// In a file.
    Sqlite(&'a rusqlite::Row<'a>),
    /// On a server.
    Postgres(&'a ikigai_postgres::Row),
}

impl Raw {
    /// Opens a database by its address.
    ///
    /// # Panics
    /// If that fails.
    #[track_caller]
    pub fn open(address: &str) -> Raw {
        if address.starts_with("postgres") {
            let address = Address::parse(address).unwrap();
            return Raw::Postgres(RefCell::new(Client::connect(&address).unwrap()));
        }
        let path = address.strip_prefix("sqlite://").unwrap_or(address);
        let connection = Connection::open(path).unwrap();
        connection.busy_timeout(Duration::from_secs(60)).unwrap();
        Raw::Sqlite(connection)
    }

    /// Whether it is a file.
    pub fn is_sqlite(&self) -> bool {
        matches!(self, Raw::Sqlite(_))
    }

    /// Runs statements.
    ///
    /// # Panics
    /// If one is refused.
    #[track_caller]
    pub fn script(&self, sql: &str) {
        match self {
            Raw::Sqlite(connection) => connection.execute_batch(sql).unwrap(),
            Raw::Postgres(client) => client.borrow_mut().script(sql).unwrap(),
        }
    }

    /// Runs the statements for this kind of database.
    #[track_caller]
    pub fn script_of(&self, sqlite: &str, postgres: &str) {
        self.script(if self.is_sqlite() { sqlite } else { postgres });
    }

    /// Makes the database refuse a change of a table, such as `INSERT ON
    /// messages`, if `condition` holds.
    #[track_caller]
    pub fn refuse(&self, change: &str, condition: &str) {
        self.script_of(
            &format!(
                "CREATE TRIGGER refuse BEFORE {change} WHEN {condition}
                BEGIN SELECT raise(ABORT, 'refused'); END"
            ),
            &format!(
                "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
                    AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
                CREATE TRIGGER refuse BEFORE {change} FOR EACH ROW WHEN ({condition})
                    EXECUTE FUNCTION refuse()"
            ),
        );
    }

    /// Removes that trigger.
    #[track_caller]
    pub fn allow(&self, table: &str) {
        self.script_of("DROP TRIGGER refuse", &format!("DROP TRIGGER refuse ON {table}"));
    }

    /// The results of `read` for all rows of a query.
    pub fn try_rows<T>(
        &self,
        sql: &str,
        mut read: impl FnMut(&RawRow<'_>) -> T,
    ) -> Result<Vec<T>, String> {
        match self {
            Raw::Sqlite(connection) => {
                let mut statement = connection.prepare(sql).map_err(|error| error.to_string())?;
                let rows = statement.query_map([], |row| Ok(read(&RawRow::Sqlite(row))));
                rows.and_then(Iterator::collect).map_err(|error| error.to_string())
            }
            Raw::Postgres(client) => {
                let reply = client.borrow_mut().ask(sql, &[]).map_err(|error| error.to_string())?;
                Ok(reply.rows.iter().map(|row| read(&RawRow::Postgres(row))).collect())
            }
        }
    }

    /// The same for statements that are never refused.
    ///
    /// # Panics
    /// If one is.
    #[track_caller]
    pub fn rows<T>(&self, sql: &str, read: impl FnMut(&RawRow<'_>) -> T) -> Vec<T> {
        self.try_rows(sql, read).unwrap()
    }

    /// The number that a query returns.
    #[track_caller]
    pub fn number(&self, sql: &str) -> i64 {
        self.rows(sql, |row| row.integer(0))[0].unwrap()
    }

    /// The text that a query returns.
    #[track_caller]
    pub fn text(&self, sql: &str) -> String {
        self.rows(sql, |row| row.text(0)).remove(0).unwrap()
    }

    /// Every row of a table, as a line.
    #[track_caller]
    pub fn dump(&self, table: &str) -> Vec<String> {
        match self {
            Raw::Sqlite(_) => {
                let sql = format!("SELECT name FROM pragma_table_info('{table}') ORDER BY name");
                let names = self.rows(&sql, |row| format!("'{0}', hex({0})", row.text(0).unwrap()));
                let sql = format!("SELECT json_object({}) FROM {table}", names.join(", "));
                self.rows(&sql, |row| row.text(0).unwrap())
            }
            Raw::Postgres(_) => {
                let sql = format!("SELECT to_jsonb(t)::text FROM {table} t");
                self.rows(&sql, |row| row.text(0).unwrap())
            }
        }
    }
}

impl RawRow<'_> {
    /// A number.
    #[track_caller]
    pub fn integer(&self, column: usize) -> Option<i64> {
        match self {
            RawRow::Sqlite(row) => row.get(column).unwrap(),
            RawRow::Postgres(row) => row.integer(column).unwrap(),
        }
    }

    /// A text.
    #[track_caller]
    pub fn text(&self, column: usize) -> Option<String> {
        match self {
            RawRow::Sqlite(row) => row.get(column).unwrap(),
            RawRow::Postgres(row) => row.text(column).unwrap().map(Into::into),
        }
    }
}
