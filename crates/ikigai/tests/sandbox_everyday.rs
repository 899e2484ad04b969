//! Everyday work succeeds in a sandbox.

use std::os::unix::net::UnixListener;
use std::path::Path;

use ikigai_testkit::{ModelServer, Reply};
use ikigai_tools::SandboxKind;
use serde_json::json;

use crate::support::Workspace;
use crate::support::model::Format;
use crate::support::sandboxed::{Isolation, REACHED, in_each_sandbox, in_sandbox};

#[test]
fn files_of_the_tree_and_temporary_ones_are_written() {
    in_each_sandbox(|fixture| {
        fixture.prints("mkdir -p a/b && echo x > a/b/c && mv a/b/c a/d && ln -s d a/e && rm a/e");
        assert_eq!(fixture.workspace.read_text("a/d"), "x\n");
        fixture.prints("f=$(mktemp) && echo x > $f && rm $f");
        assert_eq!(fixture.prints("cat <<< here"), "here\n");
        assert_eq!(fixture.prints("echo to > /dev/null; echo two > /dev/stderr"), "two\n");
        fixture.prints("chmod +x a/d && test -x a/d && mkfifo pipe && test -p pipe");
        fixture.prints("head -c 10 /dev/urandom > random && head -c 5 /dev/zero > zero");
    });
}

#[test]
fn git_commits() {
    in_each_sandbox(|fixture| {
        let lines = fixture.prints(
            "git init -q . && git config user.name a && git config user.email a@b &&
             echo x > file && git add file && git commit -qm first && git status --short &&
             git log --oneline | wc -l",
        );
        assert_eq!(lines.trim(), "1");
    });
}

/// In an existing repository, as usual.
#[test]
fn git_works_with_branches_stashes_and_worktrees() {
    in_each_sandbox(|fixture| {
        let repository = "git init -q -b main . && git config user.name a &&
            git config user.email a@b && echo one > file && git add . && git commit -qm one";
        assert_eq!(fixture.bash(repository, Isolation::Unconfined)["data"]["exit_code"], 0);
        for step in [
            "echo two > file && git diff --stat && git stash -q && git status --short",
            "git stash pop -q && git switch -qc topic && git add -A && git commit -qm two",
            "git switch -q main && echo other > other && git add other && git commit -qm other",
            "git merge -q topic -m merged && git branch -d topic && git tag v1",
            "git switch -qc second HEAD^ && echo three > third && git add . && git commit -qm third",
            "git rebase -q main && git commit -q --amend -m amended && git reset -q --soft HEAD^",
            "git restore --staged third && rm third && git checkout -q main && git gc -q",
            "git worktree add -q side second && git -C side status --short && git worktree remove side",
            "git clone -q . copy && git -C copy pull -q && git -C copy log && rm -rf copy",
            "git clean -fdq && git fsck && git blame file && git show --stat && git bisect start",
        ] {
            fixture.prints(step);
        }
        assert_eq!(fixture.prints("cat file other && git status --short"), "two\nother\n");
    });
}

/// A Unix socket could lead to any service, so the hint names the setting that allows them.
#[test]
fn a_program_that_needs_a_unix_socket_is_told_of_the_setting() {
    in_each_sandbox(|mut fixture| {
        fixture.workspace.write(
            "manager.py",
            "import multiprocessing
if __name__ == '__main__':
    with multiprocessing.Manager() as manager:
        print(manager.list([1]))
",
        );
        let expected = match fixture.kind {
            SandboxKind::Bubblewrap => "sandbox.unix_sockets = true",
            SandboxKind::Landlock => "no sockets at all, not even on localhost",
        };
        let output = fixture.fails("python3 manager.py");
        assert!(output.lines().last().unwrap().contains(expected), "{}: {output}", fixture.kind);
        fixture.sandbox.unix_sockets = true;
        if fixture.kind == SandboxKind::Bubblewrap {
            assert_eq!(fixture.prints("python3 manager.py"), "[1]\n");
        }
    });
}

/// Pools need semaphores, which all processes of the user would share without a namespace.
#[test]
fn a_pool_of_python_processes_works_or_is_explained() {
    in_each_sandbox(|fixture| {
        fixture.workspace.write(
            "pool.py",
            "import concurrent.futures, multiprocessing
if __name__ == '__main__':
    with multiprocessing.Pool(2) as pool:
        print(pool.map(abs, [-1, 2]))
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        print(list(pool.map(abs, [-3, 4])))
",
        );
        if fixture.kind == SandboxKind::Bubblewrap {
            assert_eq!(fixture.prints("python3 pool.py"), "[1, 2]\n[3, 4]\n");
        } else {
            let output = fixture.fails("python3 pool.py");
            let hint = output.lines().last().unwrap();
            assert!(hint.contains("Python's multiprocessing"), "{output}");
        }
    });
}

#[test]
fn programs_talk_to_their_children() {
    in_each_sandbox(|fixture| {
        fixture
            .workspace
            .write(
                "loop.py",
                "import asyncio
async def main():
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec('cat', stdin=pipe, stdout=pipe)
    print((await child.communicate(b'from a child'))[0].decode())
    print(await asyncio.to_thread(str, 'from a thread'))
asyncio.run(main())
",
            )
            .write(
                "fork.js",
                "const {fork} = require('child_process');
                 if (process.argv[2]) { process.send('from a child'); process.disconnect(); }
                 else fork(__filename, ['child']).on('message', text => console.log(text));",
            )
            .write(
                "worker.js",
                "const {Worker, isMainThread, parentPort} = require('worker_threads');
                 if (isMainThread) new Worker(__filename).on('message', text => console.log(text));
                 else parentPort.postMessage('from a thread');",
            );
        assert_eq!(fixture.prints("python3 loop.py"), "from a child\nfrom a thread\n");
        if fixture.has_tool("node --version") {
            let output = fixture.prints("node fork.js && node worker.js");
            assert_eq!(output, "from a child\nfrom a thread\n");
        }
    });
}

/// It is unknown who listens on a Unix socket, so there are none unless the user allows them. Under
/// landlock there are none at all.
#[test]
fn a_unix_socket_in_the_tree_is_reached_only_where_the_user_allows_sockets() {
    in_each_sandbox(|mut fixture| {
        let _server = UnixListener::bind(fixture.workspace.path("service")).unwrap();
        let attempt = format!(
            "python3 -c \"import socket; socket.socket(socket.AF_UNIX).connect('service')\" && echo {REACHED}"
        );
        assert!(!fixture.try_to(&attempt, Isolation::Sandboxed), "{}", fixture.kind);
        fixture.sandbox.unix_sockets = true;
        let is_reached = fixture.try_to(&attempt, Isolation::Sandboxed);
        assert_eq!(is_reached, fixture.kind == SandboxKind::Bubblewrap);
    });
}

/// A web server started by one command is available to the next one, and to no other process.
#[test]
fn commands_of_one_agent_share_a_loopback() {
    in_sandbox(SandboxKind::Bubblewrap, |fixture| {
        if !fixture.has_tool("curl --version") {
            return;
        }
        fixture.workspace.write("page", "hello\n");
        let serve = "python3 -m http.server 8391 --bind 127.0.0.1 >log 2>&1 &
            until curl -s localhost:8391/page; do sleep 0.05; done";
        assert_eq!(fixture.prints(serve), "hello\n");
        assert_eq!(fixture.prints("curl -s localhost:8391/page"), "hello\n");
        let elsewhere = "curl -s localhost:8391/page || echo nobody";
        assert_eq!(fixture.prints_as("1/", elsewhere), "nobody\n");
        let outside = fixture.bash(elsewhere, Isolation::Unconfined);
        assert_eq!(outside["data"]["output"], "nobody\n");
        fixture.close();
    });
}

/// With landlock there are no sockets, and a model must not suspect the server.
#[test]
fn a_web_server_without_sockets_is_explained() {
    in_sandbox(SandboxKind::Landlock, |fixture| {
        for command in [
            "python3 -m http.server 8392 --bind 127.0.0.1",
            "python3 -m http.server 8392 >log 2>&1 & curl -sS localhost:8392",
            "curl -s http://127.0.0.1:8392/",
        ] {
            let output = fixture.fails(command);
            let hint = output.lines().last().unwrap();
            assert!(hint.contains("no sockets at all, not even on localhost"), "{output}");
        }
        fixture.close();
    });
}

/// The whole program, where a question could not be answered. Caches are those of the session.
#[test]
fn a_session_in_mode_work_serves_fetches_and_caches_without_a_question() {
    in_sandbox(SandboxKind::Bubblewrap, |fixture| {
        if !fixture.has_tool("curl --version") {
            return;
        }
        let serve = "python3 -m http.server 8393 --bind 127.0.0.1 >log 2>&1 &
            until curl -s localhost:8393/page; do sleep 0.05; done";
        let fetch = "mkdir -p $GOCACHE && echo $GOCACHE >cache && curl -s localhost:8393/page";
        let calls = [("serve", serve), ("fetch", fetch)];
        let calls = calls.map(|(id, command)| Reply::call(id, "bash", json!({"command": command})));
        let server = ModelServer::start(calls.into_iter().chain([Reply::text("Done.")]));
        let workspace = Workspace::new();
        workspace.write("page", "hello\n");
        let (code, events) = workspace.run_json(&server, Format::Chat, ["go"]);
        assert_eq!(code, 0, "{events:?}");
        for (request, call) in [(1, "serve"), (2, "fetch")] {
            let output = server.requests()[request].tool_output(call);
            assert_eq!(output["data"], json!({"output": "hello\n", "exit_code": 0}), "{call}");
        }
        let cache = workspace.read_text("cache");
        assert!(cache.ends_with("/ikigai-caches/go-build\n"), "{cache}");
        assert!(!Path::new(cache.trim()).exists(), "{cache}");
    });
}

/// What an agent can write must not be where a command outside the sandbox looks for earlier build
/// results.
#[test]
fn outside_the_sandbox_caches_stay_where_they_are() {
    let command = json!({"command": "echo $GOCACHE$npm_config_cache"});
    let result = Workspace::unconfined().tool("bash", command);
    assert_eq!(result, r#"{"success":true,"data":{"output":"\n","exit_code":0}}"#);
}
