//! Connections, and which certificates they trust.
//!
//! Root certificates are built in, so the client starts fast and works on machines without a
//! certificate store. If they do not include the issuer of a server's certificate, the client tries
//! the machine's store, which contains certificates added by a company.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::redirect::Policy;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use webpki_root_certs::TLS_SERVER_ROOT_CERTS;

use crate::fault::{Category, Fault};

use super::address::Address;
use super::transport_fault;

/// Creates the HTTP client on first use, and another one if its certificates are not enough.
pub(super) struct Connector {
    trust: Trust,
    is_loopback: bool,
    connect: Duration,
    /// The first client.
    own: OnceLock<reqwest::Client>,
    /// The client that trusts the machine's store. Once it was needed, only this one is used.
    system: OnceLock<reqwest::Client>,
}

/// Why there is no response to a request.
pub(super) enum SendError {
    /// The request was not sent.
    NotConnected(Fault),
    /// It was sent, at least in part.
    Lost(Fault),
}

impl SendError {
    pub(super) fn into_fault(self) -> Fault {
        match self {
            SendError::NotConnected(fault) | SendError::Lost(fault) => fault,
        }
    }
}

/// Which certificates a connection trusts.
#[derive(Debug, Clone)]
enum Trust {
    /// An unencrypted connection needs no certificates.
    NotNeeded,
    BuiltIn,
    BuiltInAndFile(PathBuf),
}

impl Connector {
    pub(super) fn new(
        address: Option<&Address>,
        certificates: Option<PathBuf>,
        connect: Duration,
    ) -> Connector {
        let trust = match certificates {
            _ if address.is_some_and(Address::is_plain) => Trust::NotNeeded,
            Some(file) => Trust::BuiltInAndFile(file),
            None => Trust::BuiltIn,
        };
        let is_loopback = address.is_some_and(Address::is_loopback);
        Connector { trust, is_loopback, connect, own: OnceLock::new(), system: OnceLock::new() }
    }

    /// The same with another connect timeout and its own connections.
    pub(super) fn with_patience(&self, connect: Duration) -> Connector {
        let (trust, is_loopback) = (self.trust.clone(), self.is_loopback);
        Connector { trust, is_loopback, connect, own: OnceLock::new(), system: OnceLock::new() }
    }

    /// The client, created on first use.
    pub(super) fn http(&self) -> Result<&reqwest::Client, Fault> {
        if let Some(http) = self.system.get().or_else(|| self.own.get()) {
            return Ok(http);
        }
        let http = self.builder().tls_backend_preconfigured(self.trust.tls()?).build();
        let http = http.map_err(|error| unusable(error.to_string()))?;
        Ok(self.own.get_or_init(|| http))
    }

    /// Sends a request and returns the head of the response.
    pub(super) async fn send(
        &self,
        shown: &str,
        request: &reqwest::Request,
    ) -> Result<reqwest::Response, SendError> {
        let http = self.http().map_err(SendError::NotConnected)?;
        let sent = http.execute(copy(request)).await;
        let sent = match sent {
            Err(error) if transport_fault::is_unknown_issuer(&error) => match self.fall_back() {
                Some(system) => system.execute(copy(request)).await,
                None => Err(error),
            },
            sent => sent,
        };
        sent.map_err(|error| {
            let fault = transport_fault::unreachable(shown, &error);
            match error.is_connect() {
                true => SendError::NotConnected(fault),
                false => SendError::Lost(fault),
            }
        })
    }

    /// A client that uses the machine's store, unless it was used already or the user chose
    /// certificates.
    fn fall_back(&self) -> Option<&reqwest::Client> {
        if self.system.get().is_some() || !matches!(self.trust, Trust::BuiltIn) {
            return None;
        }
        // rustls needs a process-wide provider here. Setting it again has no effect.
        let _ = ring::default_provider().install_default();
        // It fails on machines without a store.
        let system = self.builder().build().ok()?;
        Some(self.system.get_or_init(|| system))
    }

    fn builder(&self) -> reqwest::ClientBuilder {
        let builder = reqwest::Client::builder()
            .connect_timeout(self.connect)
            // A key must not follow a redirect.
            .redirect(Policy::none())
            // Retries are counted and shown by the caller, not hidden in the library.
            .retry(reqwest::retry::never())
            .user_agent(concat!("ikigai/", env!("CARGO_PKG_VERSION")));
        match self.is_loopback {
            // Loopback connections use no proxy. Otherwise `HTTPS_PROXY` and similar
            // variables apply: the library reads them, since that is the only way to
            // get all their rules right.
            true => builder.no_proxy(),
            false => builder,
        }
    }
}

impl Trust {
    fn tls(&self) -> Result<ClientConfig, Fault> {
        let mut roots = RootCertStore::empty();
        match self {
            Trust::NotNeeded => {}
            Trust::BuiltIn => add_built_in(&mut roots),
            Trust::BuiltInAndFile(file) => {
                add_built_in(&mut roots);
                add_file(&mut roots, file)?;
            }
        }
        let versions = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(error.to_string()))?;
        let mut tls = versions.with_root_certificates(roots).with_no_client_auth();
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(tls)
    }
}

fn add_built_in(roots: &mut RootCertStore) {
    roots.add_parsable_certificates(TLS_SERVER_ROOT_CERTS.iter().cloned());
}

fn add_file(roots: &mut RootCertStore, file: &Path) -> Result<(), Fault> {
    let wrong = |why: &dyn fmt::Display| {
        unusable(format!("cannot read certificates from {}: {why}", file.display()))
    };
    let certificates = CertificateDer::pem_file_iter(file).map_err(|error| wrong(&error))?;
    let certificates: Vec<_> =
        certificates.collect::<Result<_, _>>().map_err(|error| wrong(&error))?;
    match roots.add_parsable_certificates(certificates) {
        (0, _) => Err(wrong(&"there are none")),
        _ => Ok(()),
    }
}

fn copy(request: &reqwest::Request) -> reqwest::Request {
    request.try_clone().expect("a body of bytes can be sent again")
}

fn unusable(why: String) -> Fault {
    Fault::new(Category::Network, why)
}
