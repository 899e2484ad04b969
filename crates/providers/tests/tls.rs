//! Which certificates are trusted. Those here were made for these tests only.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use ikigai_providers::{Anthropic, Category, Client, Endpoint, Fault};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::asking::ONCE;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/certificates").join(name)
}

/// A server that answers every request with a list of one model, and its port.
fn serve(host: &str) -> u16 {
    let certificate = CertificateDer::from_pem_file(file("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind((host, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            // A client that does not trust us leaves during the handshake.
            let _ = answer(StreamOwned::new(connection, stream.unwrap()));
        }
    });
    port
}

fn answer(stream: impl std::io::Read + Write) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Ok(());
        }
    }
    let body = r#"{"data":[{"id":"model"}]}"#;
    let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}", body.len());
    write!(stream.get_mut(), "{head}\r\n\r\n{body}")?;
    stream.get_mut().flush()
}

fn client(base_url: &str, certificates: Option<PathBuf>) -> Client {
    let (provider, base_url) = (Arc::new(Anthropic), base_url.to_owned());
    Client::new(Endpoint { provider, base_url, key: None, certificates }, ONCE)
}

#[tokio::test]
async fn a_certificate_is_trusted_if_its_issuer_is_in_the_file() {
    let base_url = format!("https://localhost:{}", serve("127.0.0.1"));
    let models = client(&base_url, Some(file("ca.pem"))).models().await;
    assert_eq!(models.unwrap()[0].name, "model");
}

#[tokio::test]
async fn a_certificate_of_an_unknown_issuer_is_not_trusted() {
    let base_url = format!("https://localhost:{}", serve("127.0.0.1"));
    let fault = client(&base_url, None).models().await.unwrap_err();
    let message = format!("cannot reach {base_url} (its certificate has an unknown issuer)");
    assert_eq!(fault, Fault::new(Category::NotTrusted, message));
}

#[tokio::test]
async fn a_certificate_for_another_name_is_not_trusted() {
    let base_url = format!("https://127.0.0.2:{}", serve("127.0.0.2"));
    let fault = client(&base_url, Some(file("ca.pem"))).models().await.unwrap_err();
    let message = format!("cannot reach {base_url} (its certificate is for another name)");
    assert_eq!(fault, Fault::new(Category::NotTrusted, message));
}

#[tokio::test]
async fn a_file_without_certificates_is_named() {
    for name in ["server.key", "missing.pem"] {
        let fault = client("https://localhost:1", Some(file(name))).models().await.unwrap_err();
        assert_eq!(fault.category, Category::Network);
        let beginning = format!("cannot read certificates from {}: ", file(name).display());
        assert!(fault.message.starts_with(&beginning), "{fault}");
    }
}
