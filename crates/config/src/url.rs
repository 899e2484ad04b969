//! Parses addresses, as far as masking and checking need it. An ambiguous address is not parsed at
//! all: otherwise a password that contains a bare `/` or `#` would be split, and one half shown as
//! a host or a path.

/// The parts of `scheme://userinfo@hosts/path?query#fragment` or `sqlite:path?query#fragment`.
pub(crate) struct Parts<'a> {
    pub(crate) scheme: &'a str,
    /// The separator between the scheme and the authority: `:` or `://`.
    pub(crate) separator: &'a str,
    pub(crate) userinfo: Option<&'a str>,
    /// Host and port. PostgreSQL accepts several, separated by commas.
    pub(crate) hosts: &'a str,
    /// Including its slash.
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
    pub(crate) fragment: Option<&'a str>,
}

impl<'a> Parts<'a> {
    pub(crate) fn split(url: &'a str) -> Option<Parts<'a>> {
        let (scheme, rest) = url.split_once(':')?;
        if scheme.is_empty() || !scheme.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return None;
        }
        let (separator, rest) = match rest.strip_prefix("//") {
            Some(rest) => ("://", rest),
            // Without the slashes it may be anything, such as `me:password`.
            None if scheme == "sqlite" => (":", rest),
            None => return None,
        };
        let (rest, fragment) = split_off(rest, '#');
        let (rest, query) = split_off(rest, '?');
        let authority_end =
            if separator == "://" { rest.find('/').unwrap_or(rest.len()) } else { 0 };
        let (authority, path) = rest.split_at(authority_end);
        let (userinfo, hosts) = match authority.rsplit_once('@') {
            Some((userinfo, hosts)) => (Some(userinfo), hosts),
            None => (None, authority),
        };
        let parts = Parts { scheme, separator, userinfo, hosts, path, query, fragment };
        parts.are_beyond_doubt().then_some(parts)
    }

    /// The parameters of the query, decoded.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = (String, String)> {
        self.query.unwrap_or_default().split('&').map(|parameter| {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            (decode(name), decode(value))
        })
    }

    /// The hosts without their ports, decoded.
    pub(crate) fn host_names(&self) -> impl Iterator<Item = String> {
        self.hosts.split(',').map(|host| decode(split_port(host).map_or(host, |(name, _)| name)))
    }

    fn are_beyond_doubt(&self) -> bool {
        // The path of a file needs no host, and may contain any character.
        if self.scheme == "sqlite" && self.userinfo.is_none() {
            return true;
        }
        let later = [Some(self.path), self.query, self.fragment];
        let stray_at = later.into_iter().flatten().any(|part| part.contains('@'));
        !stray_at && self.hosts.split(',').all(|host| split_port(host).is_some())
    }
}

/// The name and port of a host. `None` if what looks like a port is not a number.
fn split_port(host: &str) -> Option<(&str, &str)> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (name, port) = rest.split_once(']')?;
            (name, if port.is_empty() { "" } else { port.strip_prefix(':')? })
        }
        None => host.split_once(':').unwrap_or((host, "")),
    };
    port.bytes().all(|byte| byte.is_ascii_digit()).then_some((name, port))
}

fn split_off(text: &str, at: char) -> (&str, Option<&str>) {
    match text.split_once(at) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

/// Decodes `%41`. Invalid UTF-8 becomes U+FFFD, since the result is only compared.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
