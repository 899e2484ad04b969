//! The address of a server, with and without its secrets.

use std::net::IpAddr;

use reqwest::Url;

use crate::secret::Secret;

use super::login;

/// A base address.
#[derive(Clone)]
pub(super) struct Address {
    /// With a user name and password, if there are any. Requests send them in a header.
    url: Url,
    shown: String,
    secrets: Vec<Secret>,
}

impl Address {
    /// `None` if it is not an HTTP address.
    pub(super) fn parse(base_url: &str) -> Option<Address> {
        let url = Url::parse(base_url.trim()).ok()?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return None;
        }
        let shown = shown(url.as_str()).trim_end_matches('/').to_owned();
        let secrets = login::secrets(&url);
        Some(Address { url, shown, secrets })
    }

    /// The address without secrets.
    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    /// The secrets in it, which a server may repeat.
    pub(super) fn secrets(&self) -> &[Secret] {
        &self.secrets
    }

    /// Whether it is this machine.
    pub(super) fn is_loopback(&self) -> bool {
        let host = self.url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
    }

    /// Whether connections need no certificates.
    pub(super) fn is_plain(&self) -> bool {
        self.url.scheme() == "http"
    }

    /// The address of `path` beside the API, whose version ends the base address.
    pub(super) fn join_root(&self, path: &str) -> Url {
        let mut url = self.url.clone();
        let base = url.path().trim_end_matches('/');
        let root = base.strip_suffix("/v1").unwrap_or(base);
        url.set_path(&format!("{root}/{}", path.trim_start_matches('/')));
        url.set_query(None);
        url
    }

    /// The address of `path`, which may have a query.
    pub(super) fn join(&self, path: &str) -> Url {
        let (path, query) = path.split_once('?').map_or((path, None), |(p, q)| (p, Some(q)));
        let mut url = self.url.clone();
        let base = url.path().trim_end_matches('/');
        url.set_path(&format!("{base}/{}", path.trim_start_matches('/')));
        url.set_query(query);
        url
    }
}

/// An address without anything that may be secret.
pub(super) fn shown(url: &str) -> String {
    match Url::parse(url) {
        Ok(mut url) => {
            strip(&mut url);
            url.into()
        }
        // A path on the same server.
        Err(_) => url.split(['?', '#']).next().unwrap_or_default().to_owned(),
    }
}

fn strip(url: &mut Url) {
    // They only fail for addresses without a host, which have no login either.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_join(base: &str, path: &str, expected: &str) {
        assert_eq!(Address::parse(base).unwrap().join(path).as_str(), expected);
    }

    #[test]
    fn paths_are_appended_to_the_base() {
        check_join("http://a:1/v1", "/chat/completions", "http://a:1/v1/chat/completions");
        check_join("http://a/v1/", "models", "http://a/v1/models");
        check_join("http://a", "/v1/messages", "http://a/v1/messages");
        check_join("http://a/", "/x:y?alt=sse", "http://a/x:y?alt=sse");
    }

    #[track_caller]
    fn check_shown(base: &str, expected: &str) {
        assert_eq!(Address::parse(base).unwrap().shown(), expected);
    }

    #[test]
    fn no_secret_is_shown() {
        check_shown("http://me:pw@a:1/v1/?key=x#y", "http://a:1/v1");
        check_shown("https://me@a", "https://a");
        assert_eq!(shown("https://me:pw@b/c?key=x"), "https://b/c");
        assert_eq!(shown("/c?key=x"), "/c");
    }

    #[test]
    fn other_addresses_are_refused() {
        for text in ["", "a", "ftp://a", "file:///a", "http://", "http://a b/"] {
            assert!(Address::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn loopback_addresses_are_recognized() {
        let is_loopback = |base| Address::parse(base).unwrap().is_loopback();
        assert!(is_loopback("http://127.0.0.1:8080/v1"));
        assert!(is_loopback("http://localhost/v1"));
        assert!(is_loopback("http://[::1]:1/v1"));
        assert!(!is_loopback("http://127.example.org/v1"));
        assert!(!is_loopback("http://10.0.0.1/v1"));
    }
}
