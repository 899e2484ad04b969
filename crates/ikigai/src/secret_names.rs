//! Variables that look like secrets by their names.
//!
//! A command in the sandbox has no use for most of them, and could write them down for somebody. Nobody can list all
//! names that are in use, so this goes by how they are made; `sandbox.env` lets single ones through.

use std::ffi::OsStr;

/// What stands somewhere in such a name.
const PARTS: [&str; 9] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "APIKEY",
    "ACCESSKEY",
    "PRIVATEKEY",
];

/// What such a name ends with.
const ENDS: [&str; 3] = ["_KEY", "_PAT", "_DSN"];

/// Whether a variable looks like a secret.
pub(crate) fn looks_secret(variable: &OsStr) -> bool {
    let name = variable.to_string_lossy().to_ascii_uppercase();
    PARTS.iter().any(|part| name.contains(part)) || ENDS.iter().any(|end| name.ends_with(end))
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
        ] {
            assert!(looks_secret(name.as_ref()), "{name}");
        }
        for name in
            ["PATH", "HOME", "KEYBOARD", "MONKEY", "LANG", "SSH_AUTH_SOCK", "KEY", "CARGO_HOME"]
        {
            assert!(!looks_secret(name.as_ref()), "{name}");
        }
    }
}
