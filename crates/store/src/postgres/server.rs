//! The server: connecting to it, and what its errors mean for the user.

use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use ikigai_postgres::{Address, Client, Error};

use crate::error::StoreError;

/// The oldest version with all required features.
const OLDEST: i64 = 120_000;
/// How long a statement may wait for locks, how long it may run, and how long the server keeps the
/// locks of a process that stopped in the middle of a transaction.
const LIMITS: &str =
    "set_config('lock_timeout', '30s', ?1 = 1), set_config('statement_timeout', '45s', ?1 = 1),
    set_config('idle_in_transaction_session_timeout', '20s', ?1 = 1)";
/// For single statements. A longer transaction sets its own limit.
const ISOLATION: &str = "set_config('default_transaction_isolation', 'read committed', ?1 = 1)";
/// Every commit is flushed before it is answered (M1). Stronger settings are kept.
const DURABLE: &str = "CASE WHEN current_setting('synchronous_commit') IN ('on', 'remote_apply')
    THEN current_setting('synchronous_commit') ELSE set_config('synchronous_commit', 'on', ?1 = 1) END";
/// Longer than the server's own limits, so that a client that gets no
/// answer knows the server is gone.
pub(crate) const SILENCE: Duration = Duration::from_secs(60);

/// A server.
#[derive(Debug)]
pub(crate) struct Server {
    address: Address,
    /// The backends of our writer and our notifier. Their notifications are ignored.
    own_backends: [AtomicI32; 2],
}

impl Server {
    pub(crate) fn new(address: Address) -> Server {
        Server { address, own_backends: Default::default() }
    }

    /// The address without its password.
    pub(crate) fn shown(&self) -> String {
        self.address.to_string()
    }

    /// A value from the server for display. Its errors never contain the password.
    pub(crate) fn hide_password(&self, text: &str) -> String {
        self.address.hide_password(text)
    }

    /// A statement that makes the settings of a transaction. Behind a pooler they only last for one
    /// transaction.
    pub(crate) fn settings() -> String {
        format!("SELECT {DURABLE}, {LIMITS}, {ISOLATION}")
    }

    /// A connection for reading or listening.
    pub(crate) fn connect(&self) -> Result<Client, StoreError> {
        let client = Client::connect(&self.address).map_err(|error| self.error(&error))?;
        client.set_timeout(SILENCE).map_err(|error| self.error(&error))?;
        Ok(client)
    }

    /// A kept connection, if it still works.
    pub(crate) fn still_good(kept: Option<Client>) -> Option<Client> {
        let mut client = kept?;
        client.seems_alive().then_some(client)
    }

    /// The connection for the writer. Its settings are made and checked.
    pub(crate) fn connect_writer(&self) -> Result<Client, StoreError> {
        let failed = |error: Error| self.error(&error);
        let mut client = self.connect()?;
        let is_local = ikigai_postgres::Value::Integer(Some(0));
        client.queue(&Server::settings(), &[is_local]).map_err(failed)?;
        let sql = "SELECT current_setting('synchronous_commit'),
            current_setting('server_version_num')::bigint, current_setting('server_encoding')";
        let reply = client.ask(sql, &[]).map_err(failed)?;
        let row =
            reply.rows.first().ok_or_else(|| StoreError::internal("the server says nothing"))?;
        self.require_durable(&row.text(0).map_err(failed)?.unwrap_or_default())?;
        self.own_backends[0].store(client.process(), Ordering::Relaxed);
        let version = row.integer(1).map_err(failed)?.unwrap_or(0);
        if version < OLDEST {
            let reason = format!("it is PostgreSQL {}", version / 10_000);
            return Err(self.refuses(&reason, "use version 12 or newer"));
        }
        let encoding = row.text(2).map_err(failed)?.unwrap_or_default();
        if encoding != "UTF8" {
            let advice = "make one with: createdb --encoding=UTF8 --template=template0 NAME";
            return Err(self.refuses(&format!("its encoding is {encoding}"), advice));
        }
        Ok(client)
    }

    /// Refuses a connection whose commits could be lost (M1).
    pub(crate) fn require_durable(&self, synchronous_commit: &str) -> Result<(), StoreError> {
        match synchronous_commit {
            "on" | "remote_apply" => Ok(()),
            other => Err(StoreError::internal(self.hide_password(&format!(
                "the server does not take its settings (synchronous_commit {other})"
            )))),
        }
    }

    /// Whether a notification is our own. If the sender is unknown (0), it is not.
    pub(crate) fn is_own(&self, process: i32) -> bool {
        let mut own_backends = self.own_backends.iter().map(|own| own.load(Ordering::Relaxed));
        process != 0 && own_backends.any(|own| own == process)
    }

    /// A connection for sending notifications.
    pub(crate) fn connect_notifier(&self) -> Result<Client, StoreError> {
        let client = self.connect()?;
        self.own_backends[1].store(client.process(), Ordering::Relaxed);
        Ok(client)
    }

    pub(crate) fn refuses(&self, reason: &str, advice: &str) -> StoreError {
        let (reason, advice) = (self.hide_password(reason), advice.to_owned());
        StoreError::ServerRefuses { server: self.shown(), reason, advice }
    }

    /// What the server's error means for the user.
    pub(crate) fn error(&self, error: &Error) -> StoreError {
        let (server, reason) = (self.shown(), error.to_string());
        let busy = |advice| StoreError::ServerBusy {
            server: server.clone(),
            reason: reason.clone(),
            advice,
        };
        match error {
            Error::Lost(_) => StoreError::ServerAway { server, reason },
            Error::Address(_) => StoreError::ServerAddress(reason),
            Error::Tls(_) => self.refuses(
                &reason,
                "a server on another machine must have a TLS that can be trusted",
            ),
            Error::Login { advice, .. } => self.refuses(&reason, advice),
            Error::Protocol(_) => {
                self.refuses(&reason, "check that a PostgreSQL server listens there")
            }
            Error::Server { code, .. } => match code.as_str() {
                "28P01" | "28000" => self.refuses(
                    &reason,
                    "check the user and the password in the address, and the server's pg_hba.conf",
                ),
                "3D000" => self.refuses(&reason, "make it on the server with: createdb NAME"),
                "42501" => self.refuses(
                    &reason,
                    "let the user own the database: ALTER DATABASE NAME OWNER TO USER",
                ),
                "53300" => busy("raise max_connections on the server, or put a pooler before it"),
                "53100" => busy("free some space on the server"),
                "55P03" | "40P01" | "40001" | "57014" | "26000" | "42P05" => busy("try again"),
                // A standby, which may soon accept writes.
                "25006" => StoreError::ServerAway { server, reason },
                _ if error.is_final() => StoreError::ServerAway { server, reason },
                code if code.starts_with("53") => busy("try again"),
                _ => StoreError::internal(reason),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodings and settings are texts from the server too.
    #[test]
    fn texts_from_the_server_are_shown_without_the_password() {
        let address = Address::parse("postgres://me:geheim@h/w").unwrap();
        let server = Server::new(address);
        let errors = [
            server.refuses("its encoding is geheim", "advice"),
            server.require_durable("geheim").unwrap_err(),
        ];
        for error in errors {
            assert!(!format!("{error} {error:?}").contains("geheim"), "{error}");
        }
    }
}
