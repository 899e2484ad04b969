//! Statements that differ between the two databases. All others are written once.

/// The database that a statement is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// The id of the top-level agent above the agent whose id is in `column`.
    pub(crate) fn top_of(self, column: &str) -> String {
        match self {
            Dialect::Sqlite => format!("substr({column}, 1, instr({column}, '/'))"),
            Dialect::Postgres => format!("substr({column}, 1, strpos({column}, '/'))"),
        }
    }

    /// The highest number that a row of a table has ever had.
    pub(crate) fn last_number(self, table: &str, key: &str) -> String {
        match self {
            Dialect::Sqlite => {
                format!("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = '{table}'")
            }
            Dialect::Postgres => format!(
                "SELECT coalesce(pg_sequence_last_value(
                    pg_get_serial_sequence('{table}', '{key}')::regclass), 0)"
            ),
        }
    }

    /// Records explicitly numbered rows, if the database does not do that itself.
    pub(crate) fn note_numbers(self, table: &str, key: &str) -> Option<String> {
        match self {
            Dialect::Sqlite => None,
            Dialect::Postgres => Some(format!(
                "SELECT setval(pg_get_serial_sequence('{table}', '{key}'), greatest(max({key}),
                        pg_sequence_last_value(pg_get_serial_sequence('{table}', '{key}')::regclass)))
                    FROM {table} HAVING max({key}) > 0"
            )),
        }
    }

    /// The expression that identifies a path in an index. An index on a server
    /// cannot hold long paths.
    pub(crate) fn path_in_index(self) -> &'static str {
        match self {
            Dialect::Sqlite => "path",
            Dialect::Postgres => "sha256(path)",
        }
    }
}
