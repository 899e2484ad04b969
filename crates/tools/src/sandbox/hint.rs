//! A line for the model when a command probably failed for want of something outside the sandbox.

use super::Sandbox;

/// What programs say when there is no network. Where sockets are refused it is the address family.
const NO_NETWORK: [&str; 12] = [
    "Could not resolve host",
    "could not resolve host",
    "Temporary failure in name resolution",
    "Temporary failure resolving",
    "Name or service not known",
    "failed to lookup address information",
    "Network is unreachable",
    "Address family not supported",
    "EAFNOSUPPORT",
    "ENETUNREACH",
    "EAI_AGAIN",
    "unable to resolve host address",
];

const REFUSED: [&str; 6] = [
    "Read-only file system",
    "read-only file system",
    "Permission denied",
    "Operation not permitted",
    "EROFS",
    "EACCES",
];

/// What is said of a part of the tree that is a mount of its own and can only be read.
const FAST: [&str; 3] = ["Read-only file system", "Device or resource busy", "EBUSY"];

/// What is named in the same line when it is such a part (see `guarded.rs`).
const GUARDED: [&str; 7] = [".git/", ".git'", "config file", ".ikigai", "rc:", "rc'", "profile"];

/// The line to add to `output`, that of a command which failed.
pub(crate) fn hint(sandbox: &Sandbox, output: &str) -> Option<&'static str> {
    let says = |texts: &[&str]| texts.iter().any(|text| output.contains(text));
    if !sandbox.network && says(&NO_NETWORK) {
        return Some(
            r#"[ikigai sandbox: no network; call bash with "sandbox": false to ask for it]"#,
        );
    }
    let both = |line: &str| {
        [&FAST[..], &GUARDED].iter().all(|texts| texts.iter().any(|text| line.contains(text)))
    };
    if output.lines().any(both) {
        return Some(
            r#"[ikigai sandbox: git's settings and hooks, .ikigai and start-up files cannot be changed from here; call bash with "sandbox": false to ask for it]"#,
        );
    }
    says(&REFUSED).then_some(
        r#"[ikigai sandbox: only the working tree and $TMPDIR can be written; call bash with "sandbox": false to ask for more]"#,
    )
}

#[cfg(test)]
mod tests {
    use super::{Sandbox, hint};

    #[track_caller]
    fn check(network: bool, output: &str, begins: Option<&str>) {
        let line = hint(&Sandbox { network, ..Sandbox::default() }, output);
        let begins = begins.map(|begins| format!("[ikigai sandbox: {begins}"));
        let is_right = match (line, begins) {
            (Some(line), Some(begins)) => line.starts_with(&begins),
            (line, begins) => line.is_none() && begins.is_none(),
        };
        assert!(is_right, "{output:?}: {line:?}");
    }

    #[test]
    fn a_hint_is_given_where_the_sandbox_is_the_likely_reason() {
        let host = "curl: (6) Could not resolve host: example.org";
        check(false, host, Some("no network"));
        check(true, host, None);
        let denied = "touch: cannot touch '/x': Read-only file system";
        check(false, denied, Some("only the working tree"));
        check(true, denied, Some("only the working tree"));
        check(false, "error[E0308]: mismatched types", None);
        check(false, "", None);
    }
}
