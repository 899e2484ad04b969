//! Connections, and whose certificates are believed.
//!
//! The root certificates are built in: the client is there at once, and works on a machine without a store
//! of its own. A server that they do not vouch for gets a second chance with the machine's store, which
//! knows the certificates that a company adds.

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
use super::trouble;

/// Makes the HTTP client when it is needed, and another one where that does not do.
pub(super) struct Connector {
    trust: Trust,
    is_loopback: bool,
    connect: Duration,
    /// The first one.
    own: OnceLock<reqwest::Client>,
    /// The one that believes the machine's store. From the first time that it was needed it is the only one.
    system: OnceLock<reqwest::Client>,
}

/// Whom a connection believes.
#[derive(Debug, Clone)]
enum Trust {
    /// Nobody needs to vouch for a server that is asked in the clear.
    Nobody,
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
            _ if address.is_some_and(Address::is_plain) => Trust::Nobody,
            Some(file) => Trust::BuiltInAndFile(file),
            None => Trust::BuiltIn,
        };
        let is_loopback = address.is_some_and(Address::is_loopback);
        Connector { trust, is_loopback, connect, own: OnceLock::new(), system: OnceLock::new() }
    }

    /// The same with another patience, and connections of its own.
    pub(super) fn with_patience(&self, connect: Duration) -> Connector {
        let (trust, is_loopback) = (self.trust.clone(), self.is_loopback);
        Connector { trust, is_loopback, connect, own: OnceLock::new(), system: OnceLock::new() }
    }

    /// The client, made now if this is the first time.
    pub(super) fn http(&self) -> Result<&reqwest::Client, Fault> {
        if let Some(http) = self.system.get().or_else(|| self.own.get()) {
            return Ok(http);
        }
        let http = self.builder().tls_backend_preconfigured(self.trust.tls()?).build();
        let http = http.map_err(|error| unusable(error.to_string()))?;
        Ok(self.own.get_or_init(|| http))
    }

    /// Sends a request and returns the head of what comes back.
    pub(super) async fn send(
        &self,
        shown: &str,
        request: &reqwest::Request,
    ) -> Result<reqwest::Response, Fault> {
        let sent = self.http()?.execute(copy(request)).await;
        let sent = match sent {
            Err(error) if trouble::is_unknown_issuer(&error) => match self.fall_back() {
                Some(system) => system.execute(copy(request)).await,
                None => Err(error),
            },
            sent => sent,
        };
        sent.map_err(|error| trouble::unreachable(shown, &error))
    }

    /// A client that asks the machine's store, unless that was so already or somebody chose whom to believe.
    fn fall_back(&self) -> Option<&reqwest::Client> {
        if self.system.get().is_some() || !matches!(self.trust, Trust::BuiltIn) {
            return None;
        }
        // The one thing that this way of building takes from the process; a second time changes nothing.
        let _ = ring::default_provider().install_default();
        // It fails where the machine has no store.
        let system = self.builder().build().ok()?;
        Some(self.system.get_or_init(|| system))
    }

    fn builder(&self) -> reqwest::ClientBuilder {
        let builder = reqwest::Client::builder()
            .connect_timeout(self.connect)
            // A key must not travel to where its provider points.
            .redirect(Policy::none())
            // Retries are counted and shown here, not hidden below.
            .retry(reqwest::retry::never())
            .user_agent(concat!("ikigai/", env!("CARGO_PKG_VERSION")));
        match self.is_loopback {
            // No proxy stands between a machine and itself. For the rest, `HTTPS_PROXY` and its like hold:
            // the library reads them, since there is no other way to get all their rules right.
            true => builder.no_proxy(),
            false => builder,
        }
    }
}

impl Trust {
    fn tls(&self) -> Result<ClientConfig, Fault> {
        let mut roots = RootCertStore::empty();
        match self {
            Trust::Nobody => {}
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
