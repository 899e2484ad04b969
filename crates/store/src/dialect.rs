//! Where the two databases say the same thing differently. Everything else is written once.

/// Which database a statement is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// The id of the top-level agent above the agent whose id `column` has.
    pub(crate) fn top_of(self, column: &str) -> String {
        match self {
            Dialect::Sqlite => format!("substr({column}, 1, instr({column}, '/'))"),
            Dialect::Postgres => format!("substr({column}, 1, strpos({column}, '/'))"),
        }
    }

    /// The last number that a row of a table ever had.
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

    /// Notes that rows were given numbers by hand, where the database does not notice by itself.
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

    /// What tells the paths of a table apart in its index, which holds no long ones on a server.
    pub(crate) fn path_in_index(self) -> &'static str {
        match self {
            Dialect::Sqlite => "path",
            Dialect::Postgres => "sha256(path)",
        }
    }

    /// The sum of a whole number in the JSON texts of `column`.
    pub(crate) fn sum_of(self, column: &str, field: &str) -> String {
        match self {
            Dialect::Sqlite => format!("sum({column} ->> '{field}')"),
            // By its letters: the server's own JSON refuses a whole text for one escaped NUL in it.
            Dialect::Postgres => {
                format!("sum(substring({column} from '\"{field}\":(\\d{{1,15}})')::bigint)::bigint")
            }
        }
    }
}
