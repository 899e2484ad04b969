//! Which database an address means.

use std::path::PathBuf;

use crate::error::StoreError;

/// A database of either kind.
#[derive(Debug)]
pub(crate) enum Address {
    /// The absolute path of a file.
    Sqlite(PathBuf),
    /// A server.
    Postgres(ikigai_postgres::Address),
}

impl Address {
    /// Reads `sqlite:///home/me/ikigai.db`, `sqlite:ikigai.db` or `postgres://…`.
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
