//! A line for the model when a command probably failed for want of something outside the sandbox.

use super::Sandbox;

/// What programs say when there is no network. Where sockets are refused it is the address family.
const NO_NETWORK: [&str; 19] = [
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
    "ENOTFOUND",
    "getaddrinfo",
    "UnknownHostException",
    "dns error",
    "dial tcp",
    "Couldn't connect to server",
    "No matching distribution found",
];

/// By which exit codes programs that were told to be quiet say it.
const NO_NETWORK_QUIETLY: [(&str, i32); 4] = [("curl", 5), ("curl", 6), ("curl", 7), ("wget", 4)];

/// A server of the command's own that is not up is no matter of the sandbox.
const AT_HOME: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

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

/// The line to add to the output of a command which failed.
pub(crate) fn hint(
    sandbox: &Sandbox,
    command: &str,
    exit_code: i32,
    output: &str,
) -> Option<&'static str> {
    let mut lines = output.lines();
    let is_quiet = output.trim().is_empty()
        && NO_NETWORK_QUIETLY
            .iter()
            .any(|(name, code)| exit_code == *code && command.contains(name))
        && !says(command, &AT_HOME);
    let is_said = lines.any(|line| says(line, &NO_NETWORK) && !says(line, &AT_HOME));
    if !sandbox.network && (is_quiet || is_said) {
        return Some(
            r#"[ikigai sandbox: no network; call bash with "sandbox": false to ask for it]"#,
        );
    }
    if output.lines().any(|line| says(line, &FAST) && says(line, &GUARDED)) {
        return Some(
            r#"[ikigai sandbox: git's settings and hooks, .ikigai, AGENTS.md and start-up files cannot be changed from here; call bash with "sandbox": false to ask for it]"#,
        );
    }
    says(output, &REFUSED).then_some(
        r#"[ikigai sandbox: only the working tree and $TMPDIR can be written; call bash with "sandbox": false to ask for more]"#,
    )
}

fn says(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::{Sandbox, hint};

    #[track_caller]
    fn check(network: bool, output: &str, begins: Option<&str>) {
        let line = hint(&Sandbox { network, ..Sandbox::default() }, "make", 1, output);
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
        let refused = |host: &str| {
            format!(
                "curl: (7) Failed to connect to {host} port 80 after 0 ms: Couldn't connect to server"
            )
        };
        check(false, &refused("192.0.2.1"), Some("no network"));
        check(false, &refused("localhost"), None);
        check(false, "pip: ERROR: No matching distribution found for x", Some("no network"));
        let denied = "touch: cannot touch '/x': Read-only file system";
        check(false, denied, Some("only the working tree"));
        check(true, denied, Some("only the working tree"));
        let config = "error: could not write config file .git/config: Device or resource busy";
        check(false, config, Some("git's settings"));
        check(false, "mount: Device or resource busy", None);
        check(false, "error[E0308]: mismatched types", None);
        check(false, "", None);
    }

    #[test]
    fn a_hint_is_given_for_a_quiet_failure_of_a_download() {
        let given =
            |command, code, output| hint(&Sandbox::default(), command, code, output).is_some();
        assert!(given("curl -s https://example.org", 6, ""));
        assert!(given("curl -s http://192.0.2.1", 7, ""));
        assert!(given("wget -q https://example.org", 4, "\n"));
        assert!(!given("curl -s http://127.0.0.1:8080", 7, ""));
        assert!(!given("wget -q http://localhost:8080", 4, ""));
        assert!(!given("./curl-test", 6, "2 of 8 failed"));
        assert!(!given("make", 6, ""));
    }
}
