//! URLs of servers and databases. They may contain a password, so they print themselves masked.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::error::ValueError;
use crate::mask::mask;
use crate::url::Parts;
use crate::value::Value;

/// A URL that may contain a password. `Display` and `Debug` mask its secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretUrl {
    url: String,
}

impl SecretUrl {
    /// Takes a URL as it is.
    pub fn new(url: impl Into<String>) -> SecretUrl {
        SecretUrl { url: url.into() }
    }

    /// The whole URL with its password: for connecting, never for display.
    pub fn expose(&self) -> &str {
        &self.url
    }

    /// Whether data sent there can be read on the way: the host is another machine, without TLS.
    pub(crate) fn is_in_clear(&self) -> bool {
        self.url.starts_with("http://") && !self.is_loopback()
    }

    /// Whether the host is this machine.
    pub fn is_loopback(&self) -> bool {
        Parts::split(&self.url).is_some_and(|parts| is_local(&parts))
    }

    /// Whether it contains anything that is masked.
    pub(crate) fn is_secret(&self) -> bool {
        mask(&self.url) != self.url
    }
}

impl fmt::Display for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&mask(&self.url))
    }
}

impl fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretUrl({self})")
    }
}

const ENCODE: &str = "it is ambiguous: write / ? # @ : in a user name or password as %2F %3F %23 \
    %40 %3A";

const TLS: &str = "connections to another machine need TLS: remove sslmode, or use require, \
    verify-ca or verify-full";

/// Parses the address of a provider's server, without a slash at the end.
pub(crate) fn parse_base_url(text: &str) -> Result<Value, ValueError> {
    let refuse = |why| Err(ValueError::Url { masked: mask(text), why });
    if !text.starts_with("http://") && !text.starts_with("https://") {
        return refuse("it must start with http:// or https://");
    }
    let Some(parts) = Parts::split(text) else { return refuse(ENCODE) };
    if parts.hosts.is_empty() || parts.hosts.contains(',') {
        return refuse("it must name one host");
    }
    if parts.query.is_some() || parts.fragment.is_some() {
        return refuse("it must have no query and no fragment");
    }
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return refuse("it must have no space");
    }
    Ok(Value::Url(SecretUrl::new(text.trim_end_matches('/'))))
}

/// Parses the address of the database.
pub(crate) fn parse_database_url(text: &str) -> Result<Value, ValueError> {
    let refuse = |why| Err(ValueError::Url { masked: mask(text), why });
    let is_postgres = text.starts_with("postgres://") || text.starts_with("postgresql://");
    if !is_postgres && !text.starts_with("sqlite:") {
        return refuse("it must start with sqlite: or postgres://");
    }
    let Some(parts) = Parts::split(text) else { return refuse(ENCODE) };
    if parts.fragment.is_some() {
        return refuse(ENCODE);
    }
    if !is_postgres
        && (parts.userinfo.is_some() || format!("{}{}", parts.hosts, parts.path).is_empty())
    {
        return refuse("it must name a file, as in sqlite:///home/me/ikigai.db");
    }
    if is_postgres && !is_local(&parts) && !demands_tls(&parts) {
        return refuse(TLS);
    }
    Ok(Value::Url(SecretUrl::new(text)))
}

/// Whether all hosts are this machine. Parameters can name hosts too.
fn is_local(parts: &Parts<'_>) -> bool {
    let named = parts.parameters().filter(|(name, _)| name == "host" || name == "hostaddr");
    let named =
        named.flat_map(|(_, hosts)| hosts.split(',').map(str::to_owned).collect::<Vec<_>>());
    parts.host_names().chain(named).all(|host| is_this_machine(&host))
}

/// An empty name stands for the Unix socket, and a name with a slash for the socket's folder.
fn is_this_machine(host: &str) -> bool {
    host.is_empty()
        || host.starts_with('/')
        || host == "localhost"
        || host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
        || host.parse::<Ipv6Addr>().is_ok_and(|address| address.is_loopback())
}

/// Whether every given `sslmode` requires TLS. Without one the client
/// decides, and ours requires TLS.
fn demands_tls(parts: &Parts<'_>) -> bool {
    let mut modes = parts.parameters().filter(|(name, _)| name == "sslmode" || name == "ssl-mode");
    modes.all(|(_, mode)| ["require", "verify-ca", "verify-full"].contains(&mode.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(
        parse: fn(&str) -> Result<Value, ValueError>,
        url: &str,
        expected: Result<&str, &str>,
    ) {
        let found = match parse(url) {
            Ok(Value::Url(address)) => Ok(address.url),
            Ok(other) => panic!("{other:?}"),
            Err(wrong) => Err(wrong.to_string()),
        };
        assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned));
    }

    #[test]
    fn a_base_url_is_http_without_query() {
        let check = |url: &str, expected: Result<&str, &str>| check(parse_base_url, url, expected);
        check("https://api.openai.com/v1", Ok("https://api.openai.com/v1"));
        check("http://localhost:11434/v1/", Ok("http://localhost:11434/v1"));
        check("https://me:pw@h//", Ok("https://me:pw@h"));
        check(
            "localhost:11434",
            Err("'***' is not allowed: it must start with http:// or https://"),
        );
        check(
            "ftp://me:pw@h",
            Err("'ftp://me:***@h' is not allowed: it must start with http:// or https://"),
        );
        check("https://", Err("'https://' is not allowed: it must name one host"));
        check("https:///v1", Err("'https:///v1' is not allowed: it must name one host"));
        check(
            "https://h/v1?key=pw",
            Err("'https://h/v1?key=***' is not allowed: it must have no query and no fragment"),
        );
        check(
            "https://h/v1#pw",
            Err("'https://h/v1#***' is not allowed: it must have no query and no fragment"),
        );
        check("https://h/v 1", Err("'https://h/v 1' is not allowed: it must have no space"));
        check("https://me:p/w@h", Err(&format!("'https://***' is not allowed: {ENCODE}")));
    }

    #[test]
    fn a_database_is_sqlite_or_postgres() {
        let check =
            |url: &str, expected: Result<&str, &str>| check(parse_database_url, url, expected);
        for url in [
            "sqlite:///a/b.db",
            "sqlite::memory:",
            "sqlite:b.db",
            "sqlite://:memory:",
            "postgres://h/db",
            "postgresql://me:pw@h:5432/db",
        ] {
            check(url, Ok(url));
        }
        check(
            "mysql://me:pw@h/db",
            Err("'mysql://me:***@h/db' is not allowed: it must start with sqlite: or postgres://"),
        );
        check("/a/b.db", Err("'***' is not allowed: it must start with sqlite: or postgres://"));
        for url in ["sqlite:", "sqlite://", "sqlite://?mode=rw"] {
            let why = "it must name a file, as in sqlite:///home/me/ikigai.db";
            check(url, Err(&format!("'{url}' is not allowed: {why}")));
        }
        check("postgres://me:p/w@h/db", Err(&format!("'postgres://***' is not allowed: {ENCODE}")));
        check(
            "postgres://h/db#pw",
            Err(&format!("'postgres://h/db#***' is not allowed: {ENCODE}")),
        );
    }

    #[test]
    fn tls_is_required_for_another_machine() {
        let why = TLS;
        for local in
            ["localhost", "127.0.0.1", "127.9.8.7:5432", "[::1]:5432", "", "%2Frun%2Fpostgresql"]
        {
            let url = format!("postgres://{local}/db?sslmode=disable");
            check(parse_database_url, &url, Ok(&url));
        }
        for mode in ["disable", "allow", "prefer", "Prefer", "", "dis%61ble"] {
            let url = format!("postgres://h/db?sslmode={mode}");
            check(parse_database_url, &url, Err(&format!("'{url}' is not allowed: {why}")));
        }
        for mode in ["require", "verify-ca", "verify-full"] {
            let url = format!("postgres://h/db?sslmode={mode}");
            check(parse_database_url, &url, Ok(&url));
        }
        for url in [
            "postgres://localhost,h/db?sslmode=disable",
            "postgres:///db?host=h&sslmode=disable",
            "postgres://localhost/db?hostaddr=10.0.0.1&sslmode=disable",
            "postgres://localhost.example.org/db?sslmode=disable",
            "postgres://h/db?sslmode=require&sslmode=disable",
            "postgres://h/db?ssl-mode=disable",
        ] {
            check(parse_database_url, url, Err(&format!("'{url}' is not allowed: {why}")));
        }
    }

    #[test]
    fn neither_display_nor_debug_shows_the_password() {
        let address = SecretUrl::new("postgres://me:hunter2@h/db");
        assert_eq!(
            format!("{address} {address:?}"),
            "postgres://me:***@h/db SecretUrl(postgres://me:***@h/db)"
        );
    }
}
