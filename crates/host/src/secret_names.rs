//! Recognizing variables that look like secrets.
//!
//! Commands in the sandbox rarely need them and could leak them. There is no complete list of such
//! names, so parts of names are matched; `sandbox.env` allows exceptions.

use std::ffi::OsStr;

/// Parts that can occur anywhere in the name of a secret.
const PARTS: [&str; 10] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "APIKEY",
    "ACCESSKEY",
    "PRIVATEKEY",
    // 1Password.
    "OP_SESSION_",
];

/// Endings of the names of secrets.
const ENDS: [&str; 15] = [
    "_AUTH",
    "_CONNECTION_STRING",
    "_COOKIE",
    "_DSN",
    "_JWT",
    "_KEY",
    "_PASS",
    "_PAT",
    "_PSW",
    "_PW",
    "_PWD",
    "_WEBHOOK",
    "_WEBHOOK_URL",
    // Unlocks a Bitwarden vault.
    "BW_SESSION",
    "SSHPASS",
];

/// Whether a variable looks like a secret: by its name, or because its value is a URL with a
/// password. Proxy URLs are exempt, since commands with network access need them.
pub(crate) fn looks_secret(variable: &OsStr, value: &OsStr) -> bool {
    let is_proxy = variable.to_string_lossy().to_ascii_uppercase().ends_with("_PROXY");
    has_secret_name(variable) || (!is_proxy && has_password(&value.to_string_lossy()))
}

/// Whether the name of a variable looks like that of a secret.
pub(crate) fn has_secret_name(variable: &OsStr) -> bool {
    let name = variable.to_string_lossy().to_ascii_uppercase();
    PARTS.iter().any(|part| name.contains(part)) || ENDS.iter().any(|end| name.ends_with(end))
}

/// Matches `scheme://user:password@host`.
fn has_password(value: &str) -> bool {
    value.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#', ' ']).next().unwrap_or_default();
        let user = authority.rsplit_once('@').map(|(user, _)| user);
        user.and_then(|user| user.split_once(':')).is_some_and(|(_, password)| !password.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::looks_secret;

    #[test]
    fn secrets_are_known_by_their_names() {
        for name in [
            "GITHUB_TOKEN",
            "NPM_TOKEN_2",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_ACCESS_KEY_ID_SECRET",
            "PGPASSWORD",
            "mysql_passwd",
            "SSH_KEY",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "STRIPE_APIKEY",
            "SENTRY_DSN",
            "GH_PAT",
            "MYSQL_PWD",
            "SSHPASS",
            "DB_PASS",
            "SLACK_WEBHOOK_URL",
            "SLACK_WEBHOOK",
            "BW_SESSION",
            "OP_SESSION_my",
        ] {
            assert!(looks_secret(name.as_ref(), "x".as_ref()), "{name}");
        }
        for name in [
            "PATH",
            "HOME",
            "KEYBOARD",
            "MONKEY",
            "LANG",
            "SSH_AUTH_SOCK",
            "KEY",
            "CARGO_HOME",
            "PWD",
            "OLDPWD",
            "COMPASS",
        ] {
            assert!(!looks_secret(name.as_ref(), "x".as_ref()), "{name}");
        }
    }

    #[test]
    fn an_address_with_a_password_is_a_secret() {
        for (name, value, expected) in [
            ("DATABASE_URL", "postgres://me:word@host/db", true),
            ("REDIS", "redis://:word@host", true),
            ("DATABASE_URL", "postgres://me@host/db", false),
            ("URL", "https://host/a:b@c", false),
            ("HTTPS_PROXY", "http://me:word@host", false),
        ] {
            assert_eq!(looks_secret(name.as_ref(), value.as_ref()), expected, "{name}={value}");
        }
    }
}
