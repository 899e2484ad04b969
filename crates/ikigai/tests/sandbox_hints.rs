//! A command that fails for want of something outside says how to ask for it.

use crate::support::enclosed::{Enclosed, Walls, in_each_sandbox};
use crate::support::skip;

const PATHS: &str = r#"[ikigai sandbox: only the working tree and $TMPDIR can be written; call bash with "sandbox": false to ask for more]"#;
const NETWORK: &str =
    r#"[ikigai sandbox: no network; call bash with "sandbox": false to ask for it]"#;

fn last_line(enclosed: &Enclosed, command: &str) -> String {
    let result = enclosed.bash(command, Walls::Up);
    result["data"]["output"].as_str().unwrap().lines().last().unwrap_or("").to_owned()
}

#[test]
fn a_place_that_cannot_be_written_is_explained() {
    in_each_sandbox(|enclosed| {
        let line = |command: &str| last_line(&enclosed, command);
        for command in [
            "echo x > ../outside/file",
            "touch ../outside/new",
            "mkdir ../outside/new",
            "cp /dev/null ../outside/file",
            "rm ../outside/file",
            "python3 -c \"open('../outside/file', 'w')\"",
            "git init -q ../outside/repository",
        ] {
            assert_eq!(line(command), PATHS, "{}: {command}", enclosed.kind);
        }
        assert_eq!(line("echo x > ../outside/file; echo done"), "done");
        assert_eq!(line("echo failed; exit 1"), "failed");
    });
}

/// Without a network the address does not matter; with one, none of these would be reached either.
#[test]
fn a_network_that_is_not_there_is_explained() {
    in_each_sandbox(|enclosed| {
        enclosed.workspace.write(
            "Cargo.toml",
            "[package]\nname = \"tiny\"\nedition = \"2024\"\n[dependencies]\nrand = \"0.9\"\n[workspace]\n",
        );
        enclosed.workspace.write("src/lib.rs", "");
        for command in [
            "curl -sS http://example.invalid/",
            "curl -sS http://192.0.2.1/",
            "wget -t 1 -nv http://example.invalid/",
            "git ls-remote https://example.invalid/x.git",
            "git clone git://192.0.2.1/x.git",
            "pip download --retries 0 --no-input --no-cache-dir --index-url https://example.invalid/simple rand",
            "npm view --fetch-retries 0 --registry https://example.invalid/ rand",
            "cargo fetch --config net.retry=0 --config registries.crates-io.protocol=\\'sparse\\'",
            "python3 -c \"import socket; socket.create_connection(('192.0.2.1', 80), 5)\"",
            "python3 -c \"import urllib.request as r; r.urlopen('http://example.invalid/')\"",
            "node -e \"fetch('http://example.invalid/')\"",
            "exec 3<>/dev/tcp/192.0.2.1/80",
            "ssh -o BatchMode=yes example.invalid true",
        ] {
            let program = command.split(' ').next().unwrap();
            if enclosed.bash(&format!("type {program}"), Walls::Up)["data"]["exit_code"] != 0 {
                skip(&format!("{program} is not installed"));
                continue;
            }
            let line = last_line(&enclosed, command);
            assert_eq!(line, NETWORK, "{}: {command}", enclosed.kind);
        }
    });
}
