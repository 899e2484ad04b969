//! Faults of the transport, in short messages for the user.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::iter;
use std::time::Duration;

use rustls::CertificateError;

use crate::fault::{Category, Fault, scrub};

/// The limit for a library's message where we have none.
const MESSAGE_LIMIT: usize = 200;

/// A request without a response.
pub(super) fn unreachable(shown: &str, error: &reqwest::Error) -> Fault {
    if !error.is_connect() && !error.is_timeout() {
        return broken(shown, error);
    }
    let message = format!("cannot reach {shown} ({})", cause(error));
    let category = match tls_error(error) {
        Some(rustls::Error::InvalidCertificate(_)) => Category::NotTrusted,
        Some(_) | None => Category::Network,
    };
    Fault::new(category, message)
}

/// A connection that ended too early.
pub(super) fn broken(shown: &str, error: &reqwest::Error) -> Fault {
    let message = format!("the connection to {shown} was lost ({})", cause(error));
    Fault::new(Category::Network, message)
}

/// A response that stalled.
pub(super) fn stalled(shown: &str, limit: Duration) -> Fault {
    let message = format!("no data from {shown} for {} s", limit.as_secs_f32());
    Fault::new(Category::Network, message)
}

/// A web page.
pub(super) fn web_page(shown: &str) -> Fault {
    let message = "the server answered with a web page, not with a model's stream";
    Fault::new(Category::Unreadable, format!("{message}: {shown}"))
}

/// A response that is too long.
pub(super) fn too_long() -> Fault {
    Fault::new(Category::Unreadable, "the response is too long")
}

/// Whether the server's certificate was signed by an unknown issuer.
pub(super) fn is_unknown_issuer(error: &reqwest::Error) -> bool {
    matches!(
        tls_error(error),
        Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer))
    )
}

/// The cause without address or key: what the operating system or the protocol reported.
fn cause(error: &reqwest::Error) -> String {
    if let Some(error) = tls_error(error) {
        return tls_cause(error);
    }
    let io_error = chain(error).find_map(|error| error.downcast_ref::<io::Error>());
    if let Some(words) = io_error.and_then(|error| io_cause(error.kind())) {
        return words.to_owned();
    }
    // The resolver's error has no type that could be checked.
    if chain(error).any(|error| error.to_string().starts_with("dns error")) {
        return "unknown host".to_owned();
    }
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    // The innermost error, because the outer ones contain the address.
    chain(error).last().map_or_else(String::new, |error| scrub(&error.to_string(), MESSAGE_LIMIT))
}

fn io_cause(kind: ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::ConnectionRefused => "connection refused",
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe => {
            "connection reset"
        }
        ErrorKind::UnexpectedEof => "connection closed",
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => "no route to host",
        ErrorKind::TimedOut => "no answer in time",
        _ => return None,
    })
}

fn tls_cause(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(error) => match error {
            CertificateError::UnknownIssuer => "its certificate has an unknown issuer",
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "its certificate has expired"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "its certificate is for another name"
            }
            _ => "its certificate is not valid",
        }
        .to_owned(),
        error => format!("TLS: {}", scrub(&error.to_string(), MESSAGE_LIMIT)),
    }
}

/// TLS errors are wrapped in I/O errors, where `source` does not reach them.
fn tls_error(error: &reqwest::Error) -> Option<&rustls::Error> {
    chain(error).find_map(inner_tls_error)
}

fn inner_tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    match error.downcast_ref::<io::Error>() {
        Some(error) => inner_tls_error(error.get_ref()?),
        None => error.downcast_ref(),
    }
}

/// The error and its causes.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    iter::successors(Some(error), |&error| error.source())
}
