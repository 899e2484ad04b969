//! A line for the model when a command probably failed for want of something outside the sandbox.

use std::path::Path;

use super::{Kind, Sandbox};

const NETWORK: &str =
    r#"[ikigai sandbox: no network; call bash with "sandbox": false to ask for it]"#;
const LOCALHOST: &str = r#"[ikigai sandbox: no network, also on localhost no server but the command's own; call bash with "sandbox": false to ask for it]"#;
const SECRETS: &str = r#"[ikigai sandbox: places of secrets cannot be read from here and may look empty; call bash with "sandbox": false to ask for it]"#;
const SETTINGS: &str = r#"[ikigai sandbox: git's settings and hooks, .ikigai, AGENTS.md and start-up files cannot be changed from here; call bash with "sandbox": false to ask for it]"#;
const PLACES: &str = r#"[ikigai sandbox: only the working tree and $TMPDIR can be written; call bash with "sandbox": false to ask for more]"#;

/// Landlock refuses also what bubblewrap shows as empty.
const PLACES_AND_SECRETS: &str = r#"[ikigai sandbox: only the working tree and $TMPDIR can be written, places of secrets cannot be read, nor the folders around them be listed; call bash with "sandbox": false to ask for more]"#;

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

/// What they say when nobody listens. Outside that is no matter of ours: with a network it is said out there, too.
const NOBODY_LISTENS: [&str; 2] = ["onnection refused", "ECONNREFUSED"];

/// By which exit codes programs that were told to be quiet say either.
const NO_NETWORK_QUIETLY: [(&str, i32); 4] = [("curl", 5), ("curl", 6), ("curl", 7), ("wget", 4)];

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

/// How the home directory is named in a command.
const HOME: [&str; 3] = ["~/", "$HOME/", "${HOME}/"];

/// A command that has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended<'a> {
    pub(crate) command: &'a str,
    pub(crate) exit_code: i32,
    pub(crate) output: &'a str,
}

/// The line to add to the output.
pub(crate) fn hint(sandbox: &Sandbox, kind: Kind, ended: Ended<'_>) -> Option<&'static str> {
    let Ended { command, exit_code, output } = ended;
    let is_silent = output.trim().is_empty();
    if exit_code == 0 {
        // Where secrets are hidden by nothing, a list of them is empty and no error.
        return (is_silent && names_secret(sandbox, command)).then_some(SECRETS);
    }
    if !sandbox.network
        && let Some(line) = network(ended)
    {
        return Some(line);
    }
    if output.lines().any(|line| says(line, &FAST) && says(line, &GUARDED)) {
        return Some(SETTINGS);
    }
    if names_secret(sandbox, command) || names_secret(sandbox, output) {
        return Some(SECRETS);
    }
    says(output, &REFUSED).then_some(match kind {
        Kind::Bubblewrap => PLACES,
        Kind::Landlock => PLACES_AND_SECRETS,
    })
}

fn network(Ended { command, exit_code, output }: Ended<'_>) -> Option<&'static str> {
    let quietly = |(name, code): &(&str, i32)| exit_code == *code && command.contains(name);
    if output.trim().is_empty() && NO_NETWORK_QUIETLY.iter().any(quietly) {
        return Some(if says(command, &AT_HOME) { LOCALHOST } else { NETWORK });
    }
    output.lines().find_map(|line| match says(line, &AT_HOME) {
        true => (says(line, &NO_NETWORK) || says(line, &NOBODY_LISTENS)).then_some(LOCALHOST),
        false => says(line, &NO_NETWORK).then_some(NETWORK),
    })
}

/// Whether a text has the path of a hidden place in it, from the root or from the home directory.
fn names_secret(sandbox: &Sandbox, text: &str) -> bool {
    // All that lie in the home directory lie there together (see `secret_places`).
    let home =
        sandbox.hidden.iter().find(|place| place.ends_with(".ssh")).and_then(|ssh| ssh.parent());
    let from_home =
        |place: &Path| Some(place.strip_prefix(home?).ok()?.to_string_lossy().into_owned());
    let hidden = sandbox.hidden.iter().filter(|place| !sandbox.read.contains(place));
    hidden.into_iter().any(|place| {
        let named = |rest: String| HOME.iter().any(|home| text.contains(&format!("{home}{rest}")));
        text.contains(&*place.to_string_lossy()) || from_home(place).is_some_and(named)
    })
}

fn says(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::{Ended, Kind, LOCALHOST, NETWORK, PLACES, SECRETS, SETTINGS, Sandbox, hint};

    #[track_caller]
    fn check(command: &str, exit_code: i32, output: &str, expected: Option<&str>) {
        let hidden = crate::sandbox::secret_places("/home/me".as_ref());
        let read = vec!["/home/me/.docker".into()];
        let sandbox = Sandbox { hidden, read, ..Sandbox::default() };
        let ended = Ended { command, exit_code, output };
        let line = hint(&sandbox, Kind::Bubblewrap, ended);
        assert_eq!(line, expected, "{command}: {output:?}");
    }

    #[test]
    fn a_hint_is_given_where_the_sandbox_is_the_likely_reason() {
        let said = |output: &str, expected| check("make", 1, output, expected);
        let host = "curl: (6) Could not resolve host: example.org";
        said(host, Some(NETWORK));
        let refused = |host: &str| {
            format!(
                "curl: (7) Failed to connect to {host} port 80 after 0 ms: Couldn't connect to server"
            )
        };
        said(&refused("192.0.2.1"), Some(NETWORK));
        said(&refused("localhost"), Some(LOCALHOST));
        said("Error: connect ECONNREFUSED 127.0.0.1:5432", Some(LOCALHOST));
        said("database: Connection refused", None);
        said("pip: ERROR: No matching distribution found for x", Some(NETWORK));
        said("touch: cannot touch '/x': Read-only file system", Some(PLACES));
        let config = "error: could not write config file .git/config: Device or resource busy";
        said(config, Some(SETTINGS));
        said("mount: Device or resource busy", None);
        said("error[E0308]: mismatched types", None);
        said("", None);
    }

    #[test]
    fn with_a_network_nothing_is_said_of_it() {
        let sandbox = Sandbox { network: true, ..Sandbox::default() };
        let said = |output: &str| {
            hint(&sandbox, Kind::Bubblewrap, Ended { command: "make", exit_code: 1, output })
        };
        assert_eq!(said("curl: (6) Could not resolve host: example.org"), None);
        assert_eq!(said("Error: connect ECONNREFUSED 127.0.0.1:5432"), None);
        assert_eq!(said("touch: cannot touch '/x': Read-only file system"), Some(PLACES));
    }

    #[test]
    fn a_hint_is_given_for_a_quiet_failure_of_a_download() {
        check("curl -s https://example.org", 6, "", Some(NETWORK));
        check("curl -s http://192.0.2.1", 7, "", Some(NETWORK));
        check("wget -q https://example.org", 4, "\n", Some(NETWORK));
        check("curl -s http://127.0.0.1:8080", 7, "", Some(LOCALHOST));
        check("wget -q http://localhost:8080", 4, "", Some(LOCALHOST));
        check("./curl-test", 6, "2 of 8 failed", None);
        check("make", 6, "", None);
    }

    #[test]
    fn a_place_of_secrets_is_named_as_such_however_it_is_hidden() {
        let missing = "cat: /home/me/.ssh/config: No such file or directory";
        check("cat ~/.ssh/config", 1, missing, Some(SECRETS));
        check("./deploy", 1, "deploy: /home/me/.aws/credentials: Permission denied", Some(SECRETS));
        check("ls \"$HOME/.config/gh\"", 0, "", Some(SECRETS));
        check("ls ${HOME}/.config/gh", 0, "\n", Some(SECRETS));
        check("ls ~/notes", 0, "", None);
        check("grep -r '~/.ssh' docs", 0, "docs/a:~/.ssh", None);
        check("cat .ssh/config", 1, "cat: .ssh/config: No such file or directory", None);
        check("ls ~/.docker", 0, "", None);
    }
}
