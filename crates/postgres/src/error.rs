//! What can go wrong between a client and a server.

use std::io;

/// Why a connection or a statement failed. None of them has a password in it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be understood.
    #[error("{0}")]
    Address(String),
    /// No server answers there, or it went away.
    #[error("{0}")]
    Lost(String),
    /// The server's certificate or its TLS is not what it should be.
    #[error("{0}")]
    Tls(String),
    /// The server asks for a kind of login that is not given to it, or proves nothing where it has to.
    #[error("{reason}")]
    Login {
        /// What the server wants, or leaves out.
        reason: &'static str,
        /// What to do about it.
        advice: &'static str,
    },
    /// The server refused, with its code (SQLSTATE) and its words.
    #[error("{message}")]
    Server {
        /// Five letters or digits.
        code: String,
        /// The server's words, cut to a length that fits a line.
        message: String,
    },
    /// What came is no answer of PostgreSQL.
    #[error("unexpected answer of the server: {0}")]
    Protocol(String),
}

impl Error {
    /// The server's code, if it was the server that refused.
    pub fn code(&self) -> Option<&str> {
        match self {
            Error::Server { code, .. } => Some(code),
            _ => None,
        }
    }

    /// Whether the connection is of no use any more.
    pub fn is_final(&self) -> bool {
        match self {
            Error::Server { code, .. } => {
                // Ended by an administrator or a crash, the disk of another, or timed out in a transaction.
                matches!(code.as_str(), "57P01" | "57P02" | "57P03" | "57P05" | "25P03")
                    || code.starts_with("08")
            }
            _ => true,
        }
    }

    /// The same error with another text, if it has one that may come from a server.
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
