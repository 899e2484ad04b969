//! The byte stream to a server: a socket, with or without TLS.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use rustix::net::sockopt;
use rustix::net::{AddressFamily, RecvFlags, SocketAddrUnix, SocketType, connect, recv};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::address::{Address, Host, Tls};
use crate::error::Error;
use crate::peer::require_peer;

/// How long a connection may be silent before the system probes the other side.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// How long sent data may stay unacknowledged before the connection counts as lost.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// A byte stream to a server.
#[derive(Debug)]
pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    /// Connects to one host of an address, with TLS if the address or the host requires it.
    pub(crate) fn connect(address: &Address, host: &Host) -> Result<Stream, Error> {
        let limit = address.connect_timeout;
        let stream = match host {
            Host::Socket(folder, port) => {
                let socket = connect_unix(&folder.join(format!(".s.PGSQL.{port}")), limit)?;
                require_peer(&socket, folder, address)?;
                Stream::Unix(socket)
            }
            Host::Network(name, port) => Stream::Tcp(connect_tcp(name, *port, limit)?),
        };
        stream.set_timeout(limit)?;
        match (stream, host) {
            (Stream::Tcp(stream), Host::Network(name, _))
                if address.tls == Tls::Always || !host.is_here() =>
            {
                encrypt(stream, name, address)
            }
            (stream, _) => Ok(stream),
        }
    }

    /// The server's certificate, already verified. Only TLS connections have one.
    pub(crate) fn certificate(&self) -> Option<&[u8]> {
        match self {
            Stream::Tls(stream) => stream.conn.peer_certificates()?.first().map(AsRef::as_ref),
            Stream::Unix(_) | Stream::Tcp(_) => None,
        }
    }

    /// Limits how long a read or a write may wait.
    pub(crate) fn set_timeout(&self, limit: Duration) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => {
                stream.set_read_timeout(Some(limit))?;
                stream.set_write_timeout(Some(limit))
            }
            Stream::Tcp(stream) => set_tcp_timeout(stream, limit),
            Stream::Tls(stream) => set_tcp_timeout(&stream.sock, limit),
        }
    }

    /// What the system knows about the other side, without waiting.
    pub(crate) fn status(&self) -> Status {
        let mut byte = [0];
        match recv(self.socket(), &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((_, 0)) => Status::Closed,
            Ok(_) => Status::Readable,
            Err(rustix::io::Errno::AGAIN) => Status::Quiet,
            Err(_) => Status::Closed,
        }
    }

    /// The socket itself. It is enough for `status`: decrypted bytes are read at once, so none are left in the TLS
    /// layer.
    fn socket(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Tls(stream) => stream.sock.as_fd(),
        }
    }
}

/// What is known about a stream without reading from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// There is nothing to read.
    Quiet,
    /// There is something to read.
    Readable,
    /// The other side has closed it.
    Closed,
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write(bytes),
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.flush(),
            Stream::Tcp(stream) => stream.flush(),
            Stream::Tls(stream) => stream.flush(),
        }
    }
}

/// Connects to a Unix socket. The send timeout also limits the wait for a server whose queue is full.
fn connect_unix(path: &Path, limit: Duration) -> io::Result<UnixStream> {
    let socket = unix_socket()?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(limit))?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(UnixStream::from(socket))
}

/// A socket that child processes do not inherit.
fn unix_socket() -> rustix::io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    {
        let flags = rustix::net::SocketFlags::CLOEXEC;
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
        rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
        Ok(socket)
    }
}

/// Tries the addresses of a host name, within `limit` in total.
fn connect_tcp(name: &str, port: u16, limit: Duration) -> Result<TcpStream, Error> {
    let deadline = Instant::now() + limit;
    let unknown = || Error::Lost(format!("host not found: {name}"));
    let mut failed = unknown();
    let found = (name, port).to_socket_addrs().map_err(|_| unknown())?;
    let addresses = trusted(name, found.collect());
    for (at, address) in addresses.iter().enumerate() {
        let left = deadline.saturating_duration_since(Instant::now());
        match TcpStream::connect_timeout(address, share(left, addresses.len() - at)) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                enable_keepalive(&stream);
                return Ok(stream);
            }
            Err(error) => failed = error.into(),
        }
    }
    Err(failed)
}

/// Keeps only loopback addresses for `localhost`, because connections to it use no TLS.
fn trusted(name: &str, mut addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    addresses.retain(|address| name != "localhost" || address.ip().is_loopback());
    addresses
}

/// How much of the time left one address may take, so that the others get their turn.
fn share(left: Duration, addresses: usize) -> Duration {
    let addresses = u32::try_from(addresses).unwrap_or(u32::MAX).max(1);
    (left / addresses).max(Duration::from_millis(1))
}

/// Lets the system notice a machine that lost power. Where it cannot, the read timeouts still do.
fn enable_keepalive(stream: &TcpStream) {
    let _ = sockopt::set_socket_keepalive(stream, true);
    let _ = sockopt::set_tcp_keepidle(stream, KEEPALIVE);
    let _ = sockopt::set_tcp_keepintvl(stream, Duration::from_secs(5));
    let _ = sockopt::set_tcp_keepcnt(stream, 3);
    #[cfg(target_os = "linux")]
    let _ = sockopt::set_tcp_user_timeout(
        stream,
        u32::try_from(UNACKNOWLEDGED.as_millis()).unwrap_or(0),
    );
}

fn set_tcp_timeout(stream: &TcpStream, limit: Duration) -> io::Result<()> {
    stream.set_read_timeout(Some(limit))?;
    stream.set_write_timeout(Some(limit))
}

/// Requests TLS, and continues only with it.
fn encrypt(mut stream: TcpStream, host: &str, address: &Address) -> Result<Stream, Error> {
    let mut request = BytesMut::new();
    frontend::ssl_request(&mut request);
    stream.write_all(&request)?;
    let mut answer = [0];
    stream.read_exact(&mut answer)?;
    if answer != *b"S" {
        let text = "the server offers no TLS, which is required for another machine: set ssl = on in its postgresql.conf";
        return Err(Error::Tls(text.to_owned()));
    }
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| Error::Tls(format!("'{host}' cannot be the name in a certificate")))?;
    let client = ClientConnection::new(Arc::new(settings(address)?), name)
        .map_err(|error| Error::Tls(error.to_string()))?;
    let mut stream = StreamOwned::new(client, stream);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock).map_err(|error| handshake_error(host, &error))?;
    }
    Ok(Stream::Tls(Box::new(stream)))
}

fn handshake_error(host: &str, error: &io::Error) -> Error {
    match error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>()) {
        Some(error) => Error::Tls(format!(
            "the certificate of {host} is not trusted ({error}): name its authority's file with sslrootcert=FILE"
        )),
        None => Error::Lost(error.to_string()),
    }
}

fn settings(address: &Address) -> Result<ClientConfig, Error> {
    let mut roots = RootCertStore::empty();
    match &address.root_certificates {
        Some(file) => {
            let wrong = |reason: &dyn std::fmt::Display| {
                Error::Tls(format!("cannot read the certificates in {}: {reason}", file.display()))
            };
            for certificate in CertificateDer::pem_file_iter(file).map_err(|error| wrong(&error))? {
                let certificate = certificate.map_err(|error| wrong(&error))?;
                roots.add(certificate).map_err(|error| wrong(&error))?;
            }
        }
        None => {
            roots.add_parsable_certificates(
                webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned(),
            );
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Tls(error.to_string()))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, addresses: &[&str], expected: &[&str]) {
        let parse = |addresses: &[&str]| -> Vec<SocketAddr> {
            addresses.iter().map(|address| address.parse().unwrap()).collect()
        };
        assert_eq!(trusted(name, parse(addresses)), parse(expected));
    }

    #[test]
    fn localhost_never_leads_to_another_machine() {
        check("localhost", &["[::1]:1", "10.1.2.3:1", "127.0.0.1:1"], &["[::1]:1", "127.0.0.1:1"]);
        check("localhost", &["192.0.2.1:1"], &[]);
        check("db.example", &["192.0.2.1:1", "127.0.0.1:1"], &["192.0.2.1:1", "127.0.0.1:1"]);
    }

    #[test]
    fn an_address_that_does_not_answer_leaves_time_for_the_next() {
        assert_eq!(share(Duration::from_secs(9), 3), Duration::from_secs(3));
        assert_eq!(share(Duration::from_secs(9), 1), Duration::from_secs(9));
        assert_eq!(share(Duration::ZERO, 2), Duration::from_millis(1));
    }

    /// A stopped server accepts connections until its queue is full.
    #[test]
    fn connecting_to_a_stopped_server_times_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let server = unix_socket().unwrap();
        rustix::net::bind(&server, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        rustix::net::listen(&server, 1).unwrap();
        let mut taken = Vec::new();
        let limit = Duration::from_millis(20);
        let refused = loop {
            match connect_unix(&path, limit) {
                Ok(stream) => taken.push(stream),
                Err(error) => break error,
            }
            assert!(taken.len() < 100, "the queue is endless");
        };
        assert_eq!(Error::from(refused).to_string(), "the server does not answer");
    }
}
