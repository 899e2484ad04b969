//! A command that fails because of the sandbox tells how to request access.

use ikigai_tools::SandboxKind;

use crate::support::sandboxed::{Isolation, SandboxFixture, in_each_sandbox};
use crate::support::skip;

const NETWORK: &str =
    r#"[ikigai sandbox: no network; call bash with "network": true to ask for it]"#;

const LOCALHOST: &str = r#"[ikigai sandbox: localhost reaches only servers that your own commands started; call bash with "network": true to ask for others]"#;
const NO_SOCKETS: &str = r#"[ikigai sandbox: no sockets at all, not even on localhost; call bash with "network": true to ask for the network, or with "sandbox": false for Unix sockets]"#;
const SECRETS: &str = r#"[ikigai sandbox: locations of secrets cannot be read and may look empty; call bash with "sandbox": false to ask for it]"#;

fn refused(kind: SandboxKind) -> &'static str {
    match kind {
        SandboxKind::Bubblewrap => {
            r#"[ikigai sandbox: only the working tree and $TMPDIR can be written; call bash with "sandbox": false to ask for more]"#
        }
        SandboxKind::Landlock => {
            r#"[ikigai sandbox: only the working tree and $TMPDIR can be written; locations of secrets cannot be read, nor the folders around them listed; call bash with "sandbox": false to ask for more]"#
        }
    }
}

fn last_line(fixture: &SandboxFixture, command: &str) -> String {
    let result = fixture.bash(command, Isolation::Sandboxed);
    result["data"]["output"].as_str().unwrap().lines().last().unwrap_or("").to_owned()
}

#[test]
fn a_place_that_cannot_be_written_is_explained() {
    in_each_sandbox(|fixture| {
        let line = |command: &str| last_line(&fixture, command);
        for command in [
            "echo x > ../outside/file",
            "touch ../outside/new",
            "mkdir ../outside/new",
            "cp /dev/null ../outside/file",
            "rm ../outside/file",
            "python3 -c \"open('../outside/file', 'w')\"",
            "git init -q ../outside/repository",
        ] {
            assert_eq!(line(command), refused(fixture.kind), "{}: {command}", fixture.kind);
        }
        assert_eq!(line("echo x > ../outside/file; echo done"), "done");
        assert_eq!(line("echo failed; exit 1"), "failed");
    });
}

/// Without a network the address does not matter; with one, none of these could be reached either.
#[test]
fn a_network_that_is_not_there_is_explained() {
    in_each_sandbox(|fixture| {
        fixture.workspace.write(
            "Cargo.toml",
            "[package]\nname = \"tiny\"\nedition = \"2024\"\n[dependencies]\nrand = \"0.9\"\n[workspace]\n",
        );
        fixture.workspace.write("src/lib.rs", "");
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
            if !fixture.has(program) {
                skip(&format!("{program} is not installed"));
                continue;
            }
            if program == "ssh"
                && fixture.bash("id -un", Isolation::Sandboxed)["data"]["exit_code"] != 0
            {
                skip("ssh does not work for a user without a name");
                continue;
            }
            let line = last_line(&fixture, command);
            let is_socket = fixture.kind == SandboxKind::Landlock && line == NO_SOCKETS;
            assert!(line == NETWORK || is_socket, "{}: {command}: {line}", fixture.kind);
        }
    });
}

/// A server on this machine cannot be reached, and that is not the server's fault.
#[test]
fn a_server_on_localhost_that_cannot_be_reached_is_explained() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let port = address.port();
    in_each_sandbox(|fixture| {
        for command in [
            format!("exec 3<>/dev/tcp/127.0.0.1/{port}"),
            format!("curl -sS http://localhost:{port}/"),
            format!("curl -s http://{address}/"),
        ] {
            if command.starts_with("curl") && !fixture.has("curl") {
                skip("curl is not installed");
                continue;
            }
            let expected = match fixture.kind {
                SandboxKind::Bubblewrap => LOCALHOST,
                SandboxKind::Landlock => NO_SOCKETS,
            };
            assert_eq!(last_line(&fixture, &command), expected, "{}: {command}", fixture.kind);
        }
    });
}

#[test]
fn a_place_of_secrets_that_was_asked_for_is_explained() {
    in_each_sandbox(|fixture| {
        for command in ["cat ~/.ssh/id", "cat \"$HOME/.aws/key\"", "ls ~/.ssh"] {
            let line = last_line(&fixture, command);
            assert_eq!(line, SECRETS, "{}: {command}", fixture.kind);
        }
        assert_eq!(last_line(&fixture, "cat ~/notes"), "open");
    });
}
