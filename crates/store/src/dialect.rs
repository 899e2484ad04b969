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
