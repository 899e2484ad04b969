//! Server addresses: `postgres://user:password@host:port/database?option=value`.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::Error;
use crate::password::Password;

/// Where PostgreSQL listens on Debian and most other systems.
const SOCKET_FOLDER: &str = "/var/run/postgresql";
const PORT: u16 = 5432;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A server, a database on it, and a user. `Debug` and `Display` leave the password out.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// Tried in this order, until one accepts writes.
    pub hosts: Vec<Host>,
    /// The PostgreSQL user to log in as.
    pub user: String,
    pub(crate) password: Option<Password>,
    /// The database.
    pub database: String,
    /// When the connection is encrypted.
    pub tls: Tls,
    /// A file with the root certificates to trust instead of the usual ones.
    pub root_certificates: Option<PathBuf>,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// The accepted authentication methods, if the address names them.
    pub(crate) require_auth: Option<Vec<Auth>>,
    pub(crate) channel_binding: Binding,
    /// The user, by name or id, who must run the server behind a Unix socket, if the address names one.
    pub(crate) require_peer: Option<String>,
}

/// An authentication method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Auth {
    /// Both sides prove that they know the password.
    Scram,
    /// The password is sent in clear text.
    Password,
    /// A weak hash of the password is sent.
    Md5,
    /// Nothing is proven.
    None,
}

impl Auth {
    fn parse(name: &str) -> Option<Auth> {
        match name.trim() {
            "scram-sha-256" => Some(Auth::Scram),
            "password" => Some(Auth::Password),
            "md5" => Some(Auth::Md5),
            "none" => Some(Auth::None),
            _ => None,
        }
    }
}

/// Whether a login is bound to the certificate of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binding {
    /// If both sides support it.
    Preferred,
    Required,
    Disabled,
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// A Unix socket: its folder, and the port in its name.
    Socket(PathBuf, u16),
    /// A host name or IP address, and a port.
    Network(String, u16),
}

/// When a connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tls {
    /// Only to another machine, but there always.
    ToOthers,
    /// Always.
    Always,
}

impl Address {
    /// Parses an address.
    ///
    /// # Errors
    /// Says what is wrong with the address, without repeating its password.
    pub fn parse(address: &str) -> Result<Address, Error> {
        let parts = Parts::split(address)?;
        let password = match parts.password {
            Some(password) => Password::new(decoded(password)?),
            None => None,
        };
        let user = match parts.user.is_empty() {
            true => system_user()
                .ok_or_else(|| Error::Address("the address names no user".to_owned()))?,
            false => decoded(parts.user)?,
        };
        let database = match parts.database.is_empty() {
            true => user.clone(),
            false => decoded(parts.database)?,
        };
        let mut address = Address {
            hosts: parse_hosts(parts.hosts)?,
            user,
            password,
            database,
            tls: Tls::ToOthers,
            root_certificates: None,
            connect_timeout: CONNECT_TIMEOUT,
            require_auth: None,
            channel_binding: Binding::Preferred,
            require_peer: None,
        };
        address.set_all(parts.options)?;
        Ok(address)
    }

    /// Applies all options, then what depends on all of them together.
    fn set_all(&mut self, options: &str) -> Result<(), Error> {
        let (mut is_plain, mut port) = (false, None);
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let value = decoded(value)?;
            match name {
                "port" => port = Some(parse_port(&value)?),
                _ => is_plain |= self.set(name, &value)?,
            }
        }
        if self.hosts.is_empty() {
            self.hosts.push(match Path::new(SOCKET_FOLDER).is_dir() {
                true => Host::Socket(SOCKET_FOLDER.into(), PORT),
                false => Host::Network("localhost".to_owned(), PORT),
            });
        }
        // Last, because `host` may come after `port`.
        if let Some(port) = port {
            self.hosts.iter_mut().for_each(|host| host.set_port(port));
        }
        match self.hosts.iter().find(|host| is_plain && !host.is_here()) {
            Some(other) => Err(Error::Address(format!(
                "sslmode=disable is refused for another machine ({other}): remove it"
            ))),
            None => Ok(()),
        }
    }

    /// Applies an option. Returns whether it forbids TLS.
    fn set(&mut self, name: &str, value: &str) -> Result<bool, Error> {
        let no = |allowed: &str| {
            Error::Address(format!("{name} in the address cannot be '{value}': use {allowed}"))
        };
        match name {
            "sslmode" => match value {
                "disable" => return Ok(true),
                "allow" | "prefer" => {}
                "require" | "verify-ca" | "verify-full" => self.tls = Tls::Always,
                _ => return Err(no("require, or leave it out")),
            },
            "sslrootcert" if value == "system" => {}
            "sslrootcert" => self.root_certificates = Some(value.into()),
            "host" => {
                let before = self.hosts.first().map(Host::port).filter(|port| *port != PORT);
                self.hosts = parse_hosts(value)?;
                // A port before the options applies to this host.
                let unset = self.hosts.iter_mut().filter(|host| host.port() == PORT);
                unset.for_each(|host| host.set_port(before.unwrap_or(PORT)));
            }
            "user" => self.user = value.to_owned(),
            "password" => self.password = Password::new(value.to_owned()),
            "require_auth" => {
                let accepted: Option<_> = value.split(',').map(Auth::parse).collect();
                let allowed =
                    "scram-sha-256, password, md5 or none, or several separated by commas";
                self.require_auth = Some(accepted.ok_or_else(|| no(allowed))?);
            }
            "channel_binding" => {
                self.channel_binding = match value {
                    "prefer" => Binding::Preferred,
                    "require" => Binding::Required,
                    "disable" => Binding::Disabled,
                    _ => return Err(no("prefer, require or disable")),
                };
            }
            "requirepeer" if value.is_empty() => return Err(no("the name of a user")),
            "requirepeer" => self.require_peer = Some(value.to_owned()),
            "dbname" => self.database = value.to_owned(),
            "connect_timeout" => {
                let seconds = value.parse().ok().filter(|seconds| (1..=600).contains(seconds));
                let seconds = seconds.ok_or_else(|| no("seconds from 1 to 600"))?;
                self.connect_timeout = Duration::from_secs(seconds);
            }
            // Other clients use these; they mean nothing here.
            "application_name" | "target_session_attrs" | "gssencmode" => {}
            _ => {
                return Err(Error::Address(format!(
                    "unknown option '{name}' in the address: use host, port, user, dbname, sslmode, sslrootcert, \
                     connect_timeout, require_auth, channel_binding or requirepeer"
                )));
            }
        }
        Ok(false)
    }

    /// Whether an authentication method is accepted. By default that is SCRAM if there is a password, and no
    /// authentication if there is none.
    pub(crate) fn accepts(&self, auth: Auth) -> bool {
        match (&self.require_auth, &self.password) {
            (Some(accepted), _) => accepted.contains(&auth),
            (None, Some(_)) => auth == Auth::Scram,
            (None, None) => auth == Auth::None,
        }
    }

    /// Masks the password in a text from the server, which may repeat it.
    pub fn hide_password(&self, text: &str) -> String {
        self.password.as_ref().map_or_else(|| text.to_owned(), |password| password.hide(text))
    }

    /// The address without its password, for display.
    pub fn shown(&self) -> String {
        let hosts: Vec<String> = self.hosts.iter().map(ToString::to_string).collect();
        format!("postgres://{}@{}/{}", self.user, hosts.join(","), self.database)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

impl Host {
    /// Whether the host is this machine.
    pub fn is_here(&self) -> bool {
        match self {
            Host::Socket(..) => true,
            Host::Network(name, _) => {
                name == "localhost" || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
            }
        }
    }

    fn port(&self) -> u16 {
        let (Host::Socket(_, port) | Host::Network(_, port)) = self;
        *port
    }

    fn set_port(&mut self, number: u16) {
        let (Host::Socket(_, port) | Host::Network(_, port)) = self;
        *port = number;
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Socket(folder, PORT) => write!(f, "{}", folder.display()),
            Host::Socket(folder, port) => write!(f, "{}:{port}", folder.display()),
            Host::Network(name, port) if name.contains(':') => write!(f, "[{name}]:{port}"),
            Host::Network(name, port) => write!(f, "{name}:{port}"),
        }
    }
}

/// The parts of an address, still percent-encoded.
struct Parts<'a> {
    user: &'a str,
    password: Option<&'a str>,
    hosts: &'a str,
    database: &'a str,
    options: &'a str,
}

impl Parts<'_> {
    fn split(address: &str) -> Result<Parts<'_>, Error> {
        let wrong = |what: &str| Error::Address(what.to_owned());
        let rest =
            ["postgres://", "postgresql://"].iter().find_map(|scheme| address.strip_prefix(scheme));
        let rest = rest.ok_or_else(|| wrong("the address does not start with postgres://"))?;
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        // A password that contains one of these characters would be taken for hosts and names, and be shown.
        if path.contains('@') {
            return Err(wrong(
                "there is an @ after the host: in user and password, write / as %2F, ? as %3F and @ as %40",
            ));
        }
        let (database, options) = path.split_once('?').unwrap_or((path, ""));
        let database = database.strip_prefix('/').unwrap_or(database);
        let (login, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (login, None),
        };
        Ok(Parts { user, password, hosts, database, options })
    }
}

/// Hosts with their ports, separated by commas.
fn parse_hosts(hosts: &str) -> Result<Vec<Host>, Error> {
    hosts.split(',').filter(|host| !host.is_empty()).map(parse_host).collect()
}

fn parse_host(host: &str) -> Result<Host, Error> {
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, port)) => (name, port.strip_prefix(':').unwrap_or_default()),
        None => host.rsplit_once(':').unwrap_or((host, "")),
    };
    let port = if port.is_empty() { PORT } else { parse_port(port)? };
    let name = decoded(name)?;
    Ok(match name.starts_with('/') {
        true => Host::Socket(name.into(), port),
        false => Host::Network(name, port),
    })
}

fn parse_port(port: &str) -> Result<u16, Error> {
    let wrong = || Error::Address("the port in the address is not a number up to 65535".to_owned());
    port.parse().map_err(|_| wrong())
}

/// Decodes percent-encoded text.
fn decoded(text: &str) -> Result<String, Error> {
    let wrong = || {
        Error::Address("a percent sign in the address is not followed by the two hex digits of a character: write % as %25".to_owned())
    };
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digits = [bytes.next(), bytes.next()].map(|digit| {
            digit
                .and_then(|digit| char::from(digit).to_digit(16))
                .and_then(|d| u8::try_from(d).ok())
        });
        let [Some(high), Some(low)] = digits else { return Err(wrong()) };
        out.push(high << 4 | low);
    }
    let decoded = String::from_utf8(out).map_err(|_| wrong())?;
    match decoded.contains('\0') {
        true => Err(wrong()),
        false => Ok(decoded),
    }
}

/// The name of the current user, which PostgreSQL's own tools use by default.
fn system_user() -> Option<String> {
    let id = rustix::process::geteuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let user = users.lines().find(|line| line.split(':').nth(2) == Some(id.as_str()))?;
    user.split(':').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(address: &str, shown: &str) {
        let address = Address::parse(address).unwrap();
        assert_eq!(address.to_string(), shown);
        assert_eq!(format!("{address:?}"), shown);
    }

    #[track_caller]
    fn refuse(address: &str, expected: &str) {
        let error = Address::parse(address).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("geheim"), "{error}");
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        check("postgres://me:geheim@db.example:6432/work", "postgres://me@db.example:6432/work");
        check("postgresql://me:a%40b@[::1]/work", "postgres://me@[::1]:5432/work");
        check("postgres://me:geheim@a,b:2/w?sslmode=require", "postgres://me@a:5432,b:2/w");
        check("postgres://me@/w?host=/tmp/here&port=7", "postgres://me@/tmp/here:7/w");
        check("postgres://me@%2Ftmp/w", "postgres://me@/tmp/w");
        check("postgres://me@h", "postgres://me@h:5432/me");
        check("postgres://me@h?dbname=w", "postgres://me@h:5432/w");
        let password = Address::parse("postgres://me:a%40b@h/w").unwrap().password.unwrap();
        assert_eq!(password.as_bytes(), b"a@b");
    }

    #[test]
    fn accepted_methods_depend_on_the_password_unless_the_address_names_them() {
        let check = |address: &str, accepted: &[Auth]| {
            let address = Address::parse(address).unwrap();
            let all = [Auth::Scram, Auth::Password, Auth::Md5, Auth::None];
            let found: Vec<Auth> = all.into_iter().filter(|auth| address.accepts(*auth)).collect();
            assert_eq!(found, accepted, "{address}");
        };
        check("postgres://me:geheim@h/w", &[Auth::Scram]);
        check("postgres://me@h/w?password=geheim", &[Auth::Scram]);
        check("postgres://me@h/w", &[Auth::None]);
        check("postgres://me:@h/w", &[Auth::None]);
        check("postgres://me:geheim@h/w?require_auth=md5", &[Auth::Md5]);
        check("postgres://me:geheim@h/w?require_auth=password,none", &[Auth::Password, Auth::None]);
        check("postgres://me@h/w?require_auth=scram-sha-256", &[Auth::Scram]);
    }

    /// The port was lost if the host came after it or was missing.
    #[test]
    fn a_port_applies_wherever_it_stands() {
        check("postgres://me@/w?port=7&host=/tmp/here", "postgres://me@/tmp/here:7/w");
        check("postgres://me@/w?port=7&host=a,b", "postgres://me@a:7,b:7/w");
        check("postgres://me@localhost:7/w?host=/tmp/here", "postgres://me@/tmp/here:7/w");
        check("postgres://me@:7/w?host=/tmp/here", "postgres://me@/tmp/here:7/w");
        check("postgres://me@a:7/w?host=b:8,c", "postgres://me@b:8,c:7/w");
        let hosts = Address::parse("postgres://me@/w?port=7").unwrap().hosts;
        assert!(matches!(hosts[..], [Host::Socket(_, 7) | Host::Network(_, 7)]), "{hosts:?}");
    }

    #[test]
    fn a_password_with_unescaped_delimiters_is_refused_and_not_shown() {
        for address in [
            "postgres://me:/geheim@h/db",
            "postgres://me:42/geheim@h/db",
            "postgres://me:7?geheim@h/w",
            "postgres://me:7?geheim=1@h/w",
            "postgres://me:a@7/geheim@h/w",
        ] {
            refuse(address, "write / as %2F, ? as %3F");
        }
        refuse("postgres://me@h/w?port=geheim", "port");
    }

    #[test]
    fn the_error_for_a_wrong_address_says_what_is_wrong() {
        refuse("mysql://me:geheim@h/w", "postgres://");
        refuse("postgres://me:geheim@h:70000/w", "port");
        refuse("postgres://me:geheim%@h/w", "percent");
        refuse("postgres://me:geheim@h/w?sslmode=disable", "refused for another machine (h:5432)");
        refuse("postgres://me:geheim@h/w?sslmode=maybe", "require");
        refuse("postgres://me:geheim@h/w?speed=high", "'speed'");
        refuse(
            "postgres://me:geheim@h/w?require_auth=!none",
            "scram-sha-256, password, md5 or none",
        );
        refuse("postgres://me:geheim@h/w?channel_binding=maybe", "prefer, require or disable");
        refuse("postgres://me:geheim@h/w?requirepeer=", "the name of a user");
    }
}
