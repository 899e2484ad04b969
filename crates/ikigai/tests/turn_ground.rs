//! A database that fails under a turn: what is wrong is told, what passes is waited for, and nothing is half
//! done.

use ikigai_testkit::{ModelServer, Reply};
use rustix::process::{Signal, kill_process};
use serde_json::json;

use crate::full_disk::unshare;
use crate::support::model::{Format, Running, assert_stable};
use crate::support::story::{WELL_AGAIN, answered, assert_whole, bash, check_goes_on, kinds};
use crate::support::{Workspace, ended, failure, pid, run, skip, wait_for, wait_for_pid};

#[test]
fn a_database_that_cannot_be_written_is_told_before_the_model_is_asked() {
    let server = ModelServer::start([Reply::text("hello"), Reply::text(WELL_AGAIN)]);
    let workspace = Workspace::of_plain_user();
    let (code, stdout, _) = workspace.run_model(&server, Format::Chat, ["go"]);
    assert_eq!((code, &*stdout), (0, "hello\n"));
    let database = "../home/data/ikigai/ikigai.db";
    workspace.set_mode(database, 0o400);
    let told = format!(
        "ikigai: The database {} cannot be written: check the permissions of the file and its folder\n",
        workspace.database().display()
    );
    for arguments in [["-c", "more"], ["--new", "more"]] {
        let ended = workspace.run_model(&server, Format::Chat, arguments);
        assert_eq!(ended, (1, String::new(), told.clone()));
    }
    assert_eq!(server.requests().len(), 1);
    workspace.set_mode(database, 0o600);
    let log = check_goes_on(&workspace, &server, Format::Chat);
    assert_eq!(kinds(&log), ["user", "assistant", "user", "assistant"]);
}

#[test]
fn a_database_that_vanishes_ends_the_turn_and_its_call_is_closed_when_it_is_back() {
    let server = ModelServer::start([
        bash("c1", "mv ~/data/ikigai/ikigai.db ~/data/aside.db"),
        Reply::text(WELL_AGAIN),
    ]);
    let workspace = Workspace::unconfined();
    let (code, stdout, stderr) = workspace.run_model(&server, Format::Chat, ["go"]);
    let database = workspace.database();
    let told = format!(
        "ikigai: The database {} was moved or deleted while it was in use: put it back, or restart",
        database.display()
    );
    // SQLite may notice first that its file is gone.
    let is_told = |line: &str| line == told || line == "ikigai: Database error: disk I/O error";
    assert_eq!((code, &*stdout), (1, ""));
    assert!(stderr.lines().last().is_some_and(is_told), "{stderr}");
    std::fs::rename(workspace.home().join("data/aside.db"), database).unwrap();
    let log = check_goes_on(&workspace, &server, Format::Chat);
    assert_eq!(kinds(&log), ["user", "tool_call", "tool_result", "user", "assistant"]);
}

/// Somebody who keeps the database to himself.
fn lock(workspace: &Workspace) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(workspace.database()).unwrap();
    wait_for("the write lock", || connection.execute_batch("BEGIN IMMEDIATE").ok());
    connection
}

#[test]
fn a_database_that_is_kept_busy_is_waited_for() {
    let server = ModelServer::start([
        Reply::text("hello"),
        bash("c1", "echo $$ > leader; while [ ! -e go ]; do sleep 0.01; done"),
        Reply::text("done"),
        Reply::text(WELL_AGAIN),
    ]);
    let workspace = Workspace::new();
    workspace.run_model(&server, Format::Chat, ["go"]);
    let busy = lock(&workspace);
    let mut command = workspace.run_command(&server, Format::Chat, ["-c", "--json", "go"]);
    let run = Running::start(&mut command);
    // Nothing is asked that is not written down first.
    wait_until_listening(&run);
    assert_eq!(server.requests().len(), 1);
    busy.execute_batch("COMMIT").unwrap();
    wait_for_pid(&workspace.path("leader"));
    let busy = lock(&workspace);
    workspace.touch(["go"]);
    busy.execute_batch("COMMIT").unwrap();
    let (code, events, stderr) = run.finish();
    assert_eq!((code, events.last(), &*stderr), (0, Some(&answered("done")), ""));
    check_goes_on(&workspace, &server, Format::Chat);
}

#[test]
fn two_signals_end_a_run_that_waits_for_a_busy_database() {
    let server = ModelServer::start([Reply::text("hello"), Reply::text(WELL_AGAIN)]);
    let workspace = Workspace::new();
    workspace.run_model(&server, Format::Chat, ["go"]);
    let busy = lock(&workspace);
    let mut command = workspace.run_command(&server, Format::Chat, ["-c", "--json", "go"]);
    let mut run = Running::start(&mut command);
    wait_until_listening(&run);
    let status = wait_for("the end", || {
        let _ = kill_process(pid(&run.child), Signal::INT);
        run.child.try_wait().unwrap()
    });
    assert_eq!(status.code(), Some(130));
    drop(busy);
    let log = check_goes_on(&workspace, &server, Format::Chat);
    assert_eq!(kinds(&log), ["user", "assistant", "user", "assistant"]);
}

const STUCK: &str = "ikigai: interrupted after 4 s (--timeout)
ikigai: a file or the database does not respond; exiting without waiting for it\n";

#[test]
fn a_time_limit_ends_a_run_that_waits_for_a_busy_database() {
    let server = ModelServer::start([Reply::text("hello"), Reply::text(WELL_AGAIN)]);
    let workspace = Workspace::new();
    workspace.run_model(&server, Format::Chat, ["go"]);
    let busy = lock(&workspace);
    let arguments = ["-c", "--timeout", "4", "go"];
    let ended = workspace.run_model(&server, Format::Chat, arguments);
    assert_eq!(ended, (130, String::new(), STUCK.to_owned()));
    drop(busy);
    check_goes_on(&workspace, &server, Format::Chat);
}

/// A file system whose server never answers: whoever looks into it waits in the kernel.
#[test]
fn a_time_limit_ends_a_run_whose_tool_is_stuck_in_the_system() {
    let Some(options) = unshare() else {
        skip("this system does not let the tests mount a file system");
        return;
    };
    let read = Reply::call("c1", "file_read", json!({"path": "hung/file"}));
    let server = ModelServer::start([read, Reply::text(WELL_AGAIN)]);
    let workspace = Workspace::new();
    workspace.folder("hung");
    let script = r#"
        exec 3<>/dev/fuse || exit 77
        mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 none hung || exit 77
        "$0" run --timeout 4 go 3>&-
    "#;
    let mut command = workspace.under("unshare", &[&options[..], &["bash", "-c", script]].concat());
    let model = workspace.run_command(&server, Format::Chat, []);
    command.envs(model.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let (code, stdout, stderr) = ended(&mut command);
    if code == 77 {
        skip(&format!("this system has no file systems in user space: {stderr}"));
        return;
    }
    assert_eq!((code, &*stdout), (130, ""), "{stderr}");
    assert!(stderr.ends_with(STUCK), "{stderr}");
    check_goes_on(&workspace, &server, Format::Chat);
}

/// Waits until the program has its handler for SIGINT, which is signal 2; the database comes after that.
fn wait_until_listening(run: &Running) {
    let path = format!("/proc/{}/status", run.child.id());
    wait_for("a handler for signals", || {
        let status = std::fs::read_to_string(&path).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t")).unwrap();
        (u64::from_str_radix(mask, 16).unwrap() & 0b10 != 0).then_some(())
    });
}

/// The person frees some space while the program waits for it. That takes longer than until the next renewal of
/// the lease, which fails as well, and had ended the turn.
#[test]
fn a_full_disk_is_told_and_waited_for() {
    let Some(options) = unshare() else {
        skip("this system does not let the tests mount a small file system");
        return;
    };
    let fill = |id| bash(id, "cat /dev/zero > ../disk/tree/fill; echo filled");
    let server = ModelServer::start([
        fill("c1"),
        Reply::text("there was room"),
        fill("c2"),
        Reply::text(WELL_AGAIN),
    ]);
    let workspace = Workspace::new();
    workspace.folder("disk");
    let script = r#"
        mount -t tmpfs -o size=1m tmpfs disk || exit 1
        export IKIGAI_DATABASE_URL=sqlite://$PWD/disk/ikigai.db
        mkdir tree disk/tree
        run="run -C tree --add-dir disk/tree"
        "$0" $run go 2> first & ikigai=$!
        until grep -q waiting first; do sleep 0.05; done
        sleep 6
        rm disk/tree/fill
        wait $ikigai; echo $?
        "$0" $run -c --timeout 2 go 2> second; echo $?
        rm disk/tree/fill
        "$0" $run -c 'and now?' 2> third; echo $?
        "$0" log -C tree --json > log
    "#;
    let mut command = workspace.under("unshare", &[&options[..], &["bash", "-c", script]].concat());
    let model = workspace.run_command(&server, Format::Chat, []);
    command.envs(model.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = run(&mut command);
    let told = ["first", "second", "third"].map(|name| workspace.read_text(name));
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(stdout, format!("there was room\n0\n130\n{WELL_AGAIN}\n0\n"), "{told:?}");
    let full = format!(
        "No space left for the database {}: free some space; nothing was lost",
        workspace.text("disk/ikigai.db")
    );
    assert_eq!(told[0].matches(&format!("⚠ {full}; waiting\n")).count(), 1, "{}", told[0]);
    assert!(told[1].ends_with(&format!("✗ interrupted: {full}\n")), "{}", told[1]);
    let requests = server.requests();
    assert_stable(&requests);
    let closed = failure(
        "Interrupted: the program ended before the call did; the command may have had effects",
    );
    assert_eq!(requests[3].tool_output("c2"), closed);
    let filled = "cat: write error: No space left on device\nfilled\n";
    let output = json!({"success": true, "data": {"output": filled, "exit_code": 0}});
    assert_eq!(requests[1].tool_output("c1"), output);
    let log: Vec<serde_json::Value> = workspace
        .read_text("log")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_whole(&log);
}

/// Two runs at once in one session are two agents: neither takes the other's.
#[test]
fn a_run_that_is_at_work_keeps_its_agent() {
    let server = ModelServer::start([
        bash("c1", "echo $$ > leader; while [ ! -e go ]; do sleep 0.01; done"),
        Reply::text("I am another"),
        Reply::text("done"),
    ]);
    let workspace = Workspace::new();
    let run = Running::start(&mut workspace.run_command(&server, Format::Chat, ["--json", "go"]));
    wait_for_pid(&workspace.path("leader"));
    let told = "ikigai: agent 0/ is run by another process, so you talk to agent 1/\n";
    let arguments = ["-c", "who are you?"];
    let (code, events) = workspace.run_json_telling(&server, Format::Chat, arguments, told);
    assert_eq!((code, &events[0]["agent"]), (0, &json!("1/")));
    let mut command = workspace.run_command(&server, Format::Chat, ["-c", "--agent", "0/", "x"]);
    let (code, stdout, stderr) = ended(&mut command);
    assert_eq!((code, &*stdout), (1, ""));
    assert!(stderr.starts_with("ikigai: Agent 0/ is run by another process ("), "{stderr}");
    workspace.touch(["go"]);
    let (code, events, _) = run.finish();
    assert_eq!((code, events.last()), (0, Some(&answered("done"))));
}

/// Somebody believed that the process was dead. What it does from then on is not written over the other's.
#[test]
fn a_run_whose_agent_was_taken_over_writes_nothing_more() {
    let server = ModelServer::start([
        bash("c1", "echo $$ > leader; while [ ! -e go ]; do sleep 0.01; done"),
        Reply::text(WELL_AGAIN),
    ]);
    let workspace = Workspace::new();
    let run = Running::start(&mut workspace.run_command(&server, Format::Chat, ["--json", "go"]));
    wait_for_pid(&workspace.path("leader"));
    workspace.sql("UPDATE leases SET epoch = epoch + 1");
    let before = workspace.rows();
    workspace.touch(["go"]);
    let (code, events, stderr) = run.finish();
    let error = events.last().unwrap()["error"].as_str().unwrap();
    assert_eq!((code, stderr), (1, format!("ikigai: {error}\n")));
    assert!(error.starts_with("Agent 0/ was taken over by another process ("), "{error}");
    assert_eq!(workspace.rows(), before);
    check_goes_on(&workspace, &server, Format::Chat);
}
