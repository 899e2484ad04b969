//! The address of a database.

use std::path::PathBuf;

use crate::error::StoreError;

/// The address of a database of either kind.
#[derive(Debug)]
pub(crate) enum Address {
    /// The absolute path of a file.
    Sqlite(PathBuf),
    /// A server.
    Postgres(ikigai_postgres::Address),
}

/// The file of an embedded database, and the files that SQLite creates beside it, whether they
/// exist or not. The database itself is the first. Anything that can write one of them can change
/// the contents of the database. Empty for a server.
///
/// # Errors
/// If the address is invalid.
pub fn database_files(address: &str) -> Result<Vec<PathBuf>, StoreError> {
    let Address::Sqlite(path) = Address::parse(address)? else { return Ok(Vec::new()) };
    let beside = |end: &str| {
        let mut name = path.clone().into_os_string();
        name.push(end);
        PathBuf::from(name)
    };
    Ok(["", "-wal", "-shm", "-journal"].map(beside).to_vec())
}

impl Address {
    /// Parses `sqlite:///home/me/ikigai.db`, `sqlite:ikigai.db` or `postgres://…`.
    pub(crate) fn parse(address: &str) -> Result<Address, StoreError> {
        let scheme = address.split(':').next().unwrap_or_default();
        if matches!(scheme, "postgres" | "postgresql") {
            let parsed = ikigai_postgres::Address::parse(address);
            let wrong =
                |error: ikigai_postgres::Error| StoreError::ServerAddress(error.to_string());
            return parsed.map(Address::Postgres).map_err(wrong);
        }
        let path = address.strip_prefix("sqlite:");
        match path.map(|rest| rest.strip_prefix("//").unwrap_or(rest)) {
            Some(path) if !path.is_empty() => {
                std::path::absolute(path).map(Address::Sqlite).map_err(StoreError::internal)
            }
            _ => Err(StoreError::Address { address: format!("{scheme}:…") }),
        }
    }

    /// The address without a password.
    pub(crate) fn shown(&self) -> String {
        match self {
            Address::Sqlite(path) => format!("sqlite://{}", path.display()),
            Address::Postgres(address) => address.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn database_files_are_those_that_sqlite_uses() {
        let files = |address| database_files(address).unwrap();
        let expected = ["/d/a.db?x", "/d/a.db?x-wal", "/d/a.db?x-shm", "/d/a.db?x-journal"];
        assert_eq!(files("sqlite:///d/a.db?x"), expected.map(PathBuf::from));
        assert_eq!(files("sqlite:/d/a.db")[0], PathBuf::from("/d/a.db"));
        assert_eq!(files("postgres://me@h/w"), Vec::<PathBuf>::new());
        assert!(database_files("mysql://h/w").is_err());
    }
}
