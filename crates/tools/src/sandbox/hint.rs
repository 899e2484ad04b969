//! A hint for the model when the sandbox is the likely reason why a command failed.

use std::path::Path;

use super::secrets::home_of;
use super::{Kind, Sandbox};

const NETWORK: &str =
    r#"[ikigai sandbox: no network; call bash with "network": true to ask for it]"#;
const LOCALHOST: &str = r#"[ikigai sandbox: localhost reaches only servers that your own commands started; call bash with "network": true to ask for others]"#;
const NO_SOCKETS: &str = r#"[ikigai sandbox: no sockets at all, not even on localhost; call bash with "network": true to ask for the network, or with "sandbox": false for Unix sockets]"#;
const UNIX_SOCKETS: &str = r#"[ikigai sandbox: no Unix sockets; the user can allow them by sandbox.unix_sockets = true, or call bash with "sandbox": false to ask for this command]"#;
/// Landlock cannot allow them.
const NO_UNIX_SOCKETS: &str =
    r#"[ikigai sandbox: no Unix sockets; call bash with "sandbox": false to ask for them]"#;
const SHARED_MEMORY: &str = r#"[ikigai sandbox: no shared memory and no semaphores, which Python's multiprocessing needs; call bash with "sandbox": false to ask for them]"#;
const SECRETS: &str = r#"[ikigai sandbox: locations of secrets cannot be read and may look empty; call bash with "sandbox": false to ask for it]"#;
const SETTINGS: &str = r#"[ikigai sandbox: git's settings and hooks, .ikigai, AGENTS.md and start-up files cannot be changed; call bash with "sandbox": false to ask for it]"#;
const PLACES: &str = r#"[ikigai sandbox: only the working tree and $TMPDIR can be written; call bash with "sandbox": false to ask for more]"#;
/// Landlock denies access where bubblewrap shows an empty folder.
const PLACES_AND_SECRETS: &str = r#"[ikigai sandbox: only the working tree and $TMPDIR can be written; locations of secrets cannot be read, nor the folders around them listed; call bash with "sandbox": false to ask for more]"#;

/// Errors for a refused socket family. Under bubblewrap these are Unix sockets.
const NO_FAMILY: [&str; 2] = ["ddress family not supported", "EAFNOSUPPORT"];

/// Errors for a missing network.
const NO_NETWORK: [&str; 17] = [
    "Could not resolve host",
    "could not resolve host",
    "Temporary failure in name resolution",
    "Temporary failure resolving",
    "Name or service not known",
    "failed to lookup address information",
    "Network is unreachable",
    "network is unreachable",
    "ENETUNREACH",
    "EAI_AGAIN",
    "unable to resolve host address",
    "ENOTFOUND",
    "UnknownHostException",
    "dns error",
    "dial tcp",
    "Couldn't connect to server",
    "No matching distribution found",
];

/// Errors when nothing is listening. They only count for localhost: whether a remote server listens
/// cannot be known here.
const NO_LISTENER: [&str; 2] = ["onnection refused", "ECONNREFUSED"];

/// Exit codes for the same errors from programs in quiet mode.
const NO_NETWORK_QUIETLY: [(&str, i32); 4] = [("curl", 5), ("curl", 6), ("curl", 7), ("wget", 4)];

const LOCALHOST_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Most programs capitalize these, Go programs do not.
const REFUSED: [&str; 5] =
    ["ead-only file system", "ermission denied", "peration not permitted", "EROFS", "EACCES"];

/// Appear in the output when shared memory is refused.
const SHARED: [&str; 4] = ["SemLock", "shared_memory", "/dev/shm", "shm_open"];

/// Errors for a path that looks empty.
const MISSING: [&str; 2] = ["No such file", "ENOENT"];

/// The exit code of bash for a file that is not executable, usually because its mode was never set.
const NOT_EXECUTABLE: i32 = 126;

/// Errors for a read-only mount inside the tree.
const READ_ONLY_ERRORS: [&str; 3] = ["Read-only file system", "Device or resource busy", "EBUSY"];

/// Names on the same line that identify such a mount (see `read_only.rs`).
const READ_ONLY_NAMES: [&str; 8] =
    [".git/", "'.git'", "config file", ".ikigai", "AGENTS.md", "rc:", "rc'", "profile"];

/// Ways to spell the home directory in a command.
const HOME: [&str; 3] = ["~/", "$HOME/", "${HOME}/"];

/// Commands that only inspect, and may print nothing if there is nothing to see.
const LOOKING: [&str; 6] = ["ls", "cat", "find", "head", "tail", "test"];

/// A finished command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndedCommand<'a> {
    pub(crate) command: &'a str,
    pub(crate) exit_code: i32,
    pub(crate) output: &'a str,
}

/// The line to append to the output.
pub(crate) fn hint(sandbox: &Sandbox, kind: Kind, ended: EndedCommand<'_>) -> Option<&'static str> {
    let EndedCommand { command, exit_code, output } = ended;
    if output.trim().is_empty() && is_look(command) && names_secret(sandbox, command) {
        return Some(SECRETS);
    }
    if exit_code == 0 {
        return None;
    }
    if let Some(line) = output.lines().find_map(|line| sockets(sandbox, kind, line)) {
        return Some(line);
    }
    if !sandbox.network
        && let Some(line) = network(kind, ended)
    {
        return Some(line);
    }
    if output.lines().any(|line| says(line, &READ_ONLY_ERRORS) && says(line, &READ_ONLY_NAMES)) {
        return Some(SETTINGS);
    }
    let is_refused = |line: &str| says(line, &REFUSED) || says(line, &MISSING);
    if output.lines().any(|line| is_refused(line) && names_secret(sandbox, line)) {
        return Some(SECRETS);
    }
    (exit_code != NOT_EXECUTABLE && says(output, &REFUSED)).then_some(match kind {
        Kind::Bubblewrap => PLACES,
        Kind::Landlock if says(output, &SHARED) => SHARED_MEMORY,
        Kind::Landlock => PLACES_AND_SECRETS,
    })
}

fn sockets(sandbox: &Sandbox, kind: Kind, line: &str) -> Option<&'static str> {
    let hint = match kind {
        Kind::Bubblewrap => (!sandbox.unix_sockets).then_some(UNIX_SOCKETS),
        Kind::Landlock if sandbox.network => Some(NO_UNIX_SOCKETS),
        Kind::Landlock => Some(NO_SOCKETS),
    };
    hint.filter(|_| says(line, &NO_FAMILY))
}

fn network(kind: Kind, ended: EndedCommand<'_>) -> Option<&'static str> {
    let EndedCommand { command, exit_code, output } = ended;
    let localhost = match kind {
        Kind::Bubblewrap => LOCALHOST,
        Kind::Landlock => NO_SOCKETS,
    };
    let quietly = |(name, code): &(&str, i32)| exit_code == *code && command.contains(name);
    if output.trim().is_empty() && NO_NETWORK_QUIETLY.iter().any(quietly) {
        return Some(if says(command, &LOCALHOST_NAMES) { localhost } else { NETWORK });
    }
    output.lines().find_map(|line| match says(line, &LOCALHOST_NAMES) {
        true => (says(line, &NO_NETWORK) || says(line, &NO_LISTENER)).then_some(localhost),
        false => says(line, &NO_NETWORK).then_some(NETWORK),
    })
}

fn is_look(command: &str) -> bool {
    command.split_whitespace().next().is_some_and(|program| LOOKING.contains(&program))
}

/// Whether a text contains the path of a hidden folder, absolute or relative to the home directory.
fn names_secret(sandbox: &Sandbox, text: &str) -> bool {
    let Sandbox { write, read, hidden, .. } = sandbox;
    let home = home_of(hidden);
    let is_shown = |place: &Path| write.iter().chain(read).any(|root| root.path() == place);
    let hidden = hidden.iter().filter(|place| !is_shown(place));
    hidden.into_iter().any(|place| names(text, home, place))
}

fn names(text: &str, home: Option<&Path>, place: &Path) -> bool {
    let from_home = home.and_then(|home| place.strip_prefix(home).ok());
    let ways = from_home.into_iter().flat_map(|rest| HOME.map(|home| Path::new(home).join(rest)));
    ways.chain([place.to_owned()]).any(|path| has_path(text, &path.to_string_lossy()))
}

/// Whether a text contains a path that is not just the prefix of a longer name.
fn has_path(text: &str, path: &str) -> bool {
    let goes_on = |rest: &str| {
        let next = rest.chars().next();
        next.is_some_and(|next| next.is_alphanumeric() || ['-', '_', '.'].contains(&next))
    };
    text.match_indices(path).any(|(start, _)| !goes_on(&text[start + path.len()..]))
}

fn says(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::{
        EndedCommand, Kind, LOCALHOST, NETWORK, NO_SOCKETS, NO_UNIX_SOCKETS, PLACES,
        PLACES_AND_SECRETS, SECRETS, SETTINGS, SHARED_MEMORY, Sandbox, UNIX_SOCKETS, hint,
    };
    use crate::sandbox::{Identity, Root};

    fn sandbox() -> Sandbox {
        let root = |path: &str| Root::known(path.into(), Identity { device: 0, inode: 0 }, true);
        Sandbox {
            write: vec![root("/home/me/.kube")],
            read: vec![root("/home/me/.docker")],
            hidden: crate::sandbox::secret_places("/home/me".as_ref()),
            ..Sandbox::default()
        }
    }

    #[track_caller]
    fn check(command: &str, exit_code: i32, output: &str, expected: Option<&str>) {
        let ended = EndedCommand { command, exit_code, output };
        let line = hint(&sandbox(), Kind::Bubblewrap, ended);
        assert_eq!(line, expected, "{command}: {output:?}");
    }

    #[test]
    fn a_hint_is_given_where_the_sandbox_is_the_likely_reason() {
        let said = |output: &str, expected| check("make", 1, output, expected);
        said("curl: (6) Could not resolve host: example.org", Some(NETWORK));
        let refused = |host: &str| {
            format!(
                "curl: (7) Failed to connect to {host} port 80 after 0 ms: Couldn't connect to server"
            )
        };
        said(&refused("192.0.2.1"), Some(NETWORK));
        said(&refused("localhost"), Some(LOCALHOST));
        said("Error: connect ECONNREFUSED 127.0.0.1:5432", Some(LOCALHOST));
        said("Error: connect ECONNREFUSED ::1:3000", Some(LOCALHOST));
        said("database: Connection refused", None);
        said("pip: ERROR: No matching distribution found for x", Some(NETWORK));
        said("touch: cannot touch '/x': Read-only file system", Some(PLACES));
        said("open /x: permission denied", Some(PLACES));
        let config = "error: could not write config file .git/config: Device or resource busy";
        said(config, Some(SETTINGS));
        said("mv: cannot move 'AGENTS.md' to 'b': Device or resource busy", Some(SETTINGS));
        said("fatal: could not create '../side/.git': Read-only file system", Some(PLACES));
        said("mount: Device or resource busy", None);
        said("error[E0425]: cannot find function `getaddrinfo`", None);
        said("", None);
        check("./script", 126, "bash: ./script: Permission denied", None);
    }

    #[test]
    fn with_a_network_nothing_is_said_of_it() {
        let sandbox = Sandbox { network: true, ..Sandbox::default() };
        let said = |output: &str| {
            hint(&sandbox, Kind::Bubblewrap, EndedCommand { command: "make", exit_code: 1, output })
        };
        assert_eq!(said("curl: (6) Could not resolve host: example.org"), None);
        assert_eq!(said("Error: connect ECONNREFUSED 127.0.0.1:5432"), None);
        assert_eq!(said("touch: cannot touch '/x': Read-only file system"), Some(PLACES));
    }

    #[test]
    fn with_landlock_there_is_no_localhost_and_more_is_refused() {
        let said = |output: &str| {
            hint(&sandbox(), Kind::Landlock, EndedCommand { command: "make", exit_code: 1, output })
        };
        assert_eq!(said("Error: connect ECONNREFUSED 127.0.0.1:5432"), Some(NO_SOCKETS));
        assert_eq!(said("ls: '/': Permission denied"), Some(PLACES_AND_SECRETS));
        let semaphore = "_multiprocessing.SemLock(\nPermissionError: [Errno 13] Permission denied";
        assert_eq!(said(semaphore), Some(SHARED_MEMORY));
    }

    #[test]
    fn the_hint_for_a_socket_names_what_would_allow_it() {
        let check = |kind, network, unix_sockets, expected| {
            let sandbox = Sandbox { network, unix_sockets, ..Sandbox::default() };
            for output in [
                "OSError: [Errno 97] Address family not supported by protocol",
                "dial unix /x: socket: address family not supported by protocol",
                "Error: listen EAFNOSUPPORT /x",
            ] {
                let ended = EndedCommand { command: "make", exit_code: 1, output };
                assert_eq!(hint(&sandbox, kind, ended), expected, "{kind}: {output}");
            }
        };
        check(Kind::Bubblewrap, false, false, Some(UNIX_SOCKETS));
        check(Kind::Bubblewrap, true, false, Some(UNIX_SOCKETS));
        check(Kind::Bubblewrap, true, true, None);
        check(Kind::Landlock, false, false, Some(NO_SOCKETS));
        check(Kind::Landlock, true, false, Some(NO_UNIX_SOCKETS));
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
        check("./deploy", 1, "deploy: cannot open ~/.netrc: EACCES", Some(SECRETS));
        check("ls \"$HOME/.config/gh\"", 0, "", Some(SECRETS));
        check("ls ${HOME}/.config/gh", 0, "\n", Some(SECRETS));
        check("test -f ~/.ssh/id", 1, "", Some(SECRETS));
    }

    #[test]
    fn a_command_that_only_speaks_of_secrets_is_left_alone() {
        check("ls ~/notes", 0, "", None);
        check("ls ~/.docker ~/.kube", 0, "", None);
        check("ls ~/.config/ghostty ~/.aws-sam", 0, "", None);
        check("sed -i 's#~/.ssh/config#x#' a.c", 0, "", None);
        check("git commit -qm 'docs: where ~/.ssh is'", 0, "", None);
        check("grep -rn '~/.ssh/config' a.c", 1, "", None);
        check("grep -r '~/.ssh' docs", 0, "docs/a:~/.ssh", None);
        let other = "make: *** No rule to make target 'x'.";
        check("export KUBECONFIG=$HOME/.aws/config; make x", 2, other, None);
        check("cat .ssh/config", 1, "cat: .ssh/config: No such file or directory", None);
    }
}
