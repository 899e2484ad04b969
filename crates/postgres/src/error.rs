//! Errors between client and server.

use std::io;

/// Why a connection or a statement failed. No variant contains a password.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is malformed.
    #[error("{0}")]
    Address(String),
    /// The server cannot be reached, or the connection broke.
    #[error("{0}")]
    Lost(String),
    /// TLS or the server's certificate was rejected.
    #[error("{0}")]
    Tls(String),
    /// The server wants a login method that is not accepted, or does not prove what it must.
    #[error("{reason}")]
    Login {
        /// What the server wants, or failed to prove.
        reason: &'static str,
        /// What to do about it.
        advice: &'static str,
    },
    /// The server's error, with its code (SQLSTATE).
    #[error("{message}")]
    Server {
        /// Five letters or digits.
        code: String,
        /// The server's message, cut to fit on a line.
        message: String,
    },
    /// Not a valid PostgreSQL message.
    #[error("unexpected answer from the server: {0}")]
    Protocol(String),
}

impl Error {
    /// The SQLSTATE, if the error is the server's.
    pub fn code(&self) -> Option<&str> {
        match self {
            Error::Server { code, .. } => Some(code),
            _ => None,
        }
    }

    /// Whether the connection can no longer be used.
    pub fn is_final(&self) -> bool {
        match self {
            Error::Server { code, .. } => {
                // Shut down by an administrator, crashed, starting up, idle for too long, or timed out in a
                // transaction.
                matches!(code.as_str(), "57P01" | "57P02" | "57P03" | "57P05" | "25P03")
                    || code.starts_with("08")
            }
            _ => true,
        }
    }

    /// Applies `change` to every text that may quote the server.
    pub(crate) fn map_text(self, change: impl FnOnce(&str) -> String) -> Error {
        match self {
            Error::Address(text) => Error::Address(change(&text)),
            Error::Lost(text) => Error::Lost(change(&text)),
            Error::Tls(text) => Error::Tls(change(&text)),
            Error::Login { reason, advice } => Error::Login { reason, advice },
            Error::Server { code, message } => Error::Server { code, message: change(&message) },
            Error::Protocol(text) => Error::Protocol(change(&text)),
        }
    }

    pub(crate) fn protocol(what: impl std::fmt::Display) -> Error {
        Error::Protocol(what.to_string())
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => Error::protocol(error),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                Error::Lost("the server does not answer".to_owned())
            }
            io::ErrorKind::UnexpectedEof => {
                Error::Lost("the server closed the connection".to_owned())
            }
            _ => {
                let reason = error.to_string();
                Error::Lost(reason.split(" (os error").next().unwrap_or(&reason).to_owned())
            }
        }
    }
}
