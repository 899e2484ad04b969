//! What people do every day works in a sandbox.

use std::os::unix::net::UnixListener;

use ikigai_tools::SandboxKind;

use crate::support::enclosed::{REACHED, Walls, in_each_sandbox};
use crate::support::skip;

#[test]
fn files_of_the_tree_and_temporary_ones_are_written() {
    in_each_sandbox(|enclosed| {
        enclosed.prints("mkdir -p a/b && echo x > a/b/c && mv a/b/c a/d && ln -s d a/e && rm a/e");
        assert_eq!(enclosed.workspace.read_text("a/d"), "x\n");
        enclosed.prints("f=$(mktemp) && echo x > $f && rm $f");
        assert_eq!(enclosed.prints("cat <<< here"), "here\n");
        assert_eq!(enclosed.prints("echo to > /dev/null; echo two > /dev/stderr"), "two\n");
        enclosed.prints("chmod +x a/d && test -x a/d && mkfifo pipe && test -p pipe");
        enclosed.prints("head -c 10 /dev/urandom > random && head -c 5 /dev/zero > zero");
    });
}

#[test]
fn git_commits() {
    in_each_sandbox(|enclosed| {
        let lines = enclosed.prints(
            "git init -q . && git config user.name a && git config user.email a@b &&
             echo x > file && git add file && git commit -qm first && git status --short &&
             git log --oneline | wc -l",
        );
        assert_eq!(lines.trim(), "1");
    });
}

#[test]
fn make_builds() {
    in_each_sandbox(|enclosed| {
        enclosed.workspace.write("Makefile", "all: b c\nb c: a\n\tcp a $@\n").write("a", "x\n");
        enclosed.prints("make -j2");
        assert_eq!(enclosed.workspace.read_text("c"), "x\n");
    });
}

#[test]
fn python_runs_its_tests() {
    in_each_sandbox(|enclosed| {
        enclosed.workspace.write(
            "test_it.py",
            "import subprocess, tempfile, threading, unittest
class It(unittest.TestCase):
    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            open(folder + '/x', 'w').close()
    def test_processes(self):
        self.assertEqual(subprocess.check_output(['echo', 'x']), b'x\\n')
    def test_threads(self):
        thread = threading.Thread(target=print)
        thread.start()
        thread.join()
    def test_event_loop(self):
        import asyncio
        asyncio.run(asyncio.sleep(0))
",
        );
        let output = enclosed.prints("python3 -m unittest");
        assert!(output.contains("Ran 4 tests") && output.contains("OK"), "{output}");
    });
}

#[test]
fn npm_runs_its_scripts_and_installs_what_is_there() {
    in_each_sandbox(|enclosed| {
        if !enclosed.has("npm") {
            return skip("npm is not installed");
        }
        enclosed
            .workspace
            .write("lib/package.json", r#"{"name": "lib", "version": "1.0.0"}"#)
            .write("lib/index.js", "module.exports = 'from lib';")
            .write(
                "package.json",
                r#"{"scripts": {"test": "node test.js"}, "dependencies": {"lib": "file:lib"}}"#,
            )
            .write(
                "test.js",
                "const output = require('child_process').execSync('echo child').toString();
                 console.log(require('lib'), output.trim());",
            );
        // Its store is in the home directory unless it is told.
        enclosed.prints("npm install --offline --no-audit --no-fund --cache $TMPDIR/npm");
        // A store that cannot be written does not keep it from running what is there.
        let output = enclosed.prints("npm test --silent");
        assert_eq!(output, "from lib child\n", "{}", enclosed.kind);
    });
}

#[test]
fn cargo_builds_a_crate_without_dependencies() {
    in_each_sandbox(|enclosed| {
        enclosed
            .workspace
            .write("Cargo.toml", "[package]\nname = \"tiny\"\nedition = \"2024\"\n[workspace]\n")
            .write("src/main.rs", "fn main() { println!(\"built\"); }\n");
        // The first build leaves an error, if there is one, the second only the program's words.
        enclosed.prints("cargo build --offline");
        assert_eq!(enclosed.prints("target/debug/tiny"), "built\n");
    });
}

/// What was fetched lies in the home directory, where nothing can be written.
#[test]
fn cargo_builds_and_tests_with_dependencies_that_were_fetched() {
    in_each_sandbox(|enclosed| {
        let dependency = enclosed.root().join("outside/dependency");
        let manifest = |rest: &str| format!("[package]\nedition = \"2024\"\n{rest}\n[workspace]\n");
        enclosed
            .workspace
            .write("../outside/dependency/Cargo.toml", manifest("name = \"dependency\""))
            .write("../outside/dependency/src/lib.rs", "pub fn two() -> i32 { 2 }\n")
            .write(
                "Cargo.toml",
                manifest(&format!(
                    "name = \"tiny\"\n[dependencies.dependency]\ngit = \"file://{}\"",
                    dependency.display()
                )),
            )
            .write(
                "src/lib.rs",
                "#[test]\nfn adds_up() { assert_eq!(dependency::two(), 1 + 1); }\n",
            );
        let commit = format!(
            "cd {} && git init -q && git add . && git -c user.name=a -c user.email=a@b commit -qm a",
            dependency.display()
        );
        for outside in [&*commit, "cargo fetch"] {
            let result = enclosed.bash(outside, Walls::Down);
            assert_eq!(result["data"]["exit_code"], 0, "{outside}: {result}");
        }
        std::fs::remove_dir_all(&dependency).unwrap();
        let output = enclosed.prints("cargo build && cargo test");
        assert!(output.contains("test adds_up ... ok"), "{output}");
        assert!(!enclosed.try_to(&format!("touch ~/.cargo/new && echo {REACHED}"), Walls::Up));
    });
}

/// Nobody can tell who listens at a Unix socket, so there are none unless the user asks for them. Under landlock there
/// are none at all.
#[test]
fn a_unix_socket_in_the_tree_is_reached_only_where_the_user_allows_sockets() {
    in_each_sandbox(|mut enclosed| {
        let _server = UnixListener::bind(enclosed.workspace.path("service")).unwrap();
        let attempt = format!(
            "python3 -c \"import socket; socket.socket(socket.AF_UNIX).connect('service')\" && echo {REACHED}"
        );
        assert!(!enclosed.try_to(&attempt, Walls::Up), "{}", enclosed.kind);
        enclosed.sandbox.unix_sockets = true;
        let is_reached = enclosed.try_to(&attempt, Walls::Up);
        assert_eq!(is_reached, enclosed.kind == SandboxKind::Bubblewrap);
    });
}

/// A web server that one command starts is there for the next one, and for nobody else.
#[test]
fn commands_of_one_agent_share_a_loopback() {
    in_each_sandbox(|enclosed| {
        if enclosed.kind != SandboxKind::Bubblewrap {
            return;
        }
        enclosed.workspace.write("page", "hello\n");
        let serve = "python3 -m http.server 8391 --bind 127.0.0.1 >log 2>&1 &
            until curl -s localhost:8391/page; do sleep 0.05; done";
        assert_eq!(enclosed.prints(serve), "hello\n");
        assert_eq!(enclosed.prints("curl -s localhost:8391/page"), "hello\n");
        let elsewhere = "curl -s localhost:8391/page || echo nobody";
        assert_eq!(enclosed.prints_as("1/", elsewhere), "nobody\n");
        let outside = enclosed.bash(elsewhere, Walls::Down);
        assert_eq!(outside["data"]["output"], "nobody\n");
        enclosed.close();
    });
}
