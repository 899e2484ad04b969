//! Background commands: started by a call, told of at their end, looked at and ended meanwhile.

use std::fs;
use std::path::Path;

use ikigai_testkit::{ModelServer, Reply};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::support::model::{Format, Running, assert_stable};
use crate::support::processes::{kill, start_run};
use crate::support::story::{assert_whole, contents, kinds, of_type};
use crate::support::{
    Workspace, failure, is_running, pid, success, wait_for, wait_for_pid, wait_until_gone,
};

fn background(id: &'static str, command: &str) -> Reply {
    Reply::call(id, "bash", json!({"command": command, "background": true}))
}

fn command(id: &'static str, arguments: Value) -> Reply {
    Reply::call(id, "command", arguments)
}

/// A command that runs until the file is there.
fn until(file: &str) -> String {
    format!("until [ -e {file} ]; do sleep 0.01; done")
}

fn running(id: i64, output: &str) -> Value {
    success(json!({"command_id": id, "running": true, "output": output}))
}

/// The first line and the rest of the only notification in a log.
fn notified(log: &[Value]) -> (String, String) {
    let told = contents(log, "notification");
    assert_eq!(told.len(), 1, "{told:?}");
    let (first, rest) = told[0].split_once('\n').unwrap_or((told[0], ""));
    (first.to_owned(), rest.to_owned())
}

#[test]
fn a_command_goes_on_after_its_call_and_its_end_wakes_the_agent() {
    for format in Format::BOTH {
        let build = format!("echo building; {}; echo one; echo two; exit 3", until("go"));
        let server = ModelServer::start([
            background("c1", &build),
            Reply::text("It builds."),
            Reply::text("It failed."),
        ]);
        let workspace = Workspace::new();
        let mut run = workspace.run_command(&server, format, ["--json", "--wait-commands", "go"]);
        let run = Running::start(&mut run);
        run.until("command_started");
        server.wait_for_requests(2);
        workspace.touch(["go"]);
        let (code, seen, stderr) = run.finish();
        assert_eq!((code, &*stderr), (0, ""));
        let ended = of_type(&seen, "command_ended");
        assert_eq!(
            ended,
            [&json!({"type": "command_ended", "agent": "0/", "command": 1, "exit_code": 3})]
        );
        let log = workspace.log("0/");
        assert_whole(&log);
        let expected =
            ["user", "tool_call", "tool_result", "assistant", "notification", "assistant"];
        assert_eq!(kinds(&log), expected);
        let (first, rest) = notified(&log);
        let start = "[Notification: Command #1 finished with exit code 3 after ";
        assert!(first.starts_with(start) && first.ends_with("]"), "{first}");
        assert_eq!(rest, format!("  $ {build}\n  building\n  one\n  two"));
        let requests = server.requests();
        assert_eq!(requests[1].tool_output("c1"), running(1, ""));
        assert_stable(&requests);
    }
}

#[test]
fn output_and_list_show_what_is_new_and_an_end_that_was_seen_is_not_told_again() {
    let server = ModelServer::start([
        background("c1", &format!("echo one; {}; echo two; {}", until("go"), until("end"))),
        command("c2", json!({"action": "output", "id": 1, "wait": 60})),
        Reply::call("c3", "bash", json!({"command": "touch go"})),
        command("c4", json!({"action": "output", "id": "1", "pattern": "^t", "wait": 60})),
        command("c5", json!({"action": "list"})),
        Reply::call("c6", "bash", json!({"command": "touch end"})),
        command("c7", json!({"action": "output", "id": 1, "offset": 0, "wait": 0})),
        command("c8", json!({"action": "output", "id": 1, "wait": 60})),
        command("c9", json!({"action": "output", "id": 9})),
        command("c10", json!({"action": "stop"})),
        command("c11", json!({"action": "output", "id": 1, "pattern": "("})),
        Reply::text("done"),
    ]);
    let workspace = Workspace::new();
    let (code, _, stderr) = workspace.run_model(&server, Format::Chat, ["--wait-commands", "go"]);
    assert_eq!(code, 0, "{stderr}");
    let requests = server.requests();
    let last = requests.last().unwrap();
    let expected = json!({"output": "one\n", "command_id": 1, "running": true, "offset": 4});
    assert_eq!(last.tool_output("c2"), success(expected));
    let expected = json!({"output": "two\n", "command_id": 1, "running": true, "offset": 8});
    assert_eq!(last.tool_output("c4"), success(expected));
    let mut listed = last.tool_output("c5")["data"]["commands"][0].clone();
    listed["seconds"] = json!(0);
    let line = format!("echo one; {}; echo two; {}", until("go"), until("end"));
    let expected = json!({"command_id": 1, "running": true, "command": line, "seconds": 0,
        "last_line": "two"});
    assert_eq!(listed, expected);
    assert_eq!(last.tool_output("c7")["data"]["output"], "one\ntwo\n");
    let seen = last.tool_output("c8");
    assert_eq!((&seen["data"]["running"], &seen["data"]["exit_code"]), (&json!(false), &json!(0)));
    assert_eq!(last.tool_output("c9"), json!({"error": "Command #9 not found"}));
    assert_eq!(last.tool_output("c10"), json!({"error": "Missing required parameter: id"}));
    let error = last.tool_output("c11")["error"].as_str().unwrap().to_owned();
    assert!(error.starts_with("Invalid pattern: "), "{error}");
    assert_eq!(contents(&workspace.log("0/"), "notification"), Vec::<&str>::new());
}

#[test]
fn stop_ends_a_command_with_all_that_it_has_started() {
    let family =
        "trap '' TERM; (sleep 31415.7; true) & echo $! > child; echo $$ > leader; wait; wait";
    let server = ModelServer::start([
        background("c1", family),
        Reply::call("c2", "bash", json!({"command": until("leader")})),
        command("c3", json!({"action": "stop", "id": 1})),
        Reply::text("done"),
    ]);
    let workspace = Workspace::unconfined();
    let (code, _, stderr) = workspace.run_model(&server, Format::Chat, ["--wait-commands", "go"]);
    assert_eq!(code, 0, "{stderr}");
    for name in ["leader", "child"] {
        wait_until_gone(wait_for_pid(&workspace.path(name)));
    }
    let stopped = server.requests().last().unwrap().tool_output("c3");
    assert_eq!(stopped["data"]["running"], false, "{stopped}");
    assert_eq!(contents(&workspace.log("0/"), "notification"), Vec::<&str>::new());
}

#[test]
fn without_wait_commands_a_run_ends_them_and_says_so() {
    let server = ModelServer::start([
        background("c1", "echo $$ > leader; sleep 31415.8"),
        Reply::text("ok"),
    ]);
    let workspace = Workspace::unconfined();
    let mut command = workspace.run_command(&server, Format::Chat, ["go"]);
    let (code, stdout, stderr) = crate::support::ended(&mut command);
    assert_eq!((code, &*stdout), (0, "ok\n"));
    let line = "Command #1 was ended with ikigai: echo $$ > leader; sleep 31415.8";
    assert!(stderr.contains(line), "{stderr}");
    // It may have been ended before it wrote the file.
    if let Ok(number) = fs::read_to_string(workspace.path("leader")) {
        assert!(number.trim().is_empty() || gone(number.trim()), "{number}");
    }
}

fn gone(process: &str) -> bool {
    let id = process.parse().ok().and_then(rustix::process::Pid::from_raw);
    id.is_some_and(|id| !is_running(id))
}

#[test]
fn after_a_kill_the_next_turn_is_told_and_nothing_is_left() {
    let server = ModelServer::start([
        background("c1", "echo $$ > leader; sleep 31415.9"),
        Reply::silence(),
        Reply::text("I see."),
    ]);
    let workspace = Workspace::unconfined();
    let run = start_run(&workspace, &server, ["go"]);
    let leader = wait_for_pid(&workspace.path("leader"));
    server.wait_for_requests(2);
    kill(run);
    wait_until_gone(leader);
    let (code, _, stderr) = workspace.run_model(&server, Format::Chat, ["-c", "and now?"]);
    assert_eq!(code, 0, "{stderr}");
    let log = workspace.log("0/");
    let told = "Command #1 was ended with ikigai (it may have had effects)";
    assert_eq!(contents(&log, "notification"), [told]);
    let expected = ["user", "tool_call", "tool_result", "user", "notification", "assistant"];
    assert_eq!(kinds(&log), expected);
    assert_stable(&server.requests());
}

#[test]
fn an_agent_has_at_most_16_of_them() {
    let calls: Vec<String> = (0..17).map(|number| format!("c{number}")).collect();
    let arguments = json!({"command": "sleep 31415.2", "background": true});
    let calls = calls.iter().map(|id| (id.as_str(), "bash", arguments.clone()));
    let server = ModelServer::start([Reply::calls(calls), Reply::text("done")]);
    let workspace = Workspace::new();
    workspace.run_model(&server, Format::Chat, ["go"]);
    let requests = server.requests();
    assert_eq!(requests[1].tool_output("c15"), running(16, ""));
    let refused = failure("Maximum background commands (16) reached");
    assert_eq!(requests[1].tool_output("c16"), refused);
}

#[test]
fn a_time_limit_that_was_given_ends_it() {
    let arguments = json!({"command": "echo on; sleep 31415.1", "background": true, "timeout": 1});
    let server = ModelServer::start([
        Reply::call("c1", "bash", arguments),
        Reply::text("waiting"),
        Reply::text("done"),
    ]);
    let workspace = Workspace::new();
    let (code, _, _) = workspace.run_model(&server, Format::Chat, ["--wait-commands", "go"]);
    assert_eq!(code, 0);
    let (first, rest) = notified(&workspace.log("0/"));
    assert!(first.starts_with("[Notification: Command #1 finished with exit code 124 "), "{first}");
    assert!(rest.ends_with("  on\n  [Time limit reached: the command was ended]"), "{rest}");
}

#[test]
fn an_interrupted_run_leaves_no_process() {
    let server =
        ModelServer::start([background("c1", "echo $$ > leader; sleep 31415.6"), Reply::silence()]);
    let workspace = Workspace::unconfined();
    let run = start_run(&workspace, &server, ["go"]);
    let leader = wait_for_pid(&workspace.path("leader"));
    server.wait_for_requests(2);
    kill_process(pid(&run.child), Signal::INT).unwrap();
    assert_eq!(run.finish().0, 130);
    wait_until_gone(leader);
    assert_eq!(workspace.number("SELECT count(*) FROM commands WHERE state = 'lost'"), 1);
}

/// A dev server: the next command of the agent reaches it, and nothing outside the sandbox does.
#[test]
fn a_server_is_reached_by_the_next_command_and_from_nowhere_else() {
    if !Path::new("/usr/bin/bwrap").exists() {
        return crate::support::skip("bubblewrap is not installed");
    }
    let serve = "echo hello > page; exec python3 -m http.server 8417 --bind 127.0.0.1";
    let look = "for try in $(seq 200); do curl -sS localhost:8417/page && exit; sleep 0.05; done";
    let server = ModelServer::start([
        background("c1", serve),
        Reply::call("c2", "bash", json!({"command": format!("({look}) 2> /dev/null")})),
        Reply::silence(),
    ]);
    let workspace = Workspace::new();
    let run = start_run(&workspace, &server, ["go"]);
    let seen = server.wait_for_requests(3)[2].tool_output("c2");
    if seen["data"]["exit_code"] == 127 {
        return crate::support::skip("python3 or curl is not installed");
    }
    assert_eq!(seen, success(json!({"output": "hello\n", "exit_code": 0})));
    assert!(std::net::TcpStream::connect("127.0.0.1:8417").is_err());
    kill(run);
}

/// What it does to protected paths is undone while it runs.
#[test]
fn protected_paths_are_checked_beside_it() {
    let plant = "git init -q . && printf '#!/bin/sh\\n' > .git/hooks/pre-commit && \
        chmod +x .git/hooks/pre-commit && touch planted && sleep 31415.5";
    let server = ModelServer::start([background("c1", plant), Reply::silence()]);
    let workspace = Workspace::new();
    let run = start_run(&workspace, &server, ["go"]);
    wait_for("the hook to be planted", || workspace.path("planted").exists().then_some(()));
    let hook = workspace.path(".git/hooks/pre-commit");
    wait_for("the hook to be moved away", || (!hook.exists()).then_some(()));
    assert_eq!(workspace.number("SELECT count(*) FROM commands WHERE state = 'running'"), 1);
    kill(run);
}

#[test]
fn a_gigabyte_takes_little_memory_and_both_its_ends_are_kept() {
    let print = "echo first; yes 0123456789012345678901234567890123456789 | head -c 1000000000; \
        echo; echo last";
    let server = ModelServer::start([
        background("c1", print),
        command("c2", json!({"action": "output", "id": 1, "pattern": "first|last", "wait": 300})),
        command("c3", json!({"action": "output", "id": 1, "pattern": "last", "wait": 300})),
        Reply::silence(),
    ]);
    let workspace = Workspace::new();
    let run = start_run(&workspace, &server, ["go"]);
    let seen = server.wait_for_requests(4)[3].clone();
    assert!(seen.tool_output("c3")["data"]["output"].as_str().unwrap().contains("last\n"));
    let status = fs::read_to_string(format!("/proc/{}/status", run.child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").trim().parse().unwrap();
    assert!(peak < 64 * 1024, "{peak} kB");
    kill(run);
}

#[test]
fn wait_waits_for_commands_and_says_how_they_ended() {
    let server = ModelServer::start([
        background("c1", &format!("{}; exit 7", until("go"))),
        background("c2", "sleep 31415.4"),
        Reply::call("c3", "bash", json!({"command": "(sleep 0.2; touch go) &"})),
        Reply::call("c4", "wait", json!({"commands": [1]})),
        Reply::call("c5", "wait", json!({"commands": [1, 2], "timeout": 0})),
        Reply::call("c6", "wait", json!({"commands": [9]})),
        Reply::text("done"),
    ]);
    let workspace = Workspace::new();
    let (code, _, stderr) = workspace.run_model(&server, Format::Chat, ["go"]);
    assert_eq!(code, 0, "{stderr}");
    let last = server.requests().pop().unwrap();
    let ended = json!({"id": 1, "status": "ended", "exit_code": 7});
    let running = json!({"id": 2, "status": "running", "exit_code": null});
    let waited =
        |commands: Value| success(json!({"results": [], "unread": 0, "commands": commands}));
    assert_eq!(last.tool_output("c4"), waited(json!([ended])));
    assert_eq!(last.tool_output("c5"), waited(json!([ended, running])));
    assert_eq!(last.tool_output("c6"), failure("Command #9 not found"));
    assert_eq!(contents(&workspace.log("0/"), "notification"), Vec::<&str>::new());
}

/// The commands of a killed agent end with it, even if it is idle.
#[test]
fn a_kill_of_the_agent_ends_its_commands() {
    let server = ModelServer::choosing(|request| {
        let is_child = request.agent().as_deref() == Some("0/0/");
        match (is_child, request.results_since_user()) {
            (true, 0) => background("c1", "echo $$ > leader; sleep 31415.3"),
            (true, _) => Reply::text("It runs."),
            (false, 0) => Reply::call("f1", "fork", json!({"prompt": "please start it"})),
            (false, 1) => Reply::call("w1", "wait", json!({})),
            (false, 2) => Reply::call("b1", "bash", json!({"command": until("leader")})),
            (false, 3) => Reply::call("k1", "kill", json!({"agent": "0/0/"})),
            (false, 4) => {
                let gone =
                    "for try in $(seq 600); do kill -0 $(cat leader) || exit 5; sleep 0.05; done";
                Reply::call("b2", "bash", json!({"command": gone}))
            }
            (false, _) => Reply::text("done"),
        }
    });
    let workspace = Workspace::unconfined();
    let (code, _, stderr) = workspace.run_model(&server, Format::Chat, ["--wait-commands", "go"]);
    assert_eq!(code, 0, "{stderr}");
    let last = server.requests().pop().unwrap();
    assert_eq!(last.tool_output("b2")["data"]["exit_code"], 5);
    assert_eq!(workspace.number("SELECT count(*) FROM commands WHERE state = 'lost'"), 1);
}

/// Runs that end in every way leave no process behind.
#[test]
fn no_process_is_left_by_many_runs() {
    const RUNS: usize = 40;
    let workspace = Workspace::unconfined();
    for number in 0..RUNS {
        let calls = ["c1", "c2", "c3", "c4", "c5"].map(|id| {
            let command = "echo $$ >> leaders; (sleep 31415.2; true) & sleep 31415.2";
            (id, "bash", json!({"command": command, "background": true}))
        });
        let server = ModelServer::start([Reply::calls(calls), Reply::silence()]);
        let run = start_run(&workspace, &server, ["go"]);
        server.wait_for_requests(2);
        match number % 3 {
            0 => kill(run),
            1 => {
                kill_process(pid(&run.child), Signal::INT).unwrap();
                run.finish();
            }
            _ => {
                kill_process(pid(&run.child), Signal::HUP).unwrap();
                run.finish();
            }
        }
    }
    let leaders = workspace.read_text("leaders");
    assert!(leaders.lines().count() > RUNS, "only {} were started", leaders.lines().count());
    for leader in leaders.lines().filter_map(|line| line.parse().ok()) {
        wait_until_gone(rustix::process::Pid::from_raw(leader).unwrap());
    }
}

#[test]
fn a_line_that_an_agent_waits_for_wakes_it_once() {
    let serve =
        format!("{}; echo listening on 1; echo listening on 2; {}", until("go"), until("end"));
    let arguments = json!({"command": serve, "background": true, "notify_on": "^listen"});
    let server = ModelServer::start([
        Reply::call("c1", "bash", arguments),
        Reply::text("It starts."),
        Reply::call("c2", "bash", json!({"command": "touch end"})),
        Reply::text("It listens."),
        Reply::text("It has ended."),
    ]);
    let workspace = Workspace::new();
    let mut run = workspace.run_command(&server, Format::Chat, ["--json", "--wait-commands", "go"]);
    let run = Running::start(&mut run);
    server.wait_for_requests(2);
    workspace.touch(["go"]);
    let (code, _, stderr) = run.finish();
    assert_eq!((code, &*stderr), (0, ""));
    let log = workspace.log("0/");
    let told = contents(&log, "notification");
    assert_eq!(told[0], "[Notification: Command #1 printed a line]\n  listening on 1");
    assert!(
        told[1].starts_with("[Notification: Command #1 finished with exit code 0 "),
        "{told:?}"
    );
    assert_eq!(told.len(), 2, "{told:?}");
}

#[test]
fn a_pattern_that_is_none_is_refused() {
    let arguments = json!({"command": "true", "background": true, "notify_on": "("});
    let server = ModelServer::start([Reply::call("c1", "bash", arguments), Reply::text("ok")]);
    let workspace = Workspace::new();
    workspace.run_model(&server, Format::Chat, ["go"]);
    let error = server.requests()[1].tool_output("c1")["error"].as_str().unwrap().to_owned();
    assert!(error.starts_with("Invalid pattern: "), "{error}");
}
