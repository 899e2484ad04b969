//! Migrates the tables of a server.

use std::time::Duration;

use ikigai_postgres::{Client, Error, Value};

use crate::error::StoreError;

use super::server::{SILENCE, Server};

/// The migrations in their order. The version of a database is how many have been applied. Versions
/// are the same as for the embedded database.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/postgres/0001.sql"),
    include_str!("../../migrations/postgres/0002.sql"),
    include_str!("../../migrations/postgres/0003.sql"),
    include_str!("../../migrations/postgres/0004.sql"),
    include_str!("../../migrations/postgres/0005.sql"),
    include_str!("../../migrations/postgres/0006.sql"),
    include_str!("../../migrations/postgres/0007.sql"),
    include_str!("../../migrations/postgres/0008.sql"),
    include_str!("../../migrations/postgres/0009.sql"),
    include_str!("../../migrations/postgres/0010.sql"),
];
/// A little longer than the server's limit for one of their statements.
const PATIENCE: Duration = Duration::from_secs(570);
const KNOWN: i64 = MIGRATIONS.len() as i64;

/// Creates or migrates the tables, if necessary.
pub(crate) fn migrate(client: &mut Client, server: &Server) -> Result<(), StoreError> {
    match version(client) {
        Ok(found) if found == KNOWN => return Ok(()),
        Ok(found) if found > KNOWN => return Err(newer(server, found)),
        Ok(_) => {}
        Err(error) if is_missing(&error) => {}
        Err(error) => return Err(server.error(&error)),
    }
    let failed = |error: Error| server.error(&error);
    client.set_timeout(PATIENCE).map_err(failed)?;
    bring_up_to_date(client, server).inspect_err(|_| {
        let _ = client.script("ROLLBACK");
    })?;
    client.set_timeout(SILENCE).map_err(failed)
}

/// One transaction. If several processes start at once, one migrates and the others wait.
fn bring_up_to_date(client: &mut Client, server: &Server) -> Result<(), StoreError> {
    let failed = |error: Error| server.error(&error);
    // The same number that marks files of the embedded database: "ikig".
    client.script("BEGIN; SELECT pg_advisory_xact_lock(1768646503)").map_err(failed)?;
    // Longer than for units: creating an index of a large table takes time.
    client.script("SET LOCAL statement_timeout = '9min'").map_err(failed)?;
    let sql = "SELECT to_regclass('ikigai') IS NULL, to_regclass('sessions') IS NOT NULL
        OR to_regclass('agents') IS NOT NULL OR to_regclass('messages') IS NOT NULL";
    let found = client.ask(sql, &[]).map_err(failed)?;
    let flag = |column| {
        let row = found.rows.first();
        row.is_some_and(|row| matches!(row.integer(column), Ok(Some(1))))
    };
    let (is_new, has_others) = (flag(0), flag(1));
    if is_new && has_others {
        let reason = "it has tables of another program";
        return Err(server.refuses(reason, "give ikigai its own database: createdb NAME"));
    }
    if is_new {
        let sql = "CREATE TABLE ikigai (version BIGINT NOT NULL); INSERT INTO ikigai VALUES (0)";
        client.script(sql).map_err(failed)?;
    }
    let found = version(client).map_err(failed)?;
    if found > KNOWN {
        return Err(newer(server, found));
    }
    for migration in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or(usize::MAX)) {
        client.script(migration).map_err(failed)?;
    }
    let known = [Value::Integer(Some(KNOWN))];
    client.ask("UPDATE ikigai SET version = ?1", &known).map_err(failed)?;
    client.script("COMMIT").map_err(failed)
}

fn version(client: &mut Client) -> Result<i64, Error> {
    let found = client.ask("SELECT max(version) FROM ikigai", &[])?;
    Ok(found.rows.first().map_or(Ok(None), |row| row.integer(0))?.unwrap_or(0))
}

fn is_missing(error: &Error) -> bool {
    error.code() == Some("42P01")
}

fn newer(server: &Server, found: i64) -> StoreError {
    StoreError::Newer { database: server.shown(), found, known: KNOWN }
}
